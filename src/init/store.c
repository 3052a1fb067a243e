/* store.c - where trees are attached on kernels that work only on attached ones.
 *
 * A mount namespace beside the lean one, so that what is attached here is not copied with
 * each sandbox.
 *
 *     /k<slot> /s<slot> /d<slot>   skeleton, /usr and /dev of a uid range, for good
 *     /u<n>                        the quota file system of one sandbox, as long as
 * somebody holds it /i /m                        image directory and root overlay, while
 * one sandbox is being made
 *
 * The engine's descriptor of a quota file system keeps its mount busy, also after the
 * sandbox, as a frozen layer; so unmounting simply succeeds once nobody can ask for it
 * any more.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "init/init.h"
#include "init/sys.h"

struct upper {
    dev_t dev;  /* 0: the number is free */
    bool alive; /* its sandbox is */
};

static struct upper *uppers;
static int room, dead;

int ab_store_enter(struct zygote *z)
{
    static const char *const dirs[] = {"/i", "/m"};
    if (z->store_ns >= 0)
        return setns(z->store_ns, CLONE_NEWNS);
    if (ab_at("make a mount namespace for trees") && unshare(CLONE_NEWNS) < 0)
        return -1;
    if (ab_lean_writable() < 0)
        return -1;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        if (mkdir(dirs[i], 0755) < 0 && errno != EEXIST)
            return -1;
    z->store_ns = ab_host_own_ns(z, "mnt");
    return z->store_ns < 0 ? -1 : 0;
}

int ab_store_leave(struct zygote *z)
{
    int saved = errno;
    if (setns(z->lean_ns, CLONE_NEWNS) < 0)
        return -1;
    errno = saved;
    return 0;
}

int ab_store_attach(int tree, const char *at)
{
    if (mkdir(at, 0755) < 0 && errno != EEXIST)
        return -1;
    return move_mount(tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH);
}

void ab_store_path(int n, char path[AB_STORE_PATH])
{
    snprintf(path, AB_STORE_PATH, "/u%d", n);
}

static int free_number(void)
{
    for (int i = 0; i < room; i++)
        if (!uppers[i].dev)
            return i;
    int more = room ? room * 2 : 64;
    struct upper *p = realloc(uppers, sizeof *p * (size_t)more);
    if (!p)
        return -1;
    for (int i = room; i < more; i++)
        p[i] = (struct upper){0};
    uppers = p;
    int n = room;
    room = more;
    return n;
}

int ab_store_add(int tree)
{
    struct stat st;
    char path[AB_STORE_PATH];
    int n = free_number();
    if (n < 0 || fstat(tree, &st) < 0)
        return -1;
    ab_store_path(n, path);
    if (ab_store_attach(tree, path) < 0)
        return -1;
    uppers[n] = (struct upper){.dev = st.st_dev, .alive = true};
    return n;
}

int ab_store_find(int layer)
{
    struct stat st;
    if (fstat(layer, &st) < 0)
        return -1;
    for (int i = 0; i < room; i++)
        if (uppers[i].dev == st.st_dev)
            return i;
    errno = ESTALE; /* of a zygote that is gone */
    return -1;
}

void ab_store_end(int n)
{
    if (n < 0 || !uppers[n].alive)
        return;
    uppers[n].alive = false;
    dead++;
}

bool ab_store_sweep(struct zygote *z)
{
    char path[AB_STORE_PATH];
    if (dead == 0 || ab_store_enter(z) < 0)
        return dead > 0;
    for (int i = 0; i < room; i++) {
        if (!uppers[i].dev || uppers[i].alive)
            continue;
        ab_store_path(i, path);
        if (umount2(path, 0) == 0) {
            uppers[i].dev = 0;
            dead--;
        }
    }
    ab_store_leave(z);
    return dead > 0;
}
