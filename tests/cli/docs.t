The documents are what the program prints (docs/cli.md itself is checked by the suite `checks`).

$ agentbox help --scdoc | head -1
agentbox(1)
[exit 0]

$ agentbox completion bash > c; bash -c '. ./c; COMP_WORDS=(agentbox run --mem); COMP_CWORD=2; _agentbox agentbox --mem run; echo "$COMPREPLY"'
--memory-mb
[exit 0]

$ agentbox completion zsh | head -1
#compdef agentbox
[exit 0]

$ agentbox completion fish | grep -- '-l memory-mb' | grep -o "command .*' -l memory-mb"
command run' -l memory-mb
command run-dir' -l memory-mb
command serve' -l memory-mb
command image build' -l memory-mb
[exit 0]

$ agentbox completion csh
agentbox: no completion for 'csh'; there is bash, zsh and fish
Try 'agentbox completion --help' for more information.
[exit 2]

The tool of the README, the verifier of the page on tasks and the tests of the page on Lua hold together.

$ block() { awk -v from="$2" 'index($0, from) && !on { on = 1 } on && /^```/ { exit } on' "$SRC/$1"; }; mkdir -p lab; block README.md 'return require("agentbox.tool").define' > line_count.lua; block docs/tasks.md 'return function(ev)' > lab/csv_fix.lua; block docs/lua.md 'local test = require' > doc_test.lua; agentbox -L . test doc_test.lua
ok 1 - doc_test.lua: test_the_tool
ok 2 - doc_test.lua: test_the_verifier
1..2
2 passed, 0 failed, 0 skipped
[exit 0]
