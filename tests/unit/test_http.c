/* test_http.c - transfers on the loop, without Lua. The server is a child process with a
 * thread for each connection: what it costs must not show in our own counts. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt/http.h"

#define BIG_BYTES (8u << 20)

struct fixture {
    struct ab_loop loop;
    struct ab_http *http;
};

static pid_t server_pid;
static int server_port;

/* ---- the server ---- */

static bool send_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        data += sent;
        n -= (size_t)sent;
    }
    return true;
}

static void answer(int fd, const char *path)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    static const char cut[] = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf";
    char drain;
    if (strncmp(path, "/ok", 3) == 0)
        send_all(fd, ok, sizeof ok - 1);
    else if (strncmp(path, "/cut", 4) == 0) {
        send_all(fd, cut, sizeof cut - 1);
        shutdown(fd, SHUT_RDWR);
    } else if (strncmp(path, "/big", 4) == 0) {
        char head[80], *body = calloc(1, BIG_BYTES);
        int n = snprintf(head, sizeof head,
                         "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", BIG_BYTES);
        if (send_all(fd, head, (size_t)n))
            send_all(fd, body, BIG_BYTES);
        free(body);
    } else
        (void)!recv(fd, &drain, 1, 0); /* /hang: until the client leaves */
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buf[4096];
    ssize_t n;
    while ((n = recv(fd, buf, sizeof buf - 1, 0)) > 0) {
        buf[n] = '\0';
        const char *path = strchr(buf, ' ');
        if (path)
            answer(fd, path + 1);
    }
    close(fd);
    return NULL;
}

static void run_server(int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0 && pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
    }
}

static int start_server(void **state)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    (void)state;
    if (bind(listener, (struct sockaddr *)&addr, len) < 0 || listen(listener, 1024) < 0)
        return -1;
    getsockname(listener, (struct sockaddr *)&addr, &len);
    server_port = ntohs(addr.sin_port);
    server_pid = fork();
    if (server_pid == 0)
        run_server(listener);
    close(listener);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    kill(server_pid, SIGKILL);
    waitpid(server_pid, NULL, 0);
    return 0;
}

/* ---- around each test ---- */

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct ab_err err;
    *state = f;
    if (ab_loop_init(&f->loop, &err) < 0)
        return -1;
    f->http = ab_http_new(&f->loop, &err);
    return f->http ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ab_http_free(f->http);
    int swept = ab_loop_fini(&f->loop);
    free(f);
    return swept;
}

static struct ab_http_transfer *start(struct fixture *f, const char *name,
                                      const char *path, struct ab_http_spec spec)
{
    char url[128];
    struct ab_err err = {0};
    snprintf(url, sizeof url, "http://%s:%d%s", name, server_port, path);
    spec.url = url;
    spec.method = "GET";
    struct ab_http_transfer *t = ab_http_start(f->http, &spec, &err);
    assert_non_null(t);
    return t;
}

static void wait_for(struct fixture *f, struct ab_http_transfer *t,
                     enum ab_http_event event)
{
    if (ab_http_ready(t, event))
        return;
    struct ab_op *op = ab_http_wait(t, event);
    while (op->state == AB_OP_PENDING)
        uv_run(&f->loop.uv, UV_RUN_ONCE);
    ab_op_unref(op);
}

static int count_entries(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* ---- tests ---- */

static void test_a_whole_response(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        size_t n;
        struct ab_http_transfer *t =
            start(f, "127.0.0.1", "/ok", (struct ab_http_spec){0});
        wait_for(f, t, AB_HTTP_END);
        assert_null(ab_http_error(t));
        assert_int_equal(ab_http_status(t), 200);
        assert_string_equal(ab_http_body(t, &n), "ok");
        assert_int_equal(n, 2);
        assert_string_equal(ab_http_ip(t), "127.0.0.1");
        assert_true(ab_http_timing(t).total_s > 0);
        ab_http_close(t);
    }
}

