-- The first line of somebody's script.
io.stdout:write "x\n"
io.stdout:flush()
