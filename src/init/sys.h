/* sys.h - system calls that libc 2.36 does not wrap, and the few that init uses raw. */
#ifndef AB_INIT_SYS_H
#define AB_INIT_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/ab.h"

/* As fork: the child gets a copy of the memory and returns 0. */
static inline long sys_clone3(struct clone_args *args)
{
    return syscall(SYS_clone3, args, sizeof *args);
}

static inline int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t mode,
                              uint64_t resolve)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static inline int sys_pidfd_kill(int pidfd, int sig)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/* Attaches a detached mount on a directory that is already open. */
static inline int sys_attach(int tree, int target)
{
    return move_mount(tree, "", target, "",
                      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* A directory below dir, reached without following any symbolic link. */
static inline int sys_open_dir(int dir, const char *path)
{
    return sys_openat2(dir, path, O_PATH | O_DIRECTORY, 0,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

static inline void sys_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Writes text to an existing file of /proc or of a cgroup; 0 or -1 with errno. */
int sys_write_file(int dir, const char *path, const char *text);

#endif
