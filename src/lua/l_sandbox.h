/* l_sandbox.h - what the files of agentbox.sys.sandbox share. */
#ifndef AB_LUA_L_SANDBOX_H
#define AB_LUA_L_SANDBOX_H

#include "lua/conv.h"
#include "rt/child.h"
#include "rt/door.h"
#include "rt/pasta.h"
#include "rt/plain.h"
#include "sandbox/file.h"
#include "sandbox/sandbox.h"

#define ABL_SANDBOX "agentbox.sandbox"
#define ABL_LAYER   "agentbox.layer"
#define ABL_PROCESS "agentbox.process"

/* User values: the environment, a table of strings; the workspace; the environment as a
 * list of K=V, once a command needed it. */
enum { ABL_ENV = 1, ABL_WORKSPACE, ABL_PAIRS };

struct abl_sandbox {
    struct ab_sandbox *sb;      /* owns; NULL when closed, or plain */
    int plain;                  /* owns: the directory that stands for the root, or -1 */
    char *plain_dir;            /* owns: its name */
    struct ab_plain_home *home; /* owns, while plain */
    bool scratch;               /* the directory goes with a handle that nobody closed */
    struct ab_tree left;        /* owns its root: of a frozen one, for reading; or -1 */
    struct ab_pasta *pasta;     /* owns, or NULL */
    struct ab_allow *allow;     /* owns, until there is a door; or NULL */
    struct ab_door_limits door_limits;
    struct ab_door *door;      /* owns, or NULL */
    bool listed;               /* there is a door, or was: what it leaves is */
    struct ab_denial *denials; /* owns */
    size_t ndenials;
    struct ab_door_stats traffic;
    char id[40];
};

struct abl_layer {
    struct ab_layer *layer; /* owns a reference; NULL when closed */
};

/* Raises on another type; these set err when it is closed. What a frozen one left is a
 * tree to read from, not to write to. */
struct abl_sandbox *abl_check_sandbox(lua_State *L, int arg);
struct abl_sandbox *abl_open_sandbox(lua_State *L, int arg, struct ab_err *err);
bool abl_open_tree(lua_State *L, int arg, struct ab_tree *t, struct ab_err *err);
bool abl_open_left(lua_State *L, int arg, struct ab_tree *t, struct ab_err *err);

/* How many processes in it were killed for memory so far. */
uint64_t abl_oom_kills(const struct abl_sandbox *s);

/* The command at stack index `what` (a string for the shell, or a list) with the options
 * at `opts`, in out; what it points to lies in values that are left on the stack. */
void abl_check_command(lua_State *L, int what, int opts, struct ab_command *out);

/* Fills *opts from the options table; opts->input is allocated. */
void abl_check_proc_opts(lua_State *L, int idx, struct ab_proc_opts *opts);

/* Pushes the outcome table, or nil, err when the command was lost. */
int abl_push_outcome(lua_State *L, struct ab_proc *p, bool oom, const char *op);

/* Sets type, size, mode, uid, gid and mtime in the table on top. */
void abl_fill_entry(lua_State *L, const struct ab_file_stat *st);

/* Pushes an empty Process, to be filled with a running command; sandbox: the stack index
 * of what it keeps alive, or 0. */
struct abl_process {
    struct ab_proc *proc; /* owns a reference; NULL when closed */
    uint64_t oom_before;
};
struct abl_process *abl_new_process(lua_State *L, int sandbox);

/* Stops what runs outside for it. */
void abl_sandbox_close_outside(struct abl_sandbox *s);

/* Leaves metatable and method table on the stack. */
void abl_sandbox_new_type(lua_State *L, const char *name, const luaL_Reg *methods,
                          lua_CFunction gc, lua_CFunction tbc);

void abl_layer_register(lua_State *L);        /* leaves nothing on the stack */
void abl_sandbox_layer_methods(lua_State *L); /* adds to the method table on top */
/* l_sandbox_net.c. The option `allow` of the table at 1: fills s and spec; -1 with err
 * when the list is wrong. open_door: once the sandbox is there. */
int abl_take_allow(lua_State *L, struct abl_sandbox *s, struct ab_sandbox_spec *spec,
                   struct ab_err *err);
void abl_open_door(struct ab_loop *loop, struct abl_sandbox *s);
void abl_close_door(struct abl_sandbox *s);   /* what was refused is kept */
void abl_sandbox_net_methods(lua_State *L);   /* adds to the method table on top */
void abl_sandbox_net_functions(lua_State *L); /* adds to the library table on top */

void abl_process_register(lua_State *L);        /* leaves nothing on the stack */
void abl_sandbox_file_methods(lua_State *L);    /* adds to the method table on top */
void abl_sandbox_probe_functions(lua_State *L); /* adds to the library table on top */

#endif
