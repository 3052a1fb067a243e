--- What a sandbox left: read where it is, and a sandbox of its own only for who does more there.
local ab = require "agentbox"
local limits = require "agentbox.limits"
local lu = require "luaunit"
local stage = require "agentbox.stage"
local sys = require "agentbox.sys.sandbox"

local M = {}

local WORK = { workspace = "/workspace", workdir = "/workspace" }

local at, made

function M.setUp()
  made = limits.new {}
  made:use()
  at = assert(stage.open({ files = { ["given.txt"] = { bytes = "given\n", mode = 420 } }, setup_commands = {} },
    { limits = { memory_mb = 256, disk_mb = 64 } }, WORK))
end

function M.tearDown() at:close() end

local function settled(command)
  local sb = assert(at:fresh())
  local out = assert(sb:exec(command, { timeout_s = 60 }))
  lu.assertEquals(out.exit_code, 0, out.stderr)
  local remains = assert(at:settle(sb))
  return setmetatable({}, { __index = remains, __close = function() remains:close() end }), sb
end

local function names(list)
  local out = {}
  for i, entry in ipairs(list) do out[i] = entry.name end
  return table.concat(out, " ")
end

-- Where an ordinary user of the host could not read all there is, a sandbox reads it.
local function all_is_readable(sb) return sys.probe().root and sb._raw:user_count() > 1 end

function M.test_reading_needs_no_sandbox()
  local remains <close>, sb = settled "mkdir d; echo one > d/f; chmod 640 d/f; ln -s d/f link; rm given.txt; echo x > /etc/own"
  local before, expected = made.creating.entered, all_is_readable(sb) and 0 or 1
  local after = remains:sandbox()
  lu.assertEquals({ after.kind, after.workspace }, { "native", "/workspace" })
  lu.assertEquals(assert(after:read "link"), "one\n")
  lu.assertEquals(assert(after:read "/etc/own"), "x\n")
  lu.assertEquals(assert(after:stat "d/f").mode & 511, 416)
  lu.assertEquals(assert(after:stat("link", { follow = false })).target, "d/f")
  lu.assertEquals(names(assert(after:list("/workspace", { recursive = true }))), "d d/f link")
  lu.assertNotNil(assert(after:stat "/usr/bin").type) -- what it stood on is below
  local _, missing = after:read "given.txt"
  lu.assertEquals(missing.code, "notfound")
  local _, kernels = after:read "/proc/1/environ"
  lu.assertEquals(kernels.code, "denied")
  local dir = assert(ab.fs.tmpdir "agentbox-left-")
  lu.assertEquals(assert(after:get("/workspace", dir)).files, 1)
  lu.assertEquals(assert(ab.fs.read(dir .. "/d/f")), "one\n")
  assert(ab.fs.remove(dir, true))
  lu.assertEquals(made.creating.entered - before, expected)
  local other <close> = assert(at:fresh())
  lu.assertEquals(assert(ab.sandbox.copy_tree(after, "/workspace", other, "/copy")).links, 1)
  lu.assertEquals(assert(other:read "/copy/d/f"), "one\n")
end

function M.test_nothing_of_it_runs_any_more()
  local remains <close> = settled "(while :; do date +%N >> ticks; done) </dev/null >/dev/null 2>&1 & while [ ! -s ticks ]; do :; done"
  local after = remains:sandbox()
  local before = assert(after:read "ticks")
  lu.assertEquals(assert(after:exec "cat ticks").stdout, before)
  lu.assertEquals(assert(after:read "ticks"), before)
end

function M.test_a_command_gets_a_sandbox_once()
  local remains <close>, sb = settled "echo one > f; mkdir -m 700 d"
  local after = remains:sandbox()
  lu.assertEquals(assert(after:read "f"), "one\n")
  local before = made.creating.entered
  local says = {}
  ab.async.each({ 1, 2, 3 }, function(i) says[i] = assert(after:exec("cat f; echo " .. i)).stdout end)
  lu.assertEquals(says, { "one\n1\n", "one\n2\n", "one\n3\n" })
  lu.assertTrue(made.creating.entered - before <= 1)
  lu.assertIsFalse(sb._raw:is_alive())
  assert(after:write("f", "two\n"))
  lu.assertEquals(assert(after:exec "cat f").stdout, "two\n")
  lu.assertEquals(assert(after:read "f"), "two\n")
