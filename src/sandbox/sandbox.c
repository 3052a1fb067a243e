#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "sandbox/layer.h"
#include "sandbox/zygote.h"

#define DISK_DEFAULT    (1ull << 30)
#define INODES_DEFAULT  262144
#define NOFILE_DEFAULT  4096
#define BYTES_PER_INODE 1024 /* of the kernel, for each file */
#define SHM_BYTES       (64ull << 20)
#define SOCKET_BYTES    (1 << 20)

static unsigned sandboxes_made;

struct ab_layer *ab_layer_ref(struct ab_layer *layer)
{
    layer->refs++;
    return layer;
}

void ab_layer_unref(struct ab_layer *layer)
{
    if (!layer || --layer->refs > 0)
        return;
    for (int i = 0; i < layer->below_count; i++)
        ab_layer_unref(layer->below[i]);
    close(layer->fd);
    free(layer);
    ab_cgroup_note_frozen(-1);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int ab_layer_fds(const struct ab_layer *top, int *fds)
{
    int n = 0;
    if (!top)
        return 0;
    fds[n++] = top->fd;
    for (int i = 0; i < top->below_count; i++)
        fds[n++] = top->below[i]->fd;
    return n;
}

static int check_spec(const struct ab_sandbox_spec *spec, struct ab_err *err)
{
    bool host = !strcmp(spec->image, "host");
    if (!host && spec->image[0] != '/')
        return ab_err_set(err, AB_EBADARG,
                          "image '%s' is neither \"host\" nor an absolute directory",
                          spec->image);
    if (spec->workspace[0] != '/' || strlen(spec->workspace) > 1024)
        return ab_err_set(err, AB_EBADARG, "workspace '%.80s' is not an absolute path",
                          spec->workspace);
    if (strlen(spec->hostname) > 64)
        return ab_err_set(err, AB_EBADARG, "host name is longer than 64 bytes");
    if (spec->layer && spec->layer->below_count + 1 >= AB_WIRE_LAYERS)
        return ab_err_set(err, AB_ETOOBIG, "more than %d layers", AB_WIRE_LAYERS - 1);
    if (spec->layer && spec->layer->host_image != host)
        return ab_err_set(err, AB_EBADARG, "the layer was made on another image");
    return 0;
}

struct quota {
    uint64_t disk, inodes, shm;
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Files are memory that killing a process does not free. When they fill it, the kernel
 * ends whatever is left, pid 1 in the end; so they get seven eighths of it together, and
 * a full disk is an error of the program that writes. */
static struct quota quota_of(const struct ab_sandbox_spec *spec, bool limited)
{
    struct quota q = {
        .disk = spec->disk_bytes ? spec->disk_bytes : DISK_DEFAULT,
        .inodes = spec->inodes ? spec->inodes : INODES_DEFAULT,
        .shm = SHM_BYTES,
    };
    uint64_t memory = spec->limits.memory_bytes;
    if (limited && memory) {
        q.disk = least(q.disk, memory / 8 * 5);
        q.inodes = least(q.inodes, memory / 8 / BYTES_PER_INODE);
        q.shm = least(q.shm, memory / 8);
    }
    q.shm = least(q.shm, q.disk);
    return q;
}

static void set_quota(struct ab_sandbox *sb, const struct ab_sandbox_spec *spec,
                      const struct quota *q)
{
    sb->disk_bytes = q->disk;
    sb->inodes = q->inodes;
    if (!spec->layer)
        return;
    sb->spent_bytes = spec->layer->spent_bytes;
    sb->spent_inodes = spec->layer->spent_inodes;
}

static long encode_create(struct ab_sandbox *sb, const struct ab_sandbox_spec *spec,
                          uint8_t *buf, size_t room, uint32_t nlayers, uint32_t v1,
                          bool cgroup2)
{
    const struct ab_cgroup_info *info = ab_cgroup_probe();
    struct quota quota = quota_of(spec, info->memory);
    set_quota(sb, spec, &quota);
    bool rlimits = (spec->limits.memory_bytes && !info->memory) ||
                   (spec->limits.pids && !info->pids);
    struct ab_wire_create m = {
        .flags = (sb->host_image ? AB_WIRE_HOST_IMAGE : 0u) |
                 (spec->net_full ? AB_WIRE_NET_FULL : 0u) |
                 (spec->net_gate ? AB_WIRE_NET_GATE : 0u) |
                 (cgroup2 ? AB_WIRE_CGROUP2 : 0u) | (rlimits ? AB_WIRE_RLIMITS : 0u),
        .slot = spec->layer ? spec->layer->slot : AB_WIRE_SLOTS + ab_zygote_first_slot(),
        .layers = nlayers,
        .v1 = v1,
        .disk_bytes = ab_quota_left(sb->disk_bytes, sb->spent_bytes),
        .inodes = ab_quota_left(sb->inodes, sb->spent_inodes),
        .shm_bytes = quota.shm,
        .memory_bytes = info->memory ? 0 : spec->limits.memory_bytes,
        .pids = info->pids ? 0 : spec->limits.pids,
        .nofile = spec->nofile ? spec->nofile : NOFILE_DEFAULT,
        .image = spec->image,
        .hostname = spec->hostname,
        .workspace = spec->workspace,
        .cgroup = sb->cgroup.name,
    };
    memcpy(m.ports, spec->ports, sizeof m.ports);
    m.nports = spec->nports;
    return ab_wire_put_create(buf, room, &m);
}

static int send_create(struct ab_sandbox *sb, const struct ab_sandbox_spec *spec,
                       int inner, struct ab_err *err)
{
    uint8_t buf[8192];
    int fds[AB_WIRE_FDS] = {inner}, cgroup2, v1[AB_WIRE_CGROUPS];
    int n = 1 + ab_layer_fds(spec->layer, fds + 1);
    int nv1 = ab_cgroup_join_fds(&sb->cgroup, &cgroup2, v1);
    uint32_t nlayers = (uint32_t)n - 1;
    if (cgroup2 >= 0)
        fds[n++] = cgroup2;
    for (int i = 0; i < nv1; i++)
        fds[n++] = v1[i];
    long len =
        encode_create(sb, spec, buf, sizeof buf, nlayers, (uint32_t)nv1, cgroup2 >= 0);
    int rc = len < 0
                 ? ab_err_set(err, AB_ETOOBIG, "the sandbox's description is too long")
                 : ab_zygote_request(buf, (size_t)len, fds, n, err);
    close_fd(&cgroup2);
    ab_wire_close_fds(v1, nv1);
    return rc;
}

int ab_sandbox_begin(const struct ab_sandbox_spec *spec, struct ab_sandbox **out,
                     struct ab_err *err)
{
    int pair[2], fault;
    *out = NULL;
    if (check_spec(spec, err) < 0)
        return -1;
    if ((fault = AB_FAULT("sandbox_socket")) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return ab_err_sys(err, fault ? fault : errno, "make a control socket");
    struct ab_sandbox *sb = ab_xcalloc(1, sizeof *sb);
    *sb = (struct ab_sandbox){.sock = pair[0],
                              .pidfd = -1,
                              .files = -1,
                              .upper = -1,
                              .net = -1,
                              .userns = -1,
                              .mounts = -1,
                              .limits = spec->limits,
                              .image = ab_xstrndup(spec->image, strlen(spec->image)),
                              .snapshot = {.sock = -1},
                              .number = ++sandboxes_made,
                              .host_image = !strcmp(spec->image, "host")};
    sb->tally = ab_xcalloc(1, sizeof *sb->tally);
    sb->tally->refs = 1;
    sb->tally->kept = -1;
    int bytes = SOCKET_BYTES;
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    if (spec->layer) {
        sb->layer = ab_layer_ref(spec->layer);
        sb->start = ab_layer_ref(spec->layer);
    }
    int rc = ab_cgroup_create(&sb->cgroup, &spec->limits, err);
    if (rc == 0)
        rc = send_create(sb, spec, pair[1], err);
    close(pair[1]);
    if (rc < 0) {
        ab_sandbox_free(sb);
        return -1;
    }
    sb->zygote = ab_zygote_pid();
    *out = sb;
    return 0;
}

int ab_sandbox_fd(const struct ab_sandbox *sb)
{
    return sb->state == AB_SANDBOX_DYING ? sb->pidfd : sb->sock;
}

static int take_born(struct ab_sandbox *sb, const uint8_t *buf, size_t len,
                     const int *fds, int nfds, struct ab_err *err)
{
    struct ab_wire_born m;
    if (ab_wire_get_born(buf, len, &m) < 0 || nfds < 3 || nfds > 6 || sb->pidfd >= 0) {
        ab_wire_close_fds(fds, nfds);
        return ab_err_set(err, AB_EPROTOCOL, "the zygote's answer makes no sense");
    }
    if (m.facts & AB_WIRE_MOUNTS)
        sb->mounts = fds[--nfds];
    sb->pidfd = fds[0];
    sb->files = fds[1];
    sb->upper = fds[2];
    sb->net = nfds > 3 ? fds[3] : -1;
    sb->userns = nfds > 4 ? fds[4] : -1;
    sb->pid = m.pid;
    sb->slot = m.slot;
    ab_zygote_note_facts(m.facts, m.slot);
    sb->ids = (struct ab_ids){m.uid_first, m.uid_rest, m.uid_count};
    return 1;
}

/* What the step says about the machine, where it says something that a person can change.
 */
static int explain(const struct ab_wire_failed *m, struct ab_err *err)
{
    bool refused = m->errnum == EPERM || m->errnum == EACCES || m->errnum == ENOSPC ||
                   m->errnum == EUSERS || m->errnum == EINVAL;
    if (refused && strstr(m->step, "user namespace")) {
        ab_err_set(
            err, AB_EUNSUPPORTED,
            "user namespaces are refused here (%s): check "
            "kernel.unprivileged_userns_clone, "
            "user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns; in "
            "Docker add --security-opt seccomp=unconfined",
            strerror(m->errnum));
    } else if (refused && (strstr(m->step, "/proc") || strstr(m->step, "own user id"))) {
        ab_err_set(err, AB_EUNSUPPORTED,
                   "cannot %s (%s): in Docker add --security-opt systempaths=unconfined "
                   "--security-opt apparmor=unconfined",
                   m->step, strerror(m->errnum));
    } else if (refused && strstr(m->step, "loopback")) {
        ab_err_set(err, AB_EUNSUPPORTED,
                   "cannot %s (%s): agentbox may mount here but not set up a network: in "
                   "Docker add --cap-add NET_ADMIN to SYS_ADMIN, or instead of both "
                   "--security-opt systempaths=unconfined",
                   m->step, strerror(m->errnum));
    } else if (refused && strstr(m->step, "lean root")) {
        ab_err_set(err, AB_EUNSUPPORTED,
                   "cannot %s (%s): in Docker add --security-opt seccomp=unconfined",
                   m->step, strerror(m->errnum));
    } else if (strstr(m->step, "give up being root")) {
        ab_err_set(
            err, AB_EUNSUPPORTED,
            "agentbox is root of a user namespace that has no other user it could "
            "become (unshare -r): start it outside, as root or as an ordinary user");
    } else if (m->errnum == EOPNOTSUPP || m->errnum == ENOSYS) {
        ab_err_set(err, AB_EUNSUPPORTED, "this kernel cannot %s", m->step);
    } else if (m->errnum == EINVAL && strstr(m->step, "open the image")) {
        ab_err_set(
            err, AB_EUNSUPPORTED,
            "other file systems are mounted below the image (or /usr): without the "
            "right to mount they cannot be left out");
    } else if (strstr(m->step, "open the image")) {
        return ab_err_sys(err, m->errnum, "image");
    } else {
        ab_err_set(err, AB_ESANDBOX, "cannot %s: %s", m->step, strerror(m->errnum));
    }
    err->sys = m->errnum;
    return -1;
}

int ab_sandbox_failed(const uint8_t *buf, size_t len, struct ab_err *err)
{
    struct ab_wire_failed m;
    if (ab_wire_get_failed(buf, len, &m) < 0)
        return ab_err_set(err, AB_EPROTOCOL, "the sandbox's answer makes no sense");
    return explain(&m, err);
}

int ab_sandbox_step(struct ab_sandbox *sb, struct ab_err *err)
{
    uint8_t buf[AB_WIRE_MAX];
    int fds[AB_WIRE_FDS], nfds;
    long n = ab_wire_recv(sb->sock, buf, fds, &nfds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return 1;
    if (n < 0)
        return ab_err_sys(err, (int)-n, "the sandbox's socket");
    if (n == 0)
        return ab_err_set(err, AB_ESANDBOX, "%s",
                          sb->pidfd < 0 ? "the zygote is gone: try again"
                                        : "the sandbox died while it was set up");
    switch (ab_wire_type(buf, (size_t)n)) {
    case AB_WIRE_BORN:
        return take_born(sb, buf, (size_t)n, fds, nfds, err);
    case AB_WIRE_GATE:
        if (sb->ngate || sb->pidfd >= 0 || nfds < 1 || nfds > AB_WIRE_PORTS + 2) {
            ab_wire_close_fds(fds, nfds);
            break;
        }
        memcpy(sb->gate, fds, sizeof *fds * (size_t)nfds);
        sb->ngate = nfds;
        return 1;
    case AB_WIRE_FAILED:
        if (nfds == 1 && sb->pidfd < 0)
            sb->pidfd = fds[0];
        else
            ab_wire_close_fds(fds, nfds);
        return ab_sandbox_failed(buf, (size_t)n, err);
    case AB_WIRE_READY:
        ab_wire_close_fds(fds, nfds);
        if (sb->pidfd < 0)
            break;
        sb->state = AB_SANDBOX_READY;
        sb->purging = false;
        return 0;
    default:
        ab_wire_close_fds(fds, nfds);
    }
    return ab_err_set(err, AB_EPROTOCOL, "the sandbox said something unexpected");
}

int ab_sandbox_take_gate(struct ab_sandbox *sb, int fds[AB_WIRE_PORTS + 2])
{
    int n = sb->ngate;
    memcpy(fds, sb->gate, sizeof *fds * (size_t)n);
    sb->ngate = 0;
    return n;
}

void ab_sandbox_late(struct ab_sandbox *sb, struct ab_err *err)
{
    if (sb->pidfd >= 0) {
        ab_err_set(err, AB_ESANDBOX,
                   "the sandbox was not ready in time: its pid 1 is stopped, or the "
                   "machine too busy; make fewer at once, or set boot_timeout_s");
        return;
    }
    ab_err_set(err, AB_ESANDBOX,
               "the zygote did not answer in time and was killed: it was stopped, or the "
               "machine is too busy; try again, make fewer at once, or set "
               "boot_timeout_s");
    ab_zygote_kill(sb->zygote);
}

int ab_sandbox_purge(struct ab_sandbox *sb, struct ab_err *err)
{
    uint8_t buf[16];
    long n = ab_wire_put_bare(buf, sizeof buf, AB_WIRE_KILL);
    if (sb->state != AB_SANDBOX_READY)
        return ab_err_set(err, AB_ESANDBOX, "the sandbox is closed");
    if (sb->purging)
        return 0; /* somebody asked and gave up waiting: the answer is still to come */
    int rc = ab_wire_send(sb->sock, buf, (size_t)n, NULL, 0, MSG_DONTWAIT);
    if (rc < 0)
        return ab_err_set(err, AB_ESANDBOX, "the sandbox is dead (%s)", strerror(-rc));
    sb->purging = true;
    return 0;
}

bool ab_sandbox_alive(const struct ab_sandbox *sb)
{
    struct pollfd ended = {.fd = sb->pidfd, .events = POLLIN};
    return sb->state == AB_SANDBOX_READY && poll(&ended, 1, 0) == 0;
}

void ab_sandbox_kill(struct ab_sandbox *sb)
{
    if (sb->state == AB_SANDBOX_DYING || sb->state == AB_SANDBOX_GONE)
        return;
    sb->state = sb->pidfd < 0 ? AB_SANDBOX_GONE : AB_SANDBOX_DYING;
    if (sb->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, sb->pidfd, SIGKILL, NULL, 0);
    close_fd(&sb->sock);
    if (sb->tally)
        ab_tally_forget(sb->tally);
    close_fd(&sb->files);
    close_fd(&sb->net);
    close_fd(&sb->userns);
    close_fd(&sb->mounts);
    ab_wire_close_fds(sb->gate, sb->ngate);
    sb->ngate = 0;
    ab_sandbox_snapshot_end(sb);
}

int ab_sandbox_take_files(struct ab_sandbox *sb, bool upper, int fds[AB_SANDBOX_FILES])
{
    int *all[AB_SANDBOX_FILES] = {&sb->files, &sb->mounts, upper ? &sb->upper : NULL};
    int n = 0;
    for (int i = 0; i < AB_SANDBOX_FILES; i++)
        if (all[i] && *all[i] >= 0) {
            fds[n++] = *all[i];
            *all[i] = -1;
        }
    return n;
}

int ab_sandbox_reap(struct ab_sandbox *sb, bool block)
{
    if (sb->state == AB_SANDBOX_DYING) {
        siginfo_t info = {0};
        int rc;
        do
            rc = waitid(P_PIDFD, (id_t)sb->pidfd, &info,
                        WEXITED | __WALL | (block ? 0 : WNOHANG));
        while (rc < 0 && errno == EINTR);
        if (rc == 0 && info.si_pid == 0)
            return 1;
        close_fd(&sb->pidfd);
        sb->state = AB_SANDBOX_GONE;
    }
    return 0;
}

struct ab_layer *ab_layer_over(const struct ab_sandbox *sb, int upper)
{
    struct ab_layer *layer = ab_xcalloc(1, sizeof *layer);
    struct statvfs v = {0};
    fstatvfs(upper, &v);
    ab_cgroup_note_frozen(1);
    *layer = (struct ab_layer){
        .refs = 1,
        .fd = upper,
        .slot = sb->slot,
        .host_image = sb->host_image,
        .weight = (v.f_blocks - v.f_bfree) + (v.f_files - v.f_ffree),
    };
    if (sb->layer) {
        layer->below[layer->below_count++] = ab_layer_ref(sb->layer);
        for (int i = 0; i < sb->layer->below_count; i++)
            layer->below[layer->below_count++] = ab_layer_ref(sb->layer->below[i]);
    }
    return layer;
}

struct ab_layer *ab_sandbox_take_layer(struct ab_sandbox *sb)
{
    struct ab_layer *layer = ab_layer_over(sb, sb->upper);
    sb->upper = -1;
    return layer;
}

void ab_sandbox_free(struct ab_sandbox *sb)
{
    if (!sb)
        return;
    ab_sandbox_kill(sb);
    ab_sandbox_reap(sb, true);
    close_fd(&sb->upper);
    close_fd(&sb->sock);
    ab_cgroup_remove_leaves(&sb->cgroup, sb->tally);
    ab_cgroup_remove(&sb->cgroup);
    ab_layer_unref(sb->layer);
    ab_layer_unref(sb->start);
    free(sb->image);
    ab_tally_unref(sb->tally);
    free(sb);
}

int ab_sandbox_disk(const struct ab_sandbox *sb, uint64_t *bytes, uint64_t *inodes)
{
    struct statvfs v;
    if (sb->upper < 0 || fstatvfs(sb->upper, &v) < 0)
        return -1;
    *bytes = (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
    *inodes = (uint64_t)(v.f_files - v.f_ffree);
    return 0;
}
