--- Tasks in Harbor's form: bundled ones exported, loaded again and run, the contract of rewards, and what is refused.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local lab = dofile(here .. "/lab.lua")
local lu = require "luaunit"
local store = require "agentbox.image.store"

local M = {}

local count = 0
local home, dir, base

-- busybox for all programs, and the bash that test.sh is written for.
local MAKE_BASE = [[
set -e; root=%s/root; mkdir -p $root/bin $root/tmp $root/etc $root/usr; chmod 1777 $root/tmp
busybox=$(command -v busybox); cp $busybox $root/bin/busybox
for name in $($busybox --list); do [ $name = busybox ] || ln -s busybox $root/bin/$name; done
rm -f $root/bin/bash; cp $(readlink -f $(command -v bash)) $root/bin/bash; ln -s ../bin $root/usr/bin
for lib in $(ldd $root/bin/bash | grep -o '/[^ ]*'); do mkdir -p $root$(dirname $lib); cp -L $lib $root$lib; done
echo root:x:0:0:root:/root:/bin/sh > $root/etc/passwd; tar -C $root -cf %s/base.tar .; chmod -R u+w $root; rm -rf $root
]]

function M.setUp()
  lab.needs_mapped_ids()
  if not base then
    lab.sh(MAKE_BASE:format(lab.dir, lab.dir))
    base = lab.dir .. "/base.tar"
  end
  count = count + 1
  home, dir = lab.dir .. "/harbor-home" .. count, lab.dir .. "/harbor" .. count
  store._home = home
  assert(fs.mkdir(dir, true))
  assert(ab.image.import(base, { name = "bash" }))
end

function M.tearDown()
  lu.assertEquals(lab.names(home, "tmp"), {})
  lab.forget()
  store._home = nil
end

local function put(path, text)
  assert(fs.mkdir((dir .. "/" .. path):match "^(.*)/", true))
  assert(fs.write(dir .. "/" .. path, text))
end

-- A task folder at dir/t; what is given replaces files, false leaves one out.
local function folder(files)
  local all = {
    ["task.toml"] = "version = '1.0'\n[environment]\nallow_internet = false\n", ["instruction.md"] = "Do it.\n",
    ["environment/Dockerfile"] = "FROM bash\nWORKDIR /app\nRUN echo start > start\n", ["tests/test.sh"] = "echo 1 > /logs/verifier/reward.txt\n",
  }
  for path, text in pairs(files or {}) do all[path] = text end
  for path, text in pairs(all) do
    if text then put("t/" .. path, text) end
  end
  return dir .. "/t"
end

local function load(files, warnings)
  return ab.harbor.load(folder(files), { network = "none", on_warning = warnings and function(text) table.insert(warnings, text) end or nil })
end

local function run(task, agent)
  return assert(ab.rollout.run { task = task, model = ab.model.scripted { "done" }, agent = agent })
end

local function ending(traj) return { traj.final_status, traj.reward, traj.stop_reason } end

local SOLVED, FAILED = { "success", 1.0, "env_done" }, { "failed", 0.0, "final_answer" }

function M.test_bundled_tasks_give_the_same_rewards_after_a_round_trip()
  for _, name in ipairs { "shell_report", "factory/sh_backup_prune" } do
    local ours = assert(ab.task.load(here .. "/../../tasks/" .. name))
    local out = dir .. "/" .. ours.task_id
    lu.assertEquals(assert(ab.harbor.save(ours, out, { image = "bash" })), {})
    local theirs = assert(ab.harbor.load(out, { network = "none" }))
    lu.assertEquals(theirs.task_id, "agentbox/" .. ours.task_id)
    lu.assertEquals(theirs.description, ours.description .. "\n")
    lu.assertEquals(theirs.metadata.tags, ours.metadata.tags)
    for _, task in ipairs { ours, theirs } do
      lu.assertEquals(ending(run(task, "oracle")), SOLVED, task.task_id)
      lu.assertEquals(ending(run(task, "idle")), FAILED, task.task_id)
      local cheat = run(task, function(ctx)
        for path in pairs(ours.solution) do assert(ctx.sandbox:write(ctx.workspace .. "/" .. path, "exit 0\n")) end
        for path in pairs(ours.files) do
          if path:find "check" or path:find "run.sh" then assert(ctx.sandbox:write(ctx.workspace .. "/" .. path, "echo '# pass 1 fail 0'\n")) end
        end
        return "final_answer"
      end)
      lu.assertEquals(ending(cheat), FAILED, task.task_id)
    end
  end
