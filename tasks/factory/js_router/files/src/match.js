"use strict";

// The parameters when a path matches a pattern, otherwise null.
function matches(pattern, path) {
  const want = pattern.split("/");
  const have = decodeURI(path).split("/");
  const params = {};
  for (let i = 0; i < want.length; i++) {
    if (want[i].startsWith("*")) {
      params[want[i].slice(1)] = have.slice(i).join("/");
      return params;
    }
    if (want[i].startsWith(":")) params[want[i].slice(1)] = have[i];
    else if (want[i] !== have[i]) return null;
  }
  return params;
}

module.exports = { matches };
