/* archive.h - tar archives that nobody checked: reading them into a tree, making them
 * from one. The only user of libarchive.
 *
 * Called by the confined program of rt/unpack.c alone, never by the engine: whatever a
 * hostile archive does to the decompressors, it does there. Paths are taken relative to
 * the current directory, which is the root of the process, so that a link can lead
 * nowhere else; ".." is refused all the same.
 */
#ifndef AB_RT_ARCHIVE_H
#define AB_RT_ARCHIVE_H

#include "base/err.h"

struct ab_archive_rules {
    bool layer;  /* a layer of an image: whiteouts, owners, links of both kinds, FIFOs,
                    attributes. Else a bundle, an image as a file: only files, directories
                    and symbolic links, and only under the names that bundles use. */
    bool owners; /* keep them; else everything belongs to who unpacks */
    bool fresh;  /* the tree is empty: there is nothing that a whiteout could hide */
    uint64_t max_bytes;   /* of the unpacked stream, and of the files in it */
    uint64_t max_entries; /* AB_ETOOBIG beyond either */
};

struct ab_archive_counts {
    uint64_t entries, bytes;
    uint64_t skipped;  /* devices and sockets, which are not made */
    uint64_t stripped; /* attributes and owners that could not be kept */
    char diff_id[65];  /* SHA-256 of the unpacked stream */
};

/* Loads libarchive and prepares hashing: before the process gives up the files of the
 * host. AB_EUNSUPPORTED when it is missing. */
int ab_archive_load(struct ab_err *err) AB_MUST_CHECK;

/* Reads one archive, uncompressed or gzip, zstd, xz, bzip2, from fd to its end. counts is
 * added to. AB_EPARSE when it is damaged, AB_EINVALID when it asks for what is refused.
 */
int ab_archive_unpack(int fd, const struct ab_archive_rules *rules,
                      struct ab_archive_counts *counts, struct ab_err *err) AB_MUST_CHECK;

struct ab_archive_ids {
    uint32_t first, rest, count; /* host ids of 0 and of 1.., and how many there are */
};

/* Writes the changed side of an overlay, the directory dir, as a layer to out: what the
 * overlay marks as gone becomes a whiteout, host ids become those inside. Never leaves
 * dir. skip is a path in it that is left out, or NULL. */
int ab_archive_pack(int dir, int out, const struct ab_archive_ids *ids, const char *skip,
                    struct ab_archive_counts *counts, struct ab_err *err) AB_MUST_CHECK;

struct ab_archive_copy {
    uint32_t uid, gid; /* of everything */
    int mode;          /* of files, or -1: what they have */
};

/* Writes files of the host as a layer to out. list is a stream of pairs, "path on the
 * host" NUL "path in the layer" NUL, in the order of the layer. A link stays a link. */
int ab_archive_copy(int list, int out, const struct ab_archive_copy *how,
                    struct ab_archive_counts *counts, struct ab_err *err) AB_MUST_CHECK;

#endif
