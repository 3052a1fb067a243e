/* net.c - the network namespaces of sandboxes.
 *
 * Making and dismantling one is the dearest part of a sandbox, for the kernel has a
 * hundred tables to register in each. So some are made ahead, and one whose sandbox is
 * gone is used again if it cannot be told from a new one: no socket is left, nothing was
 * ever sent, no counter moved. What is inside can change nothing else: it has no rights
 * over its namespace, which belongs to us. One that was used at all is let go.
 */
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "init/init.h"
#include "init/sys.h"

#define TEXT_MAX 4096

/* What would show that somebody was here. Every packet passes the loopback's counters, so
 * what only packets can leave (closing connections, the rest of the statistics) needs no
 * look of its own. A socket that was connected and never sent leaves a route of IPv6. */
static const char *const traces[] = {"dev", "snmp", "snmp6", "ip6_flowlabel",
                                     "rt6_stats"};
#define TRACES (sizeof traces / sizeof *traces)

static struct text {
    ssize_t len;
    char text[TEXT_MAX];
} unused[TRACES]; /* as they read in a new one */

/* Of the namespace that we are in. */
static ssize_t read_text(const struct zygote *z, const char *name, char text[TEXT_MAX])
{
    int fd = openat(z->proc_net, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* a kernel without that protocol */
    ssize_t n = read(fd, text, TEXT_MAX);
    close(fd);
    return n == TEXT_MAX ? -1 : n;
}

static int loopback_up(void)
{
    struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rc = s < 0 ? -1 : ioctl(s, SIOCSIFFLAGS, &ifr);
    if (s >= 0)
        close(s);
    return rc;
}

static int new_net(const struct zygote *z)
{
    if (ab_at("make a network namespace") && unshare(CLONE_NEWNET) < 0)
        return -1;
    if (ab_at("bring the loopback up") && loopback_up() < 0)
        return -1;
    return ab_host_own_ns(z, "net");
}

int ab_net_rest(struct zygote *z)
{
    z->own_net = new_net(z);
    z->proc_net = openat(z->proc, "self/net", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (z->own_net < 0 || z->proc_net < 0)
        return -1;
    for (size_t i = 0; i < TRACES; i++)
        unused[i].len = read_text(z, traces[i], unused[i].text);
    return 0;
}

static bool is_unused(const struct zygote *z)
{
    static const char none[] = "sockets: used 0\n";
    char text[TEXT_MAX];
    ssize_t n = read_text(z, "sockstat", text);
    if (n < (ssize_t)sizeof none - 1 || memcmp(text, none, sizeof none - 1) != 0)
        return false;
    for (size_t i = 0; i < TRACES; i++) {
        n = read_text(z, traces[i], text);
        if (n < 0 || n != unused[i].len || memcmp(text, unused[i].text, (size_t)n) != 0)
            return false;
    }
    return true;
}

int ab_net_take(struct zygote *z)
{
    if (z->nets > 0)
        return z->net[--z->nets];
    int net = new_net(z);
    if (setns(z->own_net, CLONE_NEWNET) < 0)
        sys_close(&net);
    return net;
}

void ab_net_give(struct zygote *z, int net)
{
    if (net < 0)
        return;
    if (z->nets < AB_NET_KEPT && setns(net, CLONE_NEWNET) == 0) {
        bool again = is_unused(z);
        if (setns(z->own_net, CLONE_NEWNET) == 0 && again) {
            z->net[z->nets++] = net;
            return;
        }
    }
    close(net);
}

bool ab_net_refill(struct zygote *z)
{
    if (z->nets >= AB_NET_POOL)
        return false;
    int net = new_net(z);
    setns(z->own_net, CLONE_NEWNET);
    if (net < 0)
        return false;
    z->net[z->nets++] = ab_keep_fd(net);
    return z->nets < AB_NET_POOL;
}
