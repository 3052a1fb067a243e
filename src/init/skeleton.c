/* skeleton.c - the root file system of image "host", made once and shared by every
 * sandbox.
 *
 * Users, names and services are generated. From the host's /etc come only files that
 * everybody may read and that programs below /usr need to run: loader cache,
 * alternatives, certificates, time zone. Nothing else of the host is in it.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "init/init.h"
#include "init/sys.h"

#define COPY_FILE_MAX  (4 << 20)
#define COPY_TOTAL_MAX (12 << 20)
#define COPY_DEPTH_MAX 6

/* Root inside may become anybody inside; nobody else may become anybody: no_new_privs. */
#define PAM_PERMIT                                                                       \
    "auth sufficient pam_rootok.so\nauth required pam_deny.so\n"                         \
    "account required pam_permit.so\nsession required pam_permit.so\npassword required " \
    "pam_deny.so\n"

struct copy {
    size_t total;
};

static const struct {
    const char *path;
    mode_t mode;
} dirs[] = {
    {"etc", 0755},       {"usr", 0755},       {"proc", 0755},      {"dev", 0755},
    {"sys", 0755},       {"run", 0755},       {"run/lock", 01777}, {"tmp", 01777},
    {"root", 0700},      {"home", 0755},      {"home/user", 0755}, {"workspace", 0755},
    {"mnt", 0755},       {"opt", 0755},       {"srv", 0755},       {"var", 0755},
    {"var/tmp", 01777},  {"var/cache", 0755}, {"var/lib", 0755},   {"var/log", 0755},
    {"var/spool", 0755}, {"etc/ssl", 0755},   {"etc/pam.d", 0755},
};

static const char *const copied[] = {
    "alternatives",
    "ca-certificates.conf",
    "ssl/certs",
    "ssl/openssl.cnf",
    "pki/tls/certs",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "timezone",
    "os-release",
    "lsb-release",
    "debian_version",
    "protocols",
    "services",
    "networks",
    "rpc",
    "mime.types",
    "magic",
    "host.conf",
    "gai.conf",
    "inputrc",
    "bash.bashrc",
    "profile",
    "login.defs",
    "shells",
    "terminfo",
    "fonts",
    "perl",
    "python3",
    "python3.9",
    "python3.10",
    "python3.11",
    "python3.12",
    "python3.13",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "locale.alias",
    "nanorc",
    "debuginfod",
    "gdb",
    "R",
    "ImageMagick-6",
};

static const struct {
    const char *path;
    mode_t mode;
    const char *text;
} written[] = {
    {"etc/passwd", 0644,
     "root:x:0:0:root:/root:/bin/sh\n"
     "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
     "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
     "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
     "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
     "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
     "user:x:1000:1000::/home/user:/bin/sh\n"
     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"etc/group", 0644,
     "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nmail:x:"
     "8:\n"
     "utmp:x:43:\nwww-data:x:33:\nstaff:x:50:\nusers:x:100:\nuser:x:1000:\nnogroup:x:"
     "65534:\n"},
    {"etc/shadow", 0600,
     "root:*:19000:0:99999:7:::\nuser:*:19000:0:99999:7:::\nnobody:*:19000:0:99999:7:::"
     "\n"},
    {"etc/pam.d/other", 0644, PAM_PERMIT},
    {"etc/pam.d/su", 0644, PAM_PERMIT},
    {"etc/pam.d/su-l", 0644, PAM_PERMIT},
    {"etc/pam.d/runuser", 0644, PAM_PERMIT},
    {"etc/pam.d/runuser-l", 0644, PAM_PERMIT},
    {"etc/hosts", 0644, "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost\n"},
    {"etc/hostname", 0644, "sandbox\n"},
    {"etc/resolv.conf", 0644, ""},
    {"etc/nsswitch.conf", 0644,
     "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
     "protocols: files\nservices: files\nethers: files\nrpc: files\n"},
};