end

function M.test_by_the_commands()
  local agentbox = lab.agentbox(home)
  lab.sh(("cd %s && %s task export %s/../../tasks/shell_report -o out --image bash && %s task import out -o ours --build-network none"):format(
    dir, agentbox, ab.path.abs(here), agentbox))
  local said = lab.sh(("cd %s && %s run ours/agentbox_shell_report --agent oracle && %s run out/shell_report --agent oracle"):format(dir, agentbox, agentbox))
  lu.assertEquals(select(2, said:gsub("status=success reward=1.0 ", "")), 2, said)
  local status = select(3, os.execute(("cd %s && %s run out/shell_report --agent idle >/dev/null 2>&1"):format(dir, agentbox)))
  lu.assertEquals(status, 1)
end

function M.test_what_a_task_says_becomes_ours()
  local task = assert(load { ["task.toml"] = [[
schema_version = "1.3"
[task]
name = "org/name"
[metadata]
difficulty = "hard"
[agent]
timeout_sec = 77
[verifier]
timeout_sec = 33
user = "root"
env = { A = "b" }
[environment]
cpus = 2
memory = "1.5G"
storage_mb = 300
allow_internet = false
env = { PLACE = "here" }
]], ["instruction.md"] = "<!-- a canary 12 -->\n# CANARY 34\n\n# Title\nDo it.\n", ["solution/solve.sh"] = "true\n", ["tests/data/x"] = "y" })
  lu.assertEquals({ task.task_id, task.description, task.workspace, task.timeout_s, task.network }, { "org/name", "# Title\nDo it.\n", "/app", 77, "none" })
  lu.assertEquals(task.limits, { cpu_count = 2, memory_mb = 1536, disk_mb = 300 })
  lu.assertEquals(task.verifier.user, "root")
  lu.assertEquals({ task.verifier.timeout_s, task.verifier.params.env.A, task.env.PLACE, task.metadata.difficulty }, { 33, "b", "here", "hard" })
  lu.assertEquals(task.hidden["tests/data/x"].bytes, "y")
  lu.assertEquals(next(task.files), nil)
  local saved = dir .. "/saved"
  assert(ab.task.save(task, saved))
  lu.assertEquals(assert(ab.task.load(saved)).hash, task.hash)
end

-- The reward of a test.sh, after an agent that may be given.
local function verdict(test, agent, toml)
  local traj = run(assert(load { ["tests/test.sh"] = test, ["task.toml"] = toml }), agent or "idle")
  return traj.final_status, traj.reward, traj.line.error or traj.line.verify and traj.line.verify.stdout, traj
end

function M.test_networks()
  for text, expected in pairs {
    ["allow_internet = true"] = "full", [""] = "full", ["network_mode = 'no-network'\nallow_internet = true"] = "none", ["network_mode = 'public'"] = "full",
    ["network_mode = 'allowlist'\nallowed_hosts = ['a.example', '2001:db8::1']"] = { allow = { "a.example:443", "a.example:80", "[2001:db8::1]:443", "[2001:db8::1]:80" } },
  } do
    lu.assertEquals(assert(load { ["task.toml"] = "[environment]\n" .. text }).network, expected)
  end
end

