/* seccomp_gen.c - build tool: prints the sandbox's system call filter as a C table.
 *
 * What is not listed is allowed. Listed is what needs rights that nobody inside has
 * anyway, or what has a record of kernel bugs and no use in a task. Run at build time for
 * the machine built for.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DENY SCMP_ACT_ERRNO(EPERM)

static const char *const denied[] = {
    /* mounts and namespaces */
    "mount",
    "umount2",
    "umount",
    "pivot_root",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "setns",
    "unshare",
    "open_by_handle_at",
    /* the machine */
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "syslog",
    "init_module",
    "finit_module",
    "delete_module",
    "create_module",
    "kexec_load",
    "kexec_file_load",
    "iopl",
    "ioperm",
    "clock_settime",
    "clock_adjtime",
    "settimeofday",
    "stime",
    "sethostname",
    "setdomainname",
    "vhangup",
    "nfsservctl",
    "lookup_dcookie",
    "uselib",
    "_sysctl",
    "sysfs",
    "get_kernel_syms",
    "query_module",
    "vm86",
    "vm86old",
    "vserver",
    /* large attack surfaces without use here */
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "keyctl",
    "add_key",
    "request_key",
    "fanotify_init",
    "fanotify_mark",
    /* other processes, by their numbers */
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "kcmp",
    "move_pages",
    "migrate_pages",
    "pidfd_getfd",
};

/* Address families that work inside: unix 1, inet 2, inet6 10, netlink 16 (routes only).
 */
static const int families_below[] = {0, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15};

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "seccomp: %s: %d\n", what, rc);
    exit(1);
}

static void deny_sockets(scmp_filter_ctx ctx)
{
    uint32_t refuse = SCMP_ACT_ERRNO(EAFNOSUPPORT);
    int call = SCMP_SYS(socket);
    for (size_t i = 0; i < sizeof families_below / sizeof *families_below; i++)
        must(seccomp_rule_add(ctx, refuse, call, 1,
                              SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)families_below[i])),
             "socket family");
    must(seccomp_rule_add(ctx, refuse, call, 1, SCMP_A0_32(SCMP_CMP_GT, AF_NETLINK)),
         "socket");
    /* "No such protocol" and not "no permission": libaudit, and with it su, goes on
     * without it. */
    must(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), call, 2,
                          SCMP_A0_32(SCMP_CMP_EQ, AF_NETLINK),
                          SCMP_A2_32(SCMP_CMP_NE, 0)),
         "netlink protocol");
}

static void deny_arguments(scmp_filter_ctx ctx)
{
    static const uint64_t new_flags[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
                                         CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
                                         CLONE_NEWNET};
    for (size_t i = 0; i < sizeof new_flags / sizeof *new_flags; i++)
        must(seccomp_rule_add(ctx, DENY, SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, new_flags[i], new_flags[i])),
             "clone flags");
    /* Its flags lie in memory, where a filter cannot look: libc falls back to clone. */
    must(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0), "clone3");
    must(
        seccomp_rule_add(ctx, DENY, SCMP_SYS(ioctl), 1, SCMP_A1_32(SCMP_CMP_EQ, TIOCSTI)),
        "TIOCSTI");
    must(seccomp_rule_add(ctx, DENY, SCMP_SYS(ioctl), 1,
                          SCMP_A1_32(SCMP_CMP_EQ, TIOCLINUX)),
         "TIOCLINUX");
}

static void print_filter(int fd)
{
    struct sock_filter f;
    printf("/* Made by seccomp_gen.c. */\nstatic const struct sock_filter "
           "ab_seccomp_filter[] = {\n");
    while (read(fd, &f, sizeof f) == (ssize_t)sizeof f)
        printf("    {0x%04x, %u, %u, 0x%08x},\n", f.code, f.jt, f.jf, f.k);
    printf("};\n");
}

int main(void)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    if (!ctx)
        return 1;
    must(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
         "foreign calls");
    must(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimiser");
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
        int call = seccomp_syscall_resolve_name(denied[i]);
        if (call != __NR_SCMP_ERROR && call >= 0)
            must(seccomp_rule_add(ctx, DENY, call, 0), denied[i]);
    }
    deny_arguments(ctx);
    deny_sockets(ctx);
    FILE *out = tmpfile();
    if (!out)
        return 1;
    must(seccomp_export_bpf(ctx, fileno(out)), "export");
    lseek(fileno(out), 0, SEEK_SET);
    print_filter(fileno(out));
    seccomp_release(ctx);
    return 0;
}
