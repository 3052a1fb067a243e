/* archive_lib.h - libarchive, loaded when an archive is about to be read. */
#ifndef AB_RT_ARCHIVE_LIB_H
#define AB_RT_ARCHIVE_LIB_H

#include <archive.h>
#include <archive_entry.h>

#include "base/err.h"

/* The few functions that are used, as found in the loaded library. */
#define AB_ARCHIVE_FUNCTIONS(X)                \
    X(archive_read_new)                        \
    X(archive_read_support_filter_gzip)        \
    X(archive_read_support_filter_zstd)        \
    X(archive_read_support_filter_xz)          \
    X(archive_read_support_filter_bzip2)       \
    X(archive_read_support_format_raw)         \
    X(archive_read_support_format_empty)       \
    X(archive_read_support_format_tar)         \
    X(archive_read_open_fd)                    \
    X(archive_read_open)                       \
    X(archive_read_next_header)                \
    X(archive_read_data_block)                 \
    X(archive_read_free)                       \
    X(archive_write_new)                       \
    X(archive_write_set_format_pax_restricted) \
    X(archive_write_set_bytes_per_block)       \
    X(archive_write_open)                      \
    X(archive_write_close)                     \
    X(archive_write_data)                      \
    X(archive_write_disk_new)                  \
    X(archive_write_disk_set_options)          \
    X(archive_write_header)                    \
    X(archive_write_data_block)                \
    X(archive_write_finish_entry)              \
    X(archive_write_free)                      \
    X(archive_error_string)                    \
    X(archive_errno)                           \
    X(archive_entry_new)                       \
    X(archive_entry_free)                      \
    X(archive_entry_clear)                     \
    X(archive_entry_pathname)                  \
    X(archive_entry_copy_pathname)             \
    X(archive_entry_hardlink)                  \
    X(archive_entry_copy_hardlink)             \
    X(archive_entry_copy_symlink)              \
    X(archive_entry_copy_stat)                 \
    X(archive_entry_filetype)                  \
    X(archive_entry_mode)                      \
    X(archive_entry_mtime)                     \
    X(archive_entry_mtime_nsec)                \
    X(archive_entry_size)                      \
    X(archive_entry_set_size)                  \
    X(archive_entry_unset_size)                \
    X(archive_entry_unset_atime)               \
    X(archive_entry_unset_ctime)               \
    X(archive_entry_uid)                       \
    X(archive_entry_gid)                       \
    X(archive_entry_set_uid)                   \
    X(archive_entry_set_gid)                   \
    X(archive_entry_acl_clear)                 \
    X(archive_entry_xattr_clear)               \
    X(archive_entry_xattr_add_entry)           \
    X(archive_entry_xattr_reset)               \
    X(archive_entry_xattr_next)

struct ab_archive_lib {
#define X(name) __typeof__(name) *name;
    AB_ARCHIVE_FUNCTIONS(X)
#undef X
};

/* Filled by ab_archive_load() (archive.h): once, before the process is confined, which
 * does nothing else and ends soon. */
extern struct ab_archive_lib ab_la;

#define AB_ARCHIVE_BLOCK 65536

/* Attributes that an image may carry: what overlays use for themselves must not come from
 * outside. */
bool ab_archive_keeps(const char *attribute);

#endif
