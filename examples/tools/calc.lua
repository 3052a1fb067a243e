--- calc: a Python interpreter that is started at the first call and keeps its variables between calls.
local PROGRAM = [[
import sys
names = {}
for line in sys.stdin:
    try:
        try:
            print(eval(line, names))
        except SyntaxError:
            exec(line, names)
            print("ok")
    except Exception as error:
        print("error:", error)
    print("<end>", flush=True)
]]

return require("agentbox.tool").define {
  api = 1,
  name = "calc",
  description = "Evaluate an expression or run an assignment. Variables stay from call to call.",
  exclusive = true, -- one conversation with one process
  parameters = {
    { "expression", "string", "one line of Python" },
    { "timeout_s", "number", "seconds to wait", default = 5 },
  },
  open = function(ctx)
    return ctx.sandbox:spawn { "python3", "-u", "-c", PROGRAM }
  end,
  run = function(_, args, process)
    local line = args.expression:gsub("[\r\n]+", " ") .. "\n"
    local said, err = process:ask(line, { until_text = "<end>\n", timeout_s = args.timeout_s })
    if not said then return nil, err end
    return (said:gsub("\n?<end>\n$", ""))
  end,
  close = function(process)
    process:kill()
  end,
}
