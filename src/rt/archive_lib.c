#include "rt/archive_lib.h"

#include <dlfcn.h>
#include <locale.h>
#include <string.h>

#include "rt/archive.h"
#include "rt/digest.h"

#define LIBRARY "libarchive.so.13"

struct ab_archive_lib ab_la;

int ab_archive_load(struct ab_err *err)
{
    void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lib)
        return ab_err_set(err, AB_EUNSUPPORTED,
                          "images need libarchive (Debian package libarchive13): %s",
                          dlerror());
    const struct {
        const char *name;
        void *slot;
    } wanted[] = {
#define X(name) {#name, &ab_la.name},
        AB_ARCHIVE_FUNCTIONS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *symbol = dlsym(lib, wanted[i].name);
        if (!symbol)
            return ab_err_set(err, AB_EUNSUPPORTED, "%s", dlerror());
        memcpy(wanted[i].slot, &symbol, sizeof symbol);
    }
    setlocale(LC_CTYPE, "C.UTF-8"); /* names in pax headers are UTF-8 */
    struct ab_hasher *first = ab_hasher_new(err);
    ab_hasher_free(first);
    return first ? 0 : -1;
}

bool ab_archive_keeps(const char *attribute)
{
    return strcmp(attribute, "security.capability") == 0 ||
           (strncmp(attribute, "user.", 5) == 0 &&
            strncmp(attribute, "user.overlay.", 13) != 0);
}
