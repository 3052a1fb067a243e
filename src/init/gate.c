/* gate.c - the network namespace of a sandbox with a list of what it may reach.
 *
 * Every address is made local there, so that no packet leaves, whatever it is sent to.
 * What listens are sockets that the engine gets: it accepts what the sandbox connects to,
 * finds in the socket where that wanted to go, and goes there itself, if the list says
 * so. What is sent to other ports, the kernel refuses at once; of those attempts a packet
 * socket tells the engine, with a filter that lets nothing else through.
 */
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "init/init.h"
#include "init/sys.h"

#define LOOPBACK     1 /* the interface's number in every namespace */
#define BACKLOG      128
#define WATCH_BYTES  65536
#define WATCH_HEADER 64 /* bytes of each packet */
#define DNS_PORT     53

/* ip route add local default dev lo */
static int route_all(int sock, unsigned char family)
{
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        struct rtattr attr;
        uint32_t index;
    } m = {
        .head = {.nlmsg_len = sizeof m,
                 .nlmsg_type = RTM_NEWROUTE,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
        .route = {.rtm_family = family,
                  .rtm_table = RT_TABLE_LOCAL,
                  .rtm_protocol = RTPROT_BOOT,
                  .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                  .rtm_type = RTN_LOCAL},
        .attr = {.rta_len = RTA_LENGTH(sizeof m.index), .rta_type = RTA_OIF},
        .index = LOOPBACK,
    };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr err;
        char more[256];
    } answer;
    if (send(sock, &m, sizeof m, 0) != sizeof m)
        return -1;
    ssize_t n = recv(sock, &answer, sizeof answer, 0);
    if (n < (ssize_t)(sizeof answer.head + sizeof answer.err) ||
        answer.head.nlmsg_type != NLMSG_ERROR) {
        errno = EPROTO;
        return -1;
    }
    errno = -answer.err.error;
    return answer.err.error ? -1 : 0;
}

/* Of both families, or of IPv4 where there is no other. */
static int open_socket(int type, uint16_t port)
{
    int one = 1, zero = 0;
    int fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero) == 0 &&
            setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof one) == 0 &&
            bind(fd, (struct sockaddr *)&any, sizeof any) == 0)
            return fd;
        close(fd);
    }
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
    fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof one) == 0 &&
        bind(fd, (struct sockaddr *)&any, sizeof any) == 0)
        return fd;
    int saved = errno;
    sys_close(&fd);
    errno = saved;
    return -1;
}

#define DROP    0xff /* jumps that finish() aims */
#define ACCEPT  0xfe
#define PROGRAM 96

struct program {
    struct sock_filter code[PROGRAM];
    unsigned len;
};

static void put(struct program *p, int code, uint32_t k, uint8_t yes, uint8_t no)
{
    if (p->len < PROGRAM - 2)
        p->code[p->len++] =
            (struct sock_filter){.code = (uint16_t)code, .jt = yes, .jf = no, .k = k};
}

static uint8_t aim(const struct program *p, unsigned from, uint8_t jump)
{
    if (jump < ACCEPT)
        return jump;
    return (uint8_t)(p->len - from - 1 + (jump == ACCEPT));
}

static void finish(struct program *p)
{
    for (unsigned i = 0; i < p->len; i++) {
        struct sock_filter *c = &p->code[i];
        if (BPF_CLASS(c->code) != BPF_JMP || BPF_OP(c->code) == BPF_JA)
            continue;
        c->jt = aim(p, i, c->jt);
        c->jf = aim(p, i, c->jf);
    }
    p->code[p->len++] = (struct sock_filter){.code = BPF_RET | BPF_K, .k = 0};
    p->code[p->len++] = (struct sock_filter){.code = BPF_RET | BPF_K, .k = WATCH_HEADER};
}

#define LOAD_B (BPF_LD | BPF_B | BPF_ABS)
#define LOAD_H (BPF_LD | BPF_H | BPF_ABS)
#define LOAD_W (BPF_LD | BPF_W | BPF_ABS)
#define IS     (BPF_JMP | BPF_JEQ | BPF_K)
#define HAS    (BPF_JMP | BPF_JSET | BPF_K)

/* A new connection (SYN alone) to a port where nobody of ours listens, or a datagram that
 * is neither a question for us nor our answer; to another place than the loopback. A is
 * the protocol, X where its header begins. */
