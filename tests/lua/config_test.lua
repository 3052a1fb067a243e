local lu = require "luaunit"
local config = require "agentbox.config"
local fs = require "agentbox.sys.fs"

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-config") end

function M.tearDown() assert(fs.remove(dir, true)) end

local function put(name, text)
  assert(fs.mkdir((dir .. "/" .. name):match "^(.*)/", true))
  assert(fs.write(dir .. "/" .. name, text))
end

local function load(env, cwd)
  return config.load { cwd = cwd or dir, env = function(name) return (env or {})[name] end }
end

local function resolved(env, flags, task)
  local c = assert(load(env))
  return assert(c:resolve(flags, task))
end

local function refused(text, name)
  put(name or "agentbox.yaml", text)
  local c, err = load()
  lu.assertNil(c)
  lu.assertEquals(err.code, "config")
  return err.msg
end

function M.test_defaults_without_a_file()
  local c = resolved()
  lu.assertEquals({ c:value "agent.max_steps" }, { 40, "default" })
  lu.assertEquals({ c:value "model.model" }, { "mock", "default" })
end

function M.test_each_origin_beats_the_next()
  put("agentbox.yaml", "model: { model: from-file, base_url: 'http://f' }\nagent: { max_steps: 7 }\n")
  local file = "file " .. dir .. "/agentbox.yaml"
  local c = resolved()
  lu.assertEquals({ c:value "model.model" }, { "from-file", file })
  c = resolved { AGENTBOX_MODEL = "from-env", OPENAI_BASE_URL = "http://o" }
  lu.assertEquals({ c:value "model.model" }, { "from-env", "environment AGENTBOX_MODEL" })
  lu.assertEquals({ c:value "model.base_url" }, { "http://o", "environment OPENAI_BASE_URL" })
  c = resolved({}, {}, { max_steps = 5 })
  lu.assertEquals({ c:value "agent.max_steps" }, { 5, "task max_steps" })
  c = resolved({ AGENTBOX_MODEL = "from-env" }, { model = "from-flag", max_steps = 2 }, { max_steps = 5 })
  lu.assertEquals({ c:value "model.model" }, { "from-flag", "flag --model" })
  lu.assertEquals({ c:value "agent.max_steps" }, { 2, "flag --max-steps" })
end

function M.test_the_environment_is_converted()
  lu.assertEquals({ resolved { AGENTBOX_SEED = "7" }:value "run.seed" }, { 7, "environment AGENTBOX_SEED" })
  local c, err = assert(load { AGENTBOX_SEED = "x" }):resolve()
  lu.assertNil(c)
  lu.assertEquals(err.msg, "the environment variable AGENTBOX_SEED must be a whole number, not 'x'")
end

function M.test_sections_nest()
  put("agentbox.yaml", "sandbox: { image: lab, limits: { memory_mb: 64 } }\n")
  local sandbox = resolved({}, {}, { limits = { cpu_count = 2 } }):section "sandbox"
  lu.assertEquals(sandbox.image, "lab")
  lu.assertEquals(sandbox.limits.memory_mb, 64)
  lu.assertEquals(sandbox.limits.cpu_count, 2)
  lu.assertEquals(sandbox.limits.pids_limit, 256)
end

function M.test_the_nearest_file_wins()
  put("agentbox.yaml", "agent: { max_steps: 1 }\n")
  put("a/agentbox.json", '{"agent": {"max_steps": 2}}')
  put("a/b/c/none.txt", "")
  lu.assertEquals(assert(load({}, dir .. "/a/b/c")).path, dir .. "/a/agentbox.json")
  lu.assertEquals(assert(load({}, dir)).path, dir .. "/agentbox.yaml")
  put("a/agentbox.yml", "agent: { max_steps: 3 }\n")
  lu.assertEquals(assert(load({}, dir .. "/a")).path, dir .. "/a/agentbox.yml")
end

function M.test_a_named_file_must_exist()
  local c, err = load { AGENTBOX_CONFIG = dir .. "/missing.yaml" }
  lu.assertNil(c)
  lu.assertStrContains(err.msg, "AGENTBOX_CONFIG names " .. dir .. "/missing.yaml, which does not exist")
  put("other.yaml", "agent: { max_steps: 9 }\n")
  put("agentbox.yaml", "agent: { max_steps: 1 }\n")
  lu.assertEquals(assert(load { AGENTBOX_CONFIG = dir .. "/other.yaml" }).path, dir .. "/other.yaml")
end

