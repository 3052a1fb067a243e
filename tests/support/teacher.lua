--- A scripted teacher for the tests of generation: what it answers follows from the candidate's number alone.
local json = require "agentbox.json"

local M = {}

-- Tasks that are unlike each other: name, body, tests.
local GOOD = {
  { "clamp", "def clamp(x, low, high):\n    \"\"\"x, but at least low and at most high.\"\"\"\n    return max(low, min(high, x))\n",
    { "clamp(5, 0, 3) == 3", "clamp(-1, 0, 3) == 0", "clamp(2, 0, 3) == 2", "clamp(0, 0, 0) == 0" } },
  { "vowels", "def count_vowels(text):\n    \"\"\"How many vowels a text has, capital ones too.\"\"\"\n    return sum(c in 'aeiou' for c in text.lower())\n",
    { "count_vowels('') == 0", "count_vowels('AbE') == 2", "count_vowels('xyz') == 0", "count_vowels('banana') == 3" } },
  { "runs", "def runs(items):\n    \"\"\"Pairs of (item, length) for runs of equal items.\"\"\"\n    out = []\n    for item in items:\n        if out and out[-1][0] == item:\n            out[-1] = (item, out[-1][1] + 1)\n        else:\n            out.append((item, 1))\n    return out\n",
    { "runs([]) == []", "runs([1, 1, 2]) == [(1, 2), (2, 1)]", "runs('aba') == [('a', 1), ('b', 1), ('a', 1)]", "runs([3]) == [(3, 1)]" } },
  { "roman", "def roman(n):\n    \"\"\"A number from 1 to 39 in Roman digits.\"\"\"\n    return 'X' * (n // 10) + ['', 'I', 'II', 'III', 'IV', 'V', 'VI', 'VII', 'VIII', 'IX'][n % 10]\n",
    { "roman(1) == 'I'", "roman(4) == 'IV'", "roman(19) == 'XIX'", "roman(30) == 'XXX'" } },
  { "flatten", "def flatten(tree):\n    \"\"\"The leaves of nested lists, in order.\"\"\"\n    if not isinstance(tree, list):\n        return [tree]\n    return [leaf for part in tree for leaf in flatten(part)]\n",
    { "flatten([]) == []", "flatten(3) == [3]", "flatten([1, [2, [3]]]) == [1, 2, 3]", "flatten([[], [[]]]) == []" } },
}

function M.good(n)
  local name, body, checks = table.unpack(GOOD[n])
  local module = name .. "_kit"
  local called = body:match "def ([%w_]+)"
  local tests = { ("from %s import %s\n"):format(module, called) }
  for i, check in ipairs(checks) do tests[#tests + 1] = ("\ndef test_%s_%d():\n    assert %s\n"):format(name, i, check) end
  local out = json.object { task_id = name }
  out.description = ("Implement %s() in %s.py as its docstring says."):format(called, module)
  out.solution_files = json.object { [module .. ".py"] = body }
  out.test_files = json.object { [("tests/test_%s.py"):format(name)] = table.concat(tests, "\n") }
  return out
end

local function with(n, change)
  local out = M.good(n)
  change(out)
  return json.encode(out)
end

local function tests_of(out, text) out.test_files = json.object { ["tests/test_it.py"] = text } end

--- By the candidate's number; each with whether it is accepted, and where and why it is not.
M.ANSWERS = {
  { json.encode(M.good(1)), accepted = true },
  { "Here it is:\n```json\n" .. json.encode(M.good(2), { indent = 2 }) .. "\n```\nEnjoy!", accepted = true },
  { json.encode(M.good(3)):sub(1, 200), stage = "parse", reason = "ends inside a string" },
  { "I cannot help with that.", stage = "parse", reason = "holds no JSON object" },
  { with(3, function(out) out.solution_files["../../etc/evil.py"] = "x = 1\n" end), stage = "parse", reason = "unsafe path" },
  { with(3, function(out) out.solution_files["/workspace/x.py"] = "x = 1\n" end), stage = "parse", reason = "unsafe path" },
  { with(3, function(out) out.task_id = "../../escape" end), stage = "parse", reason = "escapes its folder" },
  { (json.encode(M.good(3)):gsub("}$", ",}")), accepted = true },
  { json.encode(M.good(1)), stage = "dedup", reason = "a duplicate of clamp" },
  { with(4, function(out) tests_of(out, "from nowhere import roman\n\ndef test_it():\n    assert roman(1)\n    assert roman(2)\n    assert 3\n") end),
    stage = "sandbox", reason = "wrong reason" },
  { with(4, function(out) tests_of(out, "def test_it():\n    assert 1\n    assert 2\n    assert 3\n") end),
    stage = "sandbox", reason = "passes already" },
  { with(4, function(out) tests_of(out, "from roman_kit import roman\n\ndef test_it():\n    assert roman(1) == 'J'\n    assert 2\n    assert 3\n") end),
    stage = "sandbox", reason = "the solution does not pass" },
  { with(4, function(out) tests_of(out, "from roman_kit import roman\n\ndef test_it():\n    assert roman(1)\n    assert 2\n    assert 3\n") end),
    stage = "sandbox", reason = "the tests notice" },
  { with(4, function(out) tests_of(out, "from roman_kit import roman\n\ndef test_it():\n    assert roman(1) == 'I'\n") end),
    stage = "static", reason = "1 assertions" },
  { with(4, function(out) out.solution_files["roman_kit.py"] = "def roman(n:\n" end), stage = "strip", reason = "roman_kit.py" },
  { json.encode(M.good(4)), accepted = true },
  { with(5, function(out) out.verifier = json.object { type = "command", command = "true" } end), accepted = true },
}

--- The model; `calls` counts what it was asked.
function M.new()
  local self = { calls = 0 }
  self.model = require "agentbox.model".fn(function(request)
    local n = math.tointeger(tonumber(request.session:match "candidate%-(%d+)"))
    self.calls = self.calls + 1
    local answer = M.ANSWERS[n]
    return { content = answer and answer[1] or "nothing more", usage = { prompt_tokens = 100, completion_tokens = 50 } }
  end)
  return self
end

return M
