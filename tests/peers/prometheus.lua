-- Writes what a scrape of a run gives, while the run goes on.
local ab = require "agentbox"

local page = ...
local held = true
local model = ab.model.fn(function(request)
  while held and request.session:find "last" do ab.async.sleep(0.001) end
  if request.session:find "broken" then return nil, ab.err.new("model", "HTTP 500") end
  return "done"
end)
local list = {}
for i, name in ipairs { "a", "b", "broken", "last" } do
  list[i] = { task_id = name, description = "d", verifier = { type = "command", command = "true" } }
end
local run <close> = assert(ab.runner.start {
  tasks = list, n = 3, model = model, sandbox = { backend = "none" }, retry_wait_s = 0, attempts = 2, max_errors = 99, max_lead = 5,
  concurrency = 8, policy = { version = 7 }, metrics = { listen = "127.0.0.1:0", token = "a long token" },
  run_id = 'odd "name\\',
})
while run.tally.rollouts < 9 do run:_await(1) end
local url = run.metrics_server.url .. "/metrics"
assert(ab.http.request({ url = url, proxy = false }).status == 401)
local response = assert(ab.http.request { url = url, proxy = false, headers = { Authorization = "Bearer a long token" } })
assert(ab.fs.write(page, response.body))
held = false
run:wait()
