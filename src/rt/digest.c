#include "rt/digest.h"

#include <dlfcn.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The few functions that are used, as found in the loaded library. */
struct evp {
    __typeof__(EVP_MD_CTX_new) *ctx_new;
    __typeof__(EVP_MD_CTX_free) *ctx_free;
    __typeof__(EVP_MD_CTX_copy_ex) *copy;
    __typeof__(EVP_MD_fetch) *fetch;
    __typeof__(EVP_DigestInit_ex) *init;
    __typeof__(EVP_DigestUpdate) *update;
    __typeof__(EVP_DigestFinal_ex) *final;
};

struct ab_hasher {
    EVP_MD_CTX *ctx; /* owns */
};

/* Found once: looking for the functions and for the algorithm costs more than hashing a
 * message. The library is never unloaded, and neither is this. */
static struct {
    struct evp evp;
    EVP_MD *algorithm;
    struct ab_err err;
    pthread_once_t once;
} crypto = {.once = PTHREAD_ONCE_INIT};

static int find_functions(struct ab_err *err)
{
    void *lib = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lib)
        return ab_err_set(err, AB_EUNSUPPORTED, "%s", dlerror());
    const struct {
        const char *name;
        void *slot;
    } wanted[] = {
        {"EVP_MD_CTX_new", &crypto.evp.ctx_new},
        {"EVP_MD_CTX_free", &crypto.evp.ctx_free},
        {"EVP_MD_CTX_copy_ex", &crypto.evp.copy},
        {"EVP_MD_fetch", &crypto.evp.fetch},
        {"EVP_DigestInit_ex", &crypto.evp.init},
        {"EVP_DigestUpdate", &crypto.evp.update},
        {"EVP_DigestFinal_ex", &crypto.evp.final},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *sym = dlsym(lib, wanted[i].name);
        if (!sym)
            return ab_err_set(err, AB_EUNSUPPORTED, "%s", dlerror());
        memcpy(wanted[i].slot, &sym, sizeof sym);
    }
    return 0;
}

static void load(void)
{
    if (find_functions(&crypto.err) < 0)
        return;
    crypto.algorithm = crypto.evp.fetch(NULL, "SHA256", NULL);
    if (!crypto.algorithm)
        ab_err_set(&crypto.err, AB_EUNSUPPORTED, "SHA-256 is not available in libcrypto");
}

struct ab_hasher *ab_hasher_new(struct ab_err *err)
{
    pthread_once(&crypto.once, load);
    if (!crypto.algorithm) {
        *err = crypto.err;
        return NULL;
    }
    struct ab_hasher *h = ab_xcalloc(1, sizeof *h);
    h->ctx = crypto.evp.ctx_new();
    if (!h->ctx || crypto.evp.init(h->ctx, crypto.algorithm, NULL) != 1) {
        ab_err_set(err, AB_EUNSUPPORTED, "SHA-256 is not available in libcrypto");
        ab_hasher_free(h);
        return NULL;
    }
    return h;
}

void ab_hasher_update(struct ab_hasher *h, const void *data, size_t len)
{
    crypto.evp.update(h->ctx, data, len);
}

static void put_hex(EVP_MD_CTX *ctx, char hex[AB_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[EVP_MAX_MD_SIZE] = {0};
    if (crypto.evp.final(ctx, raw, NULL) != 1)
        AB_BUG("SHA-256 failed");
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = digits[raw[i] >> 4];
        hex[2 * i + 1] = digits[raw[i] & 15];
    }
    hex[64] = '\0';
}

void ab_hasher_hex(const struct ab_hasher *h, const void *more, size_t len,
                   char hex[AB_SHA256_HEX])
{
    EVP_MD_CTX *copy = crypto.evp.ctx_new();
    if (!copy || crypto.evp.copy(copy, h->ctx) != 1 ||
        crypto.evp.update(copy, more, len) != 1)
        AB_BUG("SHA-256 failed");
    put_hex(copy, hex);
    crypto.evp.ctx_free(copy);
}

void ab_hasher_free(struct ab_hasher *h)
{
    if (!h)
        return;
    crypto.evp.ctx_free(h->ctx);
    free(h);
}

/* Most of what is hashed is a body of a few hundred bytes, for which a context costs as
 * much as the hash: each thread keeps its own, and there are as many as threads. */
int ab_sha256(const void *data, size_t len, char hex[AB_SHA256_HEX], struct ab_err *err)
{
    static _Thread_local struct ab_hasher *own;
    if (own && crypto.evp.init(own->ctx, crypto.algorithm, NULL) != 1) {
        ab_hasher_free(own);
        own = NULL;
    }
    if (!own)
        own = ab_hasher_new(err);
    if (!own)
        return -1;
    ab_hasher_update(own, data, len);
    put_hex(own->ctx, hex);
    return 0;
}
