--- Texts that wait on the disk: the file they are in, and records that are made of them.
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))
local model = require "agentbox.model"
local rand = require "agentbox.sys.rand"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))
local scratch = require "agentbox.sys.scratch"
local texts = require "agentbox.record.texts"
local traj = require "agentbox.traj"

local M = {}
local dir, file

function M.setUp()
  dir = assert(fs.tmpdir "agentbox-texts-")
  file = assert(scratch.open(dir))
end

function M.tearDown()
  file:close()
  assert(fs.remove(dir, true))
end

local function some_texts(seed, count)
  local from, list = rand.new(seed), {}
  for i = 1, count do list[i] = ("%d:"):format(i) .. ("x"):rep(from:int(0, i % 7 == 0 and 50000 or 300)) end
  return list
end

-- On the disk, in memory, and where the bytes in memory end within a text and between two.
local function files()
  local list = { file, false }
  for _, near in ipairs { 8192, 3 * 8192 + 1, 40 * 8192, 1 << 22 } do
    list[#list + 1] = assert(scratch.open(dir, near))
  end
  return list
end

function M.test_what_was_put_in_comes_out()
  local places = files()
  for seed = 1, 20 do
    local given = some_texts(seed, 60)
    for _, where in ipairs(places) do
      local list = texts.new(where or nil)
      for i, text in ipairs(given) do
        list:add(text)
        if i % 9 == 0 then lu.assertEquals(list:joined(i), "[" .. table.concat(given, ",", 1, i) .. "]") end
      end
      lu.assertEquals(list:joined(0), "[]")
      lu.assertEquals(list:joined(0, '{"m":[', "],1}"), '{"m":[],1}')
      lu.assertEquals(list:joined(9, '{"m":[', "],1}"), '{"m":[' .. table.concat(given, ",", 1, 9) .. "],1}")
      lu.assertEquals(list:joined(31), "[" .. table.concat(given, ",", 1, 31) .. "]")
      lu.assertEquals(list:all(), given)
      list:set(7, "another")
      lu.assertEquals({ list:get(7), list:get(8) }, { "another", given[8] })
      lu.assertEquals(list:joined(8):sub(-#given[8] - 10), "," .. "another," .. given[8] .. "]")
      list:set(60, "the last") -- which joined has put into the log already
      lu.assertEquals(list:joined(60):sub(-#given[59] - 11), "," .. given[59] .. ",the last]")
      lu.assertEquals(list:all()[60], "the last")
      list:close()
    end
  end
end

function M.test_an_open_text_waits_for_another_in_its_place()
  local list = texts.new(file)
  for i = 1, 5 do
    list:add("text " .. i, true)
    lu.assertEquals(type(list[i]), "string")
    list:set(i, "whole " .. i)
    lu.assertEquals(type(list[i]), "number") -- nothing of it stays in memory
  end
  lu.assertEquals(list:joined(5), "[whole 1,whole 2,whole 3,whole 4,whole 5]")
  list:close()
  list = texts.new(file)
  list:add "text"
  lu.assertEquals(type(list[1]), "number")
  lu.assertEquals(list:joined(1), "[text]")
  list:set(1, "another")
  list:add "more"
  lu.assertEquals(list:joined(2), "[another,more]")
  list:close()
end

function M.test_the_file_is_as_large_as_what_is_alive()
  local function fill()
    local list = texts.new(file)
    for i = 1, 100 do list:add(("y"):rep(1000 + i)) end
    return list
  end
  local a, b = fill(), fill()
  local size = file:size()
  lu.assertTrue(size >= 200000 and size <= 260000, size)
  for _ = 1, 50 do
    a:close()
    a = fill()
    lu.assertEquals(a:get(50), ("y"):rep(1050))
    lu.assertEquals(b:get(50), ("y"):rep(1050))
  end
  lu.assertEquals(file:size(), size)
  lu.assertEquals(fs.list(dir), {})
  lu.assertErrorMsgContains("closed", function() file:log():close() a:close() a:get(1) end)
end

-- What is in memory is taken first, also again; the rest goes to the file, which others find full or not.
function M.test_the_first_bytes_are_in_memory_and_used_again()
  local near = assert(scratch.open(dir, 4 * 8192))
  local function bytes_on_disk()
    for _, entry in ipairs(assert(fs.list "/proc/self/fd")) do
      local stat = fs.stat("/proc/self/fd/" .. entry.name)
      local name = require "agentbox.sys.fs".readlink("/proc/self/fd/" .. entry.name) or ""
      if stat and stat.type == "file" and name:find(dir, 1, true) and stat.size > 0 then return stat.size end
    end
    return 0
  end
  local long = ("n"):rep(8192)
  for _ = 1, 3 do
    local logs = {}
    for i = 1, 4 do
      logs[i] = near:log()
      assert(logs[i]:add(long))
    end
    lu.assertEquals(bytes_on_disk(), 0)
    for _, log in ipairs(logs) do log:close() end
  end
  local log = near:log()
  local place = assert(log:add(long:rep(6)))
  lu.assertEquals(bytes_on_disk(), 6 * 8192)
  lu.assertEquals(log:get(place), long:rep(6))
  lu.assertEquals(near:size(), 6 * 8192)
  near:close()
  lu.assertEquals(log:get(place), long:rep(6))
  log:close()
  lu.assertErrorMsgContains("out of range", scratch.open, dir, -1)
end

function M.test_places_that_are_none_are_refused()
  local log = file:log()
  local place = assert(log:add "four")
  lu.assertEquals(log:get(place), "four")
  for _, bad in ipairs { place + 1, place + (1 << 28), -1, math.maxinteger } do
    lu.assertErrorMsgContains("no such place", log.get, log, bad)
  end
  local later = assert(log:add("behind", ", "))
  lu.assertEquals(log:span(place, later, "<", ">"), "<four, behind>")
  lu.assertErrorMsgContains("before the first", log.span, log, later, place, "", "")
  local empty = assert(log:add "")
  lu.assertEquals(log:fill { later, "as it was", empty, place }, { "behind", "as it was", "", "four" })
  lu.assertEquals({ log:fill { empty }, log:fill { "text" }, log:fill {} }, { { "" }, { "text" }, {} })
  lu.assertErrorMsgContains("no such place", log.fill, log, { place, later + 1 })
  lu.assertEquals(scratch.open(dir .. "/nowhere"), nil)
end

function M.test_a_record_is_the_same_from_the_disk()
  local function line(where)
    local ro = made.new { scratch = where }
    local big = made.tool_call("c1", ("z"):rep(40000))
    for i = 1, 3 do
      local call = i == 2 and big or made.tool_call("c" .. i, "true")
      ro:reply(made.object("role", "assistant", "content", "turn " .. i, "tool_calls", json.array { call }), { norm = "tool_calls" })
      ro:tools({ call }, { { text = "out " .. i } })
    end
    ro:reply(made.object("role", "assistant", "content", "done"))
    local t = ro:finish()
    local text = json.encode(t.line):gsub('"finished":[%d.]+', "")
    local bodies = {}
    for call in t:calls() do bodies[#bodies + 1] = assert(t:body(call, "request")) .. assert(t:body(call, "response")) end
    return text, bodies, t
  end
  local in_memory, bodies = line()
  local on_disk, same, t = line(file)
  lu.assertEquals(on_disk, in_memory)
  lu.assertEquals(same, bodies)
  local count = 0
  for id, bytes in pairs(t._from.blobs) do
    count = count + 1
    lu.assertEquals("sha256:" .. require "agentbox.sys.hash".sha256(bytes), id)
  end
  lu.assertTrue(count > 0, "no body was large enough")
end

function M.test_a_run_keeps_what_is_in_flight_on_the_disk()
  local run
  local long = ("w"):rep(100000)
  run = runs.start { tasks = runs.tasks(3), out = dir, run_id = "r", model = model.fn(function(request)
    if #request.messages > 4 then return "done " .. long end
    return { content = long, tool_calls = { { name = "run_command", arguments = { command = "true" } } } }
  end) }
  local _ <close> = run
  local most = 0
  while run.state ~= "over" do
    if run.store.scratch then most = math.max(most, run.store.scratch:size()) end
    run:_await(0.01)
  end
  lu.assertEquals(run:wait().solved, 3)
  lu.assertTrue(most > 200000, most)
  for t in traj.each(dir .. "/r") do lu.assertStrContains(t.messages[#t.messages].content, long) end
end

return M
