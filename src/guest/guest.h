/* guest.h - agentbox-guest: pid 1 of a container that somebody else's engine made.
 *
 *     engine ── Docker's attached stream ── guest ┬ first thread: src/init/pid1.c, as in
 *               (frames.h)                        │ a native sandbox
 *                                                 ├ guest.c: behaves towards pid 1 as an
 *                                                 │ engine does, and moves bytes
 *                                                 └ a thread for each copy of a tree
 *
 * So a command means the same in a container as it does natively: the same code starts
 * it, kills its tree and says how it ended. One process, which nothing inside can kill;
 * it ends with the stream, and the container with it. Static, so that it needs nothing
 * from the image.
 */
#ifndef AB_GUEST_GUEST_H
#define AB_GUEST_GUEST_H

#include <poll.h>

#include "guest/frames.h"
#include "sandbox/file.h"

struct guest {
    struct ab_frames frames;
    struct ab_sandbox pid1; /* the engine's view of our own first thread */
    struct ab_tree root;
    int null;
};

/* commands.c: what runs; all by channel number. */
void ab_commands_exec(struct guest *g, uint32_t channel, struct ab_cursor *c);
void ab_commands_stdin(struct guest *g, uint32_t channel, const void *data, size_t len);
void ab_commands_end_stdin(uint32_t channel);
void ab_commands_kill(uint32_t channel);
void ab_commands_resize(uint32_t channel, uint32_t rows, uint32_t cols);
void ab_commands_credit(uint32_t channel, uint64_t bytes);
void ab_commands_flood(uint32_t channel);

/* A copy: a thread that runs `work` with one end of a pipe, as `writes` says. */
struct ab_copy_job {
    int (*work)(struct ab_copy_job *job);
    struct ab_tree root;
    int fd; /* its end */
    char *path;
    struct ab_file_copy copy;
    struct ab_err err;
    int rc;
    int ctl; /* where its end is told */
};
void ab_commands_copy(struct guest *g, uint32_t channel, struct ab_copy_job *job,
                      bool writes);

/* What they wait for, and what to do then. */
size_t ab_commands_polls(struct guest *g, struct pollfd *p, size_t room);
void ab_commands_serve(struct guest *g, const struct pollfd *p, size_t n);

/* files.c: answers one request. */
void ab_files_serve(struct guest *g, const struct ab_frame *f);
void ab_files_reply(struct guest *g, uint32_t channel, int rc, const struct ab_err *err,
                    const void *data, size_t len);

/* oom.c */
uint64_t ab_oom_kills(void);

#endif
