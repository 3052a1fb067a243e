#include "rt/http_lib.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libcurl.so.4"

static int resolve(void *handle, const char *name, void *slot, struct ab_err *err)
{
    void *symbol = dlsym(handle, name);
    if (!symbol)
        return ab_err_set(err, AB_EUNSUPPORTED, LIBRARY " is too old: it has no %s",
                          name);
    /* C has no cast from an object pointer to a function pointer; POSIX says the bytes
     * fit. */
    memcpy(slot, &symbol, sizeof symbol);
    return 0;
}

int ab_http_lib_load(struct ab_http_lib *lib, struct ab_err *err)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return ab_err_set(err, AB_EUNSUPPORTED,
                          "HTTP needs libcurl (Debian package libcurl4): %s", dlerror());
#define X(name)                                                \
    if (resolve(handle, "curl_" #name, &lib->name, err) < 0) { \
        dlclose(handle);                                       \
        return -1;                                             \
    }
    AB_HTTP_LIB_FUNCTIONS(X)
#undef X
    if (lib->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return ab_err_set(err, AB_EUNSUPPORTED, LIBRARY " could not be initialised");
    return 0;
}
