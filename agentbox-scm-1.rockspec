rockspec_format = "3.0"
package = "agentbox"
version = "scm-1"
source = {
  url = "git+file://.",
  branch = "main",
}
description = {
  summary = "Rollouts for training LLM agents: sandboxes, tools, verifiers, trajectories",
  detailed = [[
    The core of agentbox as a module for stock Lua, with its Lua library:
    require("agentbox").run(function() ... end)
  ]],
  license = "Apache-2.0",
}
supported_platforms = { "linux" }
dependencies = { "lua >= 5.4, < 5.5" }
-- CMake looks for these and for libcurl (whose header Debian keeps where luarocks does not look) with pkg-config.
external_dependencies = {
  UV = { header = "uv.h" },
  YAML = { header = "yaml.h" },
  SIMDJSON = { header = "simdjson.h" },
  TOML = { header = "toml++/toml.h" },
  OPENSSL = { header = "openssl/evp.h" },
  SECCOMP = { header = "seccomp.h" },
  SQLITE = { header = "sqlite3.h" },
  ARCHIVE = { header = "archive.h" },
}
build = {
  type = "cmake",
  variables = {
    CMAKE_BUILD_TYPE = "Release",
    CMAKE_INSTALL_PREFIX = "$(PREFIX)",
    BUILD_TESTING = "OFF",
    AB_WERROR = "OFF",
    AB_ROCK = "ON",
    AB_ROCK_LIBDIR = "$(LIBDIR)",
    AB_ROCK_LUADIR = "$(LUADIR)",
  },
}
