--- JUnit XML for CI: a suite for each student, a case for each attempt. What was not solved is a failure, what has no score
--- an error.
local M = {}

local ENTITY = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["\n"] = "&#10;", ["\r"] = "&#13;", ["\t"] = "&#9;" }

-- XML 1.0 has no way to write most control characters, nor U+FFFE and U+FFFF.
local function escape(text)
  text = require "agentbox.text".scrub(tostring(text))
  text = text:gsub("[%z\1-\8\11\12\14-\31]", "\xef\xbf\xbd"):gsub("\xef\xbf[\xbe\xbf]", "\xef\xbf\xbd")
  return (text:gsub('[&<>"\n\r\t]', ENTITY))
end

local function case_of(row)
  local head = ('    <testcase classname="%s" name="%s/%d" time="%.3f"'):format(escape(row.model), escape(row.task), row.index,
    row.duration_s or 0)
  if row.success then return head .. "/>" end
  local kind = row.scored and "failure" or "error"
  local why = row.scored and ("%s, reward %.10g"):format(row.status, row.reward) or ("%s (%s)"):format(row.stop, row.class or "engine")
  return ('%s>\n      <%s type="%s" message="%s">%s</%s>\n    </testcase>'):format(head, kind, escape(row.stop), escape(why), escape(row.path), kind)
end

local function suite_of(one, rows)
  local time, failures, errors, cases = 0.0, 0, 0, {}
  for i, row in ipairs(rows) do
    time = time + (row.duration_s or 0)
    if not row.scored then errors = errors + 1 elseif not row.success then failures = failures + 1 end
    cases[i] = case_of(row)
  end
  if one.missing > 0 then
    errors = errors + 1
    cases[#cases + 1] = ('    <testcase classname="%s" name="(missing)"><error type="missing" message="%d attempts were not made"/></testcase>')
      :format(escape(one.model_id), one.missing)
  end
  local body = #cases > 0 and table.concat(cases, "\n") .. "\n" or ""
  return ('  <testsuite name="%s" tests="%d" failures="%d" errors="%d" time="%.3f">\n%s  </testsuite>'):format(escape(one.model_id), #cases,
    failures, errors, time, body), #cases, failures, errors
end

--- The document.
---@param report table
---@param all agentbox.Attempt[][]
---@return string
function M.text(report, all)
  local parts, tests, failures, errors = {}, 0, 0, 0
  for i, one in ipairs(report.models) do
    local text, t, f, e = suite_of(one, all[i])
    parts[i], tests, failures, errors = text, tests + t, failures + f, errors + e
  end
  local name = report.suite_id .. (type(report.subset) == "table" and " (subset)" or "")
  return ('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="%s" tests="%d" failures="%d" errors="%d">\n%s\n</testsuites>\n')
    :format(escape(name), tests, failures, errors, table.concat(parts, "\n"))
end

return M
