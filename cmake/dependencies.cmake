# Every third-party library, found once. Each is used by the one target that names it.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv>=1.44)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl>=7.88)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive>=3.6)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1>=0.2.5)
pkg_check_modules(SIMDJSON REQUIRED IMPORTED_TARGET simdjson>=3.0)
pkg_check_modules(SQLITE REQUIRED sqlite3>=3.37)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto>=3.0)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp>=2.5)
pkg_check_modules(LUA REQUIRED lua5.4>=5.4.4)

# Lua and lua-cjson are linked in: the executable is the only thing a user needs to copy.
find_library(LUA_STATIC NAMES liblua5.4.a REQUIRED)
find_library(CJSON_STATIC NAMES liblua5.4-cjson.a REQUIRED)
add_library(ab_deps_lua INTERFACE)
target_include_directories(ab_deps_lua SYSTEM INTERFACE ${LUA_INCLUDE_DIRS})

# One Lua file that the command line is built on; embedded, not installed.
find_file(ARGPARSE_LUA argparse.lua PATHS /usr/share/lua/5.4 /usr/local/share/lua/5.4 REQUIRED)
