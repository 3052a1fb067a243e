#include "rt/sqlite.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fault.h"

#define LIBRARY "libsqlite3.so.0"
/* As all files in the making: what a crash leaves is swept. */
#define COPY_SUFFIX ".tmp.000000"

/* Found once; linking would cost start-up time for the many commands without a database.
 */
#define FUNCTIONS(X)    \
    X(open_v2)          \
    X(close_v2)         \
    X(exec)             \
    X(errmsg)           \
    X(extended_errcode) \
    X(busy_timeout)     \
    X(prepare_v2)       \
    X(step)             \
    X(reset)            \
    X(finalize)         \
    X(bind_null)        \
    X(bind_int64)       \
    X(bind_double)      \
    X(bind_text)        \
    X(column_count)     \
    X(column_type)      \
    X(column_int64)     \
    X(column_double)    \
    X(column_text)      \
    X(column_bytes)

static struct {
    pthread_once_t once;
    struct ab_err err; /* why it could not be loaded */
    bool loaded;
#define X(name) __typeof__(&sqlite3_##name) name;
    FUNCTIONS(X)
#undef X
} lib = {.once = PTHREAD_ONCE_INIT};

struct ab_sqlite {
    sqlite3 *conn; /* owns; NULL once closed */
    char *path;    /* owns */
    pthread_mutex_t mutex;
    int refs;
    bool writes;
};

enum { BUSY_MS = 5000, LEAVE_TRIES = 10, LEAVE_PAUSE_US = 20000 };

static int resolve(void *handle, const char *name, void *slot)
{
    void *symbol = dlsym(handle, name);
    if (!symbol)
        return ab_err_set(&lib.err, AB_EUNSUPPORTED, LIBRARY " is too old: it has no %s",
                          name);
    /* C has no cast from an object pointer to a function pointer; POSIX says the bytes
     * fit. */
    memcpy(slot, &symbol, sizeof symbol);
    return 0;
}

static void load(void)
{
    void *handle =
        AB_FAULT("sqlite.load") ? NULL : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        ab_err_set(&lib.err, AB_EUNSUPPORTED,
                   "needs SQLite (Debian package libsqlite3-0): %s",
                   why ? why : "not found");
        return;
    }
#define X(name)                                           \
    if (resolve(handle, "sqlite3_" #name, &lib.name) < 0) \
        return;
    FUNCTIONS(X)
#undef X
    lib.loaded = true;
}

/* ---- tables ---- */

struct ab_sqlite_value *ab_sqlite_add(struct ab_sqlite_table *t, enum ab_sqlite_kind kind)
{
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->values = ab_xrealloc(t->values, t->cap * sizeof *t->values);
    }
    struct ab_sqlite_value *v = &t->values[t->count++];
    memset(v, 0, sizeof *v);
    v->kind = kind;
    return v;
}

void ab_sqlite_add_text(struct ab_sqlite_table *t, const char *text, size_t len)
{
    struct ab_sqlite_value *v = ab_sqlite_add(t, AB_SQLITE_TEXT);
    v->at = t->text.len;
    v->len = len;
    ab_buf_put(&t->text, text, len);
}

void ab_sqlite_table_fini(struct ab_sqlite_table *t)
{
    free(t->values);
    ab_buf_fini(&t->text);
    t->values = NULL;
    t->count = t->cap = 0;
}

/* ---- errors ---- */

static enum ab_errcode code_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return AB_EFULL;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return AB_EBUSY;
    case SQLITE_NOMEM:
        return AB_ENOMEM;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return AB_EPARSE;
    case SQLITE_CANTOPEN:
        return AB_ENOTFOUND;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return AB_EDENIED;
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
        return AB_EIO;
    case SQLITE_TOOBIG:
        return AB_ETOOBIG;
    default:
        return AB_EBADARG;
    }
}

static int fail(sqlite3 *conn, int rc, const char *what, struct ab_err *err)
{
    if (conn)
        rc = lib.extended_errcode(conn);
    return ab_err_set(err, code_of(rc), "%s: %s", what,
                      conn ? lib.errmsg(conn) : "out of memory");
}

/* ---- opening ---- */

