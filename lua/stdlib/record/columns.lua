--- The lists of a record by columns, taken from their JSON text: no table is made of a node or a call that is only passed on.
---
--- Texts of messages stay what the record has, so that an export copies them as slices; a column is made when somebody looks
--- at it.
local json = require "agentbox.json"
local lists = require "agentbox.sys.list"
local sys = require "agentbox.sys.json"

local M = {}

---@class agentbox.MessageColumns
---@field n integer
---@field role (string?)[]
---@field content (string?)[]        # JSON text, as are calls, id and name
---@field kind (string?)[]           # what content is: "string", "array", "null" and so on
---@field calls (string?)[]
---@field id (string?)[]
---@field name (string?)[]
---@field thought (string?)[]        # reasoning_content, where it is text
---@field reasoning (string?)[]

local MESSAGE = {
  role = "$role", content = "&content", kind = "?content", calls = "&tool_calls", id = "&tool_call_id", name = "&name",
  thought = "$reasoning_content", reasoning = "$reasoning",
}

---@class agentbox.NodeColumns: agentbox.MessageColumns   # the members of its message, too
---@field p (integer?)[]     # the parent, from 0
---@field o string[]
---@field c (integer?)[]     # the call that it came of, from 0
---@field r (integer?)[]     # the tool run, from 0
---@field m string[]         # the message, as JSON text
---@field m_kind string[]    # what kind of value it is: "object"

local NODE = { p = "p", p_kind = "?p", o = "o", c = "c", r = "r", m = "&m", m_kind = "?m" }

for name, path in pairs(MESSAGE) do NODE[name] = path:sub(1, 1) .. "m." .. path:sub(2) end
local nodes_of = sys.sheet(NODE)

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
  local nodes = nodes_of(text_of(line.nodes))
  if not nodes then return nil, "nodes" end
  local p, p_kind, m_kind = nodes.p, nodes.p_kind, nodes.m_kind
  for i = 1, nodes.n do
    local parent = p[i]
    local fits = p_kind[i] == "null" or math.type(parent) == "integer" and parent >= 0 and parent < i - 1
    if not fits or m_kind[i] ~= "object" then return nil, ("nodes[%d]"):format(i - 1) end
  end
  return nodes
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
---@field given (string?)[]          # JSON text: the first choice of the response that stands here
---@field prompt_ids (string?)[]     # JSON text: those that it names itself

local calls_of = sys.sheet {
  agent = "agent", purpose = "purpose", trainable = "trainable", error = "!error", leaf = "leaf", out = "out", norm = "finish.norm",
  raw = "finish.raw", model = "model", response_id = "response_id", choice = "!choice", t = "!t", usage = "!usage",
  tokens = "!tokens", request_hash = "request.hash", request_body = "!request.body", params = "!request.params",
  cut_messages = "request.cut.messages", cut_tools = "request.cut.tools", response_hash = "response.hash",
  response_body = "!response.body", given = "&response.body.choices.[1]", prompt_ids = "&response.body.prompt_token_ids",
  -- What is checked of a call, besides.
  i = "i", leaf_kind = "?leaf", base = "tokens.prompt.base", base_kind = "?tokens.prompt.base",
}

local function is_index(value, kind, below)
  return kind == nil or kind == "null" or math.type(value) == "integer" and value >= 0 and value < below
end

-- Nil, or where a call is none: its place, and what it goes on from.
local function bad_call(calls, n_nodes)
  local place, leaf, leaf_kind, base, base_kind = calls.i, calls.leaf, calls.leaf_kind, calls.base, calls.base_kind
  for i = 1, calls.n do
    local fits = place[i] == i - 1 and is_index(leaf[i], leaf_kind[i], n_nodes)
    if not fits or not is_index(base[i], base_kind[i], i - 1) then return ("calls[%d]"):format(i - 1) end
  end
end

--- The calls of a record, nil and where when one is none. Members that are null are nil, and those that are JSON text, too.
---@param line table
---@param nodes agentbox.NodeColumns
---@return agentbox.CallColumns?
---@return string? where
function M.calls(line, nodes)
  local calls = calls_of(text_of(line.calls))
  if not calls then return nil, "calls" end
  local where = bad_call(calls, nodes.n)
  if where then return nil, where end
  return calls
end

local planes_of = sys.sheet {
  i = "i", leaf = "leaf", leaf_kind = "?leaf", base = "tokens.prompt.base", base_kind = "?tokens.prompt.base", out = "out",
  agent = "agent", trainable = "trainable", error = "error", norm = "finish.norm", raw = "finish.raw", versions = "&versions",
  sampling = "&sampling", src = "tokens.src", drift = "tokens.drift", prompt = "!tokens.prompt", tail = "&tokens.prompt.tail",
  keep = "tokens.prompt.keep", ids = "&tokens.out", lp = "!tokens.lp", n_out = "tokens.n_out",
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
  local where = not of and "calls" or bad_call(of, nodes.n)
  if where then return nil, where end
  for i = 1, of.n do
    calls[i] = {
      i = i - 1, leaf = of.leaf[i], out = of.out[i], agent = of.agent[i], trainable = of.trainable[i], failed = of.error[i] ~= nil,
      norm = of.norm[i], raw = of.raw[i], versions = of.versions[i], sampling = of.sampling[i],
      tokens = of.src[i] and {
        src = of.src[i], drift = of.drift[i], prompt = of.prompt[i], base = of.base[i], keep = of.keep[i],
        tail = of.tail[i], out = of.ids[i], lp = of.lp[i], n_out = of.n_out[i],
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
---@field began (number?)[]
---@field ended (number?)[]
---@field args (string?)[]
---@field result (string?)[]

local runs_of = sys.sheet {
  step = "step", node = "node", slot = "slot", call_id = "&call_id", name = "&name", is_error = "&is_error", began = "t.[1]", ended = "t.[2]", args = "&args",
  result = "&result", node_kind = "?node",
}

--- The tool runs of a record; nil and where when one is none.
---@param line table
---@param nodes agentbox.NodeColumns
---@return agentbox.RunColumns?
---@return string? where
function M.runs(line, nodes)
  local runs = runs_of(text_of(line.tool_runs))
  if not runs then return nil, "tool_runs" end
  local node, kind = runs.node, runs.node_kind
  for i = 1, runs.n do
    if not kind[i] or not is_index(node[i], kind[i], nodes.n) then return nil, ("tool_runs[%d]"):format(i - 1) end
  end
  return runs
end

--- The places (from 1) of the nodes from the root to a leaf.
---@param nodes agentbox.NodeColumns
---@param leaf integer?    # from 0
---@return integer[]
function M.path(nodes, leaf)
  local p, at, n = nodes.p, leaf, 0
  while at do
    at, n = p[at + 1], n + 1
  end
  local path = lists.new(1, n)
  at = leaf
  for i = n, 1, -1 do
    path[i] = at + 1
    at = p[at + 1]
  end
  return path
end

--- The messages of a path, as columns that the caller may alter.
---@param nodes agentbox.NodeColumns
---@param path integer[]                 # places of nodes
---@return agentbox.MessageColumns
function M.along(nodes, path)
  if #path == nodes.n then return sys.again(nodes) end
  local out = { n = #path }
  for name in pairs(MESSAGE) do
    local picked, column = {}, nodes[name]
    for i, at in ipairs(path) do picked[i] = column[at] end
    out[name] = picked
  end
  return out
end

return M
