/* The database seam: values there and back, all or nothing, one writer, clear refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "rt/sqlite.h"

static char dir[64], path[96];

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/agentbox-sqlite-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/run.db", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char file[128];
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
        unlink(file);
    }
    return rmdir(dir);
}

static struct ab_sqlite *open_db(unsigned flags)
{
    struct ab_err err;
    struct ab_sqlite *db = NULL;
    if (ab_sqlite_open(&db, path, flags, &err) < 0)
        fail_msg("%s", err.msg);
    return db;
}

static void must(struct ab_sqlite *db, const char *sql)
{
    struct ab_err err;
    if (ab_sqlite_exec(db, sql, &err) < 0)
        fail_msg("%s", err.msg);
}

static int64_t count(struct ab_sqlite *db)
{
    struct ab_err err;
    struct ab_sqlite_table out = {0};
    ab_buf_init(&out.text, 0);
    assert_int_equal(ab_sqlite_query(db, "SELECT count(*) FROM t", NULL, &out, &err), 0);
    int64_t n = out.values[0].integer;
    ab_sqlite_table_fini(&out);
    return n;
}

static void test_values_there_and_back(void **state)
{
    (void)state;
    struct ab_err err;
    struct ab_sqlite *db = open_db(AB_SQLITE_WRITE);
    must(db, "CREATE TABLE t(a, b, c, d)");
    struct ab_sqlite_table in = {.columns = 4}, out = {0};
    ab_buf_init(&in.text, 0);
    ab_buf_init(&out.text, 0);
    ab_sqlite_add(&in, AB_SQLITE_INTEGER)->integer = INT64_MIN;
    ab_sqlite_add(&in, AB_SQLITE_REAL)->real = 0.1;
    ab_sqlite_add_text(&in, "a\0b", 3);
    ab_sqlite_add(&in, AB_SQLITE_NULL);
    assert_int_equal(ab_sqlite_write(db, "INSERT INTO t VALUES(?,?,?,?)", &in, &err), 0);
    assert_int_equal(ab_sqlite_query(db, "SELECT * FROM t WHERE a = ?",
                                     &(struct ab_sqlite_table){
                                         .values = in.values, .count = 1, .columns = 1},
                                     &out, &err),
                     0);
    assert_int_equal(out.columns, 4);
    assert_int_equal(out.count, 4);
    assert_true(out.values[0].integer == INT64_MIN);
    assert_true(out.values[1].real == 0.1);
    assert_int_equal(out.values[2].len, 3);
    assert_memory_equal(out.text.data + out.values[2].at, "a\0b", 3);
    assert_int_equal(out.values[3].kind, AB_SQLITE_NULL);
    ab_sqlite_table_fini(&in);
    ab_sqlite_table_fini(&out);
    ab_sqlite_unref(db);
}

static void test_all_rows_or_none(void **state)
{
    (void)state;
    struct ab_err err;
    struct ab_sqlite *db = open_db(AB_SQLITE_WRITE);
    must(db, "CREATE TABLE t(a INTEGER PRIMARY KEY)");
    struct ab_sqlite_table in = {.columns = 1};
    ab_buf_init(&in.text, 0);
    for (int i = 0; i < 3; i++)
        ab_sqlite_add(&in, AB_SQLITE_INTEGER)->integer = i % 2;
    assert_int_equal(ab_sqlite_write(db, "INSERT INTO t VALUES(?)", &in, &err), -1);
    assert_non_null(strstr(err.msg, "UNIQUE"));
    assert_int_equal(count(db), 0);
    in.count = 2;
#ifdef AB_FAULTS
    assert_int_equal(ab_fault_arm("sqlite.commit:1:28"), 0);
    assert_int_equal(ab_sqlite_write(db, "INSERT INTO t VALUES(?)", &in, &err), -1);
    ab_fault_arm(NULL);
    assert_int_equal(count(db), 0);
#endif
    assert_int_equal(ab_sqlite_write(db, "INSERT INTO t VALUES(?)", &in, &err), 0);
    assert_int_equal(count(db), 2);
    ab_sqlite_table_fini(&in);
    ab_sqlite_unref(db);
}

static void test_a_reader_sees_and_cannot_write(void **state)
{
    (void)state;
    struct ab_err err;
    struct ab_sqlite *db = open_db(AB_SQLITE_WRITE);
    must(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    struct ab_sqlite *reader = open_db(0);
    assert_int_equal(count(reader), 1);
    assert_int_equal(ab_sqlite_exec(reader, "DELETE FROM t", &err), -1);
    assert_int_equal(err.code, AB_EDENIED);
    ab_sqlite_unref(reader);
    ab_sqlite_close(db);
    ab_sqlite_close(db);
    assert_int_equal(ab_sqlite_exec(db, "SELECT 1", &err), -1);
    assert_int_equal(err.code, AB_EBADARG);
    ab_sqlite_unref(db);
}

static void test_a_result_has_a_cap(void **state)
{
    (void)state;
    struct ab_err err;
    struct ab_sqlite *db = open_db(AB_SQLITE_WRITE);
    struct ab_sqlite_table out = {0};
    ab_buf_init(&out.text, 10);
    assert_int_equal(ab_sqlite_query(db, "SELECT 'eleven byte'", NULL, &out, &err), -1);
    assert_int_equal(err.code, AB_ETOOBIG);
    ab_sqlite_table_fini(&out);
    ab_sqlite_unref(db);
}

static bool alone(void)
{
    char wal[128], shm[128];
    snprintf(wal, sizeof wal, "%s-wal", path);
    snprintf(shm, sizeof shm, "%s-shm", path);
    return access(path, F_OK) == 0 && access(wal, F_OK) < 0 && access(shm, F_OK) < 0;
}

/* What somebody reads who may write nothing, the folder neither. */
static int64_t count_as_nobody(void)
{
    assert_int_equal(chmod(dir, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
            _exit(100);
        struct ab_sqlite *db = open_db(0);
        int64_t n = count(db);
        ab_sqlite_unref(db);
        _exit((int)n);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_it_rests_as_one_file(void **state)
{
    (void)state;
    for (int i = 1; i <= 3; i++) {
        struct ab_sqlite *w = open_db(AB_SQLITE_WRITE);
        must(w, "CREATE TABLE IF NOT EXISTS t(a)");
        must(w, "INSERT INTO t VALUES(1)");
        assert_false(alone());
        assert_int_equal(count_as_nobody(), i);
        ab_sqlite_unref(w);
        assert_true(alone());
        struct ab_sqlite *r = open_db(0);
        assert_int_equal(count(r), i);
        assert_true(alone());
        ab_sqlite_unref(r);
        assert_int_equal(count_as_nobody(), i);
        assert_true(alone());
    }
}

/* Who reads when a writer comes or goes keeps what it reads; everybody else finds one
 * file with all of it, also the next writer. */
static void test_a_reader_stays_longer_than_the_writer(void **state)
{
    (void)state;
    struct ab_sqlite *w = open_db(AB_SQLITE_WRITE);
    must(w, "CREATE TABLE t(a); INSERT INTO t VALUES(1); PRAGMA user_version = 7");
    struct ab_sqlite *r = open_db(0);
    must(r, "BEGIN");
    assert_int_equal(count(r), 1);
    must(w, "INSERT INTO t VALUES(2)");
    ab_sqlite_unref(w);
    assert_true(alone());
    assert_int_equal(count_as_nobody(), 2);
    assert_int_equal(count(r), 1);
    must(r, "COMMIT");
    assert_int_equal(count(r), 2);
    w = open_db(AB_SQLITE_WRITE);
    must(w, "INSERT INTO t SELECT 1 FROM pragma_user_version WHERE user_version = 7");
    ab_sqlite_unref(r);
    ab_sqlite_unref(w);
    assert_true(alone());
    r = open_db(0);
    assert_int_equal(count(r), 3);
    must(r, "BEGIN");
    assert_int_equal(count(r), 3);
    w = open_db(AB_SQLITE_WRITE);
    must(w, "DELETE FROM t");
    ab_sqlite_unref(w);
    assert_int_equal(count_as_nobody(), 0);
    assert_int_equal(count(r), 3);
    ab_sqlite_unref(r);
    assert_true(alone());
}

static void test_refusals(void **state)
{
    (void)state;
    struct ab_err err;
    struct ab_sqlite *db;
    assert_int_equal(ab_sqlite_open(&db, path, 0, &err), -1);
    assert_int_equal(err.code, AB_ENOTFOUND);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 1000; i++)
        fputs("no database", f);
    fclose(f);
    assert_int_equal(ab_sqlite_open(&db, path, AB_SQLITE_WRITE, &err), -1);
    assert_int_equal(err.code, AB_EPARSE);
#ifdef AB_FAULTS
    static const char *const armed[] = {"sqlite.network:1:1", "sqlite.wal:1:1"};
    unlink(path);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ab_fault_arm(armed[i]), 0);
        assert_int_equal(ab_sqlite_open(&db, path, AB_SQLITE_WRITE, &err), -1);
        ab_fault_arm(NULL);
        assert_int_equal(err.code, AB_EUNSUPPORTED);
        assert_non_null(strstr(err.msg, "WAL"));
    }
#endif
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_values_there_and_back),
        TEST(test_all_rows_or_none),
        TEST(test_a_reader_sees_and_cannot_write),
        TEST(test_a_result_has_a_cap),
        TEST(test_it_rests_as_one_file),
        TEST(test_a_reader_stays_longer_than_the_writer),
        TEST(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
