Settings of a model that no server could use: found before anything starts, one line, exit 2.

$ mkdir t && echo '{"task_id": "t", "description": "d", "verifier": {"command": "true"}}' > t/task.json
[exit 0]

$ cat > each.sh <<'EOF'
> while read -r line; do
>   printf 'model: {%s}\n' "$line" > agentbox.yaml
>   agentbox run t -o out > log 2>&1; s=$?; head -1 log; [ $s = 2 ] || echo "$line: exit $s"
> done
> EOF
> sh each.sh <<'EOF'
> model: x, temperature: .inf
> model: x, top_p: .nan
> model: x, extra_headers: {"A\r\nB": "c"}
> model: x, extra_headers: {"A": "c\r\nX: y"}
> model: x, extra_headers: {"A": [5]}
> model: x, extra_body: {"a": .nan}
> model: x, api_key: "a\r\nb"
> model: x, base_url: "http://"
> model: x, base_url: "ftp://x"
> model: x, base_urls: [5]
> model: x, base_urls: []
> model: x, base_urls: ["http://a", "b"]
> model: x, seed: [1]
> model: x, timeout_s: 0
> model: x, tokens: bogus
> model: ""
> EOF
agentbox: model.sampling.temperature: must be finite
agentbox: model.top_p must be at least 0, not nan<*>
agentbox: model.extra_headers: the text <*>
agentbox: model.extra_headers.A: must be one line of text
agentbox: model.extra_headers.A: must be one line of text
agentbox: at .a: NaN is not JSON
agentbox: model.api_key: holds a control character
agentbox: model.base_url must begin with http:// or https://: http://
agentbox: model.base_url must begin with http:// or https://: ftp://x
agentbox: model.base_urls[0]: must be text, is 5
agentbox: model.base_urls: is empty
agentbox: model.base_url must begin with http:// or https://: b
agentbox: model.sampling.seed: must be a whole number or text, is a list
agentbox: model.timeout_s: must be at least 0.001, is 0
agentbox: model.tokens: must be one of <*>
agentbox: run: --model is empty
[exit 0]

$ ls out
ls: cannot access 'out': No such file or directory
[exit 2]
