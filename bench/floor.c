/* bench-floor run|idle|parts COUNT: what the kernel alone asks for a sandbox, by the
 * plainest program that makes one: the seven namespaces, one overlay, and in it one
 * command (run), or nobody but the first process, in a memory cgroup where there are
 * those of version 1 (idle). No /dev, /proc, limits, filter, uid range, second overlay,
 * no engine.
 *
 * run prints the microseconds of each; idle the bytes of kernel memory of each one; parts
 * what each part of a sandbox adds to a process, alone, the median of five rounds. A
 * memory cgroup has a bit and a counter for every file system that there is, or ever was
 * at once: its cost grows with the number of sandboxes, see docs/performance.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CGROUPS "/sys/fs/cgroup"
#define NAMESPACES                                                             \
    (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
     CLONE_NEWCGROUP | CLONE_NEWUSER)

static char top[] = "/tmp/agentbox-floor-XXXXXX";

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* A file system for the changes and an overlay over the host's root, in our own mount
 * namespace; the next one is put over it. */
static void mount_tree(void)
{
    char options[256], work[64], upper[64], root[64];
    snprintf(upper, sizeof upper, "%s/u", top);
    snprintf(work, sizeof work, "%s/w", top);
    snprintf(root, sizeof root, "%s/r", top);
    snprintf(options, sizeof options, "lowerdir=/usr,upperdir=%s,workdir=%s", upper,
             work);
    if (mount("floor", top, "tmpfs", 0, "size=64m") < 0 || mkdir(upper, 0755) < 0 ||
        mkdir(work, 0755) < 0 || mkdir(root, 0755) < 0 ||
        mount("floor", root, "overlay", 0, options) < 0)
        die("mount");
}

static void unmount_tree(void)
{
    char root[64];
    snprintf(root, sizeof root, "%s/r", top);
    if (umount2(root, MNT_DETACH) < 0 || umount2(top, MNT_DETACH) < 0)
        die("umount");
}

static pid_t clone_with(uint64_t flags)
{
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid < 0)
        die("clone3");
    return pid;
}

static double run_once(void)
{
    char *const argv[] = {(char *)(uintptr_t) "true", NULL};
    char *const envp[] = {NULL};
    int status;
    double began = now_us();
    mount_tree();
    pid_t pid = clone_with(NAMESPACES);
    if (pid == 0) {
        pid_t command = vfork();
        if (command == 0) {
            execve("/bin/true", argv, envp);
            _exit(127);
        }
        waitpid(command, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    if (waitpid(pid, &status, 0) < 0 || status != 0)
        die("command");
    unmount_tree();
    return now_us() - began;
}

static long kernel_kb(void)
{
    char line[128];
    long kb, sum = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Slab: %ld", &kb) == 1 ||
            sscanf(line, "KernelStack: %ld", &kb) == 1 ||
            sscanf(line, "PageTables: %ld", &kb) == 1 ||
            sscanf(line, "Percpu: %ld", &kb) == 1)
            sum += kb;
    if (f)
        fclose(f);
    return sum;
}

static void cgroup_path(char path[128], const char *controller, int i)
{
    snprintf(path, 128, CGROUPS "/%s/agentbox-floor-%d", controller, i);
}

static void enter_cgroup(const char *controller, int i)
{
    char path[128];
    cgroup_path(path, controller, i);
    if (mkdir(path, 0755) < 0 && errno != ENOENT)
        die(path);
}

static void leave_cgroup(const char *controller, int i)
{
    char path[128];
    cgroup_path(path, controller, i);
    rmdir(path);
}

static void end_all(pid_t *pids, int count)
{
    for (int i = 0; i < count; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; i < count; i++)
        waitpid(pids[i], NULL, 0);
    free(pids);
}

static pid_t *room_for(int count)
{
    pid_t *pids = calloc((size_t)count, sizeof *pids);
    if (!pids)
        die("memory");
    return pids;
}

static void idle(int count)
{
    pid_t *pids = room_for(count);
    long before = kernel_kb();
    for (int i = 0; i < count; i++) {
        enter_cgroup("memory", i);
        mount_tree();
        pids[i] = clone_with(NAMESPACES);
        if (pids[i] == 0)
            for (;;)
                pause();
        unmount_tree(); /* ours; the child has a copy */
    }
    printf("%ld\n", (kernel_kb() - before) * 1024 / count);
    end_all(pids, count);
    for (int i = 0; i < count; i++)
        leave_cgroup("memory", i);
}

/* A new file system of the kind, held by a descriptor. */
static void hold(const char *type)
{
    int fs = fsopen(type, 0);
    if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ||
        fsmount(fs, 0, 0) < 0)
        die(type);
    close(fs);
}

