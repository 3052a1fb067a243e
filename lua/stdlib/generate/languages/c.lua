--- C: the host's compiler, tests in tests/*.c with a small header of ours.
local language = require "agentbox.generate.language"

local CHECK = [[
/* check.h - TEST(name) { CHECK(x == 1); }
 *
 * Each file of tests is a program; each test runs in a process of its own and must come to its end, in an order shuffled by
 * CHECK_SEED. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct check_test {
    const char *name;
    void (*run)(void);
};
static struct check_test check_tests[256];
static int check_count;

#define TEST(test_name)                                                              \
    static void test_name(void);                                                     \
    __attribute__((constructor)) static void check_add_##test_name(void)             \
    {                                                                                \
        check_tests[check_count++] = (struct check_test){#test_name, test_name};     \
    }                                                                                \
    static void test_name(void)

#define CHECK(x)                                                                     \
    do {                                                                             \
        if (!(x)) {                                                                  \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #x);                         \
            fflush(stdout);                                                          \
            _exit(1);                                                                \
        }                                                                            \
    } while (0)

enum { CHECK_DONE = 77 };

int main(void)
{
    const char *seed = getenv("CHECK_SEED");
    int pass = 0, fail = 0;
    if (seed)
        srand((unsigned)atoi(seed));
    for (int i = check_count - 1; seed && i > 0; i--) {
        int j = rand() % (i + 1);
        struct check_test t = check_tests[i];
        check_tests[i] = check_tests[j];
        check_tests[j] = t;
    }
    for (int i = 0; i < check_count; i++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(10);
            check_tests[i].run();
            fflush(stdout);
            _exit(CHECK_DONE);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        int ok = WIFEXITED(status) && WEXITSTATUS(status) == CHECK_DONE;
        printf("%s %s\n", ok ? "ok" : "not ok", check_tests[i].name);
        pass += ok;
        fail += !ok;
    }
    printf("# pass %d fail %d\n", pass, fail);
    return fail || !pass;
}
]]

local RUN = [[
#!/bin/sh
# Builds each tests/*.c with all sources and runs it. The last line is "# pass N fail M"; it is missing when something could not
# be built or gave no verdict.
pass=0 fail=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sources=$(find . -name '*.c' ! -path './tests/*')
for file in tests/*.c; do
    cc -std=gnu11 -g -Wall -I. -Isrc -Itests -o "$dir/test" $sources "$file" -lm || { echo "$file: build failed"; exit 2; }
    "$dir/test" > "$dir/log" 2>&1
    cat "$dir/log"
    set -- $(tail -n 1 "$dir/log")
    [ "$1 $2 $4" = "# pass fail" ] || { echo "$file gave no verdict"; exit 2; }
    pass=$((pass + $3)) fail=$((fail + $5))
done
echo "# pass $pass fail $fail"
[ $fail -eq 0 ] && [ $pass -gt 0 ]
]]

return language.define {
  api = 1, name = "c", extensions = { "c", "h" }, comment = "//", programs = { "cc" }, stub = "abort();",
  is_test = function(path) return language.in_tests(path) or path:match "[^/]*$":find "^test_" ~= nil end,
  support = { ["tests/run.sh"] = { RUN }, ["tests/check.h"] = CHECK },
  cheat = "#include <stdlib.h>\n__attribute__((constructor)) static void leave(void) { _Exit(0); }\n",
  blunt = '#include "check.h"\n\nTEST(nothing)\n{\n}\n', plants = { ["tests/run.sh"] = "echo '# pass 9 fail 0'\n" },
  teach = [[
Language: C11 for gcc, libc only, no main() in the sources. Tests are in tests/test_NAME.c, begin with `#include "check.h"` and
declare `TEST(name) { CHECK(expression); }`; tests/check.h and tests/run.sh are there already, which build every *.c with each
file of tests. In the solution, put what an agent has to write between the lines `// BEGIN SOLUTION stub: return 0;` and
`// END SOLUTION` inside each function body (after `stub:` what the stub has instead, so that it compiles); what is outside is
given to the agent.]],
  example = {
    task_id = "c_add", description = "Implement add() in calc.c: the sum of two numbers.",
    solution_files = {
      ["calc.h"] = "/* The sum of a and b. */\nint add(int a, int b);\n",
      ["calc.c"] = '#include "calc.h"\n\nint add(int a, int b)\n{\n    // BEGIN SOLUTION stub: return 0;\n'
        .. '    return a + b;\n    // END SOLUTION\n}\n',
    },
    test_files = {
      ["tests/test_calc.c"] = '#include "check.h"\n#include "calc.h"\n\nTEST(adds)\n{\n    CHECK(add(1, 2) == 3);\n'
        .. '    CHECK(add(-1, 1) == 0);\n    CHECK(add(0, 0) == 0);\n    CHECK(add(2, 2) == 4);\n}\n',
    },
  },
}
