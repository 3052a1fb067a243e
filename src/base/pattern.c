/* pattern.c - Lua patterns: compiled to a list of items, matched with a list of choices.
 */
#include "base/pattern.h"

#include <string.h>

enum op {
    OP_CHAR, /* one byte: .c */
    OP_ANY,
    OP_SET,      /* one byte of .set */
    OP_OPEN,     /* ( */
    OP_POSITION, /* () */
    OP_CLOSE,    /* ) */
    OP_BALANCE,  /* %b: .c and .c2 */
    OP_FRONTIER, /* %f: .set */
    OP_BACKREF,  /* %1: .c, from 0 */
    OP_END,      /* $ */
    OP_MATCH,
    OP_BAD, /* .why */
};

enum repeat { ONCE, OPTIONAL, GREEDY, GREEDY1, LAZY };

struct set {
    uint64_t bits[4];
};

struct item {
    uint8_t op, repeat;
    unsigned char c, c2;
    union {
        struct set set;
        const char *why;
    };
};

/* What to do when the match cannot go on. */
struct choice {
    enum { TRY, SHRINK, GROW, UNDO_OPEN, UNDO_CLOSE } kind;
    uint32_t
        item; /* to go on with; for GROW the repeated one; for UNDO_CLOSE the capture */
    size_t pos, lo; /* SHRINK: not below lo */
};

struct ab_pattern {
    struct choice *choices;
    struct item items[];
};

size_t ab_pattern_size(size_t len)
{
    return sizeof(struct ab_pattern) +
           (len + 2) * (sizeof(struct item) + sizeof(struct choice));
}

/* ---- sets ---- */

static void add_byte(struct set *set, unsigned char c)
{
    set->bits[c >> 6] |= (uint64_t)1 << (c & 63);
}

static bool has_byte(const struct set *set, unsigned char c)
{
    return set->bits[c >> 6] >> (c & 63) & 1;
}

/* The ASCII half of a class, as the C locale has it. */
static bool class_bits(unsigned char lower, uint64_t bits[2])
{
    static const struct {
        char name;
        uint64_t bits[2];
    } classes[] = {
        {'a', {0, 0x07fffffe07fffffe}},
        {'c', {0x00000000ffffffff, 0x8000000000000000}},
        {'d', {0x03ff000000000000, 0}},
        {'g', {0xfffffffe00000000, 0x7fffffffffffffff}},
        {'l', {0, 0x07fffffe00000000}},
        {'p', {0xfc00fffe00000000, 0x78000001f8000001}},
        {'s', {0x0000000100003e00, 0}},
        {'u', {0, 0x0000000007fffffe}},
        {'w', {0x03ff000000000000, 0x07fffffe07fffffe}},
        {'x', {0x03ff000000000000, 0x0000007e0000007e}},
        {'z', {1, 0}}, /* NUL: deprecated, and still there in Lua 5.4 */
    };
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (classes[i].name == (char)lower) {
            memcpy(bits, classes[i].bits, sizeof classes[i].bits);
            return true;
        }
    }
    return false;
}

/* %c inside or outside brackets; a letter that names no class stands for itself. */
static void add_class(struct set *set, unsigned char c)
{
    uint64_t bits[2];
    bool upper = c >= 'A' && c <= 'Z';
    if (!class_bits(upper ? (unsigned char)(c | 0x20) : c, bits)) {
        add_byte(set, c);
        return;
    }
    set->bits[0] |= upper ? ~bits[0] : bits[0];
    set->bits[1] |= upper ? ~bits[1] : bits[1];
    if (upper)
        set->bits[2] = set->bits[3] = UINT64_MAX;
}

/* s points after `[`. Stores the set; returns what follows the `]`, or NULL without one.
 */
static const char *read_set(const char *s, const char *end, struct set *set)
{
    bool negate = s < end && *s == '^';
    const char *first = s += negate;
    *set = (struct set){{0}};
    const char *close = s;
    do { /* the first byte is never the end: []] */
        if (close == end)
            return NULL;
        if (*close++ == '%' && close < end)
            close++;
    } while (close == end || *close != ']');
    for (s = first; s < close; s++) {
        if (*s ==
            '%') { /* may take the `]` itself: a range can end in a %, as in [#-%%] */
            add_class(set, (unsigned char)*++s);
        } else if (s + 2 < close && s[1] == '-') {
            for (unsigned c = (unsigned char)s[0]; c <= (unsigned char)s[2]; c++)
                add_byte(set, (unsigned char)c);
            s += 2;
        } else {
            add_byte(set, (unsigned char)*s);
        }
    }
    for (int i = 0; negate && i < 4; i++)
        set->bits[i] = ~set->bits[i];
    return close + 1;
}

