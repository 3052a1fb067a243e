--- The globals as the built-in library sees them: reading or writing an undefined one raises, so that a
--- misspelt name fails where it stands. Scripts keep ordinary globals.
local env = {}
for name, value in pairs(_G) do env[name] = value end
env._G = _G

return setmetatable(env, {
  __index = function(_, name)
    local value = rawget(_G, name)
    if value == nil then error(("undefined global '%s'"):format(tostring(name)), 2) end
    return value
  end,
  __newindex = function(_, name)
    error(("the library must not set the global '%s'"):format(tostring(name)), 2)
  end,
})
