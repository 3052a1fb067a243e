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
