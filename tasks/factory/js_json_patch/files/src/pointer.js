"use strict";

// A pointer is "" for the whole document, or "/" and tokens with "/" between them; in a token "~1" stands for "/" and "~0" for "~".
// parse(text) gives the list of tokens, decoded. Throws a SyntaxError when the text is not empty and does not begin with "/", and
// when "~" is followed by anything but 0 or 1.
function parse(text) {
  return text.split("/").slice(1);
}

// format(tokens) is the way back.
function format(tokens) {
  return tokens.map((token) => `/${token}`).join("");
}

module.exports = { parse, format };
