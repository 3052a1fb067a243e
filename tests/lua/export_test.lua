local lu = require "luaunit"
local export = require "agentbox.export"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local store = require "agentbox.store"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}
local dir

local UNSCORED = {
  status = "failed", final_status = "error", stop = { reason = "sandbox_error", class = "sandbox" }, reward = { scored = false },
}

function M.setUp()
  dir = assert(fs.tmpdir "agentbox-export")
  local s <close> = assert(store.open(dir .. "/out", { run_id = "run-1" }))
  assert(s:append(made.sample({ id = "r1-0" }, { tokens = true }):finish()))
  assert(s:append(made.sample({ id = "r1-1" }, { tokens = true }):finish { reward = { scored = true, value = 0.0 }, final_status = "failed" }))
  assert(s:append(made.sample({ id = "r1-2" }):finish(UNSCORED)))
  assert(s:append(made.sample({ id = "r1-3", task_id = "t-18" }, { tokens = true }):finish()))
end

function M.tearDown() assert(fs.remove(dir, true)) end

local function convert(opts)
  opts.input = opts.input or dir .. "/out"
  return export.convert(opts)
end

local function lines(path)
  local out = {}
  for line in assert(fs.read(path)):gmatch "([^\n]*)\n" do out[#out + 1] = assert(json.decode(line)) end
  return out
end

function M.test_formats_are_listed()
  local names = {}
  for i, format in ipairs(export.formats()) do names[i] = format.name end
  lu.assertEquals(names, { "agentbox", "jsonl", "canonical", "art", "trl", "verl", "skyrl", "verifiers", "prime_rl", "slime",
    "openrlhf", "openai", "sharegpt", "prompt_completion", "preference", "pretokenized" })
end

function M.test_unknown_formats_and_options()
  for _, name in ipairs { "nope", "../art", "_choice" } do
    local ok, err = convert { format = name, out = dir .. "/x.jsonl" }
    lu.assertNil(ok)
    lu.assertEquals(err.code, "badarg")
    lu.assertStrContains(err.msg, "known: agentbox, jsonl, canonical, art, ")
  end
  local ok, err = convert { format = "art", out = dir .. "/x.jsonl", options = { from = "exchanges" } }
  lu.assertNil(ok)
  lu.assertEquals(err.msg, "format art has no option from; it has form, min_group, tokens")
  ok, err = convert { format = "openai", out = dir .. "/x.jsonl", options = { tool_args = "xml" } }
  lu.assertNil(ok)
  lu.assertEquals(err.msg, "tool_args must be string or object, not xml")
  lu.assertFalse(fs.exists(dir .. "/x.jsonl"))
end

function M.test_lines()
  local result = assert(convert { format = "jsonl", out = dir .. "/x.jsonl" })
  lu.assertEquals({ result.written, #result.skipped, #result.losses }, { 4, 0, 0 })
  local rows = lines(dir .. "/x.jsonl")
  lu.assertEquals({ #rows, rows[1].task_id, rows[4].task_id }, { 4, "t-17", "t-18" })
end

function M.test_canonical_lines_can_be_exported_again()
  assert(convert { format = "canonical", out = dir .. "/a.jsonl" })
  assert(convert { input = dir .. "/a.jsonl", format = "canonical", out = dir .. "/b.jsonl" })
  lu.assertEquals(fs.read(dir .. "/b.jsonl"), fs.read(dir .. "/a.jsonl"))
  lu.assertEquals(fs.read(dir .. "/a.jsonl"), fs.read(dir .. "/out/run-1/trajectories-00000.jsonl"))
end

function M.test_art_groups()
  local result = assert(convert { format = "art", out = dir .. "/x.jsonl" })
  lu.assertEquals({ result.written, #result.skipped }, { 3, 1 })
  local groups = lines(dir .. "/x.jsonl")
  lu.assertEquals(#groups, 2)
  lu.assertEquals({ #groups[1].trajectories, #groups[1].exceptions }, { 2, 1 })
  lu.assertEquals(groups[1].exceptions[1].type, "agentbox.sandbox.sandbox_error")
  lu.assertEquals({ groups[1].metadata.group_id, groups[2].metadata.group_id }, { "t-17", "t-18" })
end

-- An export takes no more memory than its open groups do.
function M.test_a_group_that_was_handed_on_is_let_go()
  local format = {
    keep_docs = true,
    join = function(_, docs) return { n = #docs } end,
  }
  local groups, kept, seen = require "agentbox.export.groups".new(format, {}), setmetatable({}, { __mode = "v" }), {}
  local function put(doc, _, _, group) seen[#seen + 1] = group.id .. doc.n end
  for i = 1, 5 do
    local doc = {}
    kept[i] = doc
    groups:add({ id = i, task_id = "t", run_id = "r", line = { group = { id = ("g%d"):format((i + 1) // 2), index = 1 - i % 2, size = 2 } } }, doc)
    groups:flush(put)
  end
  collectgarbage()
  lu.assertEquals({ #seen, kept[1], kept[4], type(kept[5]) }, { 2, nil, nil, "table" })
  groups:flush(put, true)
  lu.assertEquals(seen, { "g12", "g22", "g31" })
end

function M.test_one_document()
  local result = assert(convert { input = dir .. "/out#r1-0", format = "art", out = dir .. "/x.json" })
  lu.assertEquals(result.files, { dir .. "/x.json" })
  local text = assert(fs.read(dir .. "/x.json"))
  lu.assertStrContains(text, '{\n  "messages_and_choices": [\n')
  lu.assertEquals(json.decode(text).reward, 1.0)
  local ok, err = convert { format = "art", out = dir .. "/y.json" }
  lu.assertNil(ok)
  lu.assertStrContains(err.msg, "more than one trajectory")
end

function M.test_an_unscored_document_is_skipped()
  local result = assert(convert { input = dir .. "/out#r1-2", format = "art", out = dir .. "/x.json" })
  lu.assertEquals({ result.written, #result.files }, { 0, 0 })
  lu.assertEquals(result.skipped[1].id, "r1-2")
  lu.assertFalse(fs.exists(dir .. "/x.json"))
end

function M.test_a_folder_of_documents()
  local result = assert(convert { format = "agentbox", out = dir .. "/docs/" })
  lu.assertEquals(result.written, 4)
  lu.assertEquals(#assert(fs.list(dir .. "/docs")), 4)
  local ok, err = convert { format = "openai", out = dir .. "/docs/" }
  lu.assertNil(ok)
  lu.assertStrContains(err.msg, "writes lines")
end

function M.test_strict_refuses_a_loss_and_leaves_nothing()
  local ok, err = convert { format = "openai", out = dir .. "/x.jsonl", strict = true, options = { reasoning = "drop" } }
  lu.assertNil(ok)
  lu.assertStrContains(err.msg, "10 characters of reasoning")
  lu.assertEquals(#assert(fs.list(dir)), 1)
  lu.assertNotNil((convert { format = "openai", out = dir .. "/x.jsonl", strict = true }))
end

function M.test_the_report()
  local result = assert(convert { format = "openai", out = dir .. "/x.jsonl", options = { reasoning = "drop" } })
  local text = export.report("openai", result)
  lu.assertStrContains(text, "openai leaves out: 10 characters of reasoning (3 of 3)\n")
  lu.assertStrContains(text, "skipped 1: unscored (first: r1-2)\n")
  lu.assertStrContains(text, "openai never carries: reward and metrics")
end

function M.test_damage_in_the_input_leaves_no_output()
  local path = dir .. "/out/run-1/trajectories-00000.jsonl"
  assert(fs.write(path, (assert(fs.read(path)):gsub("Fixed", "Mixed"))))
  local ok, err = convert { format = "jsonl", out = dir .. "/x.jsonl" }
  lu.assertNil(ok)
  lu.assertEquals(err.code, "parse")
  lu.assertEquals(#assert(fs.list(dir)), 1)
end

function M.test_an_output_that_cannot_be_written()
  local ok, err = convert { format = "jsonl", out = dir .. "/no/such/x.jsonl" }
  lu.assertNil(ok)
  lu.assertEquals(err.code, "notfound")
  lu.assertStrContains(err.msg, "No such file or directory")
end

function M.test_several_inputs()
  local result = assert(convert { input = { dir .. "/out#r1-0", dir .. "/out#r1-3" }, format = "jsonl", out = dir .. "/x.jsonl" })
  lu.assertEquals(result.written, 2)
end

return M
