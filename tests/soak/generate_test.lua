-- `agentbox generate batch --two-stage -n 20 -c 8` against a teacher that answers well, badly, with fences, cut off, hostile and twice;
-- whole, and killed again and again. With AGENTBOX_SOAK it is killed at thirty points, else at three.
local ab = require "agentbox"
local lu = require "luaunit"

local factory = dofile "tests/support/factory.lua"

local M = {}

local POINTS = os.getenv "AGENTBOX_SOAK" and 30 or 3
local PROGRAM = assert(ab.fs.readlink "/proc/self/exe")

-- Runs the command; its exit status, 137 when it was killed.
local function batch(out, kill_at)
  local box <close> = assert(ab.sandbox.create { backend = "none" })
  local command = ("cd '%s' && KILL_AT=%d '%s' generate batch --two-stage -n 20 -c 8 --max-rounds 2 --domain shell --no-llm-judge "
    .. "-m lua:tests/support/twenty.lua -o '%s'"):format(ab.fs.cwd(), kill_at, PROGRAM, out)
  return assert(box:exec(command, { timeout_s = 300 })).exit_code
end

local function journal_of(out)
  local ends, answers, spent = {}, {}, nil
  for line in assert(ab.fs.read_text(out .. ".state/journal.jsonl")):gmatch "[^\n]+" do
    local one = assert(ab.json.decode(line))
    local into = one.event == "end" and ends or one.event == "answer" and answers or nil
    if into then
      lu.assertNil(into[one.index], ("two lines of %s for candidate %d"):format(one.event, one.index))
      into[one.index] = one
    end
    spent = one.spent or spent
  end
  return ends, answers, spent
end

-- Exactly the good ones, each reject with its reason, each candidate once, each answer paid for once.
local function check(out)
  local twenty = dofile "tests/support/twenty.lua"
  local tasks = assert(ab.task.dir(out))
  local names = {}
  for i, task in ipairs(tasks) do names[i] = task.task_id end
  lu.assertEquals(names, twenty.names)
  local ends, answers, spent = journal_of(out)
  local accepted = 0
  for i, line in pairs(ends) do
    local expected = twenty.answers[i]
    if line.accepted then
      accepted = accepted + 1
    elseif expected.accepted then -- its double came first
      lu.assertEquals({ i, line.stage == "dedup" or line.stage == "accept" }, { i, true }, line.reason)
    else
      local stage = line.stage == "accept" and "dedup" or line.stage -- acceptance asks again
      lu.assertEquals({ i, stage }, { i, expected.stage }, line.reason)
      lu.assertStrContains(line.reason, expected.reason)
    end
  end
  lu.assertEquals(accepted, 20)
  local paid = 0
  for _ in pairs(answers) do paid = paid + 1 end
  lu.assertTrue(spent.calls >= paid and spent.calls <= #twenty.answers + 8 * (POINTS + 1))
  return tasks
end

function M.test_twenty_good_tasks_among_fifteen_others()
  local dir <close> = factory.folder()
  lu.assertEquals(batch(dir.path .. "/t", 0), 0)
  check(dir.path .. "/t")
  local left = {}
  for i, entry in ipairs(assert(ab.fs.list(dir.path))) do left[i] = entry.name end
  lu.assertEquals(left, { "t", "t.state" })
end

-- One directory, killed a few writes after each start: nothing is lost, nothing is there twice.
function M.test_killed_again_and_again_it_comes_to_the_same()
  local dir <close> = factory.folder()
  local out = dir.path .. "/t"
  -- A candidate writes three times at most; an odd number is before a write, an even one after it.
  for n = 1, POINTS do lu.assertEquals({ n, batch(out, POINTS == 30 and n % 5 + 1 or n * 11) }, { n, 137 }) end
  lu.assertEquals(batch(out, 0), 0)
  check(out)
  for _, entry in ipairs(assert(ab.fs.list(out .. ".state"))) do lu.assertNil(entry.name:find "^new%-", entry.name) end
end

return M
