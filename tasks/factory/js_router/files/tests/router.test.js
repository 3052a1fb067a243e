const { test, assert } = require("./check");
const { Router } = require("../src/router");

function routes(...list) {
  const router = new Router();
  for (const entry of list) {
    const [method, pattern] = entry.split(" ");
    router.add(method, pattern, entry);
  }
  return router;
}

function found(router, method, url) {
  const result = router.find(method, url);
  assert.equal(result.status, 200, `${method} ${url}: ${result.status}`);
  return [result.handler, { ...result.params }];
}

test("text", () => {
  const router = routes("GET /", "GET /a", "GET /a/", "GET /a/b", "GET /a//b", "GET /a%20b");
  for (const path of ["/", "/a", "/a/", "/a/b", "/a//b"]) assert.deepEqual(found(router, "GET", path), [`GET ${path}`, {}]);
  for (const path of ["/b", "/a/b/", "//", "/A", "/a b", "/a%20b"]) assert.equal(router.find("GET", path).status, 404, path);
  assert.deepEqual(found(router, "GET", "/a%2520b"), ["GET /a%20b", {}]);
});

test("parameters", () => {
  const router = routes("GET /users/:id", "GET /users/:id/files/*rest");
  assert.deepEqual(found(router, "GET", "/users/7?x=/1#y"), ["GET /users/:id", { id: "7" }]);
  assert.deepEqual(found(router, "GET", "/users/7/files/a/b.txt"), ["GET /users/:id/files/*rest", { id: "7", rest: "a/b.txt" }]);
  assert.equal(router.find("GET", "/users/").status, 404);
  assert.equal(router.find("GET", "/users/7/files/").status, 404);
  assert.equal(router.find("GET", "/users/7/8").status, 404);
  assert.equal(Object.getPrototypeOf(router.find("GET", "/users/7").params), null);
});

test("decoding", () => {
  const router = routes("GET /f/:name", "GET /caf\u00e9", "GET /t/*path");
  assert.deepEqual(found(router, "GET", "/f/a%2Fb%20c%25")[1], { name: "a/b c%" });
  assert.deepEqual(found(router, "GET", "/caf%C3%A9"), ["GET /caf\u00e9", {}]);
  assert.deepEqual(found(router, "GET", "/t/a%2Fb//c%3F?d")[1], { path: "a/b//c?" });
  assert.deepEqual(found(router, "GET", "/t//")[1], { path: "/" });
  for (const url of ["/f/%", "/f/%zz", "/f/%C3", "f/x", "", "?/f/x"]) assert.equal(router.find("GET", url).status, 400, url);
});

test("precedence does not depend on the order of adding", () => {
  const list = ["GET /users/:id", "GET /users/me", "GET /users/*all", "GET /*all", "GET /users/:id/x"];
  for (const router of [routes(...list), routes(...[...list].reverse())]) {
    assert.equal(found(router, "GET", "/users/me")[0], "GET /users/me");
    assert.deepEqual(found(router, "GET", "/users/you"), ["GET /users/:id", { id: "you" }]);
    assert.deepEqual(found(router, "GET", "/users/me/x"), ["GET /users/:id/x", { id: "me" }]);
    assert.deepEqual(found(router, "GET", "/users/me/y"), ["GET /users/*all", { all: "me/y" }]);
    assert.deepEqual(found(router, "GET", "/other"), ["GET /*all", { all: "other" }]);
    assert.deepEqual(found(router, "GET", "/users/"), ["GET /*all", { all: "users/" }]);
  }
});

test("a route that cannot match to its end does not win", () => {
  const router = routes("GET /a/:x/c", "GET /a/b/d", "GET /a/:x/:y/z");
  assert.deepEqual(found(router, "GET", "/a/b/c"), ["GET /a/:x/c", { x: "b" }]);
  assert.deepEqual(found(router, "GET", "/a/b/c/z"), ["GET /a/:x/:y/z", { x: "b", y: "c" }]);
  assert.equal(found(router, "GET", "/a/b/d")[0], "GET /a/b/d");
});

test("methods", () => {
  const router = routes("GET /a", "PUT /a", "PUT /:x", "POST /b", "DELETE /*all");
  assert.deepEqual(router.find("POST", "/a"), { status: 405, allow: ["DELETE", "GET", "HEAD", "PUT"] });
  assert.deepEqual(router.find("GET", "/b"), { status: 405, allow: ["DELETE", "POST", "PUT"] });
  assert.deepEqual(router.find("GET", "/b/c"), { status: 405, allow: ["DELETE"] });
  assert.deepEqual(router.find("GET", "/"), { status: 404 });
});

test("HEAD", () => {
  const router = routes("GET /a", "GET /b", "HEAD /:x", "GET /c/d", "POST /p/q");
  assert.equal(found(router, "HEAD", "/a")[0], "HEAD /:x");
  assert.deepEqual(found(router, "HEAD", "/c/d"), ["GET /c/d", {}]);
  assert.deepEqual(router.find("HEAD", "/p/q"), { status: 405, allow: ["POST"] });
  assert.deepEqual(router.find("PUT", "/b").allow, ["GET", "HEAD"]);
});

test("patterns that are refused", () => {
  for (const pattern of ["", "a", "/a?b", "/a#b", "/:", "/:1a", "/:a-b", "/*", "/*rest/a", "/:a/:a", "/:a/*a"]) {
    assert.throws(() => new Router().add("GET", pattern, 1), Error, pattern);
  }
});

test("patterns that cannot be told apart", () => {
  const router = routes("GET /a/:x", "GET /t", "GET /f/*x", "GET /:a/:b/c");
  for (const pattern of ["/a/:y", "/t", "/f/*other", "/:x/:y/c"]) assert.throws(() => router.add("GET", pattern, 1), Error, pattern);
  router.add("PUT", "/a/:y", 1).add("GET", "/a/:y/z", 2).add("GET", "/:y/x", 3).add("GET", "/f/:x", 4);
});

test("names of Object.prototype are names", () => {
  const router = routes("GET /:__proto__/constructor", "GET /:toString");
  assert.equal(router.find("GET", "/a/constructor").params["__proto__"], "a");
  assert.equal(router.find("GET", "/valueOf").params.toString, "valueOf");
  assert.equal(router.find("constructor", "/a/b").status, 404);
});