static int make_parents(int root, const char *path)
{
    char part[256];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdirat(root, part, 0755) < 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

static int write_new(int root, const char *path, mode_t mode, const void *data,
                     size_t len)
{
    int fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return errno == EEXIST ? 0 : -1;
    ssize_t n = write(fd, data, len);
    fchmod(fd, mode);
    close(fd);
    return n == (ssize_t)len ? 0 : -1;
}

static int copy_file(struct copy *c, int from, const char *name, int root, const char *to,
                     const struct stat *st)
{
    if (!S_ISREG(st->st_mode) || !(st->st_mode & S_IROTH) ||
        st->st_size > COPY_FILE_MAX || c->total + (size_t)st->st_size > COPY_TOTAL_MAX)
        return 0;
    int fd = openat(from, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    size_t len = (size_t)st->st_size;
    char *data = malloc(len + 1);
    ssize_t n = data ? read(fd, data, len) : -1;
    close(fd);
    int rc = n < 0 ? 0 : write_new(root, to, st->st_mode & 0755, data, (size_t)n);
    if (n > 0)
        c->total += (size_t)n;
    free(data);
    return rc;
}

static int copy_entry(struct copy *c, int from, const char *name, int root,
                      const char *to, int depth);

static int copy_dir(struct copy *c, int from, const char *name, int root, const char *to,
                    int depth)
{
    char path[512];
    int fd = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        sys_close(&fd);
        return 0;
    }
    int rc = mkdirat(root, to, 0755) < 0 && errno != EEXIST ? -1 : 0;
    struct dirent *e;
    while (rc == 0 && (e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (snprintf(path, sizeof path, "%s/%s", to, e->d_name) < (int)sizeof path)
            rc = copy_entry(c, dirfd(d), e->d_name, root, path, depth + 1);
    }
    closedir(d);
    return rc;
}

/* Whatever cannot be read is left out: a program that misses it says so. Links stay
 * links, except those that leave /etc and /usr, whose target would not exist inside. */
static int copy_entry(struct copy *c, int from, const char *name, int root,
                      const char *to, int depth)
{
    struct stat st;
    char target[512];
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(from, name, target, sizeof target - 1);
        if (n < 0)
            return 0;
        target[n] = 0;
        bool leaves = target[0] == '/' && strncmp(target, "/usr/", 5) &&
                      strncmp(target, "/etc/", 5) && strncmp(target, "/bin/", 5) &&
                      strncmp(target, "/lib", 4);
        if (!leaves)
            return symlinkat(target, root, to) < 0 && errno != EEXIST ? -1 : 0;
        if (fstatat(from, name, &st, 0) < 0)
            return 0;
        return copy_file(c, from, name, root, to, &st);
    }
    if (!S_ISDIR(st.st_mode))
        return copy_file(c, from, name, root, to, &st);
    return depth < COPY_DEPTH_MAX && (st.st_mode & S_IXOTH)
               ? copy_dir(c, from, name, root, to, depth)
               : 0;
}

/* /bin and its kin, as the host has them: links into /usr on every merged distribution.
 */
static int link_usr(int root)
{
    static const char *const names[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
    char path[16], target[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "/%s", names[i]);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n < 0 && errno == ENOENT)
            continue;
        if (n < 0) {
            ab_at("use the host's /usr as an image: its /bin is not a link into /usr; "
                  "give image = DIR instead");
            errno = EOPNOTSUPP;
            return -1;
        }
        target[n] = 0;
        if (symlinkat(target, root, names[i]) < 0)
            return -1;
    }
    return 0;
}

/* Scripts say python; Debian has python3 only. /usr/local belongs to the host, so the
 * link is made where PATH looks last, in a directory of ours. */
static int link_python(int root)
{
    if (access("/usr/bin/python", X_OK) == 0 ||
        access("/usr/local/bin/python", X_OK) == 0)
        return 0;
    if (mkdirat(root, "opt/agentbox", 0755) < 0 ||
        mkdirat(root, "opt/agentbox/bin", 0755) < 0)
        return -1;
    return symlinkat("/usr/bin/python3", root, "opt/agentbox/bin/python");
}

int ab_skeleton_fill(int root)
{
    struct copy c = {0};
    char path[300];
    ab_at("write the host image");
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        if (mkdirat(root, dirs[i].path, 0755) < 0 ||
            fchmodat(root, dirs[i].path, dirs[i].mode, 0) < 0)
            return -1;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (write_new(root, written[i].path, written[i].mode, written[i].text,
                      strlen(written[i].text)) < 0)
            return -1;
    if (symlinkat("/proc/self/mounts", root, "etc/mtab") < 0 ||
        symlinkat("/run", root, "var/run") < 0 ||
        symlinkat("/run/lock", root, "var/lock") < 0)
        return -1;
    if (link_usr(root) < 0)
        return -1;
    ab_at("copy the host's /etc");
    int etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; etc >= 0 && i < sizeof copied / sizeof *copied; i++) {
        snprintf(path, sizeof path, "etc/%s", copied[i]);
        if (make_parents(root, path) < 0 ||
            copy_entry(&c, etc, copied[i], root, path, 0) < 0)
            return -1;
    }
    sys_close(&etc);
    return link_python(root);
}

static int own_entries(DIR *d, uint32_t uid, int depth)
{
    struct dirent *e;
    while ((e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (fchownat(dirfd(d), e->d_name, uid, uid, AT_SYMLINK_NOFOLLOW) < 0)
            return -1;
        if (e->d_type != DT_DIR || depth > COPY_DEPTH_MAX + 2)
            continue;
        int fd =
            openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *sub = fd < 0 ? NULL : fdopendir(fd);
        int rc = sub ? own_entries(sub, uid, depth + 1) : -1;
        if (sub)
            closedir(sub);
        if (rc < 0)
            return -1;
    }
    return 0;
}

int ab_skeleton_own(int tree, uint32_t uid)
{
    int fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return -1;
    int rc =
        fchownat(tree, "", uid, uid, AT_EMPTY_PATH) < 0 ? -1 : own_entries(d, uid, 0);
    closedir(d);
    return rc;
}