/* ---- compiling ---- */

static const char *bad(struct item *it, const char *end, const char *why)
{
    it->op = OP_BAD;
    it->why = why;
    return end; /* nothing behind it is ever reached */
}

/* One byte, a class or a set, and the sign that repeats it. */
static const char *read_single(const char *s, const char *end, struct item *it)
{
    unsigned char c = (unsigned char)*s++;
    it->op = OP_CHAR;
    it->c = c;
    if (c == '.') {
        it->op = OP_ANY;
    } else if (c == '[') {
        it->op = OP_SET;
        s = read_set(s, end, &it->set);
        if (!s)
            return bad(it, end, "malformed pattern (missing ']')");
    } else if (c == '%') {
        if (s == end)
            return bad(it, end, "malformed pattern (ends with '%')");
        it->c = (unsigned char)*s++;
        uint64_t bits[2];
        if (class_bits(it->c | 0x20, bits)) {
            it->op = OP_SET;
            it->set = (struct set){{0}};
            add_class(&it->set, it->c);
        }
    }
    if (s == end)
        return s;
    static const char signs[] = "?*+-";
    const char *sign = *s ? strchr(signs, *s) : NULL;
    if (!sign)
        return s;
    it->repeat = (uint8_t)(OPTIONAL + (sign - signs));
    return s + 1;
}

/* s points at a `%` that may be more than a class. NULL when it is not. */
static const char *read_special(const char *s, const char *end, struct item *it)
{
    if (s + 1 == end)
        return NULL;
    char kind = s[1];
    if (kind >= '0' && kind <= '9') {
        it->op = OP_BACKREF;
        it->c = (unsigned char)(kind - '1'); /* %0 becomes 255 */
        return s + 2;
    }
    if (kind == 'b') {
        it->op = OP_BALANCE;
        if (end - s < 4)
            return bad(it, end, "malformed pattern (missing arguments to '%b')");
        it->c = (unsigned char)s[2];
        it->c2 = (unsigned char)s[3];
        return s + 4;
    }
    if (kind != 'f')
        return NULL;
    it->op = OP_FRONTIER;
    if (s + 2 == end || s[2] != '[')
        return bad(it, end, "missing '[' after '%f' in pattern");
    s = read_set(s + 3, end, &it->set);
    return s ? s : bad(it, end, "malformed pattern (missing ']')");
}

struct ab_pattern *ab_pattern_compile(void *mem, const char *text, size_t len)
{
    struct ab_pattern *p = mem;
    struct item *it = p->items;
    const char *s = text, *end = text + len;
    while (s < end) {
        const char *after = NULL;
        it->repeat = ONCE;
        if (*s == '(') {
            bool position = s + 1 < end && s[1] == ')';
            it->op = position ? OP_POSITION : OP_OPEN;
            after = s + 1 + position;
        } else if (*s == ')') {
            it->op = OP_CLOSE;
            after = s + 1;
        } else if (*s == '$' && s + 1 == end) {
            it->op = OP_END;
            after = end;
        } else if (*s == '%') {
            after = read_special(s, end, it);
        }
        s = after ? after : read_single(s, end, it);
        it++;
    }
    it++->op = OP_MATCH;
    p->choices = (struct choice *)(void *)it;
    return p;
}

struct ab_pattern *ab_pattern_move(void *mem, const struct ab_pattern *p, size_t len)
{
    struct ab_pattern *moved = mem;
    memcpy(mem, p, ab_pattern_size(len));
    size_t offset = (size_t)((const char *)p->choices - (const char *)p);
    moved->choices = (struct choice *)(void *)((char *)mem + offset);
    return moved;
}

/* ---- matching ---- */

struct run {
    const struct item *items;
    struct choice *choices;
    struct ab_match *m;
    struct ab_err *err;
    size_t pos;
    uint32_t item;
    uint32_t top; /* of choices */
};

