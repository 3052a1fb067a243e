local M = {}
function M.main(argv)
  if argv[1] == "script" then return tonumber(dofile(argv[2])) or 0 end
  print("agentbox")
  return 0
end
return M