static void filter_ports(struct program *p, const uint16_t *ports, int nports)
{
    put(p, IS, IPPROTO_UDP, 0, 4);
    put(p, BPF_LD | BPF_H | BPF_IND, 0, 0, 0);
    put(p, IS, DNS_PORT, DROP, 0);
    put(p, BPF_LD | BPF_H | BPF_IND, 2, 0, 0);
    put(p, IS, DNS_PORT, DROP, ACCEPT);
    put(p, IS, IPPROTO_TCP, 0, DROP);
    put(p, BPF_LD | BPF_B | BPF_IND, 13, 0, 0);
    put(p, BPF_ALU | BPF_AND | BPF_K, 0x12, 0, 0);
    put(p, IS, 0x02, 0, DROP);
    put(p, BPF_LD | BPF_H | BPF_IND, 2, 0, 0);
    for (int i = 0; i < nports; i++)
        put(p, IS, ports[i], DROP, 0);
    put(p, IS, 0, DROP, ACCEPT);
}

static void make_filter(struct program *p, const uint16_t *ports, int nports)
{
    p->len = 0;
    put(p, LOAD_B, 0, 0, 0);
    put(p, BPF_ALU | BPF_RSH | BPF_K, 4, 0, 0);
    put(p, IS, 4, 8, 0);
    put(p, IS, 6, 0, DROP);
    /* IPv6; a header between it and TCP is nothing that a socket makes unasked */
    put(p, LOAD_W, 36, 0, 0);
    put(p, IS, 1, 0, 2);
    put(p, LOAD_W, 24, 0, 0); /* enough to tell ::1 from what is public or local */
    put(p, IS, 0, DROP, 0);
    put(p, BPF_LDX | BPF_IMM, 40, 0, 0);
    put(p, LOAD_B, 6, 0, 0);
    put(p, BPF_JMP | BPF_JA, 7, 0, 0);
    /* IPv4 */
    put(p, LOAD_B, 16, 0, 0);
    put(p, IS, 127, DROP, 0);
    put(p, LOAD_H, 6, 0, 0);
    put(p, HAS, 0x1fff, DROP, 0);
    put(p, BPF_LDX | BPF_B | BPF_MSH, 0, 0, 0);
    put(p, LOAD_B, 9, 0, 0);
    put(p, BPF_JMP | BPF_JA, 0, 0, 0);
    filter_ports(p, ports, nports);
    finish(p);
}

/* What it cannot have is no reason to do without a network: then nobody is told. */
static int open_watch(const uint16_t *ports, int nports)
{
    struct program program;
    make_filter(&program, ports, nports);
    struct sock_fprog prog = {.len = (unsigned short)program.len, .filter = program.code};
    struct sockaddr_ll lo = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_ALL),
                             .sll_ifindex = LOOPBACK};
    int one = 1, bytes = WATCH_BYTES;
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog) < 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) < 0 ||
        bind(fd, (struct sockaddr *)&lo, sizeof lo) < 0)
        sys_close(&fd);
    return fd;
}

int ab_gate_open(const uint16_t *ports, int nports, int fds[AB_WIRE_PORTS + 2])
{
    int n = 0;
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (ab_at("make every address local") &&
        (netlink < 0 || route_all(netlink, AF_INET) < 0)) {
        int saved = errno;
        sys_close(&netlink);
        errno = saved;
        return -1;
    }
    /* A kernel without IPv6 has nothing to route. */
    bool six = route_all(netlink, AF_INET6) == 0;
    (void)six;
    sys_close(&netlink);
    ab_at("listen in the sandbox's network");
    fds[n] = open_socket(SOCK_DGRAM, DNS_PORT);
    for (int i = 0; fds[n] >= 0 && i < nports; i++) {
        fds[++n] = open_socket(SOCK_STREAM, ports[i]);
        if (fds[n] >= 0 && listen(fds[n], BACKLOG) < 0)
            sys_close(&fds[n]);
    }
    if (fds[n] < 0) {
        int saved = errno;
        ab_wire_close_fds(fds, n);
        errno = saved;
        return -1;
    }
    fds[++n] = open_watch(ports, nports);
    return fds[n] < 0 ? n : n + 1;
}