static void test_failures_have_their_code_and_phase(void **state)
{
    struct fixture *f = *state;
    struct ab_http_transfer *t = start(f, "127.0.0.1", "/cut", (struct ab_http_spec){0});
    wait_for(f, t, AB_HTTP_END);
    assert_int_equal(ab_http_error(t)->code, AB_ENETWORK);
    assert_string_equal(ab_http_phase(t), "receive");
    ab_http_close(t);

    t = start(f, "no-such-host.invalid", "/", (struct ab_http_spec){0});
    wait_for(f, t, AB_HTTP_END);
    assert_int_equal(ab_http_error(t)->code, AB_ENETWORK);
    assert_string_equal(ab_http_phase(t), "resolve");
    ab_http_close(t);

    t = start(f, "127.0.0.1", "/hang", (struct ab_http_spec){.first_byte_ms = 20});
    wait_for(f, t, AB_HTTP_END);
    assert_int_equal(ab_http_error(t)->code, AB_ETIMEOUT);
    assert_non_null(strstr(ab_http_error(t)->msg, "first byte"));
    ab_http_close(t);

    t = start(f, "127.0.0.1", "/big", (struct ab_http_spec){.max_body_bytes = 1000});
    wait_for(f, t, AB_HTTP_END);
    assert_int_equal(ab_http_error(t)->code, AB_ETOOBIG);
    ab_http_close(t);
}

static void test_a_bad_spec_starts_nothing(void **state)
{
    struct fixture *f = *state;
    const char *bad_header[] = {"X: 1\r\nY: 2"};
    const struct ab_http_spec specs[] = {
        {.method = "GET", .url = "gopher://127.0.0.1/"},
        {.method = "GET", .url = "http://"},
        {.method = "GET", .url = "not a url"},
        {.method = "GET",
         .url = "http://127.0.0.1/",
         .headers = bad_header,
         .header_count = 1},
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct ab_err err = {0};
        assert_null(ab_http_start(f->http, &specs[i], &err));
        assert_int_equal(err.code, AB_EBADARG);
    }
}

static void test_a_name_is_looked_up_once_for_everybody(void **state)
{
    enum { N = 300 };
    struct fixture *f = *state;
    struct ab_http_transfer *t[N];
    int most = 0;
    for (int i = 0; i < N; i++)
        t[i] = start(f, "localhost", "/ok", (struct ab_http_spec){.connect_ms = 20000});
    for (int i = 0; i < N; i++) {
        wait_for(f, t[i], AB_HTTP_END);
        int threads = count_entries("/proc/self/task");
        most = threads > most ? threads : most;
        assert_null(ab_http_error(t[i]));
        ab_http_close(t[i]);
    }
    assert_in_range(most, 1, 16); /* the loop's pool, not one for each transfer */
}

static void test_a_stream_waits_for_its_reader(void **state)
{
    struct fixture *f = *state;
    struct ab_http_transfer *t =
        start(f, "127.0.0.1", "/big", (struct ab_http_spec){.stream = true});
    struct ab_http_transfer *other;
    size_t n, total = 0;
    wait_for(f, t, AB_HTTP_HEAD);
    assert_int_equal(ab_http_status(t), 200);
    for (int i = 0; i < 20; i++) { /* the loop turns; nobody reads */
        other = start(f, "127.0.0.1", "/ok", (struct ab_http_spec){0});
        wait_for(f, other, AB_HTTP_END);
        ab_http_close(other);
    }
    ab_http_body(t, &n);
    assert_in_range(n, 1, 512 << 10);
    do {
        wait_for(f, t, AB_HTTP_CHUNK);
        ab_http_body(t, &n);
        total += n;
        ab_http_consume(t);
    } while (n > 0);
    assert_null(ab_http_error(t));
    assert_int_equal(total, BIG_BYTES);
    ab_http_close(t);
}

static void test_closing_aborts_and_wakes(void **state)
{
    struct fixture *f = *state;
    struct ab_http_transfer *t = start(f, "127.0.0.1", "/hang", (struct ab_http_spec){0});
    struct ab_op *op = ab_http_wait(t, AB_HTTP_END);
    uv_run(&f->loop.uv, UV_RUN_ONCE);
    ab_http_close(t);
    assert_int_equal(op->state, AB_OP_DONE);
    assert_int_equal(op->err->code, AB_ECANCELLED);
    ab_op_unref(op);
}

static void test_cancelling_the_wait_aborts(void **state)
{
    struct fixture *f = *state;
    struct ab_http_transfer *t = start(f, "127.0.0.1", "/hang", (struct ab_http_spec){0});
    struct ab_op *op = ab_http_wait(t, AB_HTTP_END);
    uv_run(&f->loop.uv, UV_RUN_ONCE);
    ab_op_cancel(op);
    ab_op_unref(op);
    assert_true(ab_http_ready(t, AB_HTTP_END));
    assert_int_equal(ab_http_error(t)->code, AB_ECANCELLED);
    ab_http_close(t);
}

