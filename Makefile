# A front door: every target is a preset, a CTest label or a script. `make` leaves build/agentbox.
PREFIX ?= /usr/local
suites = unit lua cli sandbox docker faults tasks peers checks
lua_files = lua tests examples tools bench
c_files = $$(find src tests bench -name '*.[ch]')

all:
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release

demo: all
	@build/agentbox script examples/demo.lua

test:
	@tests/run

$(suites):
	@tests/run $@

fuzz:
	PRESET=fuzz tests/run fuzz

asan:
	PRESET=asan tests/run unit lua cli faults fuzz

# Where threads meet: the pool, the watchdog. Lua's own loops get their signals too late under ThreadSanitizer.
tsan:
	PRESET=tsan tests/run unit lua

soak:
	AGENTBOX_SOAK=1 tests/run soak faults

bench: all
	@cmake --build --preset release --target bench-spawn bench-floor bench-slow-llm $(shell test -e /usr/include/microhttpd.h && echo bench-mhd)
	build/agentbox script bench/run.lua

lint: layers budget
	luacheck -q $(lua_files)
	clang-format --dry-run -Werror $(c_files)

tidy:
	cmake --preset dev && run-clang-tidy -quiet -p build/dev 'src/.*\.c$$'

fmt:
	clang-format -i $(c_files)

layers budget:
	lua5.4 tools/$@.lua

doc: all
	lua5.4 tools/docgen.lua
	build/agentbox help --markdown >docs/cli.md

made: all
	@cmake --build --preset release --target made

deb: made
	cd build/release && cpack -G DEB

rock:
	luarocks --lua-version 5.4 lint agentbox-scm-1.rockspec
	luarocks --lua-version 5.4 make --tree build/rock agentbox-scm-1.rockspec

install: made
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build

.PHONY: all demo test $(suites) fuzz asan tsan soak bench lint tidy fmt layers budget doc made deb rock install clean
