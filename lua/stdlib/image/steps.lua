--- image/steps.lua: what each instruction of a build does. `self` is a build under way (image/build.lua).
local dockerfile = require "agentbox.image.dockerfile"
local err = require "agentbox.err"
local files = require "agentbox.backends._files"
local layers = require "agentbox.image.layers"
local path = require "agentbox.path"

---@type table<string, fun(self: agentbox.image.Build, step: agentbox.image.Step): true?, agentbox.Err?>
local M = {}

local RUN_TIMEOUT_S = 3600

local function run(self, sb, step)
  local words = step.words or { "/bin/sh", "-c", step.rest }
  local out, problem = sb:exec(words, {
    timeout_s = self.timeout_s or RUN_TIMEOUT_S, cwd = self.workdir or "/", user = self.user,
    max_output_bytes = 1 << 16, on_output = self.on_output,
  })
  if not out then return nil, problem end
  if out.exit_code == 0 then return true end
  local why = out.timed_out and "took too long" or out.oom and "needed more memory than it was allowed"
      or ("ended with %d"):format(out.exit_code)
  local said = self.on_output and "" or (out.stderr ~= "" and out.stderr or out.stdout):gsub("%s+$", "")
  return nil, err.new("invalid", ("%s %s%s"):format(step.text, why, said ~= "" and ":\n" .. said:sub(-2000) or ""))
end

-- Runs and freezes; what it changed is a layer.
local function run_and_pack(self, step)
  local sb, problem = self:sandbox()
  if not sb then return nil, problem end
  local ok
  ok, problem = run(self, sb, step)
  if not ok then
    sb:close()
    return nil, problem
  end
  local ids = { sb._raw:ids() }
  local frozen
  frozen, problem = sb:freeze()
  if not frozen then return nil, problem end
  local parts = #frozen:parts()
  local made
  made, problem = layers.pack(self.store, frozen, ids,
    { from = parts, skip = self.network == "full" and "etc/resolv.conf" or nil })
  if self.frozen then self.frozen:close() end
  self.frozen, self.stacked = frozen, self.stacked + 1
  return made and made[1], problem
end

function M.run(self, step)
  local args = {}
  for key, value in pairs(self.args) do args[#args + 1] = key .. "=" .. value end
  table.sort(args)
  local key = self:next_key("run", step.rest, self.network, table.concat(args, "\0"))
  local layer = self:cached(key)
  if layer then
    self:drop_frozen()
  else
    local problem
    layer, problem = run_and_pack(self, step)
    if not layer then return nil, problem end
    self:remember(key, layer)
  end
  self:add(layer)
  self.key = key
  return true
end

-- Where COPY's destination is, and whether it is a folder.
local function destination(self, step, to, sources)
  local is_dir = to:find "/$" ~= nil or to:find "^%.%.?$" ~= nil or to:find "/%.$" ~= nil or #sources > 1
  if to:sub(1, 1) ~= "/" then to = (self.workdir or "/") .. "/" .. to end
  local parts = {}
  for part in to:gmatch "[^/]+" do
    if part == ".." then parts[#parts] = nil elseif part ~= "." then parts[#parts + 1] = part end
  end
  local clean = table.concat(parts, "/")
  if clean == "" then is_dir = true end
  if is_dir or #self.layers == 0 then return clean, is_dir end
  local sb, problem = self:sandbox()
  if not sb then return nil, problem end
  local stat = sb:stat("/" .. clean)
  sb:close()
  return clean, stat ~= nil and stat.type == "dir", step
end

-- "1000:1000" or a name of the image's /etc/passwd.
local function owner_of(self, chown)
  if not chown then return { uid = 0, gid = 0 } end
  local uid, gid = chown:match "^(%d+):?(%d*)$"
  if uid then return { uid = tonumber(uid), gid = tonumber(gid) or tonumber(uid) } end
  local sb, problem = self:sandbox()
  if not sb then return nil, problem end
  local _ <close> = sb
  local user, group = chown:match "^([^:]+):?(.*)$"
  if group ~= "" and group ~= user then
    return nil, err.new("unsupported", "--chown with a group's name; give numbers")
  end
  if user == "root" then return { uid = 0, gid = 0 } end
  return files.lookup(sb, user)
end

function M.copy(self, step)
  local words = {}
  for i, word in ipairs(step.words) do
    local problem
    words[i], problem = self:expand(step, word)
    if not words[i] then return nil, problem end
  end
  local to = table.remove(words)
  local into, is_dir = destination(self, step, to, words)
  if not into then return nil, is_dir end
  if not self.context then return nil, err.new("badarg", "COPY needs a folder to copy from: --context DIR") end
  local list, problem = self.context:files(words, into, is_dir)
  if not list then return nil, problem end
  local owner
  owner, problem = owner_of(self, step.flags.chown)
  if not owner then return nil, problem end
  local layer
  layer, problem = layers.copy(self.store, list,
    { uid = owner.uid, gid = owner.gid, mode = step.flags.chmod and tonumber(step.flags.chmod, 8) })
  if not layer then return nil, problem end
  self:drop_frozen()
  self:add(layer)
  self.key = self:next_key("copy", layer.diff_id)
  return true
end

function M.env(self, step)
  local list, problem = dockerfile.pairs_of(step)
  if not list then return nil, problem end
  local set = {}
  for i, pair in ipairs(list) do
    local value
    value, problem = self:expand(step, pair[2])
    if not value then return nil, problem end
    set[i] = { pair[1], value }
  end
  for _, pair in ipairs(set) do self:set_env(pair[1], pair[2]) end
  return true
end

function M.arg(self, step)
  local list, problem = dockerfile.pairs_of(step)
  if not list then return nil, problem end
  for _, pair in ipairs(list) do
    local key, value = pair[1], pair[2]
    if self.given[key] ~= nil then
      self.args[key] = self.given[key]
    elseif value then
      self.args[key], problem = self:expand(step, value)
      if not self.args[key] then return nil, problem end
    elseif self.before_from[key] then
      self.args[key] = self.before_from[key]
    end
  end
  return true
end

function M.workdir(self, step)
  local to, problem = self:expand(step, step.rest)
  if not to then return nil, problem end
  if to:sub(1, 1) ~= "/" then to = (self.workdir or "") .. "/" .. to end
  self.workdir = path.clean(to)
  return true
end

function M.user(self, step)
  local user, problem = self:expand(step, step.rest)
  if not user then return nil, problem end
  if not user:find "^[%w_.-]+$" and not user:find "^%d+:%d+$" then
    return nil, err.new("unsupported", "USER wants a name, a number or two numbers")
  end
  self.user = user
  return true
end

return M
