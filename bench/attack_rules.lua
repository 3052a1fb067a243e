--- When an attack of tests/sandbox/attacks.lua is held, whoever runs it: by what it prints and what it leaves, and not by how one
--- sandbox words its refusal. `open`: patterns of which one means that it went through; `held`: patterns of which one must be there.
--- `bound`: being ended by the bound that protects this machine (exit status 137) is no merit of the sandbox. `own`: what it attacks
--- in a Docker container is the container's own first process and nothing of Docker's. `left`: nothing may be alive afterwards.
local REFUSED = { "denied", "not permitted", "Read%-only", "nonexistent", "No such", "cannot create", "must be superuser", "busy" }
local REACHED = { open = { "ALLOWED" } }
local SILENT = { open = { "^%s*$" } } -- a success says nothing

local M = {}

--- Those that are no attacks upon anybody else: what must function, or what the one who asks for it must withstand.
M.NO_ATTACKS = { [49] = true, [62] = true, [74] = true, [77] = true, [83] = true, [89] = true, [91] = true, [92] = true, [94] = true,
  [95] = true, [98] = true, [110] = true, [112] = true, [115] = true, [116] = true }

--- Capabilities that reach beyond a container: NET_ADMIN, NET_RAW, SYS_MODULE, SYS_PTRACE, SYS_ADMIN, MKNOD.
M.FAR_CAPABILITIES = (1 << 12) | (1 << 13) | (1 << 16) | (1 << 19) | (1 << 21) | (1 << 27)

M.OF = {
  [1] = {}, [2] = {}, [4] = { open = { "^/" } }, [5] = { open = { "%->" } }, [7] = REACHED, [8] = {},
  [10] = { held = REFUSED, own = true }, [11] = { held = { "denied", "not permitted", "must be superuser", "failed" } }, [13] = SILENT,
  [14] = REACHED, [16] = REACHED, [17] = { open = { "ENTERED" } }, [19] = { held = { "not implemented", "not permitted" } },
  [20] = { open = { "dir%+?=/[^,:%s]+/" } }, [22] = { held = { "^done\n" } }, [23] = { held = REFUSED }, [25] = { held = REFUSED },
  [26] = { open = { "177" } }, [28] = { open = { "ALLOWED", "^%[" } }, [29] = { held = REFUSED }, [31] = SILENT, [32] = REACHED,
  [34] = { held = { "not permitted", "not implemented", "denied" } }, [35] = REACHED, [37] = REACHED, [38] = REACHED,
  [40] = { open = { "SET" } }, [41] = { open = { "pwned" } }, [43] = { open = { "ALLOWED" }, own = true },
  [44] = { open = { "READ" }, own = true }, [46] = { capabilities = true }, [47] = { open = { "RT\n", "%-20" } },
  [50] = { open = { "0x0abcd123", "hostshm" } }, [52] = { open = { "mount32 0" } }, [97] = { open = { "^0" } },
  [100] = { open = { "ALLOWED" }, own = true }, [101] = { open = { "mlock64M 0" } },
  [53] = { open = { "CONNECTED" } }, [55] = { open = { "CONNECTED" } }, [56] = { open = { "^/", "\n/" } }, [58] = REACHED, [59] = REACHED,
  [61] = { open = { "ALLOWED", "errno 0" } }, [64] = { open = { "@HOST@" } }, [65] = { open = { "dockerd", "containerd" } },
  [67] = { open = { ":/%w" } },
  [68] = { open = { "stopped at %d%d%d%d" }, bound = true }, [70] = { open = { "ALLOCATED" }, bound = true },
  [71] = { open = { "GB, " }, bound = true }, [73] = { open = { "CREATED" }, bound = true }, [76] = { held = { "stopped" }, bound = true },
  [103] = { open = { "MEMFD_MB" }, bound = true }, [104] = { open = { "HELD" }, bound = true }, [106] = { open = { "inotify %d%d%d" } },
  [107] = { open = { "timers %d%d%d%d%d" } }, [109] = { held = { "ENOSPC" }, bound = true },
  [79] = { left = true }, [80] = { left = true }, [82] = {}, [85] = { held = { "^0\n" } }, [86] = { open = { "^core", "\ncore" } }, [88] = {},
  [113] = { held = { "rc=0" } },
}

return M
