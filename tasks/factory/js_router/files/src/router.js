"use strict";

const { matches } = require("./match");

// const router = new Router();
// router.add("GET", "/users/:id/files/*rest", handler)
//
// Patterns begin with "/". A segment is text, ":name" (one segment that is not empty) or, only as the last one, "*name" (the rest
// of the path, at least one character, slashes included). Names are made of letters, digits and _ and do not begin with a digit. An
// Error is thrown for anything else, for a name that is there twice in a pattern, and for a pattern that would match exactly the
// same paths as an earlier one of the same method (names do not matter). Text in patterns is taken as it stands, not decoded; it may
// not hold "?" or "#". Methods are in capitals.
//
// router.find(method, url) gives one of
//   { status: 200, handler, params }     params has no prototype; values are decoded
//   { status: 404 }
//   { status: 405, allow: ["GET", "HEAD", "PUT"] }   the path is known with other methods; sorted, without duplicates
//   { status: 400 }                      the path does not begin with "/" or has a %-sequence that cannot be decoded
//
// What is behind "?" or "#" is left out first. The path is split at "/" and only then are segments decoded, so that %2F is a slash
// in a segment; a "*" value is its segments decoded and joined with "/". Slashes at the end and doubled ones matter: "/a" and
// "/a/" are two paths.
//
// Precedence is decided segment by segment from the left: text before ":", ":" before "*". A route that cannot match to its end does not
// win: with "/a/:x/c" and "/a/b/d", "/a/b/c" finds the first. HEAD is answered by a GET route when there is no HEAD route for
// the path (of whatever precedence), and is allowed where GET is.
class Router {
  constructor() {
    this.routes = [];
  }

  add(method, pattern, handler) {
    this.routes.push({ method, pattern, handler });
    return this;
  }

  find(method, url) {
    const path = url.split("?")[0];
    for (const route of this.routes) {
      const params = matches(route.pattern, path);
      if (params && route.method === method) return { status: 200, handler: route.handler, params };
    }
    return { status: 404 };
  }
}

module.exports = { Router };
