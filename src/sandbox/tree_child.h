/* tree_child.h - the program that packs and unpacks a folder of the host (file_pack.h)
 * for a sandbox whose files this process cannot reach: this executable, started anew with
 * AB_TREE_WORD as its first argument, so that nobody waits for a pipe on a thread.
 *
 *     agentbox WORD pack|unpack DIR MAX_BYTES MAX_ENTRIES
 *
 * The tree goes to stdout or comes from stdin. The last line on stderr is "ok FILES DIRS
 * LINKS BYTES SKIPPED", or "CODE MESSAGE" with status 1.
 */
#ifndef AB_SANDBOX_TREE_CHILD_H
#define AB_SANDBOX_TREE_CHILD_H

#define AB_TREE_WORD "--tree-child"

/* The exit status. */
int ab_tree_child_main(int argc, char **argv);

#endif
