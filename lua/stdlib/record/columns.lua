--- The lists of a record by columns, taken from their JSON text: no table is made of a node or a call that is only passed on.
---
--- Texts of messages stay what the record has, so that an export copies them as slices.
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"

local M = {}

---@class agentbox.NodeColumns
---@field n integer
---@field p (integer?)[]     # the parent, from 0
---@field o string[]
---@field c (integer?)[]     # the call that it came of, from 0
---@field r (integer?)[]     # the tool run, from 0
---@field m string[]         # the message, as JSON text

local nodes_of = sys.split { "p", "&p", "o", "c", "r", "&m" }

--- A list of the record as JSON text: of a record that was read, the text that was read.
---@param list any
---@return string|agentbox.JsonRaw
local function text_of(list)
  return json.type(list) == "raw" and list or json.encode(list)
end

--- The nodes of a record; nil and where it is, when one is no node or goes on from what does not come before it.
---@param line table
---@return agentbox.NodeColumns?
---@return string? where
function M.nodes(line)
  local n, p, given, o, c, r, m = nodes_of(text_of(line.nodes))
  if not n then return nil, "nodes" end
  for i = 1, n do
    local parent = p[i]
    local fits = given[i] == "null" or math.type(parent) == "integer" and parent >= 0 and parent < i - 1
    if not fits or not m[i] or m[i]:byte() ~= 123 then return nil, ("nodes[%d]"):format(i - 1) end -- "{"
  end
  return { n = n, p = p, o = o, c = c, r = r, m = m }
end

---@class agentbox.CallColumns
---@field n integer
---@field agent (string?)[]
---@field purpose (string?)[]
---@field trainable (boolean?)[]
---@field error (string?)[]          # JSON text, as all of these: choice, sampling, t, usage, versions, tokens
---@field leaf (integer?)[]          # from 0
---@field out (integer?)[]           # the node that it became, from 0
---@field norm (string?)[]           # how it ended
---@field raw (string?)[]            # the same in the server's word
---@field model (string?)[]
---@field response_id (string?)[]
---@field choice (string?)[]
---@field t (string?)[]
---@field usage (string?)[]
---@field tokens (string?)[]
---@field request_hash (string?)[]
---@field request_body (string?)[]   # JSON text
---@field params (string?)[]         # JSON text
---@field cut_messages (integer?)[]
---@field cut_tools (integer?)[]
---@field response_hash (string?)[]
---@field response_body (string?)[]  # JSON text

local CALLS = {
  agent = "agent", purpose = "purpose", trainable = "trainable", error = "&error", leaf = "leaf", out = "out", norm = "finish.norm",
  raw = "finish.raw", model = "model", response_id = "response_id", choice = "&choice", t = "&t", usage = "&usage",
  tokens = "&tokens", request_hash = "request.hash", request_body = "&request.body", params = "&request.params",
  cut_messages = "request.cut.messages", cut_tools = "request.cut.tools", response_hash = "response.hash",
  response_body = "&response.body",
}

