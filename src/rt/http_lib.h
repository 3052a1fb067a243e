/* http_lib.h - libcurl, loaded when the first request is made.
 *
 * Linking it costs more start-up time than everything else of the engine together, and
 * most commands never open a connection. Only http*.c see this header; calls go through
 * the table: `lib->easy_init()`. The library stays loaded: OpenSSL below it has exit
 * handlers.
 */
#ifndef AB_RT_HTTP_LIB_H
#define AB_RT_HTTP_LIB_H

#define CURL_DISABLE_TYPECHECK 1
#include <curl/curl.h>

#include "base/err.h"

#define AB_HTTP_LIB_FUNCTIONS(X) \
    X(global_init)               \
    X(global_cleanup)            \
    X(easy_init)                 \
    X(easy_cleanup)              \
    X(easy_setopt)               \
    X(easy_getinfo)              \
    X(easy_pause)                \
    X(easy_recv)                 \
    X(easy_send)                 \
    X(easy_strerror)             \
    X(multi_init)                \
    X(multi_cleanup)             \
    X(multi_setopt)              \
    X(multi_add_handle)          \
    X(multi_remove_handle)       \
    X(multi_socket_action)       \
    X(multi_info_read)           \
    X(slist_append)              \
    X(slist_free_all)            \
    X(url)                       \
    X(url_set)                   \
    X(url_get)                   \
    X(url_cleanup)               \
    X(url_strerror)              \
    X(getdate)                   \
    X(free)

struct ab_http_lib {
#define X(name) __typeof__(&curl_##name) name;
    AB_HTTP_LIB_FUNCTIONS(X)
#undef X
};

/* Fills the table. Fails with AB_EUNSUPPORTED when the library is missing or too old. */
int ab_http_lib_load(struct ab_http_lib *lib, struct ab_err *err) AB_MUST_CHECK;

#endif
