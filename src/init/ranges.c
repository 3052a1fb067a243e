/* ranges.c - more than one user for an ordinary user: the ids that /etc/subuid and
 * /etc/subgid grant, mapped by newuidmap and newgidmap (package uidmap), who alone may.
 *
 * They must be asked from outside of the new namespace, by a process of the same user: a
 * child that was forked before we enter it and waits for our word. Whatever is missing,
 * one user is left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "init/init.h"
#include "init/sys.h"

struct range {
    uint32_t start, count;
};

static bool user_name(uid_t uid, char *out, size_t room)
{
    char line[1024], name[256];
    unsigned id;
    bool found = false;
    FILE *f = fopen("/etc/passwd", "re");
    while (f && !found && fgets(line, sizeof line, f))
        if (sscanf(line, "%255[^:]:%*[^:]:%u:", name, &id) == 2 && id == uid) {
            snprintf(out, room, "%s", name);
            found = true;
        }
    if (f)
        fclose(f);
    return found;
}

/* The first range that a file grants to the user, by name or by number. */
static bool granted(const char *path, uid_t uid, struct range *out)
{
    char line[512], owner[256], name[256] = "", number[16];
    bool found = false;
    snprintf(number, sizeof number, "%u", uid);
    user_name(uid, name, sizeof name);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "%255[^:]:%u:%u", owner, &out->start, &out->count) == 3 &&
                out->count > 0 &&
                (!strcmp(owner, number) || (*name && !strcmp(owner, name)));
    if (f)
        fclose(f);
    return found;
}

static int run(const char *program, char *const argv[])
{
    char *const envp[] = {NULL};
    int status;
    pid_t pid = vfork();
    if (pid == 0) {
        execve(program, argv, envp);
        _exit(127);
    }
    return pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0 ? -1 : 0;
}

static int map_with(const char *program, pid_t pid, uint32_t own, const struct range *r)
{
    char target[16], self[16], start[16], count[16];
    snprintf(target, sizeof target, "%d", (int)pid);
    snprintf(self, sizeof self, "%u", own);
    snprintf(start, sizeof start, "%u", r->start);
    snprintf(count, sizeof count, "%u", r->count);
    char zero[] = "0", one[] = "1", name[] = "idmap";
    char *const argv[] = {name, target, zero, self, one, one, start, count, NULL};
    return run(program, argv);
}

pid_t ab_ranges_ask(struct ab_ranges *r)
{
    struct range users, groups;
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int go[2];
    if (!granted("/etc/subuid", uid, &users) || !granted("/etc/subgid", uid, &groups) ||
        users.start != groups.start || access("/usr/bin/newuidmap", X_OK) < 0 ||
        access("/usr/bin/newgidmap", X_OK) < 0 || pipe2(go, O_CLOEXEC) < 0)
        return -1;
    users.count = users.count < groups.count ? users.count : groups.count;
    if (users.count > AB_UID_RANGE - 1)
        users.count = AB_UID_RANGE - 1;
    pid_t us = getpid(), pid = fork();
    if (pid == 0) {
        char word;
        close(go[1]);
        bool told = read(go[0], &word, 1) == 1;
        _exit(told && map_with("/usr/bin/newgidmap", us, gid, &users) == 0 &&
                      map_with("/usr/bin/newuidmap", us, uid, &users) == 0
                  ? 0
                  : 1);
    }
    close(go[0]);
    if (pid < 0)
        close(go[1]);
    *r = (struct ab_ranges){
        .pid = pid, .go = go[1], .first = users.start, .count = users.count};
    return pid;
}

int ab_ranges_wait(struct ab_ranges *r, bool entered)
{
    int status = -1;
    if (entered && write(r->go, "x", 1) != 1)
        entered = false;
    close(r->go);
    if (waitpid(r->pid, &status, 0) < 0)
        return -1;
    return entered && status == 0 ? 0 : -1;
}
