#include "sandbox/tree_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/file_pack.h"

static int run(char **argv, struct ab_file_copy *copy, struct ab_err *err)
{
    struct ab_tree t = {.root = open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC)};
    copy->max_bytes = strtoull(argv[3], NULL, 10);
    copy->max_entries = strtoull(argv[4], NULL, 10);
    if (t.root < 0)
        return ab_err_sys(err, errno, "%s", argv[2]);
    if (!strcmp(argv[1], "pack"))
        return ab_file_pack(&t, "/", 1, copy, err);
    return ab_file_unpack(&t, "/", 0, copy, err);
}

int ab_tree_child_main(int argc, char **argv)
{
    struct ab_file_copy c = {0};
    struct ab_err err;
    if (argc != 5)
        return 2;
    if (run(argv, &c, &err) < 0) {
        fprintf(stderr, "%s %s\n", ab_err_name(err.code), err.msg);
        return 1;
    }
    fprintf(stderr, "ok %llu %llu %llu %llu %llu\n", (unsigned long long)c.files,
            (unsigned long long)c.dirs, (unsigned long long)c.links,
            (unsigned long long)c.bytes, (unsigned long long)c.skipped);
    return 0;
}