static bool fits(const struct item *it, unsigned char c)
{
    switch ((enum op)it->op) {
    case OP_CHAR:
        return it->c == c;
    case OP_ANY:
        return true;
    default:
        return has_byte(&it->set, c);
    }
}

static bool fits_here(const struct run *r, const struct item *it)
{
    return r->pos < r->m->len && fits(it, (unsigned char)r->m->subject[r->pos]);
}

static size_t count_fits(const struct run *r, const struct item *it)
{
    const char *s = r->m->subject + r->pos, *end = r->m->subject + r->m->len;
    const char *start = s;
    if (it->op == OP_ANY)
        return (size_t)(end - s);
    if (it->op == OP_CHAR) {
        while (s < end && (unsigned char)*s == it->c)
            s++;
    } else {
        while (s < end && has_byte(&it->set, (unsigned char)*s))
            s++;
    }
    return (size_t)(s - start);
}

static struct choice *push(struct run *r, int kind, uint32_t item)
{
    struct choice *c = &r->choices[r->top++];
    c->kind = kind;
    c->item = item;
    c->pos = r->pos;
    return c;
}

/* Each step returns whether the match may go on. */
static bool step_single(struct run *r, const struct item *it)
{
    size_t n, least = it->repeat == GREEDY1;
    switch ((enum repeat)it->repeat) {
    case ONCE:
        if (!fits_here(r, it))
            return false;
        r->pos++;
        break;
    case OPTIONAL:
        if (fits_here(r, it)) {
            push(r, TRY, r->item + 1);
            r->pos++;
        }
        break;
    case GREEDY:
    case GREEDY1:
        n = count_fits(r, it);
        r->m->budget -= (int64_t)(it->op == OP_ANY ? 0 : n / 4);
        if (n < least)
            return false;
        if (n > least)
            push(r, SHRINK, r->item + 1)->lo = r->pos + least;
        r->pos += n;
        if (n > least)
            r->choices[r->top - 1].pos = r->pos;
        break;
    case LAZY:
        push(r, GROW, r->item);
        break;
    }
    r->item++;
    return true;
}

static int refuse(struct run *r, const char *why)
{
    return ab_err_set(r->err, AB_EBADARG, "%s", why);
}

/* The steps below return 1 to go on, 0 to go back, -1 for an error. */
static int step_open(struct run *r, bool position)
{
    struct ab_match *m = r->m;
    if (m->level == AB_PATTERN_MAX_CAPTURES)
        return refuse(r, "too many captures");
    push(r, UNDO_OPEN, 0);
    m->captures[m->level++] = (struct ab_capture){
        .start = r->pos, .len = position ? AB_CAPTURE_POSITION : AB_CAPTURE_OPEN};
    return 1;
}

static int step_close(struct run *r)
{
    struct ab_match *m = r->m;
    for (int i = m->level; i > 0; i--) {
        struct ab_capture *c = &m->captures[i - 1];
        if (c->len != AB_CAPTURE_OPEN)
            continue;
        push(r, UNDO_CLOSE, (uint32_t)i - 1);
        c->len = (ptrdiff_t)(r->pos - c->start);
        return 1;
    }
    return refuse(r, "invalid pattern capture");
}

static int step_backref(struct run *r, const struct item *it)
{
    struct ab_match *m = r->m;
    int i = it->c == 255 ? -1 : it->c;
    if (i < 0 || i >= m->level || m->captures[i].len == AB_CAPTURE_OPEN)
        return ab_err_set(r->err, AB_EBADARG, "invalid capture index %%%d", i + 1);
    const struct ab_capture *c = &m->captures[i];
    size_t len = (size_t)c->len;
    if (c->len < 0 || len > m->len - r->pos)
        return 0;
    m->budget -= c->len / 8;
    if (memcmp(m->subject + c->start, m->subject + r->pos, len) != 0)
        return 0;
    r->pos += len;
    return 1;
}

static int step_balance(struct run *r, const struct item *it)
{
    const char *s = r->m->subject;
    size_t depth = 1, i = r->pos;
    if (i >= r->m->len || (unsigned char)s[i] != it->c)
        return 0;
    for (i++; i < r->m->len; i++) {
        if ((unsigned char)s[i] == it->c2) {
            if (--depth == 0)
                break;
        } else if ((unsigned char)s[i] == it->c) {
            depth++;
        }
    }
    r->m->budget -= (int64_t)(i - r->pos) / 2;
    if (i == r->m->len)
        return 0;
    r->pos = i + 1;
    return 1;
}

