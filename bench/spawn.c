/* bench-spawn MODE COUNT PROGRAM ARGS...: runs a program COUNT times and prints the
 * microseconds of each run.
 *
 * The cheapest way that a process can be started (vfork, exec), so that what is measured
 * is the program and the kernel. MODE: wait (until it has exited), read (and its stdout
 * is read to the end), first (until the first byte of it).
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void drain(int fd)
{
    char buf[65536];
    while (read(fd, buf, sizeof(buf)) > 0)
        ;
}

/* One run; the time that MODE asks for. */
static double run_once(const char *mode, char **argv, posix_spawn_file_actions_t *actions,
                       const int *fds)
{
    double began = now_us(), ended;
    pid_t pid;
    int status;
    if (posix_spawnp(&pid, argv[0], actions, NULL, argv, environ) != 0)
        die(argv[0]);
    if (strcmp(mode, "wait") == 0) {
        waitpid(pid, &status, 0);
        ended = now_us();
    } else {
        close(fds[1]);
        char byte;
        if (strcmp(mode, "first") == 0 && read(fds[0], &byte, 1) != 1)
            die("read");
        ended = now_us();
        drain(fds[0]);
        close(fds[0]);
        waitpid(pid, &status, 0);
        if (strcmp(mode, "read") == 0)
            ended = now_us();
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "%s: failed\n", argv[0]);
        exit(1);
    }
    return ended - began;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    int count = atoi(argv[2]), fds[2] = {-1, -1};
    int capture = strcmp(argv[1], "wait") != 0;
    for (int i = 0; i < count; i++) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        if (capture) {
            if (pipe2(fds, O_CLOEXEC) < 0)
                die("pipe");
            posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
        }
        printf("%.1f\n", run_once(argv[1], argv + 3, &actions, fds));
        posix_spawn_file_actions_destroy(&actions);
    }
    return 0;
}
