--- conform/trees.lua: whole trees, layers, and the end of a sandbox.
local fs = require "agentbox.sys.fs"

return {
  { id = "tree.copy", what = "a tree copied to another sandbox: links, modes, owners, holes; no FIFOs", needs = "confinement",
    run = function(t)
      t:sh [[mkdir -p src/in/ner; cd src; printf data > in/ner/f; chmod 751 in; ln -s in/ner/f link; mkfifo pipe
        truncate -s 50M sparse; printf end >> sparse; chown 1000:1000 in/ner/f 2>/dev/null; chmod 4755 in/ner/f
        touch -d @1000000000 in/ner/f]]
      local owners = t:sh("stat -c %u:%g src/in/ner/f").stdout
      local other = t:another()
      local counts = t.truth(t.sb:copy_tree("src", other, "dst"), "copy")
      t.equal(counts.files .. "/" .. counts.dirs .. "/" .. counts.links .. "/" .. counts.skipped, "2/2/1/1", "counts")
      local out = other:must_exec "cd dst; cat link; stat -c %a in in/ner/f; stat -c %Y in/ner/f; readlink link; tail -c 3 sparse"
      t.equal(out.stdout, "data751\n4755\n1000000000\nin/ner/f\nend", "the copy")
      t.equal(other:must_exec("stat -c %u:%g dst/in/ner/f").stdout, owners, "the owners")
      t.truth(tonumber(other:must_exec("du -k dst/sparse").stdout:match "%d+") < 1000, "holes are holes")
    end },
  { id = "tree.copy-cap", what = "a copy has caps", needs = "confinement", run = function(t)
    t:sh "mkdir big; head -c 300000 /dev/zero > big/a; touch big/b big/c"
    local other = t:another()
    local ok, problem = t.sb:copy_tree("big", other, "x", { max_bytes = 100000 })
    t.equal(ok, nil, "bytes")
    t.code(problem, "toobig", "bytes")
    ok, problem = t.sb:copy_tree("big", other, "y", { max_entries = 2 })
    t.equal(ok, nil, "entries")
    t.code(problem, "toobig", "entries")
    t:sh [[mkdir -p "nest/$(printf 'd/%.0s' $(seq 300))"]]
    ok, problem = t.sb:copy_tree("nest", other, "z")
    t.equal(ok, nil, "levels")
    t.code(problem, "toobig", "levels")
    t.truth(problem.msg:find("nest/d", 1, true), "the error names the path: " .. problem.msg)
    ok, problem = t.sb:list("nest", { recursive = true })
    t.equal(ok, nil, "levels of a list")
    t.code(problem, "toobig", "levels of a list")
    t.truth(problem.msg:find("d/d/d", 1, true), "the error names the path: " .. problem.msg)
  end },
  { id = "tree.closed", what = "what root inside may open is listed and copied, whoever closed it", needs = "confinement", run = function(t)
    t:sh "mkdir -p shut/in/ner; echo a > shut/in/ner/f; echo b > shut/g; chmod 0 shut/in/ner/f shut/g; chmod 400 shut/in/ner; chmod 0 shut/in"
    local other, list, names = t:another(), t.truth(t.sb:list("shut", { recursive = true }), "list"), {}
    for i, entry in ipairs(list) do names[i] = ("%s %o"):format(entry.name, entry.mode & 511) end
    t.equal(table.concat(names, ", "), "g 0, in 0, in/ner 400, in/ner/f 0", "the list")
    local counts = t.truth(t.sb:copy_tree("shut", other, "shut"), "copy")
    t.equal(counts.files .. "/" .. counts.dirs .. "/" .. counts.skipped, "2/2/0", "counts")
    t.equal(other:must_exec("stat -c %a shut/in shut/g; cat shut/in/ner/f shut/g").stdout, "0\n0\na\nb\n", "the copy")
    t.truth(other:remove("shut", { recursive = true }), "remove")
  end },
  { id = "tree.host", what = "a folder of the host put in and got out again", run = function(t)
    local dir = t.truth(fs.tmpdir "agentbox-conform-", "tmpdir")
    local _ <close> = setmetatable({}, { __close = function() fs.remove(dir, true) end })
    local big = ("0123456789abcdef"):rep(200000)
    t.truth(fs.mkdir(dir .. "/in") and fs.mkdir(dir .. "/in/sub") and fs.mkdir(dir .. "/out"), "mkdir")
    t.truth(fs.write(dir .. "/in/sub/big", big) and fs.write(dir .. "/in/f", "x", { mode = 488 }), "write")
    t.truth(fs.symlink("sub/big", dir .. "/in/link"), "symlink")
    local counts = t.truth(t.sb:put(dir .. "/in", "tree"), "put")
    t.equal(counts.files .. "/" .. counts.dirs .. "/" .. counts.links, "2/1/1", "counts")
    t.equal(t:sh("stat -c %a tree/f; readlink tree/link; wc -c < tree/link").stdout, "750\nsub/big\n3200000\n", "inside")
    t:sh "echo more > tree/sub/new; mkfifo tree/pipe"
    counts = t.truth(t.sb:get("tree", dir .. "/out"), "get")
    t.equal(counts.files .. "/" .. counts.dirs .. "/" .. counts.links .. "/" .. counts.skipped, "3/1/1/1", "counts")
    t.truth(fs.read(dir .. "/out/sub/big", 8 << 20) == big, "the large file")
    t.equal(fs.read(dir .. "/out/sub/new", 100), "more\n", "the new file")
    local ok, problem = t.sb:get("tree", dir .. "/out", { max_bytes = 1000 })
    t.equal(ok, nil, "more bytes than allowed")
    t.code(problem, "toobig", "more bytes than allowed")
    ok, problem = t.sb:put(dir .. "/in", "again", { max_entries = 1 })
    t.equal(ok, nil, "more entries than allowed")
    t.code(problem, "toobig", "more entries than allowed")
    ok, problem = t.sb:get("nowhere", dir .. "/out")
    t.equal(ok, nil, "a folder that is not there")
    t.code(problem, "notfound", "a folder that is not there")
  end },
  { id = "layer.freeze", what = "frozen files are there in every sandbox that stands on them, and none sees another's",
    needs = "freeze", run = function(t)
      t:sh "echo base > f; rm -f /etc/motd; echo outside > /opt-file; chmod 640 f"
      local layer <close> = t.truth(t.sb:freeze(), "freeze")
      local a, b = t:another { layers = { layer } }, t:another { layers = { layer } }
      t.equal(a:must_exec("cat f /opt-file; stat -c %a f; echo a > f").stdout, "base\noutside\n640\n", "the first")
      t.equal(b:must_exec("cat f").stdout, "base\n", "the second")
      a:close()
      b:close()
    end },
  { id = "layer.fork", what = "forks begin with the files so far; then each is its own, and so is the first", needs = "freeze",
    run = function(t)
      t:sh "echo base > f; mkdir d; ln -s f d/l; chmod 640 f"
      local kids <close> = t.truth(t.sb:fork(2), "fork")
      t:sh "echo mine > f"
      for i, kid in ipairs(kids) do
        t.equal(kid:must_exec("cat f; readlink d/l; stat -c %a f; echo " .. i .. " > f").stdout, "base\nf\n640\n", "fork " .. i)
      end
      t.equal(kids[1]:must_exec("cat f").stdout, "1\n", "the first fork")
      t.equal(kids[2]:must_exec("cat f").stdout, "2\n", "the second fork")
      t.equal(t:sh("cat f").stdout, "mine\n", "where they came from")
    end },
  { id = "layer.diff", what = "what differs from the beginning: added, changed, removed, by path", needs = "freeze", run = function(t)
    t:sh "mkdir -p d/e; echo x > d/e/new; echo more >> /etc/passwd; rm -f /etc/agentbox-none"
    local sb = t.sb
    local function told(list)
      local lines = {}
      for _, one in ipairs(list) do
        if one.path:find "^/workspace/." or one.path == "/etc/passwd" or one.path:find "^/srv" then lines[#lines + 1] = one.kind .. " " .. one.path end
      end
      return table.concat(lines, "\n")
    end
    t.equal(told(t.truth(sb:diff(), "diff")),
      "changed /etc/passwd\nadded /workspace/d\nadded /workspace/d/e\nadded /workspace/d/e/new", "what was done")
    local kids <close> = t.truth(sb:fork(1), "fork")
    t.equal(told(t.truth(kids[1]:diff(), "diff of a fork")), "", "a fork begins anew")
    kids[1]:must_exec "rm -r d"
    t.equal(told(t.truth(kids[1]:diff(), "diff of a fork")), "removed /workspace/d", "and only the folder is named")
  end },
  { id = "sandbox.fresh", what = "a sandbox begins empty, whatever another left", run = function(t)
    t:sh "echo x > left; echo y > /tmp/left"
    t.equal(t:another():must_exec("ls -A; ls /tmp/left 2>/dev/null").stdout, "", "files")
  end, differs = { none = "/tmp is the host's" } },
  { id = "sandbox.close", what = "close twice; what comes after it is an error of code sandbox", run = function(t)
    local sb = t:another()
    t.truth(sb:close() and sb:close(), "close")
    local out, problem = sb:exec "true"
    t.equal(out, nil, "exec")
    t.code(problem, "sandbox", "exec")
    out, problem = sb:read "x"
    t.equal(out, nil, "read")
    t.code(problem, "sandbox", "read")
  end },
  { id = "sandbox.close-busy", what = "close ends what runs: the wait for it is an error, not an outcome", needs = "tree",
    run = function(t)
      local fiber = require "agentbox.sys.fiber"
      local sb = t:another()
      local waiting = fiber.spawn(function() return sb:exec "sleep 300" end)
      fiber.sleep(0.2)
      sb:close()
      local _, out, problem = waiting:join(30)
      t.equal(out, nil, "exec")
      t.code(problem, "sandbox", "exec")
    end },
}
