A lab's own command is a file; a built-in module is replaced by a file of its name.

$ mkdir -p ov/agentbox/cli && cat > ov/agentbox/cli/mything.lua <<'END'
> return {
>   name = "mything", summary = "of the lab", arguments = { { "word", "a word" } },
>   options = { { "-n --count", "N", "how often", integer = true } },
>   run = function(args)
>     print(args.word:rep(args.count or 1, " "))
>     return 4
>   end,
> }
> END
[exit 0]

$ agentbox -L ov mything ho -n3
ho ho ho
[exit 4]

$ agentbox -L ov mything --help
Usage: agentbox mything [-n <N>] [-h] [-L <DIR>] <word>
...
[exit 0]

$ AGENTBOX_LUA=ov agentbox mything ho
ho
[exit 4]

$ echo 'lua_path: ov' > agentbox.yaml; agentbox mything ho; s=$?; rm agentbox.yaml; exit $s
ho
[exit 4]

$ agentbox -L nowhere mything ho
agentbox: no such overlay folder: nowhere
[exit 2]

A defect of the lab's command shows its own lines.

$ echo 'return { name = "bad", summary = "x", run = function() return nil + 1 end }' > ov/agentbox/cli/bad.lua
[exit 0]

$ agentbox -L ov bad
agentbox: ov/agentbox/cli/bad.lua:1: attempt to perform arithmetic on a nil value
stack traceback:
   ov/agentbox/cli/bad.lua:1: in function 'run'
[exit 1]

$ rm ov/agentbox/cli/bad.lua; agentbox lua eject agentbox.tools.raed_file --to ov
agentbox: no built-in module 'agentbox.tools.raed_file', did you mean 'agentbox.tools.read_file'?
Try 'agentbox lua eject --help' for more information.
[exit 2]

$ agentbox lua eject agentbox.tools.read_file
agentbox: lua eject: no overlay folder; name one with --to DIR or -L DIR
Try 'agentbox lua eject --help' for more information.
[exit 2]

$ agentbox -L ov lua eject agentbox.tools.read_file
ov/agentbox/tools/read_file.lua
[exit 0]

$ head -1 ov/agentbox/tools/read_file.lua
-- ejected from agentbox 0.1.0: agentbox.tools.read_file sha256:<*>
[exit 0]

$ agentbox -L ov lua eject agentbox.tools.read_file
agentbox: create ov/agentbox/tools/read_file.lua: File exists
Remove the file first, or look at it with 'agentbox lua diff'.
[exit 2]

$ agentbox -L ov lua diff
# agentbox.tools.read_file: ejected from 0.1.0, built-in unchanged since
# no difference
[exit 0]

$ sed -i 's/^return M$/-- changed\n&/; s/name = "read_file"/name = "read_a_file"/' ov/agentbox/tools/read_file.lua; agentbox -L ov lua diff
# agentbox.tools.read_file: ejected from 0.1.0, built-in unchanged since
--- agentbox.tools.read_file
+++ ov/agentbox/tools/read_file.lua
...
-<*>name = "read_file"<*>
+<*>name = "read_a_file"<*>
...
[exit 0]

$ agentbox -L ov lua list | grep -E 'mything|read_file'
agentbox.cli.mything                     ov/agentbox/cli/mything.lua
agentbox.tools.read_file                 ov/agentbox/tools/read_file.lua  (hides the built-in)
[exit 0]

$ agentbox lua check ov
2 modules, 0 problems
[exit 0]

$ mkdir -p ov2/agentbox/tools ov2/agentbox/sys && echo 'colour = 1 return {}' > ov2/agentbox/tools/x.lua && echo 'x = = 1' > ov2/y.lua && echo 'return {}' > ov2/agentbox/sys/fs.lua
[exit 0]

$ agentbox lua check ov2
ov2/agentbox/sys/fs.lua: agentbox.sys.* cannot be replaced
ov2/agentbox/tools/x.lua: sets the global 'colour'; write `local`
ov2/agentbox/tools/x.lua: must return require("agentbox.tool").define { ... }
ov2/y.lua:1: unexpected symbol near '='
3 modules, 4 problems
[exit 1]

The lab's commands are in the help and in the suggestions.

$ agentbox -L ov --help | grep mything
   mything       of the lab
[exit 0]

$ agentbox -L ov mythign
agentbox: unknown command 'mythign', did you mean 'mything'?
Try 'agentbox --help' for more information.
[exit 2]