/* File systems whose locks and shared memory do not hold between machines. */
static const char *network_name(long type)
{
    switch (type) {
    case NFS_SUPER_MAGIC:
        return "NFS";
    case SMB_SUPER_MAGIC:
    case 0xff534d42: /* CIFS */
    case 0xfe534d42: /* SMB2 */
        return "SMB";
    case V9FS_MAGIC:
        return "9p";
    case AFS_SUPER_MAGIC:
        return "AFS";
    case CODA_SUPER_MAGIC:
        return "Coda";
    case 0x00c36400:
        return "Ceph";
    case 0x0bd00bd0:
        return "Lustre";
    default:
        return NULL;
    }
}

static int check_place(const char *path, struct ab_err *err)
{
    struct statfs fs;
    const char *slash = strrchr(path, '/');
    char *dir =
        slash ? ab_xstrndup(path, (size_t)(slash - path) + 1) : ab_xstrndup(".", 1);
    int rc = statfs(dir, &fs), errnum = errno;
    free(dir);
    if (rc < 0)
        return ab_err_sys(err, errnum, "%s", path);
    const char *name = AB_FAULT("sqlite.network") ? "NFS" : network_name((long)fs.f_type);
    if (name)
        return ab_err_set(err, AB_EUNSUPPORTED,
                          "%s is on %s, where SQLite's WAL is not safe", path, name);
    return 0;
}

static int is_wal(void *arg, int columns, char **values, char **names)
{
    (void)names;
    *(bool *)arg = columns == 1 && values[0] && strcmp(values[0], "wal") == 0;
    return 0;
}

static char *beside(const struct ab_sqlite *db, const char *suffix)
{
    size_t size = strlen(db->path) + strlen(suffix) + 1;
    char *path = ab_xcalloc(1, size);
    snprintf(path, size, "%s%s", db->path, suffix);
    return path;
}

