--- conform/files.lua: files read, written, listed and removed from outside.
local ODD = "new\nline \xff\xfe 'quoted' $x"

return {
  { id = "file.bytes", what = "bytes go in and come out, missing folders are made", run = function(t)
    local bytes = ("\0\xff\r\n"):rep(1000)
    t.truth(t.sb:write("a/b/c.bin", bytes), "write")
    t.equal(t.sb:read "a/b/c.bin", bytes, "read")
    t.equal(t:sh("wc -c < a/b/c.bin").stdout:match "%d+", "4000", "seen inside")
  end },
  { id = "file.large", what = "5 MB", run = function(t)
    local bytes = ("0123456789abcdef"):rep(327680)
    t.truth(t.sb:write("large", bytes), "write")
    t.truth(t.sb:read "large" == bytes, "read gives the same")
  end },
  { id = "file.mode", what = "mode: 0644 when new, as asked, kept when it is there", run = function(t)
    t.truth(t.sb:write("m", "x"), "write")
    t.equal(t.sb:stat("m").mode, 420, "new")
    t.truth(t.sb:write("m2", ("x"):rep(600000), { mode = 493 }), "write")
    t.equal(t.sb:stat("m2").mode, 493, "asked for")
    t.truth(t.sb:write("m2", "y"), "write again")
    t.equal(t.sb:stat("m2").mode, 493, "kept")
  end },
  { id = "file.owner", what = "owner: root's when new, as asked, kept when it is there", needs = "users",
    run = function(t)
    if t.sb._raw:user_count() == 1 then return end
    t.truth(t.sb:write("o", "x", { owner = "1000:1001" }), "write")
    t.equal(t:sh("stat -c %u:%g o").stdout, "1000:1001\n", "owner")
    t.truth(t.sb:write("o", "y"), "write again")
    t.equal(t.sb:stat("o").uid, 1000, "kept")
  end },
  { id = "file.append", what = "append, and exclusive refuses what is there", run = function(t)
    t.truth(t.sb:write("l", "a"), "write")
    t.truth(t.sb:append("l", "b"), "append")
    t.equal(t.sb:read "l", "ab", "read")
    local ok, problem = t.sb:write("l", "c", { exclusive = true })
    t.equal(ok, nil, "exclusive")
    t.code(problem, "exists", "exclusive")
  end },
  { id = "file.errors", what = "what is wrong has its code: not there, a folder, too long", run = function(t)
    local ok, problem = t.sb:read "nowhere"
    t.equal(ok, nil, "not there")
    t.code(problem, "notfound", "not there")
    ok, problem = t.sb:read "/"
    t.equal(ok, nil, "a folder")
    t.code(problem, "invalid", "a folder")
    t.truth(t.sb:write("long", ("x"):rep(2000)), "write")
    ok, problem = t.sb:read("long", { max_bytes = 1000 })
    t.equal(ok, nil, "too long")
    t.code(problem, "toobig", "too long")
    t.equal(#t.truth(t.sb:read("long", { max_bytes = 1000, truncate = true }), "its head"), 1000, "its head")
  end },
  { id = "file.never-waits", what = "a FIFO and a device are refused, not waited for", needs = "confinement",
    run = function(t)
    t:sh "mkfifo pipe"
    local ok, problem = t.sb:read "pipe"
    t.equal(ok, nil, "a FIFO")
    t.code(problem, "invalid", "a FIFO")
    t.equal((t.sb:read "/dev/zero"), nil, "a device")
  end },
  { id = "file.links", what = "links lead nowhere but inside", run = function(t)
    t:sh "ln -s ../../../../../../etc/passwd up; ln -s /etc/passwd absolute; ln -s nowhere dangling"
    t.equal(t.sb:read "up", t.sb:read "/etc/passwd", "up and out")
    t.equal(t.sb:stat("dangling", { follow = false }).target, "nowhere", "target")
    t.equal(t.sb:stat "dangling", nil, "what it leads to")
  end, differs = { none = "the root is a folder of the host" } },
  { id = "file.list", what = "folders are listed, sorted, names being bytes", run = function(t)
    t.truth(t.sb:write("dir/b", "1") and t.sb:write("dir/a", "22") and t.sb:write("dir/sub/" .. ODD, "333"), "write")
    local names = {}
    for i, entry in ipairs(t.truth(t.sb:list "dir", "list")) do names[i] = entry.name .. ":" .. entry.type end
    t.equal(table.concat(names, " "), "a:file b:file sub:dir", "names")
    local all = t.truth(t.sb:list("dir", { recursive = true }), "list")
    t.equal(all[4].name, "sub/" .. ODD, "an odd name")
    t.equal(all[4].size, 3, "its size")
    t.equal(t.sb:read("dir/sub/" .. ODD), "333", "its bytes")
    local ok, problem = t.sb:list("dir", { recursive = true, max_entries = 2 })
    t.equal(ok, nil, "more entries than allowed")
    t.code(problem, "toobig", "more entries than allowed")
  end },
  { id = "file.rename", what = "mkdir, rename, remove", run = function(t)
    t.truth(t.sb:mkdir "x/y/z" and t.sb:mkdir "x/y/z", "mkdir, twice")
    t.truth(t.sb:write("x/f", "1") and t.sb:rename("x/f", "x/g"), "rename")
    t.equal(t.sb:read "x/g", "1", "under its new name")
    t.equal((t.sb:remove "x"), nil, "a folder with something in it")
    t.truth(t.sb:remove("x", { recursive = true }), "remove")
    t.equal(t.sb:stat "x", nil, "it is gone")
  end },
  { id = "file.both-ways", what = "what commands write is read, what is written they read", run = function(t)
    t:sh "mkdir -p d; echo from inside > d/f; chmod 600 d/f"
    t.equal(t.sb:read "d/f", "from inside\n", "read")
    t.truth(t.sb:write("d/f", "from outside\n"), "write")
    t.equal(t:sh("cat d/f; stat -c %a d/f").stdout, "from outside\n600\n", "seen inside")
  end },
}
