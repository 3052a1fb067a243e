--- What lies below a sandbox's root: no way leads there, and there is nothing of the host.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local lu = require "luaunit"
local os_sys = require "agentbox.sys.os"

local M = {}

local function output(box, command)
  local out = assert(box:exec(command, { timeout_s = 30 }))
  lu.assertEquals(out.exit_code, 0, out.stdout .. out.stderr)
  return out.stdout
end

function M.test_a_changed_root_is_left_to_the_sandboxes_own()
  local sb <close> = assert(ab.sandbox.create {})
  lu.assertEquals(output(sb, [[mkdir /tmp/down; echo here > /mark; python3 -c '
import os
up = os.open("/", os.O_RDONLY)
os.chroot("/tmp/down")
os.fchdir(up)
for _ in range(9): os.chdir("..")
os.chroot(".")
print(open("/mark").read(), os.path.exists("/usr"))']]), "here\n True\n")
end

-- Each mount that is seen names the one that it lies upon, and so the number of the hidden one.
function M.test_mounts_below_are_not_told()
  local sb <close> = assert(ab.sandbox.create {})
  lu.assertEquals(output(sb, [[python3 -c '
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
lines = [line.split() for line in open("/proc/self/mountinfo")]
below = {line[1] for line in lines} - {line[0] for line in lines}
def told(call, number, param, size):
    ask, answer = struct.pack("=IIQQ", 24, 0, number, param), ctypes.create_string_buffer(4096)
    return libc.syscall(call, ask, answer, ctypes.c_size_t(size), 0) >= 0
STATMOUNT, LISTMOUNT = 457, 458
print(len(below), [n for n in below for low in (0, 1 << 31)
                   if told(STATMOUNT, int(n) + low, 7, 4096) or told(LISTMOUNT, int(n) + low, 0, 512)])']]), "1 []\n")
end

-- What only the machine's root can: takes the uppermost root away, and looks.
local TAKE_AWAY = [[
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
try:
    mounts = os.open(f"/proc/{sys.argv[1]}/ns/mnt", os.O_RDONLY)
except PermissionError:
    sys.exit(77)
def enter():
    if libc.setns(mounts, 0x20000) < 0:
        sys.exit(77)
enter()
if libc.umount2(b"/", 2) < 0:
    sys.exit(f"umount: {ctypes.get_errno()}")
enter()
print([n for n in sorted(os.listdir("/")) if os.listdir("/" + n)], [n for n in os.listdir("/proc") if n.isdigit()])
try:
    os.mkdir("/mine")
    print("it can be written to")
except OSError:
    pass
print("further down:", libc.umount2(b"/", 2) == 0)
]]

-- The pid of our only sandbox.
local function its_pid()
  local mine = tostring(os_sys.pid())
  for _, entry in ipairs(assert(fs.list "/proc")) do
    local stat = entry.name:find "^%d+$" and fs.read("/proc/" .. entry.name .. "/stat", 4096)
    local pid, parent = (stat or ""):match "^(%d+) %(init%) %a (%d+)"
    if parent == mine then return pid end
  end
end

local function below(sb)
  local host <close> = assert(ab.sandbox.create { backend = "none" })
  local out = assert(host:exec({ "python3", "-c", TAKE_AWAY, assert(its_pid()) }, { timeout_s = 30 }))
  lu.skipIf(out.exit_code == 77, "only the machine's root can look")
  lu.assertEquals(out.exit_code, 0, out.stderr)
  sb:close()
  return out.stdout
end

function M.test_there_is_nothing_of_the_host()
  local sb <close> = assert(ab.sandbox.create {})
  lu.assertEquals(below(sb), "['proc'] []\nfurther down: False\n")
end

-- And what a sandbox was before a snapshot is gone: its upper file system would be two's.
function M.test_after_a_snapshot_as_well()
  local sb <close> = assert(ab.sandbox.create {})
  assert(sb:write("/workspace/a", "1"))
  local first <close> = assert(sb:snapshot())
  assert(sb:write("/workspace/b", "2"))
  local second <close> = assert(sb:snapshot())
  lu.assertEquals(output(sb, "cat a b"), "12")
  lu.assertNotEquals(first, second)
  lu.assertEquals(below(sb), "['proc'] []\nfurther down: False\n")
end

-- The engine's tree is mounted nowhere, so that no end of anything inside takes a part of it along.
function M.test_files_outlive_pid_1()
  local sb <close> = assert(ab.sandbox.create {})
  assert(sb:write("/workspace/a", "1"))
  local host <close> = assert(ab.sandbox.create { backend = "none" })
  local kill = "kill -9 $0; while kill -0 $0 2>&- && ! grep -q '^State:.Z' /proc/$0/status; do :; done"
  assert(host:exec({ "sh", "-c", kill, assert(its_pid()) }, { timeout_s = 30 }))
  lu.assertNil((sb:exec "true"))
  lu.assertEquals(sb:read "/workspace/a", "1")
  lu.assertEquals(assert(sb:stat "/usr/bin/env").type, "file")
end

return M