/* The whole database as one file beside it, on the disk. */
static int copy_to(struct ab_sqlite *db, const char *path)
{
    sqlite3_stmt *stmt = NULL;
    if (unlink(path) < 0 && errno != ENOENT)
        return -1;
    int rc = lib.prepare_v2(db->conn, "VACUUM INTO ?", -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = lib.bind_text(stmt, 1, path, (int)strlen(path), SQLITE_STATIC);
    bool made = rc == SQLITE_OK && lib.step(stmt) == SQLITE_DONE;
    lib.finalize(stmt);
    int fd = made ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    made = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    if (!made)
        unlink(path);
    return made ? 0 : -1;
}

/* Puts a copy in the place of the database. Whoever reads on has the old files, which
 * have no names any more; the WAL goes first, since it would be taken for the copy's. */
static void replace(const struct ab_sqlite *db, const char *copy)
{
    static const char *const suffixes[] = {"-wal", "-shm"};
    for (size_t i = 0; i < 2; i++) {
        char *part = beside(db, suffixes[i]);
        unlink(part);
        free(part);
    }
    if (rename(copy, db->path) < 0)
        unlink(copy);
}

static int open_file(struct ab_sqlite *db)
{
    int how =
        db->writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    return lib.open_v2(db->path, &db->conn, how | SQLITE_OPEN_FULLMUTEX, NULL);
}

/* Somebody reads on in one transaction, so that the mode cannot be changed. */
static int leave_to_readers(struct ab_sqlite *db)
{
    char *copy = beside(db, COPY_SUFFIX);
    int rc = copy_to(db, copy) == 0 ? SQLITE_OK : SQLITE_BUSY;
    if (rc == SQLITE_OK) {
        lib.close_v2(db->conn);
        db->conn = NULL;
        replace(db, copy);
        rc = open_file(db);
    }
    free(copy);
    return rc;
}

static int enter_wal(struct ab_sqlite *db, bool *wal)
{
    static const char sql[] = "PRAGMA journal_mode=WAL";
    lib.busy_timeout(db->conn, LEAVE_TRIES * LEAVE_PAUSE_US / 1000);
    int rc = lib.exec(db->conn, sql, is_wal, wal, NULL);
    if (rc != SQLITE_BUSY)
        return rc;
    rc = leave_to_readers(db);
    return rc == SQLITE_OK ? lib.exec(db->conn, sql, is_wal, wal, NULL) : rc;
}

static int set_up(struct ab_sqlite *db, struct ab_err *err)
{
    bool wal = false;
    int rc = db->writes ? enter_wal(db, &wal) : SQLITE_OK;
    if (rc != SQLITE_OK)
        return fail(db->conn, rc, db->path, err);
    lib.busy_timeout(db->conn, BUSY_MS);
    if (!db->writes)
        return 0;
    if (!wal || AB_FAULT("sqlite.wal"))
        return ab_err_set(err, AB_EUNSUPPORTED,
                          "%s: this file system cannot hold a WAL of SQLite", db->path);
    rc = lib.exec(db->conn,
                  "PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=67108864", NULL,
                  NULL, NULL);
    return rc == SQLITE_OK ? 0 : fail(db->conn, rc, db->path, err);
}

int ab_sqlite_open(struct ab_sqlite **out, const char *path, unsigned flags,
                   struct ab_err *err)
{
    pthread_once(&lib.once, load);
    if (!lib.loaded) {
        *err = lib.err;
        return -1;
    }
    if (check_place(path, err) < 0)
        return -1;
    struct ab_sqlite *db = ab_xcalloc(1, sizeof *db);
    db->refs = 1;
    db->path = ab_xstrndup(path, strlen(path));
    db->writes = flags & AB_SQLITE_WRITE;
    pthread_mutex_init(&db->mutex, NULL);
    int rc = open_file(db);
    if (rc != SQLITE_OK ? fail(db->conn, rc, path, err) : set_up(db, err)) {
        ab_sqlite_unref(db);
        return -1;
    }
    *out = db;
    return 0;
}

void ab_sqlite_ref(struct ab_sqlite *db)
{
    db->refs++;
}

/* A database in WAL mode has two other files: even who only reads makes them, and cannot
 * remove them; and who copies the first one alone has not all of it. So it rests in the
 * mode without, as soon as nobody reads. */
static bool leave_wal(struct ab_sqlite *db)
{
    bool wal = true;
    int rc = SQLITE_BUSY;
    lib.busy_timeout(db->conn, 0);
    for (int i = 0; i < LEAVE_TRIES && rc == SQLITE_BUSY; i++) {
        if (i)
            usleep(LEAVE_PAUSE_US);
        rc = lib.exec(db->conn, "PRAGMA journal_mode=DELETE", is_wal, &wal, NULL);
    }
    return rc == SQLITE_OK && !wal;
}

static void close_writer(struct ab_sqlite *db)
{
    char *copy = beside(db, COPY_SUFFIX);
    bool copied = !leave_wal(db) && copy_to(db, copy) == 0;
    lib.close_v2(db->conn);
    if (copied)
        replace(db, copy);
    free(copy);
}

void ab_sqlite_close(struct ab_sqlite *db)
{
    pthread_mutex_lock(&db->mutex);
    if (db->conn && db->writes)
        close_writer(db);
    else if (db->conn)
        lib.close_v2(db->conn);
    db->conn = NULL;
    pthread_mutex_unlock(&db->mutex);
}

void ab_sqlite_unref(struct ab_sqlite *db)
{
    if (--db->refs > 0)
        return;
    ab_sqlite_close(db);
    pthread_mutex_destroy(&db->mutex);
    free(db->path);
    free(db);
}

/* ---- statements ---- */

static int lock_open(struct ab_sqlite *db, struct ab_err *err)
{
    pthread_mutex_lock(&db->mutex);
    if (db->conn)
        return 0;
    pthread_mutex_unlock(&db->mutex);
    return ab_err_set(err, AB_EBADARG, "the database is closed");
}

static int exec(struct ab_sqlite *db, const char *sql, struct ab_err *err)
{
    int rc = lib.exec(db->conn, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : fail(db->conn, rc, "SQLite", err);
}

int ab_sqlite_exec(struct ab_sqlite *db, const char *sql, struct ab_err *err)
{
    if (lock_open(db, err) < 0)
        return -1;
    int rc = exec(db, sql, err);
    pthread_mutex_unlock(&db->mutex);
    return rc;
}

static int bind_row(sqlite3_stmt *stmt, const struct ab_sqlite_table *t, size_t row)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < t->columns && rc == SQLITE_OK; i++) {
        const struct ab_sqlite_value *v = &t->values[row * t->columns + i];
        int at = (int)i + 1;
        if (v->kind == AB_SQLITE_INTEGER)
            rc = lib.bind_int64(stmt, at, v->integer);
        else if (v->kind == AB_SQLITE_REAL)
            rc = lib.bind_double(stmt, at, v->real);
        else if (v->kind == AB_SQLITE_TEXT)
            rc = lib.bind_text(stmt, at, v->len ? t->text.data + v->at : "", (int)v->len,
                               SQLITE_STATIC);
        else
            rc = lib.bind_null(stmt, at);
    }
    return rc;
}

