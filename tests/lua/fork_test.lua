--- Rollouts that go on from a turn of another one: in hand, and from a stored trajectory.
local ab = require "agentbox"
local lu = require "luaunit"

local M = {}

local TURNS = 4

local function command(text) return { tool_calls = { { name = "run_command", arguments = { command = text } } } } end

-- Turn i writes a file and changes another one; what the model says depends on the messages alone.
local function script(tail)
  local turns = {}
  for i = 1, TURNS do turns[i] = command(("echo %d > f%d; echo %d >> log; rm -f f%d; cat log"):format(i, i, i, i - 2)) end
  turns[TURNS + 1] = tail or "done"
  return ab.model.scripted(turns)
end

local function task(id)
  return ab.task.new {
    task_id = id or "forked", description = "write", files = { ["seed.txt"] = "seed" },
    verifier = { type = "command", command = "test -s log && test -s won" },
  }
end

local function tree_of(sb)
  return assert(sb:exec("cd /workspace && find . -printf '%p %y %m\\n' | sort && find . -type f -exec sha256sum {} + | sort")).stdout
end

local function start(opts)
  opts.task = opts.task or task()
  return assert(ab.rollout.start(opts))
end

function M.test_forks_have_the_files_and_go_their_own_ways()
  local ro <close> = start { model = script(), id = "parent" }
  lu.assertTrue(ro:step(2))
  local before, messages = tree_of(ro.sandbox), ab.json.encode(ro.ctx.messages)
  local kids <close> = assert(ro:fork(3))
  for i, kid in ipairs(kids) do
    lu.assertEquals(tree_of(kid.sandbox), before)
    lu.assertEquals(ab.json.encode(kid.ctx.messages), messages)
    lu.assertEquals(kid.ctx.budget.turns, 2)
    assert(kid.sandbox:write("mine", tostring(i)))
    if i == 2 then assert(kid.sandbox:write("won", "1")) end
  end
  lu.assertEquals(tree_of(ro.sandbox), before)
  ab.async.each(kids, function(kid) kid:finish() end, { limit = 8 })
  local ids = {}
  for i, kid in ipairs(kids) do
    local t = kid.traj
    ids[t.id] = true
    lu.assertEquals(t.final_status, i == 2 and "success" or "failed", t.error)
    lu.assertEquals(t.metadata.parent.id, "parent")
    lu.assertEquals(t.metadata.parent.turn, 2)
    lu.assertEquals(#t.messages, #kid.ctx.messages)
    lu.assertEquals(t.status, "completed")
    lu.assertEquals(t.metrics.steps, TURNS - 2) -- its own
  end
  lu.assertNotNil(next(ids, next(ids)), "ids of their own")
  local best = kids:best(function(t) return t.reward end)
  lu.assertIs(best, kids[2])
  local parent = ro:finish()
  lu.assertEquals(parent.final_status, "failed")
end

function M.test_what_is_adopted_is_the_result()
  local ended
  local ro <close> = start { model = script(), on_end = function(t) ended = t end }
  ro:step(1)
  local kids <close> = assert(ro:fork(2))
  assert(kids[2].sandbox:write("won", "1"))
  for _, kid in ipairs(kids) do kid:finish() end
  local traj = kids[2].traj
  ro:adopt(kids:best(function(t) return t.reward end))
  lu.assertIs(ro:finish(), traj)
  lu.assertIs(ended, traj)
end

function M.test_one_that_goes_on_is_adopted()
  local ro <close> = start { model = script() }
  ro:step(1)
  local kids <close> = assert(ro:fork(2))
  kids[1]:step(1)
  assert(kids[1].sandbox:write("won", "1"))
  ro:adopt(kids[1])
  lu.assertErrorMsgContains("adopted", function() kids[1]:step() end)
  lu.assertErrorMsgContains("not a fork", function() ro:adopt(ro) end)
  lu.assertEquals(ro.ctx.budget.turns, 2)
  lu.assertEquals(ro:finish().final_status, "success")
end

function M.test_a_fork_of_a_fork_and_another_model()
  local ro <close> = start { model = script() }
  local kids <close> = assert(ro:fork(1)) -- before its first turn
  kids[1]:step(3)
  local other = ab.model.fn(function() return { role = "assistant", content = "other" } end)
  local grandchildren <close> = assert(kids[1]:fork(1, { model = other }))
  local t = grandchildren[1]:finish()
  lu.assertEquals(ab.traj.text(t.messages[#t.messages]), "other")
  lu.assertEquals(t.metadata.parent.turn, 3)
  lu.assertEquals(grandchildren[1].ctx.budget.turns, 3)
end

function M.test_budgets_are_shared_out_once()
  local ro <close> = start { model = script(), max_steps = 3 }
  ro:step(2)
  local kids <close> = assert(ro:fork(1))
  local t = kids[1]:finish()
  lu.assertEquals(t.stop_reason, "max_turns")
  lu.assertEquals(t.metrics.steps, 1)
end

function M.test_tools_are_opened_again()
  local opened, closed = 0, 0
  local counting = ab.tool.define {
    api = 1, name = "counting", description = "counts", parameters = {},
    open = function()
      opened = opened + 1
      return { n = 0 }
    end,
    run = function(_, _, state)
      state.n = state.n + 1
      return tostring(state.n)
    end,
    close = function() closed = closed + 1 end,
  }
  local call = { tool_calls = { { name = "counting", arguments = {} } } }
  local ro <close> = start { model = ab.model.scripted { call, call, call, "done" }, custom_tools = { counting } }
  ro:step(2)
  local kids <close> = assert(ro:fork(1))
  local t = kids[1]:finish()
  lu.assertEquals(ab.traj.text(t.messages[#t.messages - 1]), "1")
  lu.assertEquals({ opened, closed }, { 2, 1 })
  t = ro:finish()
  lu.assertEquals(ab.traj.text(t.messages[#t.messages - 1]), "3")
  lu.assertEquals({ opened, closed }, { 2, 2 })
end

function M.test_an_ended_one_is_refused()
  local ro <close> = start { model = script() }
  ro:finish()
  local kids, problem = ro:fork(2)
  lu.assertNil(kids)
  lu.assertStrContains(problem.msg, "has ended")
end

-- Each turn of a stored trajectory: the same files, by hash, as there were then.
function M.test_a_stored_one_is_reached_again()
  local trees = {}
  local ro <close> = start { model = script(), id = "stored", run_id = "run" }
  for i = 1, TURNS do
    ro:step(1)
    trees[i] = tree_of(ro.sandbox)
  end
  local traj = ro:finish()
  for turn = 1, TURNS do
    local again <close> = start { model = script(), from = { traj = traj, turn = turn } }
    lu.assertEquals(tree_of(again.sandbox), trees[turn], "turn " .. turn)
    assert(again.sandbox:write("won", "1"))
    local t = again:finish()
    lu.assertEquals(t.final_status, "success", t.error)
    lu.assertEquals(t.metadata.parent.id, "stored")
    lu.assertEquals(t.metadata.parent.run_id, "run")
    lu.assertEquals(t.metadata.parent.turn, turn)
  end
  local none, problem = ab.rollout.start { task = task(), model = script(), from = { traj = traj, turn = TURNS + 3 } }
  lu.assertNil(none)
  lu.assertStrContains(problem.msg, "was not reached again")
end

function M.test_many_of_a_stored_one()
  local traj = assert(ab.rollout.run { task = task(), model = script(), id = "stored" })
  local kids <close> = assert(ab.rollout.forks({ task = task(), model = script(), from = { traj = traj, turn = 2 } }, 3))
  for i, kid in ipairs(kids) do
    local t = kid:finish()
    lu.assertEquals({ t.id, t.status, t.metadata.parent.id }, { "stored.2-" .. i, "completed", "stored" })
  end
end

-- Everything that a turn may leave: files in and outside of the workspace, links, modes, owners, what is gone.
local WIDE = {
  "mkdir -p a/b && echo one > a/b/one && ln -s a/b/one link && chmod 751 a && echo x > /etc/fork-test && ls",
  "rm a/b/one && printf 'two\\n' > /usr/local/two; chown 1000 /etc/fork-test; mkfifo pipe; cat /usr/local/two",
  "mv a c && rm /etc/hosts && head -c 300000 /dev/zero > big && truncate -s 1M sparse && ls",
  "rm -rf c && mkdir c && echo over > c/b && chmod 600 big && cat c/b",
}

local function whole_of(sb)
  return assert(sb:exec([[cd / && find etc root home workspace tmp usr/local/two -path etc/alternatives -prune -o -printf '%p %y %m %U %l\n' | sort
    find etc root home workspace tmp usr/local/two -path etc/alternatives -prune -o -type f -exec sha256sum {} + | sort]])).stdout
end

function M.test_one_read_from_its_file_is_the_same_at_each_turn_and_what_follows_is_independent()
  local dir = assert(ab.fs.tmpdir "agentbox-fork-")
  local turns = {}
  for i, text in ipairs(WIDE) do turns[i] = command(text) end
  turns[#turns + 1] = "done"
  local wholes = {}
  local ro <close> = start { model = ab.model.scripted(turns), id = "filed", run_id = "run" }
  for i = 1, #WIDE do
    ro:step(1)
    wholes[i] = whole_of(ro.sandbox)
    lu.assertNotEquals(wholes[i], wholes[i - 1], "turn " .. i .. " leaves something")
  end
  local saved <close> = assert(ab.store.open(dir, { run_id = "run" }))
  local stored = assert(saved:append(ro:finish()))
  local traj = assert(ab.traj.load(stored.run_dir))
  for turn = 1, #WIDE do
    local kids <close> = assert(ab.rollout.forks({ task = task(), model = script(), from = { traj = traj, turn = turn } }, 2))
    for _, kid in ipairs(kids) do lu.assertEquals(whole_of(kid.sandbox), wholes[turn], "turn " .. turn) end
    kids[1].sandbox:must_exec "echo mine > mine; rm -f /usr/local/two; echo changed > /etc/fork-test; rm -f link"
    lu.assertEquals(whole_of(kids[2].sandbox), wholes[turn], "the other one is as it was")
    local first, second = kids[1]:finish(), kids[2]:finish()
    lu.assertEquals({ first.status, second.status }, { "completed", "completed" })
  end
  ab.fs.remove(dir, true)
end

-- A command that says something else than it did then.
function M.test_another_state_is_refused()
  local model = ab.model.scripted { command "cat /proc/sys/kernel/random/uuid", command "true", "done" }
  local traj = assert(ab.rollout.run { task = task(), model = model })
  local again, problem = ab.rollout.start { task = task(), model = script(), from = { traj = traj, turn = 2 } }
  lu.assertNil(again)
  lu.assertStrContains(problem.msg, "differs")
end

return M
