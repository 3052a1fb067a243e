/* bench-floor run|idle COUNT: what the kernel alone asks for a sandbox, by the plainest
 * program that makes one: the seven namespaces, one overlay, and in it one command (run),
 * or nobody but the first process, in a memory cgroup where there are those of version 1
 * (idle). No /dev, /proc, limits, filter, uid range, second overlay, and no engine.
 *
 * run prints the microseconds of each; idle the bytes of kernel memory of each one.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CGROUPS "/sys/fs/cgroup/memory"
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

static pid_t clone_all(void)
{
    struct clone_args args = {.flags = NAMESPACES, .exit_signal = SIGCHLD};
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
    pid_t pid = clone_all();
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

static void enter_cgroup(int i)
{
    char path[96];
    snprintf(path, sizeof path, CGROUPS "/agentbox-floor-%d", i);
    if (access(CGROUPS "/memory.limit_in_bytes", F_OK) == 0 && mkdir(path, 0755) < 0)
        die(path);
}

static void leave_cgroup(int i)
{
    char path[96];
    snprintf(path, sizeof path, CGROUPS "/agentbox-floor-%d", i);
    rmdir(path);
}

static void idle(int count)
{
    pid_t *pids = calloc((size_t)count, sizeof *pids);
    if (!pids)
        die("memory");
    long before = kernel_kb();
    for (int i = 0; i < count; i++) {
        enter_cgroup(i);
        mount_tree();
        pids[i] = clone_all();
        if (pids[i] == 0)
            for (;;)
                pause();
        unmount_tree(); /* ours; the child has a copy */
    }
    printf("%ld\n", (kernel_kb() - before) * 1024 / count);
    for (int i = 0; i < count; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; i < count; i++)
        waitpid(pids[i], NULL, 0);
    for (int i = 0; i < count; i++)
        leave_cgroup(i);
    free(pids);
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
    else
        for (int i = 0; i < count; i++)
            printf("%.1f\n", run_once());
    rmdir(top);
    return 0;
}
