--- Images built here: Dockerfiles, what is refused, the cache, committed sandboxes.
local ab = require "agentbox"
local dockerfile = require "agentbox.image.dockerfile"
local fs = require "agentbox.sys.fs"
local lab = dofile((debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or ".") .. "/lab.lua")
local lu = require "luaunit"
local store = require "agentbox.image.store"

local M = {}

local count = 0
local home, context

function M.setUp()
  lab.needs_mapped_ids()
  count = count + 1
  home, context = lab.dir .. "/build-home" .. count, lab.dir .. "/context" .. count
  store._home = home
  assert(fs.mkdir(context .. "/sub/deep", true))
  assert(fs.write(context .. "/a.txt", "a\n"))
  assert(fs.write(context .. "/run.sh", "echo ran\n", { mode = 493 })) -- 0755
  assert(fs.write(context .. "/sub/b.txt", "b\n"))
  assert(fs.write(context .. "/sub/deep/c.log", "c\n"))
  assert(fs.symlink("a.txt", context .. "/sub/link"))
  assert(ab.image.import(lab.archive "saved.tar", { name = "base" }))
end

function M.tearDown()
  lu.assertEquals(lab.names(home, "tmp"), {})
  lab.forget()
  lu.assertEquals(lab.names(home, "trees"), {})
  store._home = nil
end

local function build(text, opts)
  assert(fs.write(context .. "/Dockerfile", text))
  opts = opts or {}
  opts.name, opts.file, opts.context = opts.name or "built", context .. "/Dockerfile", opts.context or context
  return ab.image.build(opts)
end

local function sh(image, command)
  local sb <close> = assert(ab.sandbox.create { image = image, user = 0 })
  return sb:must_exec(command).stdout
end

