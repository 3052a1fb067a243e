/* l_lines.c - agentbox.sys.lines: the lines of a file, each copied once, in memory that
 * does not grow with the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lua/conv.h"

#define LINES_TYPE "agentbox.lines"

/* A line longer than this is none of ours. */
#define MAX_LINE ((size_t)1 << 30)

/* What is read at once: little for who wants one line, more for who goes on. */
enum { FIRST_CHUNK = 32 * 1024, CHUNK = 256 * 1024 };

struct lines {
    int fd;     /* owns, or -1 */
    char *data; /* owns; [start, end) has been read and not been given */
    size_t cap, start, end, chunk;
    lua_Integer at; /* the offset in the file of data[start] */
};

int luaopen_agentbox_sys_lines(lua_State *L);

/* open(path [, offset]): the offset must be where a line begins. */
static int l_open(lua_State *L)
{
    const char *path = abl_check_path(L, 1);
    lua_Integer offset = luaL_optinteger(L, 2, 0);
    luaL_argcheck(L, offset >= 0, 2, "must not be negative");
    struct lines *lines = lua_newuserdatauv(L, sizeof *lines, 0);
    struct ab_err err;
    *lines = (struct lines){.fd = -1, .at = offset, .chunk = FIRST_CHUNK};
    luaL_setmetatable(L, LINES_TYPE);
    lines->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (lines->fd >= 0 && lseek(lines->fd, (off_t)offset, SEEK_SET) >= 0)
        return 1;
    ab_err_sys(&err, errno, "open %s", path);
    return abl_push_err(L, &err, "lines.open");
}

/* Room for a chunk behind what is there. */
static int make_room(struct lines *lines, struct ab_err *err)
{
    size_t have = lines->end - lines->start;
    if (have > MAX_LINE)
        return ab_err_set(err, AB_ETOOBIG, "a line of more than %zu bytes", MAX_LINE);
    if (lines->cap - have < lines->chunk) {
        size_t cap = lines->cap * 2 + lines->chunk;
        char *data = ab_xrealloc(NULL, cap);
        if (have > 0)
            memcpy(data, lines->data + lines->start, have);
        free(lines->data);
        lines->data = data;
        lines->cap = cap;
    } else if (lines->start > 0) {
        memmove(lines->data, lines->data + lines->start, have);
    }
    lines->start = 0;
    lines->end = have;
    return 0;
}

/* 1 when there is more, 0 at the end of the file. */
static int fill(struct lines *lines, struct ab_err *err)
{
    ssize_t n;
    if (lines->cap - lines->end < lines->chunk && make_room(lines, err) < 0)
        return -1;
    do
        n = read(lines->fd, lines->data + lines->end, lines->chunk);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return ab_err_sys(err, errno, "read");
    lines->end += (size_t)n;
    if (lines->chunk < CHUNK)
        lines->chunk *= 2;
    return n > 0;
}

/* next(): the line without its line feed and its offset; nil at the end, nil and an error
 * when it cannot be read. */
static int l_next(lua_State *L)
{
    struct lines *lines = luaL_checkudata(L, 1, LINES_TYPE);
    struct ab_err err;
    size_t looked = 0;
    while (lines->fd >= 0) {
        const char *from = lines->data + lines->start;
        size_t have = lines->end - lines->start;
        const char *feed =
            have > looked ? memchr(from + looked, '\n', have - looked) : NULL;
        if (feed) {
            size_t len = (size_t)(feed - from);
            lua_pushlstring(L, from, len);
            lua_pushinteger(L, lines->at);
            lines->start += len + 1;
            lines->at += (lua_Integer)len + 1;
            return 2;
        }
        looked = have;
        int more = fill(lines, &err);
        if (more < 0)
            return abl_push_err(L, &err, "lines.next");
        if (more == 0)
            break;
    }
    return 0;
}

/* rest(): what stands behind the last line feed, once next() has come to the end. */
static int l_rest(lua_State *L)
{
    const struct lines *lines = luaL_checkudata(L, 1, LINES_TYPE);
    lua_pushlstring(L, lines->data ? lines->data + lines->start : "",
                    lines->end - lines->start);
    return 1;
}

/* close(): may be called twice. */
static int l_close(lua_State *L)
{
    struct lines *lines = luaL_checkudata(L, 1, LINES_TYPE);
    if (lines->fd >= 0)
        close(lines->fd);
    free(lines->data);
    *lines = (struct lines){.fd = -1, .at = lines->at};
    return 0;
}

int luaopen_agentbox_sys_lines(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"next", l_next}, {"rest", l_rest}, {"close", l_close}, {NULL, NULL}};
    static const luaL_Reg lib[] = {{"open", l_open}, {NULL, NULL}};
    luaL_newmetatable(L, LINES_TYPE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, l_close);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, l_close);
    lua_setfield(L, -2, "__close");
    luaL_newlib(L, lib);
    return 1;
}
