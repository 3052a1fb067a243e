/* lean.c - the mount namespace of which every sandbox gets a copy.
 *
 *     /        a file system of memory that cannot be written to, with empty directories
 *       proc   that of a process namespace in which nobody is
 *       dev    an ordinary user's: the devices that sandboxes have (host.c)
 *
 * A sandbox mounts its root upon this one and stays there (setup.c). To leave this one
 * out, by pivot_root and umount, the kernel would look at every process of the machine
 * and wait for all processors, for each sandbox. It lies below a root, where no path
 * leads: ".." ends at the topmost. And who got there would find nothing of the host, and
 * nothing that is not above as well.
 */
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "init/init.h"
#include "init/sys.h"

#define PROC_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static int new_proc(int as)
{
    int fs = fsopen("proc", FSOPEN_CLOEXEC);
    if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    int tree = fsmount(fs, FSMOUNT_CLOEXEC, PROC_ATTRS);
    if (tree < 0 || dup3(tree, as, O_CLOEXEC) < 0)
        return -1;
    return close(tree) < 0 || close(fs) < 0 ? -1 : 0;
}

/* The kernel lets a sandbox mount its own /proc only where a whole one can be seen. It is
 * made by a process that is alone in its namespace, ends, and leaves it, as the
 * descriptor that we reserve, among those that we share. */
static int deserted_proc(void)
{
    struct clone_args args = {.flags = CLONE_NEWPID | CLONE_FILES,
                              .exit_signal = SIGCHLD};
    int status = 0, tree = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    pid_t pid = tree < 0 ? -1 : (pid_t)sys_clone3(&args);
    if (pid == 0)
        _exit(new_proc(tree) < 0 ? errno : 0);
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        return tree;
    int saved = !status ? errno : WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
    sys_close(&tree);
    errno = saved;
    return -1;
}

static int set_read_only(bool read_only)
{
    struct mount_attr attr = {.attr_set = read_only ? MOUNT_ATTR_RDONLY : 0,
                              .attr_clr = read_only ? 0 : MOUNT_ATTR_RDONLY};
    return mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof attr);
}

int ab_lean_writable(void)
{
    return set_read_only(false);
}

/* In a second copy of the host's mounts, which are let go. */
int ab_lean_enter(struct zygote *z)
{
    if (ab_at("copy the mount namespace") && unshare(CLONE_NEWNS) < 0)
        return -1;
    int lean = ab_host_empty_tmpfs("1m", MOUNT_ATTR_NOSUID);
    if (ab_at("prepare a lean root") && lean < 0)
        return -1;
    static const char *const dirs[] = {"proc", "dev"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        if (mkdirat(lean, dirs[i], 0755) < 0)
            return -1;
    int proc = ab_at("mount /proc") ? deserted_proc() : -1;
    if (proc < 0)
        return -1;
    if (ab_at("prepare a lean root") &&
        (move_mount(lean, "", AT_FDCWD, "/usr", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
         fchdir(lean) < 0 ||
         move_mount(proc, "", AT_FDCWD, "proc", MOVE_MOUNT_F_EMPTY_PATH) < 0))
        return -1;
    if (ab_at("change to the lean root") &&
        (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
         chdir("/") < 0 || set_read_only(true) < 0))
        return -1;
    close(lean);
    close(proc);
    z->lean_ns = ab_host_own_ns(z, "mnt");
    return z->lean_ns < 0 ? -1 : 0;
}
