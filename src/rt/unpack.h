/* unpack.h - the program that reads archives nobody checked, writes layers and removes
 * trees: this executable, started anew by the engine with AB_UNPACK_WORD as its first
 * argument. It never becomes an engine.
 *
 *     agentbox WORD unpack DEST layer|bundle own|flat BASE|- MAX_BYTES MAX_ENTRIES
 *              [ARCHIVE DIFF_ID|-]...      each over the ones before; BASE is linked
 * first agentbox WORD remove DIR NAME        NAME in DIR, with all that is below it
 *     agentbox WORD pack DIR OUT FIRST REST COUNT SKIP|-
 *     agentbox WORD check                        is everything there that it needs?
 *     agentbox WORD copy OUT UID GID MODE|-      the list of archive.h is on stdin
 *
 * Archives are read, and trees removed, confined to DEST or DIR (confine.h). Results are
 * lines "name value" on stdout; a failure is one line "code message" on stderr and status
 * 1.
 *
 * "own" keeps owners and needs root; "flat" gives everything to the caller.
 */
#ifndef AB_RT_UNPACK_H
#define AB_RT_UNPACK_H

#define AB_UNPACK_WORD "--archive-child"

/* The exit status. */
int ab_unpack_main(int argc, char **argv);

#endif
