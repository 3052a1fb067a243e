--- What the commands of `agentbox generate` make of flags and of agentbox.yaml: models, pipelines, prices.
local M = {}

---Where tasks go unless `--out` says otherwise.
M.OUT = "generated/tasks"

function M.usage(msg) return nil, { code = "usage", msg = "generate: " .. msg } end

---A flag, then the file's section, then the default. A switch has two flags.
---@async
---@param args table
---@param name string
---@param config agentbox.Config
---@param key string
---@param default any
---@return any value
---@return agentbox.Err? err
function M.setting(args, name, config, key, default)
  if args[name] ~= nil then return args[name] end
  if args["no_" .. name] then return false end
  local value, err = config:get(key)
  if err then return nil, err end
  if value == nil then return default end
  return value
end

-- Models that think at length unless they are told not to. What the file says in extra_body wins.
local function thinking_off(name)
  local lower = name:lower()
  if lower:find("glm", 1, true) or lower:find("zai-org", 1, true) then
    return { thinking = { type = "disabled" }, enable_thinking = false }
  elseif lower:find("qwen", 1, true) then
    return { enable_thinking = false, chat_template_kwargs = { enable_thinking = false } }
  end
end

local function body_of(name, given)
  local body = thinking_off(name)
  if not body then return given end
  for key, value in pairs(given or {}) do body[key] = value end
  return body
end

-- A model by its name and a section of the file, or one that a file holds.
local function open(name, section, args, more)
  local file = require "agentbox.models.file"
  if file.is(name) then return file.open(name) end
  return require "agentbox.model".configured {
    model = name, base_url = args.base_url or section.base_url, api_key = args.api_key or section.api_key,
    timeout_s = section.timeout_s or 180, extra_body = body_of(name, section.extra_body),
    temperature = more.temperature or section.temperature or 0.7,
  }
end

---The teacher: `--model`, else the file's section `teacher`.
---@async
---@param args table
---@param config agentbox.Config
---@return agentbox.Model?
---@return agentbox.Err? err
function M.teacher(args, config)
  local teacher, err = config:get "teacher"
  if err then return nil, err end
  teacher = teacher or {}
  local name = args.model or teacher.model
  if not name then return M.usage "a teacher is needed: --model, or teacher.model in agentbox.yaml" end
  return open(name, teacher, args, { temperature = args.temperature })
end

-- A judge is cool: at most this warm.
local JUDGE_TEMPERATURE = 0.3

---The judge: `--judge-model`, else the file's section `judge`, else the teacher's model.
---@async
---@param args table
---@param config agentbox.Config
---@return agentbox.Model?
---@return agentbox.Err? err
function M.judge_model(args, config)
  local judge, teacher, err
  judge, err = config:get "judge"
  if not err then teacher, err = config:get "teacher" end
  if err then return nil, err end
  local name = args.judge_model or judge and judge.model
  local section = judge or teacher or {}
  name = name or args.model or section.model
  if not name then return M.usage "a judge is needed: --model or --judge-model, or judge.model in agentbox.yaml" end
  local flags = judge and not args.judge_model and { api_key = args.api_key } or args
  local warm = section.temperature or args.temperature or JUDGE_TEMPERATURE
  return open(name, section, flags, { temperature = math.min(warm, JUDGE_TEMPERATURE) })
end

---Everything about judging but the model.
---@async
---@param args table
---@param config agentbox.Config
---@return { min_score: number, votes: integer, rubric?: string }?
---@return agentbox.Err? err
function M.judging(args, config)
  local least, err = M.setting(args, "min_score", config, "generate.min_score", 0.65)
  local votes, rubric
  if not err then votes, err = M.setting(args, "votes", config, "generate.votes", 1) end
  if args.rubric and not err then rubric, err = require "agentbox.fs".read_text(args.rubric) end
  if err then return nil, err end
  if votes < 1 then return M.usage "--votes must be at least 1" end
  return { min_score = least, votes = votes, rubric = rubric }
end

local function judge_of(args, config)
  local on, err = M.setting(args, "llm_judge", config, "generate.llm_judge", true)
  if not on then return nil, err end
  local judge
  judge, err = M.judging(args, config)
  if not judge then return nil, err end
  judge.model, err = M.judge_model(args, config)
  if not judge.model then return nil, err end
  return judge
end

-- A student of the file by its id, else a model on the teacher's server.
local function solver_of(args, config)
  if not args.solver then return nil end
  local students, err = config:get "students"
  local teacher
  if not err then teacher, err = config:get "teacher" end
  if err then return nil, err end
  local section, flags = teacher or {}, args
  for _, one in ipairs(students or {}) do
    if one.id == args.solver or one.model == args.solver then section, flags = one, {} end
  end
  local model
  model, err = open(section ~= teacher and section.model or args.solver, section, flags, {})
  if not model then return nil, err end
  return { model = model, attempts = args.attempts, min_rate = args.min_rate, max_rate = args.max_rate }
