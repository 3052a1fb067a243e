--- Shell: POSIX sh, tests in tests/test_*.sh with a small harness of ours.
local language = require "agentbox.generate.language"

local CHECK = [[
# check.sh - read before each file of tests: check WHAT EXPECTED ACTUAL
check() {
    [ "$2" = "$3" ] && return 0
    printf '# %s: expected "%s", got "%s"\n' "$1" "$2" "$3"
    exit 1
}
]]

local RUN = [[
#!/bin/sh
# Runs every function test_NAME() of tests/test_*.sh in a shell of its own, which must come to its end. The last line is
# "# pass N fail M"; it is missing when a program was not there. The order is shuffled by CHECK_SEED.
pass=0 fail=0
for file in tests/test_*.sh; do
    names=$(sed -n 's/^\(test_[A-Za-z0-9_]*\)().*/\1/p' "$file")
    if [ -n "$CHECK_SEED" ]; then
        names=$(printf '%s\n' $names | awk -v seed="$CHECK_SEED" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' | sort -n | cut -f 2)
    fi
    for name in $names; do
        sh -c 'set -e; . ./tests/check.sh; . "./$1"; "$2"; exit 77' sh "$file" "$name"
        case $? in
        77) pass=$((pass + 1)) && echo "ok $name" ;;
        126 | 127) echo "$name: a program is missing" && exit 127 ;;
        *) fail=$((fail + 1)) && echo "not ok $name" ;;
        esac
    done
done
echo "# pass $pass fail $fail"
[ $fail -eq 0 ] && [ $pass -gt 0 ]
]]

return language.define {
  api = 1, name = "shell", extensions = { "sh" }, comment = "#", programs = { "sh" }, stub = 'echo "not implemented" >&2; exit 1',
  is_test = function(path) return language.in_tests(path) or path:match "[^/]*$":find "^test_" ~= nil end,
  support = { ["tests/run.sh"] = { RUN }, ["tests/check.sh"] = CHECK },
  cheat = "exit 0\n", blunt = "test_it() { :; }\n", plants = { ["tests/run.sh"] = "echo '# pass 9 fail 0'\n" },
  teach = [[
Language: POSIX shell with awk, sed, grep, sort and the other standard programs. Tests are in tests/test_NAME.sh, as functions
`test_something() { check "what" "expected" "$(sh script.sh arguments)"; }` run from the workspace's root; tests/check.sh and
tests/run.sh are there already. Tests call the scripts with `sh`, they do not read them in. In the solution, put what an agent
has to write between the lines `# BEGIN SOLUTION` and `# END SOLUTION`; what is outside is given to the agent.]],
  example = {
    task_id = "sh_add", description = "Write add.sh: it prints the sum of its two arguments.",
    solution_files = { ["add.sh"] = "# add.sh A B: prints the sum of A and B\n# BEGIN SOLUTION\necho $(($1 + $2))\n"
      .. "# END SOLUTION\n" },
    test_files = {
      ["tests/test_add.sh"] = 'test_adds() {\n    check "1 + 2" 3 "$(sh add.sh 1 2)"\n'
        .. '    check "-1 + 1" 0 "$(sh add.sh -1 1)"\n    check "0 + 0" 0 "$(sh add.sh 0 0)"\n'
        .. '    check "2 + 2" 4 "$(sh add.sh 2 2)"\n}\n',
    },
  },
}
