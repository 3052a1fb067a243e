--- A container engine that is dead, hangs, lies or cuts the stream: an error of code sandbox at a deadline, never a hang
--- (fault F05 of daemons; B26: not there and not answering are told apart).
local err = require "agentbox.err"
local links = require "agentbox.docker.link"
local lu = require "luaunit"
local sandbox = require "agentbox.sandbox"
local time = require "agentbox.time"

local fakedocker = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/fakedocker.lua")

local M = {}

local function create(daemon)
  return sandbox.create { backend = daemon.backend, image = "x" }
end

local function fails(mode, text)
  local daemon <close> = fakedocker.start(mode, 0.5)
  local sb, problem = create(daemon)
  lu.assertNil(sb, mode)
  lu.assertEquals(problem.code, "sandbox", mode .. ": " .. problem.msg)
  lu.assertTrue(err.infra(problem), mode)
  if text then lu.assertStrContains(problem.msg, text) end
  return daemon.log()
end

function M.test_a_daemon_that_is_not_there()
  local backend = require "agentbox.docker.backend".new("docker", "unix:///nowhere/docker.sock")
  package.loaded["agentbox.backends.nowhere"] = backend
  local sb, problem = sandbox.create { backend = "nowhere", image = "x" }
  package.loaded["agentbox.backends.nowhere"] = nil
  lu.assertNil(sb)
  lu.assertEquals(problem.code, "sandbox")
  lu.assertStrContains(problem.msg, "cannot be reached")
  lu.assertStrContains(problem.hint, "doctor")
end

function M.test_b26_a_daemon_that_hangs_at_any_step()
  for _, step in ipairs { "ping", "info", "image", "volume", "create", "attach", "start" } do
    fails("hang " .. step, step == "start" and "" or "did not answer")
  end
end

function M.test_a_daemon_that_refuses()
  for _, step in ipairs { "ping", "info", "image", "volume", "create", "attach", "start" } do
    fails("refuse " .. step, "on purpose")
  end
end

function M.test_a_daemon_that_answers_nonsense()
  for _, step in ipairs { "info", "image", "create" } do fails("garbage " .. step) end
end

function M.test_an_answer_that_is_torn()
  for _, step in ipairs { "ping", "info", "image", "volume", "create" } do fails("torn " .. step, "cannot be reached") end
end

function M.test_what_was_made_is_removed_when_the_rest_fails()
  for _, mode in ipairs { "hang attach", "refuse start", "greet silent", "greet cut" } do
    lu.assertStrContains(fails(mode), "DELETE /v1.41/containers/ccc", mode)
  end
end

function M.test_b46_a_container_that_dies_at_once_says_why()
  fails("greet cut", "memory limit")
end

function M.test_a_container_that_says_nothing()
  fails("greet silent", "did not come up")
end

function M.test_a_container_that_speaks_nonsense()
  fails("greet noise", "garbled")
end

function M.test_removing_has_a_deadline_too()
  local daemon <close> = fakedocker.start("hang delete", 0.5)
  local began = time.monotonic()
  local sb = create(daemon) -- its stream is silent, so that it must be given up
  lu.assertNil(sb)
  lu.assertTrue(time.monotonic() - began < 20)
end

function M.test_silence_is_noticed_while_something_is_owed()
  local real, look = links.PATIENCE_S, links.LOOK_S
  links.PATIENCE_S, links.LOOK_S = 0.4, 0.05
  local daemon <close> = fakedocker.start("greet silent", 20)
  local connection, first = daemon.api:attach "c"
  local link = links.new(assert(connection, first), first, function() return err.new("sandbox", "cut") end)
  local data, problem = link:request(15, "zzz")
  links.PATIENCE_S, links.LOOK_S = real, look
  lu.assertNil(data)
  lu.assertEquals(problem.code, "sandbox")
  lu.assertStrContains(problem.msg, "did not answer for")
end

return M
