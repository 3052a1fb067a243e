/* A chat completions server that answers after a second, for thousands of connections on
 * little CPU.
 *
 *     slow-llm LATENCY_MS TURNS COMMAND
 *
 * Prints its port, serves until its standard input ends, then prints requests and the
 * most it held at once. A conversation with fewer than TURNS assistant messages gets a
 * tool call that runs COMMAND, any other a final answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TEXT_BYTES      600
#define MAX_CONNECTIONS 16384

struct conn {
    int fd;
    char *in;
    size_t len, cap;
    int assistants; /* of the request that waits */
    double due;
    struct conn *next;
};

static struct conn *by_fd[MAX_CONNECTIONS];
static struct conn *first_due, **last_due = &first_due;
static double latency_s;
static int turns, held, peak_held;
static long requests;
static bool over;
static const char *command;
static char text[TEXT_BYTES + 1];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void drop(int epoll, struct conn *c)
{
    epoll_ctl(epoll, EPOLL_CTL_DEL, c->fd, NULL);
    by_fd[c->fd] = NULL;
    close(c->fd);
    c->fd = -1;
    if (c->due == 0) {
        free(c->in);
        free(c);
    } /* else: freed when its answer is due */
}

static int count_assistants(const char *body, size_t len)
{
    static const char word[] = "\"assistant\"";
    int n = 0;
    const char *at = body, *end = body + len;
    while ((at = memmem(at, (size_t)(end - at), word, sizeof word - 1)) != NULL) {
        n++;
        at += sizeof word - 1;
    }
    return n;
}

static void report(int fd)
{
    struct rusage u;
    char body[128], out[256];
    getrusage(RUSAGE_SELF, &u);
    double cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                 (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
    int n = snprintf(body, sizeof body, "requests=%ld peak=%d cpu_s=%.3f\n", requests,
                     peak_held, cpu);
    int m = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s",
                     n, body);
    if (send(fd, out, (size_t)m, MSG_NOSIGNAL) != m)
        shutdown(fd, SHUT_RDWR);
}

/* Takes a whole request out of the buffer and lets it wait, or answers at once what is
 * asked of the server itself. */
static void take(struct conn *c)
{
    char *head_end = memmem(c->in, c->len, "\r\n\r\n", 4);
    if (!head_end)
        return;
    size_t head = (size_t)(head_end - c->in) + 4, body = 0;
    for (char *line = c->in; line < head_end;) {
        if (strncasecmp(line, "content-length:", 15) == 0)
            body = strtoul(line + 15, NULL, 10);
        char *feed = memchr(line, '\n', (size_t)(head_end - line));
        if (!feed)
            break;
        line = feed + 1;
    }
    if (c->len < head + body)
        return;
    if (c->in[0] == 'G') {
        over = c->len > 6 && memcmp(c->in, "GET /quit", 9) == 0;
        report(c->fd);
        c->len = 0;
        return;
    }
    c->assistants = count_assistants(c->in + head, body);
    c->len = 0; /* a client waits for its answer before it sends the next one */
    c->due = now() + latency_s;
    c->next = NULL;
    *last_due = c;
    last_due = &c->next;
    requests++;
    if (++held > peak_held)
        peak_held = held;
}

static void answer(struct conn *c)
{
    char body[TEXT_BYTES + 1024], head[160], *calls = NULL;
    if (c->assistants < turns &&
        asprintf(&calls,
                 ",\"tool_calls\":[{\"id\":\"call_%d\",\"type\":\"function\","
                 "\"function\":{\"name\":"
                 "\"run_command\",\"arguments\":\"{\\\"command\\\":\\\"%s\\\"}\"}}]",
                 c->assistants, command) < 0)
        abort();
    int n = snprintf(
        body, sizeof body,
        "{\"id\":\"chatcmpl-%ld\",\"object\":\"chat.completion\",\"model\":"
        "\"m\",\"choices\":["
        "{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"turn %d: %s\"%s},"
        "\"finish_reason\":\"%s\"}],\"usage\":{\"prompt_tokens\":%d,"
        "\"completion_tokens\":150,\"total_tokens\":%d}}",
        requests, c->assistants, text, calls ? calls : "", calls ? "tool_calls" : "stop",
        700 + 200 * c->assistants, 850 + 200 * c->assistants);
    int m = snprintf(
        head, sizeof head,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
        n);
    free(calls);
    char out[sizeof body + sizeof head];
    memcpy(out, head, (size_t)m);
    memcpy(out + m, body, (size_t)n);
    if (send(c->fd, out, (size_t)(m + n), MSG_NOSIGNAL) != m + n)
        shutdown(c->fd, SHUT_RDWR);
}

static void answer_due(void)
{
    double t = now();
    while (first_due && first_due->due <= t) {
        struct conn *c = first_due;
        first_due = c->next;
        if (!first_due)
            last_due = &first_due;
        held--;
        c->due = 0;
        if (c->fd >= 0) {
            answer(c);
        } else {
            free(c->in);
            free(c);
        }
    }
}

static void hear(int epoll, struct conn *c)
{
    for (;;) {
        if (c->cap - c->len < 65536) {
            c->cap = c->cap * 2 + 65536;
            c->in = realloc(c->in, c->cap);
            if (!c->in)
                abort();
        }
        ssize_t n = recv(c->fd, c->in + c->len, c->cap - c->len, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) {
            drop(epoll, c);
            return;
        }
        c->len += (size_t)n;
    }
    take(c);
}

static void greet(int epoll, int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        if (fd >= MAX_CONNECTIONS) {
            close(fd);
            continue;
        }
        struct conn *c = calloc(1, sizeof *c);
        if (!c)
            abort();
        c->fd = fd;
        by_fd[fd] = c;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
    }
}

static int listen_somewhere(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) || listen(fd, 4096) ||
        getsockname(fd, (struct sockaddr *)&at, &len)) {
        perror("slow-llm");
        exit(1);
    }
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: slow-llm LATENCY_MS TURNS COMMAND\n");
        return 2;
    }
    latency_s = atof(argv[1]) / 1000;
    turns = atoi(argv[2]);
    command = argv[3];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    memset(text, 'x', TEXT_BYTES);
    int listener = listen_somewhere(), epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e);
    while (!over) {
        struct epoll_event ready[256];
        int wait_ms = first_due ? (int)((first_due->due - now()) * 1000) + 1 : -1;
        int n = epoll_wait(epoll, ready, 256, first_due && wait_ms < 0 ? 0 : wait_ms);
        for (int i = 0; i < n; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener)
                greet(epoll, listener);
            else if (by_fd[fd])
                hear(epoll, by_fd[fd]);
        }
        answer_due();
    }
    return 0;
}