function M.test_rewards()
  for test, expected in pairs {
    ["echo 1.0 > /logs/verifier/reward.txt; exit 1"] = { "success", 1.0 }, ["echo ' 0.25' > /logs/verifier/reward.txt"] = { "failed", 0.25 },
    ["echo -1e-1 > /logs/verifier/reward.txt"] = { "failed", -0.1 }, [ [[echo '{"reward": 1, "style": 0.5}' > /logs/verifier/reward.json]] ] = { "success", 1.0 },
    [ [[echo '{"a": 1, "b": 0}' > /logs/verifier/reward.json]] ] = { "failed", 0.5 },
  } do
    local status, reward = verdict(test)
    lu.assertEquals({ status, reward }, expected, test)
  end
end

function M.test_no_reward_is_no_zero()
  for test, part in pairs {
    ["true"] = "no reward was written", ["echo oops; exit 3"] = "exit code 3): oops", ["echo > /logs/verifier/reward.txt"] = "cannot be read",
    ["echo nan > /logs/verifier/reward.txt"] = "cannot be read", ["echo 0x1 > /logs/verifier/reward.txt"] = "cannot be read",
    ["echo 1 1 > /logs/verifier/reward.txt"] = "cannot be read", ["echo '{}' > /logs/verifier/reward.json"] = "cannot be read",
    ["echo '{\"a\": true}' > /logs/verifier/reward.json"] = "cannot be read", ["mkdir /logs/verifier/reward.txt"] = "cannot be read",
    ["mkfifo /logs/verifier/reward.txt"] = "cannot be read", ["echo 1e999 > /logs/verifier/reward.txt"] = "inf",
  } do
    local status, reward, text, traj = verdict(test)
    lu.assertEquals({ status, reward, traj.scored, traj.stop_reason, traj.failure_class }, { "error", nil, false, "scorer_error", "verifier" }, test)
    lu.assertStrContains(text, part)
  end
end

function M.test_time_is_limited()
  local status, reward = verdict("echo 1 > /logs/verifier/reward.txt; sleep 100", nil, "[verifier]\ntimeout_sec = 0.5\n[environment]\nallow_internet = false\n")
  lu.assertEquals({ status, reward }, { "failed", 0.0 })
end

function M.test_agent_and_verifier_are_apart()
  local seen
  local status, reward = verdict("[ -e /app/left ] && [ \"$(pwd)\" = /app ] && ! pgrep sleep && echo 0.75 > /logs/verifier/reward.txt", function(ctx)
    local sb = ctx.sandbox
    seen = sb:must_exec("ls -d /tests /solution /logs 2>/dev/null; cat start").stdout
    sb:must_exec "touch left; mkdir -p /logs/verifier /tests; echo 1 > /logs/verifier/reward.txt; ln -s /app/fake /tests/test.sh; echo 'echo 1' > fake"
    sb:must_exec "setsid sleep 1000 > /dev/null 2>&1 &"
    return "final_answer"
  end)
  lu.assertEquals(seen, "start\n")
  lu.assertEquals({ status, reward }, { "failed", 0.75 })
end

function M.test_planted_links_lead_nowhere()
  for _, plant in ipairs { "ln -s /app /logs", "mkdir /logs; ln -s /app /logs/verifier", "ln -s /app /tests" } do
    local status, _, text = verdict("true", function(ctx)
      ctx.sandbox:must_exec(plant .. "; echo 1 > /app/reward.txt; echo 'echo 1 > /logs/verifier/reward.txt' > /app/test.sh")
      return "final_answer"
    end)
    lu.assertEquals(status, "error", plant)
    lu.assertStrContains(text, "no reward was written")
  end
end

