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

# Headers only: what Debian has as a library of it was built with exceptions.
find_path(TOML_HEADER toml++/toml.h REQUIRED)

# llhttp, linked in: Debian 13 has a library (libllhttp-dev), Debian 12 and Ubuntu 24.04 its C sources (node-llhttp).
add_library(ab_llhttp INTERFACE)
find_library(LLHTTP_STATIC NAMES libllhttp.a)
find_path(LLHTTP_HEADER llhttp.h PATH_SUFFIXES llhttp PATHS /usr/share/include)
find_path(LLHTTP_SOURCES llhttp.c PATHS /usr/share/llhttp NO_DEFAULT_PATH)
if(NOT LLHTTP_HEADER OR NOT (LLHTTP_STATIC OR LLHTTP_SOURCES))
  message(FATAL_ERROR "llhttp is missing: install libllhttp-dev, or node-llhttp where there is no such package (Debian 12, Ubuntu 24.04)")
elseif(LLHTTP_STATIC)
  target_link_libraries(ab_llhttp INTERFACE ${LLHTTP_STATIC})
else()
  add_library(ab_llhttp_sources STATIC ${LLHTTP_SOURCES}/api.c ${LLHTTP_SOURCES}/http.c ${LLHTTP_SOURCES}/llhttp.c)
  target_include_directories(ab_llhttp_sources PRIVATE ${LLHTTP_HEADER})
  target_compile_definitions(ab_llhttp_sources PRIVATE LLHTTP_STRICT_MODE=1)
  target_compile_options(ab_llhttp_sources PRIVATE -w)
  target_link_libraries(ab_llhttp INTERFACE ab_llhttp_sources)
  target_compile_definitions(ab_llhttp INTERFACE LLHTTP_STRICT_MODE=1)
endif()
target_include_directories(ab_llhttp SYSTEM INTERFACE ${LLHTTP_HEADER})

# Lua and lua-cjson are linked in: the executable is the only thing a user needs to copy.
find_library(LUA_STATIC NAMES liblua5.4.a REQUIRED)
find_library(CJSON_STATIC NAMES liblua5.4-cjson.a REQUIRED)
add_library(ab_deps_lua INTERFACE)
target_include_directories(ab_deps_lua SYSTEM INTERFACE ${LUA_INCLUDE_DIRS})

# One Lua file that the command line is built on; embedded, not installed.
find_file(ARGPARSE_LUA argparse.lua PATHS /usr/share/lua/5.4 /usr/local/share/lua/5.4 REQUIRED)
