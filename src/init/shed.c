/* shed.c - memory that the zygote does without, so that no sandbox has it.
 *
 * Pid 1 is forked from us and never exec'd. Stack and vDSO lie far from the program, and
 * the tables of pages that lead there would take more, in each sandbox, than what pid 1
 * uses. So we go on with a stack beside our data, and without them. The clocks of libc
 * are in the vDSO: who wants the time asks ab_now_us().
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "init/init.h"
#include "init/sys.h"

#define STACK_BYTES (512 << 10)
#define PAGE        4096

/* From the lowest to the highest of what lies far. In a program that is not static, as
 * those of sanitizers are not, others are there too: it keeps what it has. */
static uintptr_t from = UINTPTR_MAX, to;
static bool crowded;

static _Alignas(PAGE) char stack[STACK_BYTES];
static ucontext_t context;
static void (*next)(void);

/* A line of /proc/self/maps, which is in order. */
static void note(const char *line)
{
    unsigned long first, end;
    char name[16] = "";
    if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %15s", &first, &end, name) < 2 ||
        !strcmp(name, "[vsyscall]"))
        return;
    if (!strcmp(name, "[stack]") || !strncmp(name, "[vvar", 5) ||
        !strcmp(name, "[vdso]")) {
        from = first < from ? first : from;
        to = strcmp(name, "[stack]") ? 0 : end;
    } else if (first > from) {
        crowded = true;
    }
}

static void look(void)
{
    static char text[8192];
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    sys_close(&fd);
    text[n < 0 ? 0 : n] = 0;
    for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        note(line);
}

static void begin(void)
{
    munmap((void *)from, to - from);
    mprotect(stack, PAGE, PROT_NONE); /* who comes here would come further */
    next();
}

void ab_shed(void (*go_on)(void))
{
    look();
    if (!crowded && from < to && getcontext(&context) == 0) {
        next = go_on;
        context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = sizeof stack};
        makecontext(&context, begin, 0);
        setcontext(&context);
    }
    go_on();
    _exit(1);
}
