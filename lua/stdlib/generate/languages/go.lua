--- Go: `go test`, tests beside their sources as Go wants them.
local language = require "agentbox.generate.language"

local RUN = [[
#!/bin/sh
# Runs `go test` and counts. The last line is "# pass N fail M"; it is missing when nothing could be built or tested.
PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin
export PATH GOCACHE=${GOCACHE:-/tmp/gocache} GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off CGO_ENABLED=0
command -v go > /dev/null || { echo "go: not found"; exit 127; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -vet=off -v -count=1 -shuffle="${CHECK_SEED:-off}" ./... > "$log" 2>&1
status=$?
cat "$log"
pass=$(grep -c '^--- PASS' "$log") fail=$(grep -c '^--- FAIL' "$log")
[ $((pass + fail)) -gt 0 ] || exit 2
grep -q 'build failed\|setup failed' "$log" && exit 2
if [ "$fail" -eq 0 ]; then # a program that left early tested less than there is
    tests=$(cat $(find . -name '*_test.go') | grep -c '^func Test[A-Z_]')
    [ "$pass" -ge "$tests" ] && [ $status -eq 0 ] || exit 2
fi
echo "# pass $pass fail $fail"
[ "$fail" -eq 0 ]
]]

return language.define {
  api = 1, name = "go", extensions = { "go" }, comment = "//", programs = {}, dynamic = false,
  is_test = function(path) return path:find "_test%.go$" ~= nil or language.in_tests(path) end,
  stub = 'panic("not implemented")',
  support = { ["tests/run.sh"] = { RUN }, ["go.mod"] = "module task\n\ngo 1.18\n" },
  protect = { "tests/**", "*_test.go", "go.mod" },
  cheat = 'package task\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n',
  blunt = "package task\n", plants = { ["tests/run.sh"] = "echo '# pass 9 fail 0'\n" },
  teach = [[
Language: Go 1.18 or newer, standard library only, one package `task` in the workspace's root (go.mod and tests/run.sh are there
already). Tests are in NAME_test.go beside the sources and use package testing. In the solution, put what an agent has to write
between the lines `// BEGIN SOLUTION` and `// END SOLUTION` inside each function body; what is outside is given to the agent,
so imports must be used outside too or the region must use `stub:` (`// BEGIN SOLUTION stub: return strings.ToLower("")`).]],
  example = {
    task_id = "go_add", description = "Implement Add() in calc.go: the sum of two numbers.",
    solution_files = {
      ["calc.go"] = "package task\n\n// Add gives the sum of a and b.\nfunc Add(a, b int) int {\n"
        .. "\t// BEGIN SOLUTION\n\treturn a + b\n\t// END SOLUTION\n}\n",
    },
    test_files = {
      ["calc_test.go"] = 'package task\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n'
        .. '\tfor _, c := range [][3]int{{1, 2, 3}, {-1, 1, 0}, {0, 0, 0}, {2, 2, 4}} {\n'
        .. '\t\tif got := Add(c[0], c[1]); got != c[2] {\n'
        .. '\t\t\tt.Errorf("Add(%d, %d) = %d", c[0], c[1], got)\n\t\t}\n\t}\n}\n',
    },
  },
}
