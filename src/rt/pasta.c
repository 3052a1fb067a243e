#include "rt/pasta.h"

#include <signal.h>
#include <stdlib.h>

struct ab_pasta {
    uv_process_t process;
    bool running;  /* the handle exists */
    bool released; /* by its holder */
};

static void on_closed(uv_handle_t *h)
{
    struct ab_pasta *p = h->data;
    p->running = false;
    if (p->released)
        free(p);
}

static void on_ended(uv_process_t *h, int64_t status, int sig)
{
    (void)status;
    (void)sig;
    uv_close((uv_handle_t *)h, on_closed);
}

int ab_pasta_start(struct ab_loop *loop, const char *setpriv, const char *program,
                   int netns, int userns, struct ab_pasta **out, struct ab_err *err)
{
    const char *argv[32] = {
        setpriv,
        "--pdeathsig",
        "KILL",
        program,
        "--foreground",
        "--quiet",
        "--config-net",
        "--no-map-gw", /* the gateway's address would be the host's loopback */
        "--tcp-ports",
        "none",
        "--udp-ports",
        "none",
        "--tcp-ns",
        "none",
        "--udp-ns",
        "none",
        "--dns-forward",
        AB_PASTA_RESOLVER,
        "--netns",
        "/proc/self/fd/3",
    };
    int n = 0;
    while (argv[n])
        n++;
    if (userns >= 0) {
        argv[n++] = "--userns";
        argv[n++] = "/proc/self/fd/4";
    } else {
        argv[n++] = "--netns-only";
        argv[n++] = "--runas";
        argv[n++] = "0"; /* else it becomes nobody, who may not enter the namespace */
    }
    uv_stdio_container_t stdio[5] = {{.flags = UV_IGNORE},
                                     {.flags = UV_IGNORE},
                                     {.flags = UV_IGNORE},
                                     {.flags = UV_INHERIT_FD, .data.fd = netns},
                                     {.flags = UV_INHERIT_FD, .data.fd = userns}};
    uv_process_options_t options = {
        .exit_cb = on_ended,
        .file = argv[0],
        .args = (char **)(uintptr_t)argv,
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = userns >= 0 ? 5 : 4,
        .stdio = stdio,
    };
    struct ab_pasta *p = ab_xcalloc(1, sizeof *p);
    p->process.data = p;
    p->running = true;
    *out = p;
    int rc = uv_spawn(&loop->uv, &p->process, &options);
    if (rc == 0)
        return 0;
    *out = NULL;
    p->released = true;
    uv_close((uv_handle_t *)&p->process, on_closed);
    return ab_err_sys(err, rc, "start %s", program);
}

bool ab_pasta_running(const struct ab_pasta *p)
{
    return p->running && uv_is_active((const uv_handle_t *)&p->process);
}

void ab_pasta_stop(struct ab_pasta *p)
{
    if (!p)
        return;
    p->released = true;
    if (!p->running)
        free(p);
    else if (uv_is_active((uv_handle_t *)&p->process))
        uv_process_kill(&p->process, SIGKILL);
}
