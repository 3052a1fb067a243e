/* linktree.h - a second tree of the same files, by hard links. */
#ifndef AB_RT_LINKTREE_H
#define AB_RT_LINKTREE_H

#include "base/err.h"

/* Fills the empty directory `to`: directories are made anew with the owner, mode, times
 * and attributes of those below `from`, everything else is linked. Whoever changes a file
 * of either tree in place changes both. */
int ab_link_tree(int from, int to, struct ab_err *err) AB_MUST_CHECK;

#endif
