"use strict";

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
    this.methods = new Map();
  }

  add(method, pattern, handler) {
    const segments = parsePattern(pattern);
    if (!this.methods.has(method)) this.methods.set(method, newNode());
    let node = this.methods.get(method);
    for (const segment of segments) {
      if (segment.kind === "rest") {
        if (node.rest) throw new Error(`${method} ${pattern} is there already`);
        node.rest = { handler, names: namesOf(segments) };
        return this;
      }
      if (segment.kind === "name") {
        node.any = node.any || newNode();
        node = node.any;
      } else {
        if (!node.texts.has(segment.text)) node.texts.set(segment.text, newNode());
        node = node.texts.get(segment.text);
      }
    }
    if (node.end) throw new Error(`${method} ${pattern} is there already`);
    node.end = { handler, names: namesOf(segments) };
    return this;
  }

  find(method, url) {
    const path = url.split(/[?#]/)[0];
    if (!path.startsWith("/")) return { status: 400 };
    let segments;
    try {
      segments = path.slice(1).split("/").map(decodeURIComponent);
    } catch (error) {
      return { status: 400 };
    }
    const found = this.search(method, segments) || (method === "HEAD" && this.search("GET", segments));
    if (found) return found;
    const allow = new Set();
    for (const other of this.methods.keys()) {
      if (!this.search(other, segments)) continue;
      allow.add(other);
      if (other === "GET") allow.add("HEAD");
    }
    return allow.size > 0 ? { status: 405, allow: [...allow].sort() } : { status: 404 };
  }

  search(method, segments) {
    const root = this.methods.get(method);
    const hit = root && walk(root, segments, 0, []);
    if (!hit) return null;
    const params = Object.create(null);
    hit.route.names.forEach((name, i) => { params[name] = hit.values[i]; });
    return { status: 200, handler: hit.route.handler, params };
  }
}

function newNode() {
  return { texts: new Map(), any: null, rest: null, end: null };
}

function namesOf(segments) {
  return segments.filter((segment) => segment.kind !== "text").map((segment) => segment.name);
}

function parsePattern(pattern) {
  if (!pattern.startsWith("/") || /[?#]/.test(pattern)) throw new Error(`bad pattern: ${pattern}`);
  const parts = pattern.slice(1).split("/");
  const seen = new Set();
  return parts.map((part, i) => {
    const kind = { ":": "name", "*": "rest" }[part[0]];
    if (!kind) return { kind: "text", text: part };
    const name = part.slice(1);
    const last = i === parts.length - 1;
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || seen.has(name) || (kind === "rest" && !last)) {
      throw new Error(`bad pattern: ${pattern}`);
    }
    seen.add(name);
    return { kind, name };
  });
}

function walk(node, segments, at, values) {
  if (at === segments.length) return node.end && { route: node.end, values };
  const segment = segments[at];
  const next = node.texts.get(segment);
  const byText = next && walk(next, segments, at + 1, values);
  if (byText) return byText;
  const byName = node.any && segment !== "" && walk(node.any, segments, at + 1, [...values, segment]);
  if (byName) return byName;
  const rest = segments.slice(at).join("/");
  return node.rest && rest !== "" ? { route: node.rest, values: [...values, rest] } : null;
}

module.exports = { Router };