static int write_rows(struct ab_sqlite *db, sqlite3_stmt *stmt,
                      const struct ab_sqlite_table *rows)
{
    size_t count = rows->columns ? rows->count / rows->columns : 0;
    for (size_t i = 0; i < count; i++) {
        if (bind_row(stmt, rows, i) != SQLITE_OK || lib.step(stmt) != SQLITE_DONE ||
            lib.reset(stmt) != SQLITE_OK)
            return -1;
    }
    return AB_FAULT("sqlite.commit") ||
                   lib.exec(db->conn, "COMMIT", NULL, NULL, NULL) != SQLITE_OK
               ? -1
               : 0;
}

int ab_sqlite_write(struct ab_sqlite *db, const char *sql,
                    const struct ab_sqlite_table *rows, struct ab_err *err)
{
    if (lock_open(db, err) < 0)
        return -1;
    sqlite3_stmt *stmt = NULL;
    int rc = exec(db, "BEGIN IMMEDIATE", err);
    if (rc == 0) {
        if (lib.prepare_v2(db->conn, sql, -1, &stmt, NULL) != SQLITE_OK ||
            write_rows(db, stmt, rows) < 0)
            rc = fail(db->conn, 0, "SQLite", err);
        lib.finalize(stmt);
        if (rc < 0)
            lib.exec(db->conn, "ROLLBACK", NULL, NULL, NULL);
    }
    pthread_mutex_unlock(&db->mutex);
    return rc;
}

static int take_row(sqlite3_stmt *stmt, struct ab_sqlite_table *out, struct ab_err *err)
{
    for (int i = 0; i < (int)out->columns; i++) {
        int type = lib.column_type(stmt, i);
        if (type == SQLITE_INTEGER) {
            ab_sqlite_add(out, AB_SQLITE_INTEGER)->integer = lib.column_int64(stmt, i);
        } else if (type == SQLITE_FLOAT) {
            ab_sqlite_add(out, AB_SQLITE_REAL)->real = lib.column_double(stmt, i);
        } else if (type == SQLITE_NULL) {
            ab_sqlite_add(out, AB_SQLITE_NULL);
        } else {
            const unsigned char *text = lib.column_text(stmt, i);
            size_t len = (size_t)lib.column_bytes(stmt, i), at = out->text.len;
            if (ab_buf_append(&out->text, text, len, err) < 0)
                return ab_err_wrap(err, "a query's result");
            struct ab_sqlite_value *v = ab_sqlite_add(out, AB_SQLITE_TEXT);
            v->at = at;
            v->len = len;
        }
    }
    return 0;
}

static int query(struct ab_sqlite *db, sqlite3_stmt *stmt,
                 const struct ab_sqlite_table *row, struct ab_sqlite_table *out,
                 struct ab_err *err)
{
    out->columns = (size_t)lib.column_count(stmt);
    if (row && row->count && bind_row(stmt, row, 0) != SQLITE_OK)
        return fail(db->conn, 0, "SQLite", err);
    for (;;) {
        int rc = lib.step(stmt);
        if (rc == SQLITE_DONE)
            return 0;
        if (rc != SQLITE_ROW)
            return fail(db->conn, rc, "SQLite", err);
        if (take_row(stmt, out, err) < 0)
            return -1;
    }
}

int ab_sqlite_query(struct ab_sqlite *db, const char *sql,
                    const struct ab_sqlite_table *row, struct ab_sqlite_table *out,
                    struct ab_err *err)
{
    if (lock_open(db, err) < 0)
        return -1;
    sqlite3_stmt *stmt = NULL;
    int rc = lib.prepare_v2(db->conn, sql, -1, &stmt, NULL);
    rc = rc != SQLITE_OK ? fail(db->conn, rc, "SQLite", err)
                         : query(db, stmt, row, out, err);
    lib.finalize(stmt);
    pthread_mutex_unlock(&db->mutex);
    return rc;
}
