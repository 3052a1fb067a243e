local lu = require "luaunit"
local parse = require "agentbox.cli._parse"
local suggest = require "agentbox.suggest"

local command = {
  name = "cook", summary = "cook something",
  arguments = { { "dish", "what to cook" } },
  options = {
    { "-t --time-s", "SECONDS", "how long", number = true, default = 60 },
    { "-n --count", "N", "how many", integer = true },
    { "--spice", "NAME", "a spice (repeatable)", repeats = true },
    { "--heat", "LEVEL", "how hot", choices = { "low", "high" } },
    { "--dry", "no water" },
  },
}

local wrapper = {
  name = "wrap", summary = "wrap", arguments = { { "file", "a file" } }, rest = "passed on",
  options = { { "--out", "DIR", "where" } },
}

local function values(...)
  local out, err = parse.parse(command, "agentbox cook", { ... })
  lu.assertNil(err)
  return out
end

local function refused(...)
  local out, err = parse.parse(command, "agentbox cook", { ... })
  lu.assertNil(out)
  lu.assertEquals(err.code, "usage")
  return err.msg
end

local M = {}

function M.test_values_may_be_glued_or_separate()
  lu.assertEquals(values("soup", "--time-s=1.5").time_s, 1.5)
  lu.assertEquals(values("--time-s", "1.5", "soup").time_s, 1.5)
  lu.assertEquals(values("-t2", "soup").time_s, 2)
  lu.assertEquals(values("-t", "2", "soup").time_s, 2)
end

function M.test_a_value_may_start_with_a_dash()
  lu.assertEquals(values("soup", "--time-s", "-4").time_s, -4)
  lu.assertEquals(values("soup", "--spice", "--dry").spice, { "--dry" })
  lu.assertEquals(values("soup", "-n", "-1").count, -1)
end

function M.test_an_empty_value_is_a_value()
  lu.assertEquals(values("soup", "--spice=").spice, { "" })
  lu.assertEquals(values("soup", "--spice", "").spice, { "" })
end

function M.test_repeats_keep_their_order()
  lu.assertEquals(values("--spice", "b", "soup", "--spice=a").spice, { "b", "a" })
end

function M.test_nothing_given_is_nil_and_not_the_default()
  lu.assertNil(values("soup").time_s)
  lu.assertNil(values("soup").dry)
end

function M.test_double_dash_ends_options()
  lu.assertEquals(values("--", "--dry").dish, "--dry")
end

function M.test_numbers_are_checked()
  lu.assertEquals(refused("soup", "--time-s", "long"), "agentbox cook: --time-s must be a number (not 'long')")
  lu.assertEquals(refused("soup", "-n", "1.5"), "agentbox cook: --count must be a whole number (not '1.5')")
end

function M.test_choices_are_checked()
  lu.assertEquals(values("soup", "--heat", "low").heat, "low")
  lu.assertStrContains(refused("soup", "--heat", "medium"), "must be one of: low, high")
end

function M.test_unknown_options_get_a_suggestion()
  lu.assertStrContains(refused("soup", "--tiem-s", "3"), "unknown option '--tiem-s', did you mean '--time-s'?")
  lu.assertStrContains(refused("soup", "-x"), "unknown option '-x'")
end

function M.test_missing_values_and_arguments()
  lu.assertStrContains(refused("soup", "--time-s"), "option '--time-s' needs a value")
  lu.assertStrContains(refused("soup", "-t"), "option '-t' needs a value")
  lu.assertStrContains(refused(), "missing argument 'dish'")
  lu.assertStrContains(refused("soup", "stew"), "too many arguments")
end

function M.test_help_wins_over_missing_arguments()
  local text, kind = parse.parse(command, "agentbox cook", { "--help" })
  lu.assertEquals(kind, "help")
  lu.assertStrContains(text, "--time-s <SECONDS>")
  lu.assertStrContains(text, "(default: 60)")
  lu.assertEquals(values("--spice", "--help", "soup").spice, { "--help" })
end

function M.test_rest_is_passed_unchanged()
  local out = parse.parse(wrapper, "agentbox wrap", { "--out", "d", "f.lua", "--out", "x", "--", "-h" })
  lu.assertEquals(out.out, "d")
  lu.assertEquals(out.file, "f.lua")
  lu.assertEquals(out.rest, { "--out", "x", "--", "-h" })
end

function M.test_suggestions_are_near_or_absent()
  lu.assertEquals(suggest.nearest("exprot", { "export", "run" }), "export")
  lu.assertEquals(suggest.nearest("zzz", { "export", "run" }), nil)
  lu.assertEquals(suggest.distance("kitten", "sitting"), 3)
  lu.assertEquals(suggest.distance("ab", "ba"), 1)
  lu.assertEquals(suggest.distance("", "abc"), 3)
end

return M
