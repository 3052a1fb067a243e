/* sqlite.h - one SQLite database, as blocking calls. Run them with ab_work_start
 * (work.h).
 *
 *     struct ab_sqlite *db;
 *     if (ab_sqlite_open(&db, path, AB_SQLITE_WRITE, &err) < 0)
 *         ...
 *     if (ab_sqlite_exec(db, "CREATE TABLE IF NOT EXISTS t(a, b) STRICT", &err) < 0)
 *         ...
 *     ab_sqlite_close(db);
 *     ab_sqlite_unref(db);
 *
 * While it is written the database is in WAL mode; then it rests as one file. Where
 * somebody reads on when the mode is to change, a copy takes the database's name, and
 * that one reads the old file to the end. Before 3.51.3 SQLite can lose a WAL when two
 * connections write or checkpoint it, so exactly one connection writes: AB_SQLITE_WRITE
 * is for the process that holds the lock of what the database describes; all others only
 * read.
 *
 * libsqlite3 is loaded at the first open. Calls on one database exclude one another; any
 * thread may make them.
 */
#ifndef AB_RT_SQLITE_H
#define AB_RT_SQLITE_H

#include "base/buf.h"

enum { AB_SQLITE_WRITE = 1 };

enum ab_sqlite_kind {
    AB_SQLITE_NULL,
    AB_SQLITE_INTEGER,
    AB_SQLITE_REAL,
    AB_SQLITE_TEXT, /* any bytes */
};

struct ab_sqlite_value {
    enum ab_sqlite_kind kind;
    union {
        int64_t integer;
        double real;
        size_t at; /* offset in the table's text */
    };
    size_t len; /* bytes of text */
};

/* Rows of values, to bind or as a result. Zeroed, it is an empty table. */
struct ab_sqlite_table {
    struct ab_sqlite_value *values; /* owns; row by row */
    size_t count, cap;              /* of values */
    size_t columns;
    struct ab_buf text; /* owns; its cap limits what a result may hold */
};

/* Adds a value; text is copied. */
struct ab_sqlite_value *ab_sqlite_add(struct ab_sqlite_table *t,
                                      enum ab_sqlite_kind kind);
void ab_sqlite_add_text(struct ab_sqlite_table *t, const char *text, size_t len);
void ab_sqlite_table_fini(struct ab_sqlite_table *t);

struct ab_sqlite;

/* Opens a database; with AB_SQLITE_WRITE it is made when it is not there. Caller owns the
 * reference. AB_EUNSUPPORTED: no libsqlite3, or a file system on which a WAL is not safe
 * (the message names it). AB_EPARSE: not a database, or a damaged one. */
int ab_sqlite_open(struct ab_sqlite **out, const char *path, unsigned flags,
                   struct ab_err *err) AB_MUST_CHECK;

/* References are counted on one thread, that of the loop. */
void ab_sqlite_ref(struct ab_sqlite *db);
void ab_sqlite_unref(struct ab_sqlite *db);

/* Lets go of the files; later calls fail with AB_EBADARG. Who writes brings the WAL into
 * the database and removes it. May be called twice. */
void ab_sqlite_close(struct ab_sqlite *db);

/* Runs statements without values. */
int ab_sqlite_exec(struct ab_sqlite *db, const char *sql, struct ab_err *err)
    AB_MUST_CHECK;

/* Runs one statement once for each row of values, all of them or none. */
int ab_sqlite_write(struct ab_sqlite *db, const char *sql,
                    const struct ab_sqlite_table *rows, struct ab_err *err) AB_MUST_CHECK;

/* Runs one statement with the values of one row (or NULL) and appends what it gives.
 * AB_ETOOBIG when the result's text would pass its cap. */
int ab_sqlite_query(struct ab_sqlite *db, const char *sql,
                    const struct ab_sqlite_table *row, struct ab_sqlite_table *out,
                    struct ab_err *err) AB_MUST_CHECK;

#endif
