/* oom.c - how many processes of this container the kernel killed for memory: what Docker
 * mounts of its cgroup, either version. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/guest.h"

static const char *const files[] = {
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
};

uint64_t ab_oom_kills(void)
{
    static const char key[] = "\noom_kill ";
    char text[512] = "\n";
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int fd = open(files[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        ssize_t n = read(fd, text + 1, sizeof text - 2);
        close(fd);
        text[n > 0 ? n + 1 : 1] = 0;
        const char *found = strstr(text, key);
        if (found)
            return strtoull(found + sizeof key - 1, NULL, 10);
    }
    return 0;
}
