-- Twenty good tasks of the shell in four dresses among what a teacher may answer besides: `answers`, and by candidate `model`.
--
-- As `agentbox generate batch -m lua:tests/support/twenty.lua` it is the teacher itself. With KILL_AT above 0 the process then kills
-- itself at its nth write to the disk, before it or after it by turns.
local json = require "agentbox.json"

-- Name, what it is to do, script, then arguments and what must come of them.
local GOOD = {
  { "sum", "the sum of its arguments", 't=0; for n in "$@"; do t=$((t + n)); done; echo $t', { "1 2 3", "6" }, { "", "0" }, { "-4 4", "0" } },
  { "upper", "its argument in capital letters", [[printf '%s\n' "$1" | tr a-z A-Z]], { "abc", "ABC" }, { "aB1", "AB1" }, { "x-y", "X-Y" } },
  { "largest", "the largest of its arguments", 'm=$1; for n in "$@"; do [ $n -gt $m ] && m=$n; done; echo $m', { "3 9 4", "9" }, { "-2 -5", "-2" }, { "7", "7" } },
  { "reverse", "its arguments from the last to the first", 'r=; for w in "$@"; do r="$w $r"; done; echo $r', { "a b c", "c b a" }, { "one", "one" }, { "x y", "y x" } },
  { "count", "how many arguments it got", "echo $#", { "a b", "2" }, { "", "0" }, { "x x x", "3" } },
  { "factorial", "the product of 1 to N", "p=1; i=$1; while [ $i -gt 1 ]; do p=$((p * i)); i=$((i - 1)); done; echo $p", { "5", "120" }, { "1", "1" }, { "0", "1" } },
  { "length", "how many characters its argument has", 'echo ${#1}', { "hello", "5" }, { "a", "1" }, { "ab-cd", "5" } },
  { "parity", "even or odd", "if [ $(($1 % 2)) -eq 0 ]; then echo even; else echo odd; fi", { "4", "even" }, { "7", "odd" }, { "0", "even" } },
  { "suffix", "what stands after the last dot of a name", 'echo "${1##*.}"', { "a.tar.gz", "gz" }, { "b.txt", "txt" }, { "x.y", "y" } },
  { "stem", "a name without what stands after its last dot", 'echo "${1%.*}"', { "a.tar.gz", "a.tar" }, { "b.txt", "b" }, { "x.y", "x" } },
  { "sorted", "its arguments in order", [[printf '%s\n' "$@" | sort | paste -sd ' ']], { "c a b", "a b c" }, { "z", "z" }, { "b a", "a b" } },
  { "unique", "its different arguments in order", [[printf '%s\n' "$@" | sort -u | paste -sd ,]], { "b a b", "a,b" }, { "x x", "x" }, { "q", "q" } },
  { "seconds", "H:MM as seconds", 'echo $((${1%%:*} * 3600 + ${1##*:} * 60))', { "1:10", "4200" }, { "0:01", "60" }, { "2:00", "7200" } },
  { "repeat_word", "a word N times, joined", 'i=0; o=; while [ $i -lt $2 ]; do o=$o$1; i=$((i + 1)); done; echo "$o"', { "ab 3", "ababab" }, { "x 1", "x" }, { "yo 2", "yoyo" } },
  { "divisor", "the greatest number that divides both", "a=$1 b=$2; while [ $b -ne 0 ]; do t=$((a % b)); a=$b; b=$t; done; echo $a", { "12 18", "6" }, { "7 5", "1" }, { "9 3", "3" } },
  { "fields", "how many fields a line with commas has", [[printf '%s\n' "$1" | awk -F, '{ print NF }']], { "a,b,c", "3" }, { "x", "1" }, { "p,q", "2" } },
  { "power", "the first argument to the power of the second", "p=1; i=0; while [ $i -lt $2 ]; do p=$((p * $1)); i=$((i + 1)); done; echo $p", { "2 10", "1024" }, { "3 0", "1" }, { "5 2", "25" } },
  { "vowels", "how many vowels a word has", [[printf '%s' "$1" | tr -cd aeiou | wc -c | tr -d ' ']], { "banana", "3" }, { "xyz", "0" }, { "idea", "3" } },
  { "clamp", "a number, but at least the second and at most the third", "if [ $1 -lt $2 ]; then echo $2; elif [ $1 -gt $3 ]; then echo $3; else echo $1; fi",
    { "5 0 3", "3" }, { "-1 0 3", "0" }, { "2 0 3", "2" } },
  { "hex", "a number in base sixteen", [[printf '%x\n' "$1"]], { "255", "ff" }, { "16", "10" }, { "0", "0" } },
}