static void test_the_host_limit_is_kept_in_order(void **state)
{
    enum { N = 20 };
    struct fixture *f = *state;
    struct ab_http_transfer *t[N];
    for (int i = 0; i < N; i++)
        t[i] = start(f, "127.0.0.1", "/ok", (struct ab_http_spec){.host_limit = 1});
    for (int i = 0; i < N; i++) {
        int running = 0;
        wait_for(f, t[i], AB_HTTP_END);
        assert_null(ab_http_error(t[i]));
        for (int k = i + 1; k < N; k++)
            running += !ab_http_ready(t[k], AB_HTTP_END) &&
                       strcmp(ab_http_phase(t[k]), "queue") != 0;
        assert_in_range(running, 0, 1);
    }
    for (int i = 0; i < N; i++)
        ab_http_close(t[i]);
}

static void test_a_closed_queue_entry_lets_the_next_in(void **state)
{
    struct fixture *f = *state;
    struct ab_http_spec one = {.host_limit = 1};
    struct ab_http_transfer *hang = start(f, "127.0.0.1", "/hang", one);
    struct ab_http_transfer *queued = start(f, "127.0.0.1", "/ok", one);
    struct ab_http_transfer *last = start(f, "127.0.0.1", "/ok", one);
    ab_http_close(queued);
    ab_http_close(hang);
    wait_for(f, last, AB_HTTP_END);
    assert_null(ab_http_error(last));
    ab_http_close(last);
}

static void test_running_out_of_descriptors_says_so(void **state)
{
    struct fixture *f = *state;
    struct rlimit old, low;
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = 3; /* every new descriptor is refused */
    struct ab_http_transfer *t = start(f, "127.0.0.1", "/ok", (struct ab_http_spec){0});
    setrlimit(RLIMIT_NOFILE, &low);
    wait_for(f, t, AB_HTTP_END);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(ab_http_error(t)->code, AB_ENETWORK);
    assert_int_equal(ab_http_error(t)->sys, EMFILE);
    assert_non_null(strstr(ab_http_error(t)->msg, "ulimit -n"));
    ab_http_close(t);
}

static void test_a_freed_client_ends_its_transfers(void **state)
{
    struct fixture *f = *state;
    struct ab_http_transfer *t = start(f, "127.0.0.1", "/hang", (struct ab_http_spec){0});
    struct ab_http_transfer *named =
        start(f, "localhost", "/hang", (struct ab_http_spec){0});
    uv_run(&f->loop.uv, UV_RUN_NOWAIT);
    ab_http_free(f->http);
    f->http = NULL;
    assert_int_equal(ab_http_error(t)->code, AB_ECANCELLED);
    ab_http_close(t);
    ab_http_close(named);
}

static void test_the_loop_sweeps_a_forgotten_client(void **state)
{
    struct fixture f = {0};
    struct ab_err err;
    (void)state;
    assert_int_equal(ab_loop_init(&f.loop, &err), 0);
    f.http = ab_http_new(&f.loop, &err);
    struct ab_http_transfer *t =
        start(&f, "127.0.0.1", "/hang", (struct ab_http_spec){0});
    uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    assert_int_equal(ab_loop_fini(&f.loop), 1);
    ab_http_close(t);
}

static void test_dates(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ab_http_date(f->http, "Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
    assert_int_equal(ab_http_date(f->http, "soon"), -1);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_a_whole_response),
        CASE(test_failures_have_their_code_and_phase),
        CASE(test_a_bad_spec_starts_nothing),
        CASE(test_a_name_is_looked_up_once_for_everybody),
        CASE(test_a_stream_waits_for_its_reader),
        CASE(test_closing_aborts_and_wakes),
        CASE(test_cancelling_the_wait_aborts),
        CASE(test_the_host_limit_is_kept_in_order),
        CASE(test_a_closed_queue_entry_lets_the_next_in),
        CASE(test_running_out_of_descriptors_says_so),
        CASE(test_a_freed_client_ends_its_transfers),
        cmocka_unit_test(test_the_loop_sweeps_a_forgotten_client),
        CASE(test_dates),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