-- A function that splits a list into columns with names of ours.
local function splitter(paths)
  local names, list = {}, {}
  for name in pairs(paths) do names[#names + 1] = name end
  for i, name in ipairs(names) do list[i] = paths[name] end
  local split = sys.split(list)
  return function(text)
    local columns = table.pack(split(text))
    if not columns[1] then return nil end
    local out = { n = columns[1] }
    for i, name in ipairs(names) do out[name] = columns[i + 1] end
    return out
  end
end

-- What is checked of a call, besides.
local CHECKED = { i = "i", leaf_text = "&leaf", base = "tokens.prompt.base", base_text = "&tokens.prompt.base" }

for name, path in pairs(CALLS) do CHECKED[name] = path end
local calls_of = splitter(CHECKED)

local function is_index(value, text, below)
  return text == nil or text == "null" or math.type(value) == "integer" and value >= 0 and value < below
end

--- The calls of a record, nil and where when one is none. Members that are null are nil, and those that are JSON text, too.
---@param line table
---@param nodes agentbox.NodeColumns
---@return agentbox.CallColumns?
---@return string? where
function M.calls(line, nodes)
  local calls = calls_of(text_of(line.calls))
  if not calls then return nil, "calls" end
  for i = 1, calls.n do
    local fits = calls.i[i] == i - 1 and is_index(calls.leaf[i], calls.leaf_text[i], nodes.n)
    if not fits or not is_index(calls.base[i], calls.base_text[i], i - 1) then return nil, ("calls[%d]"):format(i - 1) end
  end
  for name, path in pairs(CALLS) do
    local column = path:byte() == 38 and calls[name] -- "&"
    for i = 1, column and calls.n or 0 do
      if column[i] == "null" then column[i] = nil end
    end
  end
  return calls
end

local planes_of = splitter {
  i = "i", leaf = "leaf", leaf_text = "&leaf", base = "tokens.prompt.base", base_text = "&tokens.prompt.base", out = "out",
  agent = "agent", trainable = "trainable", error = "error", norm = "finish.norm", raw = "finish.raw", versions = "&versions",
  sampling = "&sampling", src = "tokens.src", drift = "tokens.drift", prompt = "&tokens.prompt", tail = "&tokens.prompt.tail",
  keep = "tokens.prompt.keep", ids = "&tokens.out", lp = "&tokens.lp", n_out = "tokens.n_out",
}

---@class agentbox.PlaneCall       # a call, as far as the rows of its ids want it
---@field i integer
---@field leaf integer?
---@field out integer?
---@field agent string?
---@field trainable boolean?
---@field failed boolean
---@field norm string?            # how it ended
---@field raw string?             # the same in the server's word
---@field versions string?        # JSON text, and so is `sampling`
---@field sampling string?
---@field tokens? { src: string, drift: string, prompt?: string, base?: integer, keep?: integer, tail?: string, out: string, lp?: string, n_out: integer }

--- The calls of a record with their ids and log-probs as JSON text; nil and where when one is none.
---@param line table
---@param nodes agentbox.NodeColumns
---@return agentbox.PlaneCall[]?
---@return string? where
function M.planes(line, nodes)
  local of, calls = planes_of(text_of(line.calls)), {}
  if not of then return nil, "calls" end
  for i = 1, of.n do
    local fits = of.i[i] == i - 1 and is_index(of.leaf[i], of.leaf_text[i], nodes.n)
    if not fits or not is_index(of.base[i], of.base_text[i], i - 1) then return nil, ("calls[%d]"):format(i - 1) end
    local prompt, lp = of.prompt[i], of.lp[i]
    calls[i] = {
      i = i - 1, leaf = of.leaf[i], out = of.out[i], agent = of.agent[i], trainable = of.trainable[i], failed = of.error[i] ~= nil,
      norm = of.norm[i], raw = of.raw[i], versions = of.versions[i], sampling = of.sampling[i],
      tokens = of.src[i] and {
        src = of.src[i], drift = of.drift[i], prompt = prompt ~= "null" and prompt or nil, base = of.base[i], keep = of.keep[i],
        tail = of.tail[i], out = of.ids[i], lp = lp ~= "null" and lp or nil, n_out = of.n_out[i],
      },
    }
  end
  return calls
end

---@class agentbox.RunColumns
---@field n integer
---@field step (integer?)[]
---@field node (integer?)[]     # of its result, from 0
---@field slot (integer?)[]     # its place among the calls of its turn, from 0
---@field call_id (string?)[]   # JSON text, as are the others
---@field name (string?)[]
---@field is_error (string?)[]
---@field t (string?)[]
---@field args (string?)[]
---@field result (string?)[]

local runs_of = splitter {
  step = "step", node = "node", slot = "slot", call_id = "&call_id", name = "&name", is_error = "&is_error", t = "&t", args = "&args",
  result = "&result", at = "&node",
}

--- The tool runs of a record; nil and where when one is none.
---@param line table
---@param nodes agentbox.NodeColumns
---@return agentbox.RunColumns?
---@return string? where
function M.runs(line, nodes)
  local runs = runs_of(text_of(line.tool_runs))
  if not runs then return nil, "tool_runs" end
  for i = 1, runs.n do
    if not runs.at[i] or not is_index(runs.node[i], runs.at[i], nodes.n) then return nil, ("tool_runs[%d]"):format(i - 1) end
  end
  return runs
end

---@class agentbox.MessageColumns
---@field n integer
---@field role (string?)[]
---@field content (string?)[]        # JSON text, as are calls, id and name
---@field calls (string?)[]
---@field id (string?)[]
---@field name (string?)[]
---@field thought (string?)[]        # reasoning_content, where it is text
---@field reasoning (string?)[]

local messages_of = splitter {
  role = "$role", content = "&content", calls = "&tool_calls", id = "&tool_call_id", name = "&name",
  thought = "$reasoning_content", reasoning = "$reasoning",
}

--- The members of messages.
---@param texts string[]
---@return agentbox.MessageColumns
function M.messages(texts) return messages_of(texts) end

--- The places (from 1) of the nodes from the root to a leaf.
---@param nodes agentbox.NodeColumns
---@param leaf integer?    # from 0
---@return integer[]
function M.path(nodes, leaf)
  local path, p = {}, nodes.p
  local at = leaf
  while at do
    path[#path + 1] = at + 1
    at = p[at + 1]
  end
  for i = 1, #path // 2 do path[i], path[#path - i + 1] = path[#path - i + 1], path[i] end
  return path
end

--- The messages of a path, as columns.
---@param of agentbox.MessageColumns     # of all nodes
---@param path integer[]                 # places of nodes
---@return agentbox.MessageColumns       # `of` itself, when the path is all of them
function M.along(of, path)
  if #path == of.n then return of end
  local out = { n = #path }
  for name, column in pairs(of) do
    local picked = name ~= "n" and {}
    for i, at in ipairs(picked and path or {}) do picked[i] = column[at] end
    out[name] = picked or out.n
  end
  return out
end

return M
