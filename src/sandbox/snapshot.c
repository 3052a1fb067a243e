/* snapshot.c - the changes of a sandbox that lives on, as a layer. See
 * src/init/underlay.c for the zygote's half. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "sandbox/layer.h"
#include "sandbox/sandbox.h"
#include "sandbox/zygote.h"

/* So many layers do not lie below one sandbox: each costs every later one time. */
#define PILE_MAX 32

bool ab_sandbox_inhabited(const struct ab_sandbox *sb)
{
    char path[64], text[16];
    if (sb->tally->alive)
        return true;
    snprintf(path, sizeof path, "/proc/%u/task/%u/children", sb->pid, sb->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    return n != 0;
}

static struct timespec changed(const struct ab_sandbox *sb, const char *name)
{
    struct stat st = {0};
    fstatat(sb->upper, name, &st, AT_SYMLINK_NOFOLLOW);
    return st.st_ctim;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static void note_clean(struct ab_sandbox *sb)
{
    struct ab_snapshot *s = &sb->snapshot;
    s->clean_root = changed(sb, "u");
    s->clean_usr = changed(sb, "v");
    s->known = ab_sandbox_disk(sb, &s->clean_bytes, &s->clean_inodes) == 0;
}

/* A change of a file begins with a copy of it, and anything new has an inode too. */
static bool is_clean(const struct ab_sandbox *sb)
{
    const struct ab_snapshot *s = &sb->snapshot;
    uint64_t bytes, inodes;
    return s->known && ab_sandbox_disk(sb, &bytes, &inodes) == 0 &&
           bytes == s->clean_bytes && inodes == s->clean_inodes &&
           same_time(changed(sb, "u"), s->clean_root) &&
           same_time(changed(sb, "v"), s->clean_usr);
}

/* Where the answer will come: ours, and the zygote's end. */
static int open_pair(int pair[2], struct ab_err *err)
{
    int fault = AB_FAULT("sandbox_snapshot");
    if (fault || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return ab_err_sys(err, fault ? fault : errno, "make a socket for the snapshot");
    return 0;
}

/* Takes the pair and gives the socket on which the answer comes, or -1. with[0]: the
 * sandbox of a swap. */
static int request(struct ab_sandbox *sb, struct ab_wire_create *m, const int pair[2],
                   const int *with, int nwith, struct ab_err *err)
{
    uint8_t buf[8192];
    int fds[AB_WIRE_FDS], n = 0;
    fds[n++] = pair[1];
    for (int i = 0; i < nwith; i++)
        fds[n++] = with[i];
    m->flags |= sb->host_image ? AB_WIRE_HOST_IMAGE : 0u;
    m->slot = sb->slot;
    m->image = sb->image;
    m->hostname = m->workspace = m->cgroup = "";
    long len = ab_wire_put_create(buf, sizeof buf, m);
    int rc = len < 0 ? ab_err_set(err, AB_ETOOBIG, "the image's name is too long")
                     : ab_zygote_request(buf, (size_t)len, fds, n, err);
    close(pair[1]);
    if (rc == 0)
        return pair[0];
    close(pair[0]);
    return -1;
}

static int request_swap(struct ab_sandbox *sb, const struct ab_layer *top,
                        const int pair[2], struct ab_err *err)
{
    int fds[AB_WIRE_LAYERS + 2] = {sb->mounts >= 0 ? sb->mounts : sb->pidfd};
    int n = ab_layer_fds(top, fds + 1);
    struct ab_wire_create m = {
        .flags = AB_WIRE_SWAP,
        .layers = (uint32_t)n,
        .disk_bytes = ab_quota_left(sb->disk_bytes, sb->spent_bytes),
        .inodes = ab_quota_left(sb->inodes, sb->spent_inodes),
    };
    return request(sb, &m, pair, fds, 1 + n, err);
}

static int request_merger(struct ab_sandbox *sb, const int *fds, int n,
                          struct ab_err *err)
{
    struct ab_wire_create m = {
        .flags = AB_WIRE_MERGE,
        .layers = (uint32_t)n,
        .disk_bytes = 2 * sb->disk_bytes, /* hard links become files */
        .inodes = 2 * sb->inodes,
    };
    int pair[2];
    return open_pair(pair, err) < 0 ? -1 : request(sb, &m, pair, fds, n, err);
}

static void spend(struct ab_sandbox *sb, struct ab_layer *layer)
{
    uint64_t bytes = 0, inodes = 0;
    ab_sandbox_disk(sb, &bytes, &inodes);
    layer->spent_bytes = sb->spent_bytes + bytes;
    layer->spent_inodes = sb->spent_inodes + inodes;
}

/* A sandbox whose swap failed has no tree of files, and perhaps no root. */
static int give_up(struct ab_sandbox *sb)
{
    bool lost = sb->files < 0;
    ab_sandbox_snapshot_end(sb);
    if (lost)
        ab_sandbox_kill(sb);
    return -1;
}

/* The kernel's overlay is gone when nobody holds it, and must be when the zygote makes
 * the next one: ours goes first. */
static int begin_swap(struct ab_sandbox *sb, struct ab_err *err)
{
    struct ab_snapshot *s = &sb->snapshot;
    if (!ab_zygote_has_room())
        return ab_err_set(err, AB_EBUSY, "too many sandboxes are being created at once");
    int pair[2];
    if (open_pair(pair, err) < 0)
        return -1; /* nothing was given up yet */
    struct ab_layer *layer = ab_layer_over(sb, sb->upper);
    spend(sb, layer);
    sb->spent_bytes = layer->spent_bytes;
    sb->spent_inodes = layer->spent_inodes;
    close(sb->files);
    sb->files = sb->upper = -1;
    s->taken = layer;
    s->sock = request_swap(sb, layer, pair, err);
    if (s->sock < 0)
        return give_up(sb);
    s->doing = AB_SNAPSHOT_SWAP;
    return 0;
}

static int begin_copy(struct ab_sandbox *sb, struct ab_err *err)
{
    sb->snapshot.sock = request_merger(sb, &sb->upper, 1, err);
    if (sb->snapshot.sock < 0)
        return -1;
    sb->snapshot.doing = AB_SNAPSHOT_COPY;
    return 0;
}

int ab_sandbox_snapshot(struct ab_sandbox *sb, struct ab_err *err)
{
    struct ab_snapshot *s = &sb->snapshot;
    if (sb->state != AB_SANDBOX_READY)
        return ab_err_set(err, AB_ESANDBOX, "the sandbox is closed");
    if (s->doing && ab_sandbox_snapshot_step(sb, err) < 0)
        return -1;
    if (s->doing || sb->tally->writers)
        return ab_err_set(err, AB_EBUSY,
                          s->doing ? "a snapshot is being taken already"
                                   : "files are being copied into it");
    ab_layer_unref(s->taken);
    s->taken = NULL;
    if (sb->layer && is_clean(sb)) {
        s->taken = ab_layer_ref(sb->layer);
        return 0;
    }
    bool copy = ab_sandbox_inhabited(sb) || (ab_zygote_facts() & AB_WIRE_NO_SWAP);
    return copy ? begin_copy(sb, err) : begin_swap(sb, err);
}

int ab_sandbox_snapshot_fd(const struct ab_sandbox *sb)
{
    return sb->snapshot.sock;
}

/* ---- answers ---- */

static void swapped(struct ab_sandbox *sb, const int *fds)
{
    sb->upper = fds[0];
    sb->files = fds[1];
    ab_layer_unref(sb->layer);
    sb->layer = ab_layer_ref(sb->snapshot.taken);
    note_clean(sb);
}

static void copied(struct ab_sandbox *sb, int upper)
{
    sb->snapshot.taken = ab_layer_over(sb, upper);
    spend(sb, sb->snapshot.taken);
}

static void merged(struct ab_sandbox *sb, int upper)
{
    struct ab_layer *all = sb->snapshot.taken;
    struct ab_layer *one = ab_layer_over(sb, upper);
    for (int i = 0; i < one->below_count; i++)
        ab_layer_unref(one->below[i]);
    one->below_count = 0;
    for (int i = sb->snapshot.merging - 1; i < all->below_count; i++)
        one->below[one->below_count++] = ab_layer_ref(all->below[i]);
    one->spent_bytes = all->spent_bytes;
    one->spent_inodes = all->spent_inodes;
    ab_layer_unref(all);
    sb->snapshot.taken = one;
    if (sb->layer != all)
        return;
    ab_layer_unref(sb->layer);
    sb->layer = ab_layer_ref(one);
}

/* How many of the uppermost layers are made one: as many as lie above one that is not
 * heavier than all of those, and that one. So each is copied again only when what it is
 * in doubles, however heavy those are on which everything stands; and what is left is
 * half as heavy from one layer to the next, which is no high pile. */
static int worth_merging(const struct ab_layer *top)
{
    uint64_t above = top->weight;
    int count = top->below_count + 1, found = 0;
    for (int i = 1; i < count; i++) {
        uint64_t weight = top->below[i - 1]->weight;
        if (weight <= above)
            found = i + 1;
        above += weight;
    }
    return found ? found : count;
}

static int begin_merger(struct ab_sandbox *sb, struct ab_err *err)
{
    int fds[AB_WIRE_LAYERS + 1];
    struct ab_snapshot *s = &sb->snapshot;
    if (s->taken->below_count + 1 < PILE_MAX)
        return 0;
    ab_layer_fds(s->taken, fds);
    s->merging = worth_merging(s->taken);
    s->sock = request_merger(sb, fds, s->merging, err);
    if (s->sock < 0)
        return -1;
    s->doing = AB_SNAPSHOT_MERGE;
    return 1;
}

static int take_laid(struct ab_sandbox *sb, const int *fds, int nfds, struct ab_err *err)
{
    struct ab_snapshot *s = &sb->snapshot;
    int doing = s->doing;
    s->doing = AB_SNAPSHOT_NONE;
    close(s->sock);
    s->sock = -1;
    if (nfds != (doing == AB_SNAPSHOT_SWAP ? 2 : 1)) {
        ab_wire_close_fds(fds, nfds);
        return ab_err_set(err, AB_EPROTOCOL, "the zygote's answer makes no sense");
    }
    if (doing == AB_SNAPSHOT_SWAP)
        swapped(sb, fds);
    else if (doing == AB_SNAPSHOT_COPY)
        copied(sb, fds[0]);
    else
        merged(sb, fds[0]);
    return doing == AB_SNAPSHOT_MERGE ? 0 : begin_merger(sb, err);
}

int ab_sandbox_snapshot_step(struct ab_sandbox *sb, struct ab_err *err)
{
    struct ab_snapshot *s = &sb->snapshot;
    uint8_t buf[AB_WIRE_MAX];
    int fds[AB_WIRE_FDS], nfds;
    if (!s->doing)
        return sb->state == AB_SANDBOX_READY
                   ? 0
                   : ab_err_set(err, AB_ESANDBOX, "the sandbox is closed");
    long n = ab_wire_recv(s->sock, buf, fds, &nfds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return 1;
    int rc;
    if (n > 0 && ab_wire_type(buf, (size_t)n) == AB_WIRE_LAID) {
        rc = take_laid(sb, fds, nfds, err);
    } else if (n > 0 && ab_wire_type(buf, (size_t)n) == AB_WIRE_FAILED) {
        ab_wire_close_fds(fds, nfds);
        rc = ab_sandbox_failed(buf, (size_t)n, err);
    } else {
        ab_wire_close_fds(fds, nfds);
        rc = ab_err_set(err, AB_ESANDBOX, "the zygote is gone: no snapshot was taken");
    }
    return rc < 0 ? give_up(sb) : rc;
}

struct ab_layer *ab_sandbox_snapshot_take(struct ab_sandbox *sb)
{
    struct ab_layer *layer = sb->snapshot.taken;
    sb->snapshot.taken = NULL;
    return layer;
}

int ab_sandbox_undisturbed(struct ab_sandbox *sb, struct ab_err *err)
{
    if (!sb->snapshot.doing)
        return 0;
    int rc = ab_sandbox_snapshot_step(sb, err);
    if (rc < 0)
        return -1;
    return sb->files < 0 ? ab_err_set(err, AB_EBUSY, "a snapshot is being taken") : 0;
}

void ab_sandbox_snapshot_end(struct ab_sandbox *sb)
{
    struct ab_snapshot *s = &sb->snapshot;
    if (s->sock >= 0)
        close(s->sock);
    s->sock = -1;
    s->doing = AB_SNAPSHOT_NONE;
    ab_layer_unref(s->taken);
    s->taken = NULL;
}

/* ---- views ---- */

#define VIEW_BYTES  (1ull << 20) /* nobody writes there */
#define VIEW_INODES 256

int ab_sandbox_view(struct ab_sandbox *sb, const struct ab_layer *layer,
                    struct ab_err *err)
{
    int fds[AB_WIRE_LAYERS + 1];
    int n = ab_layer_fds(layer, fds);
    struct ab_wire_create m = {
        .flags = AB_WIRE_VIEW,
        .layers = (uint32_t)n,
        .disk_bytes = VIEW_BYTES,
        .inodes = VIEW_INODES,
    };
    int pair[2];
    return open_pair(pair, err) < 0 ? -1 : request(sb, &m, pair, fds, n, err);
}

int ab_sandbox_take_view(int sock, struct ab_err *err)
{
    uint8_t buf[AB_WIRE_MAX];
    int fds[AB_WIRE_FDS], nfds;
    long n = ab_wire_recv(sock, buf, fds, &nfds, MSG_DONTWAIT);
    if (n > 0 && nfds == 2 && ab_wire_type(buf, (size_t)n) == AB_WIRE_LAID) {
        close(fds[0]);
        return fds[1];
    }
    ab_wire_close_fds(fds, nfds);
    if (n > 0 && ab_wire_type(buf, (size_t)n) == AB_WIRE_FAILED)
        return ab_sandbox_failed(buf, (size_t)n, err);
    return ab_err_set(err, AB_ESANDBOX, "the zygote is gone: nothing to compare with");
}