static void loopback_up(const char *name)
{
    struct ifreq ifr = {.ifr_flags = IFF_UP | IFF_RUNNING};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", name);
    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &ifr) < 0)
        die(name);
    close(s);
}

/* A part is what a clone is given, what it then makes, or a cgroup. The first is what the
 * others are compared with. */
static const struct part {
    const char *what;
    uint64_t flags;
    void (*make)(const char *arg);
    const char *arg, *cgroup;
} parts[] = {
    {"process", 0, NULL, NULL, NULL},
    {"network namespace", CLONE_NEWNET, NULL, NULL, NULL},
    {"the same, loopback up", CLONE_NEWNET, loopback_up, "lo", NULL},
    {"user namespace", CLONE_NEWUSER, NULL, NULL, NULL},
    {"mount namespace", CLONE_NEWNS, NULL, NULL, NULL},
    {"pid namespace", CLONE_NEWPID, NULL, NULL, NULL},
    {"the same with /proc", CLONE_NEWPID, hold, "proc", NULL},
    {"ipc namespace", CLONE_NEWIPC, NULL, NULL, NULL},
    {"uts namespace", CLONE_NEWUTS, NULL, NULL, NULL},
    {"cgroup namespace", CLONE_NEWCGROUP, NULL, NULL, NULL},
    {"tmpfs", 0, hold, "tmpfs", NULL},
    {"devpts", 0, hold, "devpts", NULL},
    {"cgroup memory", 0, NULL, NULL, "memory"},
    {"cgroup pids", 0, NULL, NULL, "pids"},
    {"cgroup cpu", 0, NULL, NULL, "cpu"},
    {"cgroup2", 0, NULL, NULL, "unified"},
};
#define PARTS  (int)(sizeof parts / sizeof *parts)
#define ROUNDS 5

static pid_t start_part(const struct part *p, int told)
{
    pid_t pid = clone_with(p->flags);
    if (pid)
        return pid;
    if (p->make)
        p->make(p->arg);
    if (write(told, "", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

/* What earlier ones had is freed a while after their end. */
static long settled_kb(void)
{
    long kb = kernel_kb(), last;
    do {
        last = kb;
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
        kb = kernel_kb();
    } while (kb < last - 256);
    return kb;
}

static long measure(const struct part *p, int count)
{
    pid_t *pids = room_for(count);
    int told[2];
    char byte;
    if (pipe2(told, O_CLOEXEC) < 0)
        die("pipe");
    long before = settled_kb();
    for (int i = 0; i < count; i++) {
        if (p->cgroup)
            enter_cgroup(p->cgroup, i);
        pids[i] = start_part(p, told[1]);
        if (read(told[0], &byte, 1) != 1)
            die(p->what);
    }
    long each = (settled_kb() - before) * 1024 / count;
    end_all(pids, count);
    for (int i = 0; p->cgroup && i < count; i++)
        leave_cgroup(p->cgroup, i);
    close(told[0]);
    close(told[1]);
    return each;
}

static int by_size(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static void show_parts(int count)
{
    static long each[PARTS][ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < PARTS; i++)
            each[i][round] = measure(&parts[i], count);
    for (int i = 0; i < PARTS; i++) {
        qsort(each[i], ROUNDS, sizeof **each, by_size);
        long process = i ? each[0][ROUNDS / 2] : 0;
        printf("%-24s %7ld bytes\n", parts[i].what, each[i][ROUNDS / 2] - process);
    }
}

int main(int argc, char **argv)
{
    int count = argc == 3 ? atoi(argv[2]) : 0;
    if (count < 1)
        return 2;
    if (!mkdtemp(top))
        die(top);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        die("a mount namespace (root only)");
    if (!strcmp(argv[1], "idle"))
        idle(count);
    else if (!strcmp(argv[1], "parts"))
        show_parts(count);
    else
        for (int i = 0; i < count; i++)
            printf("%.1f\n", run_once());
    rmdir(top);
    return 0;
}
