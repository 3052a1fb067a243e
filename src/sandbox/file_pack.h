/* file_pack.h - a tree as a stream of bytes, for trees that no two descriptors of one
 * process reach: the same rules as ab_file_copy_tree(), cut in the middle.
 *
 * The bytes are records, in the order of a walk, little endian:
 *
 *     'f' name dress time size attrs extents   extent: offset, length, bytes; length 0
 * ends 'd' name   ... what is in it ...  'e' attrs dress 'l' name owner target
 *     '.'                                  the end
 *
 * name and target are a u16 length and bytes; dress is owner and mode; attrs are names
 * with a u32 length and bytes each, and an empty name at the end (file_body.h). A reader
 * believes nothing: a name with a slash, or one that was not to come, is AB_EPROTOCOL.
 */
#ifndef AB_SANDBOX_FILE_PACK_H
#define AB_SANDBOX_FILE_PACK_H

#include "sandbox/file.h"

/* Writes what is below path to fd, blocking. */
int ab_file_pack(const struct ab_tree *t, const char *path, int fd,
                 struct ab_file_copy *copy, struct ab_err *err) AB_MUST_CHECK;

/* Makes what comes from fd below path, which is made when missing. */
int ab_file_unpack(const struct ab_tree *t, const char *path, int fd,
                   struct ab_file_copy *copy, struct ab_err *err) AB_MUST_CHECK;

#endif
