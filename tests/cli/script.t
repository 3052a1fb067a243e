A script gets its arguments unchanged; its integer result is the exit status.

$ cat > s.lua <<'END'
> print(#arg, arg[0], ...)
> return 7
> END
[exit 0]

$ agentbox script s.lua --flag -x -- y
4	s.lua	--flag	-x	--	y
[exit 7]

A script may wait at its top level and finds its neighbours first.

$ mkdir -p lib && echo 'return { name = "neighbour" }' > lib/near.lua && echo 'print(require "near".name)' > lib/m.lua
[exit 0]

$ agentbox script lib/m.lua
neighbour
[exit 0]

An uncaught error shows the script's own lines.

$ cat > bad.lua <<'END'
> local function inner(t)
>   return t.x.y
> end
> local function outer() return (inner {}) end
> outer()
> END
[exit 0]

$ agentbox script bad.lua
agentbox: bad.lua:2: attempt to index a nil value (field 'x')
stack traceback:
   bad.lua:2: in function 'inner'
   bad.lua:4: in function 'outer'
   bad.lua:5: in main chunk
[exit 1]

$ echo 'os.exit(5)' > e.lua; agentbox script e.lua
[exit 5]

$ echo 'local x <close> = setmetatable({}, { __close = function() print "closed" end }) os.exit(true)' > e.lua
[exit 0]

$ agentbox script e.lua
closed
[exit 0]

$ agentbox script none.lua
agentbox: script: cannot open none.lua: No such file or directory
Try 'agentbox script --help' for more information.
[exit 2]

$ echo 'x = = 1' > syntax.lua; agentbox script syntax.lua
agentbox: syntax.lua:1: unexpected symbol near '='
[exit 2]

$ agentbox script
agentbox: script: missing argument 'file'
Try 'agentbox script --help' for more information.
[exit 2]

$ echo 'return 256' > big.lua; agentbox script big.lua
[exit 1]

$ echo 'assert(require("agentbox").fs.read("/no/such/file"))' > e.lua; agentbox script e.lua
agentbox: <*>/no/such/file<*>
stack traceback:
   e.lua:1: in main chunk
[exit 1]

$ echo 'require("agentbox").sandbox.create { imaeg = "x" }' > e.lua; agentbox script e.lua
agentbox: e.lua:1: <*>imaeg<*>
stack traceback:
   e.lua:1: in main chunk
[exit 1]

A terminal that goes away ends a script as Ctrl-C does, unless it was told to ignore that. A sandbox that nobody
closed leaves nothing.

$ cat > box.lua <<'END'
> local sb = require("agentbox").sandbox.create { backend = "none" }
> io.open("ready", "w"):close()
> while not io.open("go") do require("agentbox").async.sleep(0.01) end
> return 3
> END
> export TMPDIR=$PWD/tmp; mkdir tmp
> agentbox script box.lua 2>/dev/null & pid=$!; until [ -e ready ]; do sleep 0.02; done; kill -HUP $pid; wait $pid; echo $?
> rm ready; (trap '' HUP; exec agentbox script box.lua 2>/dev/null) & pid=$!; until [ -e ready ]; do sleep 0.02; done; kill -HUP $pid; touch go; wait $pid; echo $?
> ls tmp
130
3
[exit 0]
