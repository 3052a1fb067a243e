/* check.h - TEST(name) { CHECK(x == 1); }
 *
 * Each file of tests is a program; each test runs in a process of its own and must come to its end, in an order shuffled by
 * CHECK_SEED. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct check_test {
    const char *name;
    void (*run)(void);
};
static struct check_test check_tests[256];
static int check_count;

#define TEST(test_name)                                                              \
    static void test_name(void);                                                     \
    __attribute__((constructor)) static void check_add_##test_name(void)             \
    {                                                                                \
        check_tests[check_count++] = (struct check_test){#test_name, test_name};     \
    }                                                                                \
    static void test_name(void)

#define CHECK(x)                                                                     \
    do {                                                                             \
        if (!(x)) {                                                                  \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #x);                         \
            fflush(stdout);                                                          \
            _exit(1);                                                                \
        }                                                                            \
    } while (0)

enum { CHECK_DONE = 77 };

int main(void)
{
    const char *seed = getenv("CHECK_SEED");
    int pass = 0, fail = 0;
    if (seed)
        srand((unsigned)atoi(seed));
    for (int i = check_count - 1; seed && i > 0; i--) {
        int j = rand() % (i + 1);
        struct check_test t = check_tests[i];
        check_tests[i] = check_tests[j];
        check_tests[j] = t;
    }
    for (int i = 0; i < check_count; i++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(10);
            check_tests[i].run();
            fflush(stdout);
            _exit(CHECK_DONE);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        int ok = WIFEXITED(status) && WEXITSTATUS(status) == CHECK_DONE;
        printf("%s %s\n", ok ? "ok" : "not ok", check_tests[i].name);
        pass += ok;
        fail += !ok;
    }
    printf("# pass %d fail %d\n", pass, fail);
    return fail || !pass;
}
