--- Generation: what a candidate costs us beside the model and the sandboxes, with a hundred thousand accepted tasks.
local ab = require "agentbox"
local index = require "agentbox.generate.index"
local language = require "agentbox.generate.language"
local report = require "report"

local ACCEPTED, CANDIDATES, NEAR = 100000, 300, 4 -- one candidate of so many is nearly an accepted task
local REFERENCE_US = 1.07e6 -- AgentBox 0.2.1 at 1,000 tasks, a candidate

local rand = require "agentbox.sys.rand"
local WORDS = {}
do
  local source = rand.new(1)
  for i = 1, 4000 do
    local letters = {}
    for n = 1, source:int(3, 9) do letters[n] = string.char(source:int(97, 122)) end
    WORDS[i] = table.concat(letters)
  end
end

-- A task of the shell of about two kilobytes, as a teacher writes it; the same number gives the same.
local function answer(number, salt)
  local source = rand.new(number)
  local function words(n)
    local out = {}
    for i = 1, n do out[i] = WORDS[source:int(1, #WORDS)] end
    return table.concat(out, " ")
  end
  local name = WORDS[source:int(1, #WORDS)] .. "_" .. number
  local lines = {}
  for i = 1, 6 do lines[i] = ('test_%d() {\n    check "%s" "%s" "$(sh %s.sh %d)"\n}\n'):format(i, words(8), words(3), name, source:int(0, 999)) end
  if salt then lines[#lines + 1] = "# " .. salt .. "\n" end
  local out = ab.json.object { task_id = name, description = ("Write %s.sh: %s"):format(name, words(60)) }
  out.solution_files = ab.json.object { [name .. ".sh"] = ("# %s\n# BEGIN SOLUTION\n%s\n# END SOLUTION\n"):format(words(30), words(40)) }
  out.test_files = ab.json.object { ["tests/test_" .. name .. ".sh"] = table.concat(lines) }
  return out
end

local shell = assert(language.find "shell")

-- The task that the pipeline would make of an answer.
local function task_of(given)
  local files = {}
  for path, text in pairs(given.test_files) do files[path] = { bytes = text, mode = 420 } end
  for path, text in pairs(given.solution_files) do files[path] = { bytes = shell.stub(path, text), mode = 420 } end
  return { task_id = given.task_id, files = files, metadata = {} }
end

-- The stages between the model and the sandbox; dedup reads an accepted task again from where it is.
local function stages()
  local list, wanted = {}, { parse = true, strip = true, repair = true, static = true, dedup = true }
  for _, stage in ipairs(ab.generate.two_stage()) do
    if wanted[stage.name] then list[#list + 1] = stage end
  end
  return list
end

local function candidate(i, brief)
  local near = i % NEAR == 0
  local cand = { index = i, spec = { family = "f", difficulty = "easy", constraints = "" }, language = shell, report = {}, signature = brief.signature(true) }
  cand.draft = ab.json.encode(near and answer(i, "nearly the same") or answer(ACCEPTED + i))
  return cand, near
end

local function measure(ctx, from, to)
  local list, brief = stages(), require "agentbox.generate.brief"
  local cands, found, near_ones = {}, 0, 0
  for i = from, to do
    local cand, near = candidate(i, brief)
    cands[#cands + 1], near_ones = cand, near_ones + (near and 1 or 0)
  end
  local began = os.clock()
  for _, cand in ipairs(cands) do
    for _, stage in ipairs(list) do
      local ok, why = stage.run(cand, ctx)
      if not ok then
        assert(stage.name == "dedup", why)
        found = found + 1
        break
      end
    end
  end
  local us = (os.clock() - began) / #cands * 1e6
  assert(found == near_ones, ("%d duplicates found of %d"):format(found, near_ones))
  return us
end

return function(rounds)
  local dir = assert(ab.fs.tmpdir "agentbox-bench-generate")
  local _ <close> = setmetatable({}, { __close = function() ab.fs.remove(dir, true) end })
  local known = index.new(0.85, function(name) return ab.task.load(dir .. "/" .. name) end)
  collectgarbage()
  local before = require "agentbox.sys.os".memory_rss()
  local began = os.clock()
  for i = 1, ACCEPTED do
    local task = task_of(answer(i))
    known:add({ task = task, language = shell })
    if i <= CANDIDATES * rounds and i % NEAR == 0 then
      assert(ab.task.save(ab.task.new { task_id = task.task_id, description = "d", verifier = { type = "pytest" }, files = (function()
        local files = {}
        for path, file in pairs(task.files) do files[path] = { text = file.bytes } end
        return files
      end)() }, dir .. "/" .. task.task_id))
    end
  end
  local add_us = (os.clock() - began) / ACCEPTED * 1e6
  collectgarbage()
  collectgarbage()
  local bytes = require "agentbox.sys.os".memory_rss() - before
  local ctx = { language = shell, opts = { min_asserts = 3, parents = nil }, two_stage = true, index = known, model = { name = "m" } }
  local us = {}
  for round = 1, rounds do us[round] = measure(ctx, (round - 1) * CANDIDATES + 1, round * CANDIDATES) end
  local median = report.quantile(us, 0.5)
  report.row { what = "static gates and dedup of a candidate, 100,000 tasks accepted", ours = report.us(median), value = median / 1000,
    unit = "ms", must = 2, better = "less" }
  report.row { what = "the same beside the reference's dedup at 1,000 (its own figure)", ours = report.us(median),
    peer = "AgentBox " .. report.us(REFERENCE_US), value = REFERENCE_US / median, unit = "x", better = "more" }
  report.row { what = "making and adding one of the 100,000", ours = report.us(add_us), value = add_us / 1000, unit = "ms", better = "less" }
  report.row { what = "memory of the index at 100,000 tasks", ours = ("%.0f MB"):format(bytes / 1e6), value = bytes / 1e6, unit = "MB",
    must = 200, better = "less" }
end
