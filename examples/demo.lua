--- `make demo`: every bundled task in a sandbox of its own, one line each.
---
---     agentbox script examples/demo.lua [TASKS [OUT]]
---
--- TASKS is one task or a folder of them; the folders in it are left out (those of tasks/factory want compilers as well). Without
--- MODEL in the environment a scripted model solves them (with BROKEN=1 it does not); with MODEL, BASE_URL and API_KEY a real one tries.
--- Exit status: 0 all solved, 1 not all, 2 bad input, 3 nothing could run.
local ab = require "agentbox"
local solver = require "solver"

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local tasks_dir = arg[1] or here .. "/../tasks"
local out_dir = arg[2] or "runs/demo"

local function setting(name)
  local value = os.getenv(name)
  return value ~= "" and value or nil
end

--- A function from a task to the model that works on it.
local function models()
  if setting "MODEL" then
    local model = ab.model.open {
      model = setting "MODEL", base_url = setting "BASE_URL", api_key = setting "API_KEY" and ab.secret "API_KEY",
      max_tries = 3, -- somebody is watching: a server that is not there is said soon
    }
    return function() return model end, setting "MODEL"
  end
  local broken = setting "BROKEN" ~= nil
  return function(task) return solver.model(task, broken) end, broken and "scripted, broken" or "scripted"
end

local function fail(err)
  io.stderr:write("demo: ", tostring(err), "\n")
  return err.code == "task" and 2 or 3
end

local function show(traj, seconds)
  print(("%-16s %-8s %6s %5d %8.2f"):format(traj.task_id, traj.final_status,
    traj.reward and ("%.1f"):format(traj.reward) or "-", traj.metrics.steps or 0, seconds))
end

local function main()
  local tasks, err = ab.task.dir(tasks_dir, { nested = false })
  if not tasks then return fail(err) end
  local model_for, name = models()
  local run_id = ab.rand.uuid4()
  local store <close>, problem = ab.store.open(out_dir, { run_id = run_id, meta = { model = name } })
  if not store then return fail(problem) end

  print(("%d tasks, model: %s\n"):format(#tasks, name))
  print "task             status   reward steps  seconds"
  local solved, infra, why, saved = 0, 0, nil, nil
  ab.async.each(tasks, function(task)
    local began = ab.time.monotonic()
    local traj = assert(ab.rollout.run { task = task, model = model_for(task), run_id = run_id, id = ab.rand.uuid4() })
    show(traj, ab.time.monotonic() - began)
    saved = assert(store:append(traj)).json
    if traj.final_status == "success" then solved = solved + 1 end
    if not traj.scored then
      infra = infra + 1
      why = why or ("%s: %s"):format(traj.task_id, traj.line.error or traj.stop_reason)
    end
  end, { limit = 2 })

  print(("\n%d of %d solved. Trajectories: %s"):format(solved, #tasks, out_dir))
  print(("Look at one: agentbox traj show %s"):format(saved))
  local page, unmade = ab.render.file(store.run_dir, out_dir .. "/demo.html", { title = "demo" })
  if page then print(("All of them as a page for your browser: %s"):format(page.path))
  else io.stderr:write("demo: no page: ", tostring(unmade), "\n") end
  if why then io.stderr:write("demo: ", why, "\nTry: agentbox doctor\n") end
  if infra == #tasks then return 3 end
  return solved == #tasks and 0 or 1
end

return main()
