#include "base/fault.h"

#ifdef AB_FAULTS

#    include <errno.h>
#    include <pthread.h>
#    include <signal.h>
#    include <stdlib.h>
#    include <string.h>

enum { MAX_POINTS = 16, MAX_NAME = 48 };

struct point {
    char name[MAX_NAME];
    unsigned long nth, passed;
    int errnum;
    bool kills;
};

/* Test builds only: the one place where a process-wide table is the point. */
static struct {
    pthread_mutex_t lock;
    bool ready;
    int count;
    struct point points[MAX_POINTS];
} armed = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int parse(const char *spec)
{
    armed.count = 0;
    while (spec && *spec) {
        const char *colon = strchr(spec, ':');
        if (!colon || colon - spec >= MAX_NAME || armed.count == MAX_POINTS)
            return -1;
        struct point *p = &armed.points[armed.count];
        *p = (struct point){0};
        memcpy(p->name, spec, (size_t)(colon - spec));
        char *end;
        p->nth = strtoul(colon + 1, &end, 10);
        if (*end != ':')
            return -1;
        p->kills = strncmp(end + 1, "kill", 4) == 0;
        p->errnum = p->kills ? EINTR : (int)strtoul(end + 1, &end, 10);
        if (p->kills)
            end += 5;
        if (p->errnum == 0 || (*end && *end != ','))
            return -1;
        armed.count++;
        spec = *end ? end + 1 : end;
    }
    return 0;
}

int ab_fault_arm(const char *spec)
{
    pthread_mutex_lock(&armed.lock);
    armed.ready = true;
    int rc = parse(spec);
    if (rc < 0)
        armed.count = 0;
    pthread_mutex_unlock(&armed.lock);
    return rc;
}

int ab_fault_hit(const char *name)
{
    int errnum = 0;
    pthread_mutex_lock(&armed.lock);
    if (!armed.ready) {
        armed.ready = true;
        if (parse(getenv("AGENTBOX_FAULTS")) < 0)
            AB_BUG("AGENTBOX_FAULTS is not a list of NAME:NTH:ERRNO");
    }
    for (int i = 0; i < armed.count; i++) {
        struct point *p = &armed.points[i];
        if (strcmp(p->name, name) == 0 && (++p->passed == p->nth || p->nth == 0))
            errnum = p->kills ? raise(SIGKILL) : p->errnum;
    }
    pthread_mutex_unlock(&armed.lock);
    return errnum;
}

#else

int ab_fault_hit(const char *name)
{
    (void)name;
    return 0;
}

int ab_fault_arm(const char *spec)
{
    (void)spec;
    return -1;
}

#endif