end

-- One a line; blank lines and those that begin with # do not count.
local function lines_of(path)
  if not path then return nil end
  local text, err = require "agentbox.fs".read_text(path)
  if not text then return nil, { code = "usage", msg = ("generate: %s: %s"):format(path, err.msg) } end
  local list = {}
  for line in text:gmatch "[^\n]+" do
    local bare = line:match "^%s*(.-)%s*$"
    if bare ~= "" and bare:sub(1, 1) ~= "#" then list[#list + 1] = bare end
  end
  return list
end

local function mix_of(args)
  if not args.mix then return nil end
  local mix, some = {}, false
  for part in args.mix:gmatch "[^,]+" do
    local name, weight = part:match "^%s*([^=]+)=([%d.]+)%s*$"
    if not tonumber(weight) then return M.usage("--mix wants NAME=WEIGHT,...: " .. part) end
    mix[name], some = tonumber(weight), some or tonumber(weight) > 0
  end
  if not some then return M.usage "--mix wants a weight above 0" end
  return mix
end

-- What is read from files: families, seeds, a corpus that must be there.
local function files_of(args)
  local out, err = {}
  out.families, err = lines_of(args.constraints_file)
  if not err then out.seeds, err = lines_of(args.seeds) end
  if not err then out.mix, err = mix_of(args) end
  for _, path in ipairs(args.corpus or {}) do
    if not err and not require "agentbox.fs".exists(path) then
      err = { code = "usage", msg = ("generate: --corpus %s: no such file or folder"):format(path) }
    end
  end
  if err then return nil, err end
  if #(args.corpus or {}) > 0 then out.corpus = { paths = args.corpus, max_share = args.max_share } end
  return out
end

local function stages_of(args)
  local generate = require "agentbox.generate"
  local stages = args.no_two_stage and generate.one_stage() or generate.two_stage()
  if args.no_docker_qc then stages:remove "sandbox" end
  if args.no_static_qc then stages:remove "static" end
  return stages
end

---The pipeline that flags and file ask for.
---@async
---@param args table
---@param config agentbox.Config
---@param more? { parents: agentbox.Task[], how: "vary"|"evolve" }
---@return agentbox.Pipeline?
---@return agentbox.Err? err
function M.pipeline(args, config, more)
  local lang, why = require "agentbox.generate.language".find(args.domain or "python")
  if not lang then return M.usage(why) end
  local model, err = M.teacher(args, config)
  if not model then return nil, err end
  local judge, solver, files, max_tokens, of_teacher
  judge, err = judge_of(args, config)
  if not err then solver, err = solver_of(args, config) end
  if not err then files, err = files_of(args) end
  if not err then of_teacher, err = config:get "teacher.max_tokens" end
  if not err then max_tokens, err = M.setting(args, "max_tokens", config, "generate.max_tokens", 8192) end
  if err then return nil, err end
  return require "agentbox.generate".pipeline {
    model = model, language = lang, stages = stages_of(args), judge = judge, solver = solver, corpus = files.corpus,
    dedup = not args.no_dedup, families = files.families, seeds = files.seeds, mix = files.mix, seed = args.seed,
    difficulties = args.difficulty and { args.difficulty } or nil, constraints = args.constraints,
    max_tokens = not args.max_tokens and of_teacher or max_tokens, min_asserts = args.min_asserts, strict_paths = args.strict_paths,
    repeats = args.repeats, mutants = args.mutants, min_mutation = args.min_mutation, sandbox = args.backend and { backend = args.backend } or nil,
    parents = more and more.parents, how = more and more.how,
  }
end

---What `--price` says, of a million tokens.
---@param args table
---@return { prompt: number, completion: number }? prices
---@return string? problem
function M.prices(args)
  if not args.price then return nil, args.max_cost and "--max-cost needs --price" or nil end
  local prompt, completion = args.price:match "^([%d.]+),([%d.]+)$"
  if not tonumber(prompt) or not tonumber(completion) then return nil, "--price wants two numbers: PROMPT,COMPLETION" end
  return { prompt = tonumber(prompt), completion = tonumber(completion) }
end

---The caps that flags give.
---@param args table
---@return { calls?: integer, tokens?: integer, cost?: number }
function M.caps(args) return { calls = args.max_calls, tokens = args.total_tokens, cost = args.max_cost } end

return M
