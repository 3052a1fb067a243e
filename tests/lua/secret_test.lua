local log = require "agentbox.log"
local fiber = require "agentbox.sys.fiber"
local lu = require "luaunit"
local secret = require "agentbox.secret"

local M = {}

function M.test_prints_as_stars_and_reveals_only_when_asked()
  local s = secret.new "correct horse battery"
  lu.assertEquals(tostring(s), "***")
  lu.assertEquals("key " .. s, "key ***")
  lu.assertEquals(secret.reveal(s), "correct horse battery")
  lu.assertEquals(secret.reveal "plain", "plain")
  lu.assertTrue(secret.is(s))
  lu.assertFalse(secret.is "***")
  for key, value in pairs(s) do lu.fail(tostring(key) .. tostring(value)) end
end

function M.test_redacts_every_spelling()
  secret.new 'p"a/s\\s wörd'
  lu.assertEquals(secret.redact 'x p"a/s\\s wörd y p"a/s\\s wörd', "x *** y ***")
  lu.assertEquals(secret.redact [[{"k":"p\"a\/s\\s wörd"}]], [[{"k":"***"}]])
  lu.assertEquals(secret.redact [[{"k":"p\"a/s\\s wörd"}]], [[{"k":"***"}]])
  lu.assertEquals(secret.redact "?k=p%22a%2Fs%5Cs%20w%C3%B6rd&", "?k=***&")
end

function M.test_the_longer_secret_goes_first()
  secret.new "abcdef-1"
  secret.new "abcdef-1234"
  lu.assertEquals(secret.redact "abcdef-1234", "***")
end

function M.test_short_values_are_left_alone()
  secret.new "EMPTY"
  lu.assertEquals(secret.redact "EMPTY set", "EMPTY set")
end

function M.test_from_the_environment()
  lu.assertEquals(secret.reveal(secret "HOME"), os.getenv "HOME")
  lu.assertErrorMsgContains("AGENTBOX_NO_SUCH is not set", secret.env, "AGENTBOX_NO_SUCH")
end

function M.test_logs_are_redacted_and_go_to_the_fibers_sink()
  secret.new "s3cr3t-value"
  local lines = {}
  fiber.current():locals().log = function(level, text) lines[#lines + 1] = level .. " " .. text end
  log.warn("key is %s", "s3cr3t-value")
  fiber.spawn(function() print("from", "a child") end):join()
  lu.assertEquals(lines, { "warn key is ***", "info from\ta child" })
end

return M
