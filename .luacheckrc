-- luacheck lua tests examples tools bench
std = "lua54"
max_line_length = false -- tools/budget.lua has an opinion on it
cache = ".cache/luacheck"
exclude_files = { "build", "lua/stdlib/_meta" }
