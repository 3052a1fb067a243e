/* zygote.h - the engine's end of the zygote (src/init).
 *
 * Started as the first act of main(), before threads, heap and secrets, and inherited by
 * nobody. It sets itself up at the first request; nothing here waits for it. When the
 * engine ends, however it ends, the zygote sees the end of its socket, kills every
 * sandbox, removes their cgroups and exits.
 *
 * One per process: the program's image, the socket and the pid are this module's only
 * state.
 */
#ifndef AB_SANDBOX_ZYGOTE_H
#define AB_SANDBOX_ZYGOTE_H

#include <sys/types.h>

#include "base/err.h"

/* Forks and executes the program that is carried in this binary. Doing it twice is
 * harmless. */
int ab_zygote_start(struct ab_err *err) AB_MUST_CHECK;

/* Its socket, or -1 when it was not started. Borrowed. */
int ab_zygote_socket(void);

/* Tells it, once, where the cgroups of this engine are (see cgroup.h), then sends CREATE.
 * A zygote that is found dead is started anew. AB_EBUSY when it has no room for more
 * requests now. The descriptors stay the caller's. */
int ab_zygote_request(const uint8_t *packet, size_t len, const int *fds, int nfds,
                      struct ab_err *err) AB_MUST_CHECK;

/* Whether a request would be taken now: for who must burn a bridge before it is sent. */
bool ab_zygote_has_room(void);

/* enum ab_wire_fact of base/wire.h, as the last sandbox that was born told them; 0
 * before. slot: the range of user ids that it got. */
void ab_zygote_note_facts(uint32_t facts, uint32_t slot);

/* From which range on the zygote may look for a free one: it does not know those that an
 * earlier zygote gave, whose sandboxes may live. */
uint32_t ab_zygote_first_slot(void);
uint32_t ab_zygote_facts(void);

/* Who was asked by the last request, or 0. */
pid_t ab_zygote_pid(void);

/* Kills that one, if it still is the zygote: for one that does not answer. */
void ab_zygote_kill(pid_t pid);

/* A process group of the host that must not outlive us, from its start to its end: the
 * zygote kills those that are alive when it sees ours. */
void ab_zygote_group(pid_t leader, bool alive);

/* Ends it and waits: for programs that load the engine as a library, and for tests. */
void ab_zygote_stop(void);

#endif
