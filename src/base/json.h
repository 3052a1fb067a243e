/* json.h - JSON text to nodes and values to JSON text.
 *
 *     struct ab_json doc;
 *     ab_json_init(&doc);
 *     if (ab_json_parse(&doc, text, len, NULL, &err) < 0)   // AB_EPARSE, with line and
 * column
 *         ...
 *     // doc.nodes[0 .. doc.count) is the value, in document order
 *     ab_json_fini(&doc);
 *
 * Nothing is lost: integers that int64 cannot hold keep their text, `[]` is not `{}`,
 * keys keep their order (and their duplicates), strings may hold U+0000. simdjson finds
 * the tokens and checks the encoding; the grammar is checked here, so that a subtree
 * nobody reads can stay a slice of the source (AB_JSON_RAW) at a fraction of the cost.
 */
#ifndef AB_BASE_JSON_H
#define AB_BASE_JSON_H

#include "base/buf.h"

#define AB_JSON_MAX_DEPTH 1024

enum ab_json_kind {
    AB_JSON_NULL,
    AB_JSON_FALSE,
    AB_JSON_TRUE,
    AB_JSON_INT,    /* .integer */
    AB_JSON_FLOAT,  /* .number, finite */
    AB_JSON_NUMBER, /* beyond int64 or double: the text, ab_json_text */
    AB_JSON_STRING, /* ab_json_text, UTF-8 */
    AB_JSON_ARRAY,  /* .len elements follow */
    AB_JSON_OBJECT, /* .len times a STRING and a value follow */
    AB_JSON_RAW,    /* a valid value left as text, ab_json_text */
};

struct ab_json_node {
    uint8_t kind;
    bool copied;  /* the text is in doc->text, not in the source */
    uint32_t len; /* bytes of text, or elements, or members */
    union {
        int64_t integer;
        double number;
        size_t at; /* offset of the text */
    };
};

struct ab_json_index;

struct ab_json {
    struct ab_json_node *nodes; /* owns */
    size_t count, cap;
    struct ab_buf text;          /* strings that had escapes */
    const char *src;             /* borrowed: the parsed text, until the next parse */
    struct ab_json_index *index; /* owns; NULL until the first parse */
};

struct ab_json_name {
    const char *s;
    size_t len;
};

struct ab_json_opts {
    const struct ab_json_name *raw; /* members whose objects and arrays stay text */
    size_t raw_count;
    bool raw_root; /* the whole value stays text: a check of its grammar */
};

void ab_json_init(struct ab_json *doc);
void ab_json_fini(struct ab_json *doc);

/* The bytes the document would keep for the next parse. */
size_t ab_json_footprint(const struct ab_json *doc);

/* Replaces the nodes. Borrows text until the next parse. opts may be NULL. */
int ab_json_parse(struct ab_json *doc, const char *text, size_t len,
                  const struct ab_json_opts *opts, struct ab_err *err) AB_MUST_CHECK;

/* node->len bytes, borrowed until the next parse; not NUL-terminated. */
const char *ab_json_text(const struct ab_json *doc, const struct ab_json_node *node);

/* Appends a node; for other formats that build the same shape. Borrowed until the next.
 */
struct ab_json_node *ab_json_add(struct ab_json *doc, enum ab_json_kind kind);

/* Appends text to out with what strict JSON refuses made acceptable: bytes that are not
 * UTF-8 and lone surrogate escapes become U+FFFD, control characters inside strings
 * become escapes. Valid text is copied as it is. Returns the number of repairs. */
size_t ab_json_repair(struct ab_buf *out, const char *text, size_t len);

enum ab_json_style {
    AB_JSON_ASCII = 1,  /* escape everything beyond ASCII, as Python does by default */
    AB_JSON_STRICT = 2, /* refuse bytes that are not UTF-8, instead of replacing them */
};

/* Appends the string in quotes. -1 only with AB_JSON_STRICT: the bytes are not UTF-8. */
int ab_json_put_string(struct ab_buf *out, const char *s, size_t len, unsigned style)
    AB_MUST_CHECK;
void ab_json_put_integer(struct ab_buf *out, int64_t v);

/* The shortest text that reads back as the same double, laid out as Python's repr: 1.0,
 * 0.1, 1e-07, 1e+16. v must be finite. */
void ab_json_put_double(struct ab_buf *out, double v);

/* Appends valid JSON text so that it stays on one line: line breaks between tokens become
 * spaces. With AB_JSON_ASCII, characters beyond ASCII become escapes. */
void ab_json_put_raw(struct ab_buf *out, const char *s, size_t len, unsigned style);

/* The same for valid JSON text that is there from that byte on. */
void ab_json_join_lines(struct ab_buf *out, size_t from);

#endif
