Errors do not end the session, unfinished statements are continued, waiting works.

$ printf '1 + 1\nx = 20\nx, "y"\nx = = 1\n' > in; printf 'for i = 1, 2 do\nprint(i)\nend\nerror("boom")\nab.async.sleep(0.01)\n"still here"\n' >> in
[exit 0]

$ agentbox repl < in
2
20	y
stdin:1: unexpected symbol near '='
1
2
stdin:1: boom
stack traceback:
   stdin:1: in main chunk
still here
[exit 0]

$ echo 'os.exit(9)' | agentbox repl
[exit 9]

$ printf 'for i = 1, 2 do' | agentbox repl
stdin:1: 'end' expected near <eof>
[exit 0]