static int step_frontier(struct run *r, const struct item *it)
{
    const struct ab_match *m = r->m;
    unsigned char before = r->pos > 0 ? (unsigned char)m->subject[r->pos - 1] : '\0';
    unsigned char here = r->pos < m->len ? (unsigned char)m->subject[r->pos] : '\0';
    return !has_byte(&it->set, before) && has_byte(&it->set, here);
}

/* Everything that is not one byte. */
static int step_special(struct run *r, const struct item *it)
{
    int rc;
    switch ((enum op)it->op) {
    case OP_OPEN:
    case OP_POSITION:
        rc = step_open(r, it->op == OP_POSITION);
        break;
    case OP_CLOSE:
        rc = step_close(r);
        break;
    case OP_BALANCE:
        rc = step_balance(r, it);
        break;
    case OP_FRONTIER:
        rc = step_frontier(r, it);
        break;
    case OP_BACKREF:
        rc = step_backref(r, it);
        break;
    case OP_END:
        rc = r->pos == r->m->len;
        break;
    default:
        return refuse(r, it->why);
    }
    r->item++;
    return rc;
}

/* Returns to the youngest choice that is left; false when there is none. */
static bool go_back(struct run *r)
{
    struct ab_match *m = r->m;
    while (r->top > 0) {
        struct choice *c = &r->choices[r->top - 1];
        switch (c->kind) {
        case UNDO_OPEN:
            m->level--;
            r->top--;
            continue;
        case UNDO_CLOSE:
            m->captures[c->item].len = AB_CAPTURE_OPEN;
            r->top--;
            continue;
        case TRY:
            r->pos = c->pos;
            r->item = c->item;
            r->top--;
            return true;
        case SHRINK:
            r->pos = --c->pos;
            r->item = c->item;
            r->top -= c->pos == c->lo;
            return true;
        case GROW:
            r->pos = c->pos;
            if (!fits_here(r, &r->items[c->item])) {
                r->top--;
                continue;
            }
            r->pos = ++c->pos;
            r->item = c->item + 1;
            return true;
        }
    }
    return false;
}

static int pause(const struct run *r)
{
    struct ab_match *m = r->m;
    if (m->budget < 0)
        return ab_err_set(r->err, AB_ELIMIT, "pattern too costly");
    m->paused = true;
    m->pos = r->pos;
    m->item = r->item;
    m->choices = r->top;
    return AB_PATTERN_PAUSED;
}

static void begin(struct run *r, size_t start)
{
    struct ab_match *m = r->m;
    if (m->paused) {
        r->pos = m->pos;
        r->item = m->item;
        r->top = m->choices;
        m->paused = false;
    } else {
        r->pos = start;
        m->level = 0;
    }
}

int ab_pattern_match(const struct ab_pattern *p, struct ab_match *m, size_t start,
                     size_t *end, struct ab_err *err)
{
    struct run r = {.items = p->items, .choices = p->choices, .m = m, .err = err};
    begin(&r, start);
    for (;;) {
        const struct item *it = &r.items[r.item];
        int rc = 1;
        if (--m->budget < m->pause_at)
            return pause(&r);
        if (it->op <= OP_SET)
            rc = step_single(&r, it);
        else if (it->op == OP_MATCH)
            break;
        else
            rc = step_special(&r, it);
        if (rc < 0)
            return -1;
        if (rc == 0 && !go_back(&r))
            return 0;
    }
    *end = r.pos;
    return 1;
}

int ab_pattern_search(const struct ab_pattern *p, struct ab_match *m, size_t *start,
                      size_t *end, struct ab_err *err)
{
    const struct item *first = p->items;
    bool literal =
        first->op == OP_CHAR && (first->repeat == ONCE || first->repeat == GREEDY1);
    for (size_t at = *start; at <= m->len; at++) {
        if (literal) {
            const char *next = memchr(m->subject + at, first->c, m->len - at);
            if (!next)
                return 0;
            at = (size_t)(next - m->subject);
        }
        int rc = ab_pattern_match(p, m, at, end, err);
        if (rc != 0) {
            *start = at;
            return rc;
        }
    }
    return 0;
}