function M.test_warnings()
  local warnings = {}
  assert(load({ ["task.toml"] = "future = 1\n[agent]\nuser = 'x'\nspeed = 2\n[verifier.env]\nKEY = '${HOST_KEY}'\n[environment]\nallow_internet = false\n" }, warnings))
  table.sort(warnings)
  lu.assertEquals(#warnings, 4)
  for i, part in ipairs { "agent.speed is not known", "agent.user has no effect", "future is not known", "verifier.env.KEY is left out" } do
    lu.assertStrContains(warnings[i], part)
  end
end

function M.test_what_is_refused()
  local two = "services:\n  main: { build: . }\n  db: { image: postgres }\n"
  for _, case in ipairs {
    { { ["task.toml"] = false }, "task.toml: is missing" }, { { ["task.toml"] = "a = " }, "line 1" }, { { ["instruction.md"] = false }, "instruction.md" },
    { { ["tests/test.sh"] = false }, "test.sh" }, { { ["environment/Dockerfile"] = false }, "no environment/Dockerfile" },
    { { ["task.toml"] = "[task]\nname = '../../x'" }, "escapes" }, { { ["task.toml"] = "[agent]\ntimeout_sec = 'x'" }, "timeout_sec" },
    { { ["task.toml"] = "[agent]\ntimeout_sec = -1" }, "timeout_sec" }, { { ["task.toml"] = "environment = 3" }, "environment must be a table" },
    { { ["task.toml"] = "[environment]\nmemory = 'lots'" }, "not a size" }, { { ["task.toml"] = "[environment]\ngpus = 1" }, "GPU", "unsupported" },
    { { ["task.toml"] = "[environment]\nos = 'windows'" }, "not linux", "unsupported" }, { { ["steps/one/instruction.md"] = "x" }, "several steps", "unsupported" },
    { { ["task.toml"] = "[agent]\nnetwork_mode = 'public'" }, "networks of their own", "unsupported" },
    { { ["task.toml"] = "[environment]\nnetwork_mode = 'some'" }, "network_mode" }, { { ["task.toml"] = "[environment]\nnetwork_mode = 'allowlist'" }, "allowed_hosts" },
    { { ["task.toml"] = "[[steps]]\nname = 'a'" }, "several steps", "unsupported" },
    { { ["task.toml"] = "[verifier]\nenvironment_mode = 'separate'" }, "environment of its own", "unsupported" },
    { { ["environment/docker-compose.yaml"] = two }, "2 services", "unsupported" },
    { { ["environment/Dockerfile"] = "FROM bash\nCOPY ../../secret /\n" }, "environment", false },
    { { ["environment/Dockerfile"] = "FROM bash\nHEALTHCHECK CMD true\n" }, "line 2", false },
    { { ["environment/Dockerfile"] = "FROM bash\nRUN exit 3\n" }, "line 2", false },
  } do
    assert(fs.remove(dir .. "/t", true) or true)
    local task, problem = load(case[1])
    lu.assertNil(task, case[2])
    if case[3] ~= false then lu.assertEquals(problem.code, case[3] or "task", problem.msg) end
    lu.assertStrContains(problem.msg, case[2])
  end
end

function M.test_links_stay_inside()
  folder()
  assert(fs.symlink("../../../victim/secret", dir .. "/t/tests/data"))
  local task, problem = ab.harbor.load(dir .. "/t", { network = "none" })
  lu.assertNil(task)
  lu.assertStrContains(problem.msg, "leads out")
  lu.assertTrue(lab.victim_is_untouched())
end

function M.test_one_service_is_as_good_as_a_dockerfile()
  local task = assert(load { ["environment/docker-compose.yaml"] = "services:\n  main:\n    build:\n      context: .\n    tty: true\n" })
  lu.assertEquals(ending(run(task, "idle")), { "success", 1.0, "final_answer" })
  local image = assert(load { ["environment/docker-compose.yaml"] = "services:\n  main:\n    image: bash\n" })
  lu.assertEquals(image.image, "bash")
end

function M.test_what_has_no_form()
  local function save(fields)
    fields.task_id, fields.description = "t", "d"
    return ab.harbor.save(ab.task.new(fields), dir .. "/none")
  end
  local lost, problem = save { verifier = { type = "lua", name = "lab.x" } }
  lu.assertNil(lost)
  lu.assertEquals(problem.code, "unsupported")
  lu.assertNil(fs.stat(dir .. "/none"))
  lu.assertEquals(save { verifier = { command = "true" }, data = { 1 }, allowed_tools = { "a" }, artifacts = { "x" } }, { "allowed_tools", "data", "artifacts" })
  lu.assertEquals(select(2, save { verifier = { command = "true" } }).code, "exists")
end

return M