end

function M.test_a_change_is_not_made_to_what_was_left()
  for _, change in ipairs {
    function(after) assert(after:write("f", "two\n")) end,
    function(after) assert(after:remove "f") end,
    function(after) assert(after:rename("f", "g")) end,
    function(after) assert(after:mkdir "h") end,
    function(after) assert(ab.sandbox.copy_tree(after, "/etc", after, "/workspace")) end,
  } do
    local remains <close> = settled "echo one > f"
    change(remains:sandbox())
    local copy <close> = assert(remains:copy())
    lu.assertEquals(names(assert(copy:list "/workspace")), "f given.txt")
    lu.assertEquals(assert(copy:read "f"), "one\n")
  end
end

function M.test_copies_and_looks_in_turn()
  local remains <close> = settled "echo one > f"
  local after = remains:sandbox()
  lu.assertEquals(assert(after:read "f"), "one\n")
  local copy <close> = assert(remains:copy())
  assert(copy:write("f", "copy\n"))
  lu.assertEquals(assert(after:read "f"), "one\n")
  local second <close> = assert(remains:copy())
  lu.assertEquals(assert(second:exec "cat f").stdout, "one\n")
  lu.assertEquals(assert(after:exec "cat f").stdout, "one\n")
end

-- The handle that looks is refused what would write, whoever asks.
function M.test_the_frozen_tree_is_not_written_to()
  local sb = assert(at:fresh())
  local raw = sb._raw
  local layer <close> = setmetatable({ assert(raw:freeze(true)) }, { __close = function(self) self[1]:close() end })
  lu.assertEquals(assert(raw:read "/workspace/given.txt"), "given\n")
  for _, refused in ipairs {
    table.pack(raw:write("/workspace/x", "x")), table.pack(raw:mkdir("/x", {})), table.pack(raw:remove("/workspace/given.txt")),
    table.pack(raw:rename("/workspace/given.txt", "/x")), table.pack(raw:put("/x", "/etc")), table.pack(raw:exec "true"),
    table.pack(raw:copy_tree("/etc", raw, "/x")), table.pack(raw:freeze(true)), table.pack(raw:snapshot()), table.pack(raw:diff()),
  } do
    lu.assertNil(refused[1])
    lu.assertEquals(refused[2].code, "sandbox")
  end
  raw:close()
  local _, closed = raw:read "/workspace/given.txt"
  lu.assertEquals(closed.code, "sandbox")
  lu.assertNotNil(layer)
end

function M.test_closed_it_stays_closed()
  local remains <close> = settled "echo one > f"
  local after = remains:sandbox()
  lu.assertEquals(assert(after:read "f"), "one\n")
  local before = made.creating.entered
  remains:close()
  remains:close()
  for _, try in ipairs { function() return after:read "f" end, function() return after:exec "true" end } do
    local got, problem = try()
    lu.assertNil(got)
    lu.assertEquals(problem.code, "sandbox")
  end
  lu.assertEquals(made.creating.entered, before)
end

-- A sandbox that cannot be made is the infrastructure's failure, and the next who wants it may have it.
function M.test_a_sandbox_that_cannot_be_made_raises()
  local remains <close> = settled "echo one > f"
  local after = remains:sandbox()
  local spec = at.spec
  at.spec = { image = "/no/such/directory" }
  local ok, problem = pcall(function() return after:exec "cat f" end)
  lu.assertIsFalse(ok)
  lu.assertStrContains(tostring(problem.msg or problem), "creating the sandbox")
  at.spec = spec
  lu.assertEquals(assert(after:exec "cat f").stdout, "one\n")
end

return M
