/* whiteout.h - what a layer takes away from those below it. */
#ifndef AB_RT_WHITEOUT_H
#define AB_RT_WHITEOUT_H

#include "base/err.h"

/* The paths that the layer itself brought: its whiteouts do not touch them, in whichever
 * order they come. */
struct ab_pathset {
    char **slots; /* owns the strings; open addressing */
    size_t room, count;
};

/* The path and every directory above it. */
void ab_pathset_add(struct ab_pathset *set, const char *path);
bool ab_pathset_has(const struct ab_pathset *set, const char *path);
void ab_pathset_fini(struct ab_pathset *set);

/* Applies the entry `path` if its last part is a whiteout (.wh.NAME, .wh..wh..opq): 1.
 * 0: it is none. -1 and AB_EINVALID: it names ".", ".." or nothing. own NULL: there is
 * nothing below the layer. */
int ab_whiteout_apply(const char *path, const struct ab_pathset *own, struct ab_err *err)
    AB_MUST_CHECK;

/* Removes path with all that is below it, however deep, without following links; what is
 * not there is no error. */
int ab_tree_remove(const char *path, struct ab_err *err) AB_MUST_CHECK;

#endif
