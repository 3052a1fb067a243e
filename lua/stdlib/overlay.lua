--- Overlays: folders in module-name layout whose files replace or add to the built-in library.
local M = {}

---Modules beside the script are found before overlays and the built-in library.
---@param dir string
function M.use_script_folder(dir)
  package.path = ("%s/?.lua;%s/?/init.lua;%s"):format(dir, dir, package.path)
end

return M