local function task(n)
  local name, what, script = table.unpack(GOOD[n], 1, 3)
  local out = json.object { task_id = name, description = ("Write %s.sh: it prints %s."):format(name, what) }
  out.solution_files = json.object { [name .. ".sh"] = ("# %s.sh: prints %s\n# BEGIN SOLUTION\n%s\n# END SOLUTION\n"):format(name, what, script) }
  local lines = {}
  for i = 4, #GOOD[n] do
    lines[#lines + 1] = ('test_%s_%d() {\n    check "%s %d" "%s" "$(sh %s.sh %s)"\n}\n'):format(name, i, name, i, GOOD[n][i][2], name, GOOD[n][i][1])
  end
  out.test_files = json.object { [("tests/test_%s.sh"):format(name)] = table.concat(lines, "\n") }
  return out
end

local DRESSES = {
  function(text) return text end,
  function(text) return "Here it is:\n```json\n" .. text .. "\n```\nEnjoy!" end,
  function(text) return "<think>{ hm, { }</think>" .. text:gsub("}$", ",}") end,
  function(text) return text:gsub("}$", ', "metadata": {"tags": ["a",], "ok": True, "none": None}}') end,
}

local function changed(n, change)
  local out = task(n)
  change(out)
  return json.encode(out)
end

local function tests(text) return function(out) out.test_files = json.object { ["tests/test_it.sh"] = text } end end
local function three(command) return tests(('test_a() {\n    %s\n    check "a" 1 1\n    check "b" 1 1\n    check "c" 1 1\n}\n'):format(command)) end

local BAD = {
  { json.encode(task(3)):sub(1, 150), stage = "parse", reason = "ends inside a string" },
  { "I cannot help with that.", stage = "parse", reason = "holds no JSON object" },
  { changed(3, function(out) out.solution_files["../../etc/evil.sh"] = "x\n" end), stage = "parse", reason = "unsafe path" },
  { changed(3, function(out) out.test_files["/etc/cron.d/evil"] = "x\n" end), stage = "parse", reason = "unsafe path" },
  { changed(3, function(out) out.task_id = "../../../escape" end), stage = "parse", reason = "escapes its folder" },
  { json.encode(task(1)), stage = "dedup", reason = "a duplicate of sum" },
  { changed(2, function(out) out.description = "Capitals, please: upper.sh." end), stage = "dedup", reason = "a duplicate of" },
  { changed(3, three 'check "x" 0 0'), stage = "sandbox", reason = "the starter passes already" },
  { changed(3, three "no_such_program"), stage = "sandbox", reason = "a program is missing" },
  { changed(3, three 'check "x" 12 "$(sh largest.sh 3 9)"'), stage = "sandbox", reason = "the solution does not pass" },
  { changed(6, three 'check "x" ok "$(sh factorial.sh 1 > /dev/null && echo ok)"'), stage = "sandbox",
    reason = "an agent that only ends the program is rewarded" },
  { changed(6, three 'check "x" 1 "$(sh factorial.sh 1)"'), stage = "sandbox", reason = "the tests notice" },
  { changed(3, tests 'test_a() {\n    check "x" 9 "$(sh largest.sh 3 9)"\n}\n'), stage = "static", reason = "1 assertions" },
  { changed(3, function(out) out.solution_files["largest.sh"] = "echo 9\n" end), stage = "strip", reason = "nothing was left out" },
  { changed(3, function(out) out.solution_files["largest.sh"] = "# BEGIN SOLUTION\necho 9\n" end), stage = "strip", reason = "END SOLUTION is missing" },
}

-- A bad one after every good one for a while.
local M = { answers = {}, names = {} }
for n = 1, #GOOD do
  M.answers[#M.answers + 1] = { DRESSES[(n - 1) % #DRESSES + 1](json.encode(task(n))), accepted = true }
  M.answers[#M.answers + 1] = BAD[n]
  M.names[n] = GOOD[n][1]
end
table.sort(M.names)

M.model = require "agentbox.model".fn(function(request)
  local answer = M.answers[math.tointeger(tonumber(request.session:match "^candidate%-(%d+)$"))]
  return { content = answer and answer[1] or "nothing more", usage = { prompt_tokens = 100, completion_tokens = 50 } }
end)
M.complete = function(_, request) return M.model:complete(request) end
M.name, M.describe, M.close = "twenty", function() return M.model:describe() end, function() end

dofile("tests/support/deadly.lua")(tonumber(os.getenv "KILL_AT"))
return M
