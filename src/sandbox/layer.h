/* layer.h - inside src/sandbox only: what sandbox.c and snapshot.c know together of
 * frozen layers. */
#ifndef AB_SANDBOX_LAYER_H
#define AB_SANDBOX_LAYER_H

#include "sandbox/sandbox.h"

/* A layer of an upper file system (takes it) over what sb stands on; the
 * descriptors of a layer and of those below it, and how many; gives up a snapshot that is
 * being taken; what FAILED says, as err. */
struct ab_layer *ab_layer_over(const struct ab_sandbox *sb, int upper);
int ab_layer_fds(const struct ab_layer *top, int *fds);
void ab_sandbox_snapshot_end(struct ab_sandbox *sb);
int ab_sandbox_failed(const uint8_t *buf, size_t len, struct ab_err *err);

/* What is left of a quota; never nothing, which would mean that there is none. */
static inline uint64_t ab_quota_left(uint64_t quota, uint64_t spent)
{
    return spent == 0 ? quota : quota > spent + 100 ? quota - spent : 100;
}

#endif