function M.test_toml_is_refused()
  lu.assertStrContains(refused("x = 1\n", "agentbox.toml"), "TOML is not read")
end

function M.test_unknown_keys_name_line_and_neighbour()
  local msg = refused "model:\n  model: m\n  tempreature: 1\n"
  lu.assertStrContains(msg, "agentbox.yaml:3: model.tempreature: unknown key, did you mean 'temperature'?")
  lu.assertStrContains(refused "modle: { model: m }\n", "agentbox.yaml:1: modle: unknown key, did you mean 'model'?")
  lu.assertStrContains(refused "students:\n  - { model: a }\n  - { modle: b }\n",
    "agentbox.yaml:3: students[2].modle: unknown key, did you mean 'model'?")
end

function M.test_wrong_types_are_refused()
  lu.assertStrContains(refused "agent:\n  max_steps: many\n", "agent.max_steps: must be a whole number, not many")
  lu.assertStrContains(refused "agent: [1]\n", "agent: must be a mapping")
  lu.assertStrContains(refused "students: { model: a }\n", "students: must be a list")
  lu.assertStrContains(refused "- a\n- b\n", "must hold a mapping of sections")
  lu.assertStrContains(refused "just text\n", "must hold a mapping of sections")
end

function M.test_broken_yaml_names_file()
  lu.assertStrContains(refused "model: { model: [\n", dir .. "/agentbox.yaml")
end

function M.test_an_empty_file_is_a_file()
  put("agentbox.yaml", "")
  lu.assertEquals(assert(load()).path, dir .. "/agentbox.yaml")
  put("agentbox.yaml", "model:\n")
  lu.assertEquals({ resolved():value "model.model" }, { "mock", "default" })
end

function M.test_variables()
  put("agentbox.yaml", table.concat({
    "teacher: { model: '${NAME}-x', api_key: '${KEY}', max_tokens: '${N}' }",
    "model: { model: '$$a${EMPTY:-b}c$${NAME}$', timeout_s: '${T:-1.5}', stream: '${S:-true}' }",
  }, "\n"))
  local c = assert(load { NAME = "n", KEY = "k", N = "12", EMPTY = "" })
  lu.assertEquals(c:get "teacher", { model = "n-x", api_key = "k", max_tokens = 12 })
  lu.assertEquals(c:get "model.model", "$abc${NAME}$")
  lu.assertEquals(c:get "model.timeout_s", 1.5)
  lu.assertEquals(c:get "model.stream", true)
end

function M.test_an_unset_variable_is_an_error_where_it_is_used()
  put("agentbox.yaml", "model: { model: m }\nteacher:\n  model: t\n  api_key: ${TEACH_KEY}\n")
  local c = assert(load())
  lu.assertEquals(c:get "model.model", "m")
  local value, err = c:get "teacher"
  lu.assertNil(value)
  lu.assertEquals(err.code, "config")
  lu.assertStrContains(err.msg, "agentbox.yaml:4: teacher.api_key: the environment variable TEACH_KEY is not set")
end

function M.test_bad_variables()
  put("agentbox.yaml", "model: { model: '${not closed' }\n")
  local _, err = assert(load()):get "model.model"
  lu.assertStrContains(err.msg, "write $$ for a dollar sign")
  put("agentbox.yaml", "agent: { max_steps: '${N}' }\n")
  _, err = assert(load { N = "x" }):get "agent.max_steps"
  lu.assertStrContains(err.msg, "agent.max_steps: must be a whole number, not 'x'")
end

function M.test_values_do_not_expand_twice()
  put("agentbox.yaml", "model: { model: '${A}' }\n")
  lu.assertEquals(assert(load { A = "${B}" }):get "model.model", "${B}")
end

function M.test_models_as_a_list_are_students()
  put("agentbox.yaml", "models:\n  - { id: tiny, model: s }\n")
  local c = assert(load())
  lu.assertEquals(c:get "students", { { id = "tiny", model = "s" } })
  lu.assertNil(c:get "models")
  put("agentbox.yaml", "models: { agent: { model: p, tokens: require } }\n")
  lu.assertEquals(assert(load()):get "models", { agent = { model = "p", tokens = "require" } })
end

function M.test_paths_are_relative_to_the_file()
  put("agentbox.yaml", "lua_path: [lua, /abs]\ntools: x.lua\n")
  local c = assert(load())
  lu.assertEquals(c:paths "lua_path", { dir .. "/lua", "/abs" })
  lu.assertEquals(c:paths "tools", { dir .. "/x.lua" })
end

return M
