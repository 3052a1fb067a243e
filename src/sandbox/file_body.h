/* file_body.h - what two ways of copying a file have in common: where its bytes are, and
 * its attributes. */
#ifndef AB_SANDBOX_FILE_BODY_H
#define AB_SANDBOX_FILE_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define AB_FILE_PIECE      65536
#define AB_FILE_ATTR_NAME  256
#define AB_FILE_ATTR_BYTES 65536

/* Set fd and size; the rest 0. */
struct ab_file_data {
    int fd; /* borrowed */
    off_t size;
    off_t at, hole;
};

/* The next bytes that are no hole, at most AB_FILE_PIECE: how many, 0 at the end or where
 * the file became shorter meanwhile, -1 with errno. A file's size says nothing about what
 * it holds. */
ssize_t ab_file_next_data(struct ab_file_data *d, char *piece, off_t *where);

/* Attributes of the namespace user, and of it not those by which an overlay marks files:
 * what programs of a sandbox may set, and nothing that gives a right. */
bool ab_file_is_attr(const char *name);

/* What visit gives, if not 0, ends it and is given. 0 where the file system has none. */
typedef int (*ab_file_attr)(void *arg, const char *name, const void *value, size_t len);
int ab_file_each_attr(int fd, ab_file_attr visit, void *arg);

/* 0 also where the file system keeps none; else -1 with errno. */
int ab_file_set_attr(int fd, const char *name, const void *value, size_t len);

#endif
