--- A key of the environment, in the whole program: it is in no file, on no stream and in no process's arguments, and what
--- only looks like one is left alone (fault B58).
local ab = require "agentbox"
local lu = require "luaunit"

local here = arg[0]:match "^(.*/)" or "./"
local fakellm = dofile(here .. "../support/fakellm.lua")
local live = dofile(here .. "../support/live.lua")

local M = { setUp = live.need_native }

local PROGRAM = assert(ab.fs.realpath "/proc/self/exe")

-- What every process of this machine was started with.
local function arguments()
  local all = {}
  for _, entry in ipairs(assert(ab.fs.list "/proc")) do
    if entry.name:find "^%d+$" then all[#all + 1] = ab.fs.read("/proc/" .. entry.name .. "/cmdline") end
  end
  return table.concat(all, "\n")
end

local function every_byte(path, into)
  for _, entry in ipairs(assert(ab.fs.list(path))) do
    local child = path .. "/" .. entry.name
    if entry.type == "dir" then every_byte(child, into) else into[#into + 1] = entry.name .. "\n" .. assert(ab.fs.read(child)) end
  end
  return table.concat(into, "\n")
end

-- Runs a rollout as a user does: all that the program wrote, its status, and what was seen of it meanwhile.
local function rollout(key, steps)
  local fake = fakellm.script { steps = steps }
  local dir = assert(ab.fs.tmpdir "agentbox-secret-")
  local _ <close> = setmetatable({}, { __close = function() ab.fs.remove(dir, true) end })
  assert(ab.fs.write(dir .. "/task.json", ab.json.encode {
    task_id = "secrets", description = "d", max_steps = 3, verifier = { type = "command", command = "true" },
  }))
  local host <close> = assert(ab.sandbox.create { backend = "none" })
  local child <close> = assert(host:spawn({ PROGRAM, "run", dir .. "/task.json", "-m", "fake", "--base-url", fake.url,
    "--max-tokens", "77", "-o", dir .. "/out", "--json" }, { env = { OPENAI_API_KEY = key, HOME = dir }, timeout_s = 60 }))
  local looks = 0
  while child:running() do
    lu.assertNotStrContains(arguments(), key)
    looks = looks + 1
  end
  lu.assertTrue(looks > 0)
  local out = assert(child:wait(60))
  lu.assertEquals(fake.log()[1].headers.authorization, "Bearer " .. key)
  return every_byte(dir, {}) .. out.stdout .. out.stderr, out.exit_code
end

function M.test_b58_a_key_that_the_agent_says_again_is_nowhere_but_in_the_header()
  local rest = ab.rand.uuid4()
  local key = "sk-abc-" .. rest
  -- Not in one piece, for what a shell is told is in its arguments.
  local command = ("k=sk-; k=${k}abc-%s; echo $k token max_tokens; echo $k >&2"):format(rest)
  local text, status = rollout(key, {
    { tool_calls = { { name = "run_command", arguments = { command = command } } } }, "The key is " .. key,
  })
  lu.assertEquals(status, 0, text)
  lu.assertNotStrContains(text, key)
  lu.assertStrContains(text, "*** token max_tokens")
  lu.assertStrContains(text, "The key is ***")
  lu.assertStrMatches(text:gsub("%s", ""), '.*"max_tokens":77.*')
end

function M.test_b58_a_server_that_says_the_key_again_in_its_refusal()
  local key = "sk-abc-" .. ab.rand.uuid4()
  local text, status = rollout(key, { { status = 401, error = "Incorrect API key provided: " .. key } })
  lu.assertEquals(status, 3, text)
  lu.assertNotStrContains(text, key)
  lu.assertStrContains(text, "Incorrect API key provided: ***")
end

return M
