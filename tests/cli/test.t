The runner: one line a test, the counts last; what a test leaves behind fails it.

$ mkdir -p t/sub && cat > t/a_test.lua <<'END'
> local lu = require "luaunit"
> local test = require "agentbox.test"
> local M = {}
> function M.test_passes() lu.assertEquals(1 + 1, 2) end
> function M.test_fails() lu.assertEquals(1 + 1, 3) end
> function M.test_skips() test.skip "no reason" end
> function M.test_skips_as_luaunit() lu.skip "none either" end
> function M.test_waits() require("agentbox.async").sleep(0.001) end
> function M.helper() error "never called" end
> return M
> END
[exit 0]

$ cat > t/sub/b_test.lua <<'END'
> local fiber = require "agentbox.sys.fiber"
> local M = { kept = {} }
> function M.test_leaves_a_fiber() fiber.spawn(function() fiber.park() end) end
> function M.test_leaves_a_file() M.kept[#M.kept + 1] = io.open "/dev/null" end
> function M.test_opens_once() M.once = M.once or io.open "/dev/null" end
> function M.test_is_stuck() fiber.park() end
> local order = {}
> M.sub = { setUp = function() order[#order + 1] = "up" end, tearDown = function() order[#order + 1] = "down" end }
> function M.sub.test_one() order[#order + 1] = "one" end
> function M.sub.test_two() assert(table.concat(order, " ") == "up one down up", table.concat(order, " ")) end
> return M
> END
[exit 0]

$ agentbox test t/a_test.lua
ok 1 - t/a_test.lua: test_passes
not ok 2 - t/a_test.lua: test_fails
# t/a_test.lua:5: LuaUnit test FAILURE: expected: 3, actual: 2
# stack traceback:
#    t/a_test.lua:5: in function <*>
ok 3 - t/a_test.lua: test_skips # SKIP no reason
ok 4 - t/a_test.lua: test_skips_as_luaunit # SKIP none either
ok 5 - t/a_test.lua: test_waits
1..5
2 passed, 1 failed, 2 skipped
[exit 1]

$ agentbox test -q --timeout-s 0.05 t
not ok 2 - t/a_test.lua: test_fails
# t/a_test.lua:5: LuaUnit test FAILURE: expected: 3, actual: 2
# stack traceback:
#    t/a_test.lua:5: in function <*>
not ok 6 - t/sub/b_test.lua: test_leaves_a_fiber
# left behind: 1 fibers<*>
not ok 7 - t/sub/b_test.lua: test_leaves_a_file
# left behind: 1 descriptors
not ok 9 - t/sub/b_test.lua: test_is_stuck
# no end after N s
1..11
5 passed, 4 failed, 2 skipped
[exit 1]

$ agentbox test -k test_opens t
ok 1 - t/sub/b_test.lua: test_opens_once
1..1
1 passed, 0 failed, 0 skipped
[exit 0]

$ mkdir empty; agentbox test empty
agentbox: no *_test.lua under empty
Try 'agentbox test --help' for more information.
[exit 2]

$ agentbox test none_test.lua
agentbox: none_test.lua: no such file or folder
Try 'agentbox test --help' for more information.
[exit 2]

$ echo 'return {' > t/c_test.lua; agentbox test -q t/c_test.lua
not ok 1 - t/c_test.lua
# t/c_test.lua:2: unexpected symbol near <eof>
1..1
0 passed, 1 failed, 0 skipped
[exit 1]
