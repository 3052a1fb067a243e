What reaches a trainer: rows of token ids, filters that say what they took, and never half a file.

$ cat > make.lua <<'EOF'
> local made = dofile(os.getenv "SRC" .. "/tests/support/rollouts.lua")
> local store = assert(require "agentbox.store".open("runs", { run_id = "r" }))
> for i, value in ipairs { 1.0, 0.25, 0.5 } do
>   local ro = made.sample({ id = "g/" .. i - 1, run_id = "r", group = { id = "g", index = i - 1, size = 4 } }, { tokens = true })
>   assert(store:append(ro:finish { reward = { scored = true, value = value }, final_status = value == 1 and "success" or "failed" }))
> end
> assert(store:append(made.sample({ id = "g/3", run_id = "r", group = { id = "g", index = 3, size = 4 } }, { tokens = true }):finish {
>   status = "failed", final_status = "error", stop = { reason = "sandbox_error", class = "sandbox" }, reward = { scored = false } }))
> store:close()
> EOF
[exit 0]

$ agentbox script make.lua && agentbox export runs/r -f trl -o rows.jsonl
trl never carries: messages; calls that failed; tool timings; requests
skipped 1: unscored (first: g/3)
trajectories taken: 3
rows.jsonl
[exit 0]

$ head -n 1 rows.jsonl
{"prompt_ids":[11,12,13],"completion_ids":[21,22,23,31,32,41,42],"logprobs":[-0.4,-0.02,-0.001,0.0,0.0,-0.2,-1e-05],"env_mask":[1,1,1,0,0,1,1],"reward":1.0,"task_id":"t-17","trajectory_id":"g/0","group_id":"r/g","group_index":0,"truncated":false,"model_version":12,"model_version_max":12}
[exit 0]

$ agentbox export runs/r -f trl -o rows.jsonl --status success; wc -l < rows.jsonl
trl never carries: messages; calls that failed; tool timings; requests
skipped 2: filtered: status failed (first: g/1)
skipped 1: filtered: status error (first: g/3)
trajectories taken: 1
rows.jsonl
1
[exit 0]

$ agentbox export runs/r -f trl -o rows.jsonl --status success --status failed --best 2 -q && grep -o '"trajectory_id":"[^"]*"' rows.jsonl
rows.jsonl
"trajectory_id":"g/0"
"trajectory_id":"g/2"
[exit 0]

$ agentbox export runs/r -f pretokenized -o ids.jsonl --min-reward 0.9 -q && cat ids.jsonl
ids.jsonl
{"input_ids":[11,12,13,21,22,23,31,32,41,42],"attention_mask":[1,1,1,1,1,1,1,1,1,1],"labels":[-100,-100,-100,21,22,23,-100,-100,41,42]}
[exit 0]

An export that takes nothing leaves no file and prints no path; one that was there stays as it was.

$ agentbox export runs/r -f trl -o none.jsonl --status timeout; ls none.jsonl* 2>/dev/null
skipped 1: filtered: status success (first: g/0)
skipped 2: filtered: status failed (first: g/1)
skipped 1: filtered: status error (first: g/3)
agentbox: export: no trajectory of the input can be written in this format
`agentbox traj check` says what may be trained on and why the rest may not; docs/training.md has what to do about it.
[exit 2]

$ agentbox export runs/r -f trl -o ids.jsonl --min-reward 7 -q; wc -l < ids.jsonl
agentbox: export: no trajectory of the input can be written in this format
`agentbox traj check` says what may be trained on and why the rest may not; docs/training.md has what to do about it.
1
[exit 0]

$ agentbox export runs/r -f openai -o docs/ --min-reward 7 -q
agentbox: format openai writes lines: name a file, not a folder
[exit 2]

$ agentbox export runs/r -f trl -o rows.jsonl --status nonsense
agentbox: filter.status: unknown status nonsense
[exit 2]

$ agentbox export runs/r -f trl -o rows.jsonl --best half
agentbox: export: --best wants a whole number, not 'half'
Try 'agentbox export --help' for more information.
[exit 2]

Damage in the middle of the input leaves nothing, in a folder of documents too.

$ head -n 1 runs/r/trajectories-00000.jsonl > two.jsonl && echo '{"schema":"agentbox.trajectory/1","sum":"sha256:00"}' >> two.jsonl && agentbox export two.jsonl -f art -o new/; ls new
agentbox: two.jsonl:2: <*>
[exit 0]

$ agentbox export two.jsonl -f trl -o new.jsonl; ls new.jsonl* 2>/dev/null
agentbox: two.jsonl:2: <*>
[exit 2]