function M.test_a_dockerfile()
  local image = assert(build([[
# syntax=docker/dockerfile:1
ARG BASE=base
FROM ${BASE}
ENV GREETING="hello world" N=1
ENV OLD style value
ARG WHO=nobody
RUN echo "$GREETING $WHO" > /greeting && \
    # a comment in between
    rm -r /opq && mkdir /opq && echo x > /opq/fresh
WORKDIR /app
WORKDIR below
COPY sub/ .
COPY --chmod=600 a.txt run.sh /data/
ADD a.txt renamed
RUN ["/bin/sh", "-c", "ln /opq/fresh /opq/other; chmod 4711 /greeting; echo $PWD > /where"]
]], { args = { WHO = "me" } }))
  lu.assertEquals(image.workdir, "/app/below")
  lu.assertEquals({ image.env.GREETING, image.env.N, image.env.OLD, image.env.FOO }, { "hello world", "1", "style value", "bar" })
  lu.assertEquals(#image.layers, 7)
  lu.assertEquals(fs.read(image.root .. "/greeting"), "hello world me\n")
  lu.assertEquals(fs.stat(image.root .. "/greeting").mode, 2505) -- 04711
  lu.assertEquals(fs.read(image.root .. "/where"), "/app/below\n")
  lu.assertNil(fs.lstat(image.root .. "/opq/new"))
  lu.assertEquals(fs.stat(image.root .. "/opq/fresh").ino, fs.stat(image.root .. "/opq/other").ino)
  lu.assertEquals(fs.read(image.root .. "/app/below/deep/c.log"), "c\n")
  lu.assertEquals(fs.readlink(image.root .. "/app/below/link"), "a.txt")
  lu.assertEquals(fs.read(image.root .. "/app/below/renamed"), "a\n")
  lu.assertEquals(fs.stat(image.root .. "/data/run.sh").mode, 384) -- 0600
  lu.assertEquals(sh("built", "pwd; ls; echo $N"), "/app/below\nb.txt\ndeep\nlink\nrenamed\n1\n")
end

function M.test_the_base_is_not_changed()
  assert(build "FROM base\nRUN echo changed > /data/lower; rm -r /bin/seq")
  lu.assertEquals(sh("base", "cat /data/lower; ls /bin/seq"), "lower\n/bin/seq\n")
  lu.assertEquals(sh("built", "cat /data/lower; ls /bin/seq 2>/dev/null || echo gone"), "changed\ngone\n")
end

function M.test_b44_an_edited_recipe_is_another_image_and_edited_back_the_first()
  local first = assert(build "FROM base\nRUN echo 1 > /n\nRUN echo x > /x")
  local second = assert(build "FROM base\nRUN echo 2 > /n\nRUN echo x > /x")
  lu.assertNotEquals(second.id, first.id)
  lu.assertEquals(fs.read(second.root .. "/n"), "2\n")
  local did = {}
  local third = assert(build("FROM base\nRUN echo 1 > /n\nRUN echo x > /x",
    { on_output = function(chunk) did[#did + 1] = chunk end }))
  lu.assertEquals(third.id, first.id)
  assert(fs.write(context .. "/a.txt", "other\n"))
  local copied = assert(build "FROM base\nCOPY a.txt /a")
  assert(fs.write(context .. "/a.txt", "another\n"))
  lu.assertNotEquals(assert(build "FROM base\nCOPY a.txt /a").id, copied.id)
end

function M.test_commands_without_a_dockerfile()
  local image = assert(ab.image.build { name = "cmd", from = "base", run = { "echo one > /1", "cat /1 > /2" } })
  lu.assertEquals(fs.read(image.root .. "/2"), "one\n")
  lu.assertEquals(#image.layers, 4)
end

function M.test_more_steps_than_a_sandbox_has_layers()
  local lines = { "FROM base" }
  for i = 1, 30 do lines[#lines + 1] = ("RUN echo %d >> /log"):format(i) end
  local image = assert(build(table.concat(lines, "\n")))
  lu.assertEquals(select(2, fs.read(image.root .. "/log"):gsub("\n", "")), 30)
end

function M.test_from_scratch()
  local image = assert(build "FROM scratch\nCOPY sub /")
  lu.assertEquals(fs.read(image.root .. "/b.txt"), "b\n")
end

function M.test_what_fails_says_where()
  local function problem_of(text)
    local image, problem = build(text)
    lu.assertNil(image)
    return problem
  end
  local problem = problem_of "FROM base\n\nRUN echo before; echo broken >&2; exit 7"
  lu.assertStrContains(problem.msg, "line 3: ")
  lu.assertStrContains(problem.msg, "ended with 7")
  lu.assertStrContains(problem.msg, "broken")
  lu.assertEquals(problem_of("FROM not-here-at-all:1@sha256:12").code, "badarg")
  lu.assertStrContains(problem_of("FROM base\nCOPY nothing /").msg, "line 2: nothing in the context is called nothing")
  lu.assertStrContains(problem_of("FROM base\nCOPY ../a /").msg, "leaves the context")
end

function M.test_what_is_refused()
  for text, why in pairs {
    ["FROM base\nENTRYPOINT x"] = "line 2: ENTRYPOINT is not supported",
    ["FROM base\nRUN x\nFROM other"] = "line 3: a second FROM",
    ["FROM base\nCOPY --from=other /a /b"] = "line 2: --from of COPY",
    ["FROM base\nADD https://example/x /y"] = "line 2: ADD of a URL",
    ["FROM base\nADD x.tar.gz /y"] = "line 2: ADD that unpacks",
    ["FROM base\nRUN --mount=type=cache x"] = "line 2: RUN --mount",
    ["FROM base\nRUN <<EOF\nx\nEOF"] = "line 2: here documents",
    ["FROM --platform=linux/arm64 base"] = "line 1: FROM --platform",
    ["FROM base\nENV A=$(x)"] = "line 2: a $ that is",
  } do
    local image, problem = build(text)
    lu.assertNil(image, text)
    lu.assertEquals(problem.code, "unsupported", text)
    lu.assertStrContains(problem.msg, why)
    lu.assertTrue(problem.hint == nil or problem.hint:find "Docker" ~= nil)
  end
  for _, text in ipairs { "", "RUN x", "FROM", "FROM base\nCOPY x", "FROM base\nENV A" } do
    local image, problem = build(text)
    lu.assertNil(image, text)
    lu.assertEquals(problem.code, "parse", text)
  end
end

function M.test_dockerignore()
  assert(fs.write(context .. "/.dockerignore", "# none of these\n**/*.log\nDockerfile\nsub\n!sub/b.txt\n"))
  local image = assert(build "FROM scratch\nCOPY . /all/")
  lu.assertEquals(fs.read(image.root .. "/all/sub/b.txt"), "b\n")
  for _, name in ipairs { "sub/deep/c.log", "sub/link", "Dockerfile" } do
    lu.assertNil(fs.lstat(image.root .. "/all/" .. name), name)
  end
end

function M.test_variables()
  local vars = { A = "1", E = "" }
  for text, want in pairs {
    ["$A"] = "1", ["${A}x"] = "1x", ["$B."] = ".", ["${B:-d}"] = "d", ["${E:-d}"] = "d", ["${A:+y}${B:+n}"] = "y",
    ["\\$A"] = "$A", ["a\\b"] = "a\\b",
  } do
    lu.assertEquals(dockerfile.expand(vars, text), want, text)
  end
  for _, text in ipairs { "$(x)", "${A", "${A%x}", "$" } do lu.assertNil(dockerfile.expand(vars, text), text) end
end

function M.test_a_committed_sandbox()
  local id
  do
    local sb <close> = assert(ab.sandbox.create { image = "base", user = 0, workspace = "/work" })
    sb:must_exec "echo new > made; rm -r /gone /bin/seq; mkdir -p /opq; ln -s made link; chmod 2755 /opq; touch '/tmp/a\nb'"
    id = assert(sb:commit("made:1", { message = "by hand" })).id
    lu.assertNil((sb:exec "true"))
  end
  lu.assertEquals(ab.image.get("made:1").id, id)
  lu.assertEquals(sh("made:1", "cat /work/link; ls /bin/seq 2>/dev/null; stat -c %a /opq; ls /tmp"), "new\n2755\na\nb\n")
  lu.assertEquals(sh("base", "ls /bin/seq; ls /work 2>/dev/null || true"), "/bin/seq\n")
end

function M.test_a_commit_of_what_was_frozen_before()
  local layer
  do
    local sb <close> = assert(ab.sandbox.create { image = "base", user = 0 })
    sb:must_exec "echo 1 > /one"
    layer = assert(sb:freeze())
  end
  local sb <close> = assert(ab.sandbox.create { image = "base", user = 0, layers = { layer } })
  sb:must_exec "echo 2 > /two; rm /one; mkdir /one"
  local image = assert(sb:commit "twice")
  layer:close()
  lu.assertEquals(#image.layers, 4)
  lu.assertEquals(sh("twice", "cat /two; stat -c %F /one"), "2\ndirectory\n")
end

function M.test_owners_that_a_sandbox_gave()
  if not lab.root then ab.test.skip "an ordinary user has one user inside" end
  local sb <close> = assert(ab.sandbox.create { image = "base", user = 0 })
  assert(sb:write("/data/theirs", "x", { owner = "app", mode = 384 })) -- 0600
  local image = assert(sb:commit "owned")
  lu.assertEquals(fs.stat(image.root .. "/data/theirs").uid, 1000)
end

function M.test_what_cannot_be_committed()
  local sb <close> = assert(ab.sandbox.create {})
  local image, problem = sb:commit "x"
  lu.assertNil(image)
  lu.assertEquals(problem.code, "unsupported")
  lu.assertEquals(sb:must_exec("echo still").stdout, "still\n")
end

return M
