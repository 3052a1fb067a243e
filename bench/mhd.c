/* mhd.c - libmicrohttpd answers every request with the same bytes: a peer of
 * bench/measure_http_server.lua. Prints its address and its process; ends with stdin. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <microhttpd.h>

static char body[145];

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *len, void **state)
{
    (void)arg, (void)url, (void)method, (void)version, (void)data, (void)len, (void)state;
    struct MHD_Response *r =
        MHD_create_response_from_buffer(sizeof body - 1, body, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(r, "Content-Type", "text/plain; charset=utf-8");
    enum MHD_Result rc = MHD_queue_response(c, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return rc;
}

int main(void)
{
    for (int i = 0; i < 16; i++)
        memcpy(body + 9 * i, "agentbox ", 9);
    struct MHD_Daemon *d =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, NULL,
                         MHD_OPTION_CONNECTION_LIMIT, 20000u, MHD_OPTION_END);
    if (!d)
        return 1;
    printf("http://127.0.0.1:%u %d\n",
           MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port, (int)getpid());
    fflush(stdout);
    char c;
    while (read(STDIN_FILENO, &c, 1) > 0)
        ;
    MHD_stop_daemon(d);
    return 0;
}
