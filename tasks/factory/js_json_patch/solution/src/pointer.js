"use strict";

// A pointer is "" for the whole document, or "/" and tokens with "/" between them; in a token "~1" stands for "/" and "~0" for "~".
// parse(text) gives the list of tokens, decoded. Throws a SyntaxError when the text is not empty and does not begin with "/", and
// when "~" is followed by anything but 0 or 1.
function parse(text) {
  if (text === "") return [];
  if (!text.startsWith("/")) throw new SyntaxError(`not a pointer: ${text}`);
  if (/~(?![01])/.test(text)) throw new SyntaxError(`bad escape: ${text}`);
  return text.slice(1).split("/").map((token) => token.replace(/~1/g, "/").replace(/~0/g, "~"));
}

// format(tokens) is the way back.
function format(tokens) {
  return tokens.map((token) => `/${token.replace(/~/g, "~0").replace(/\//g, "~1")}`).join("");
}

module.exports = { parse, format };
