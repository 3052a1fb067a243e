/* toml.h - TOML 1.0 to JSON text.
 *
 * Tables become objects whose keys are sorted; dates and times become strings, and so do
 * infinities and NaN, which JSON has not. Behind it is toml++ (toml.cc).
 */
#ifndef AB_BASE_TOML_H
#define AB_BASE_TOML_H

#include "base/ab.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AB_TOML_MAX_BYTES (1u << 20)

struct ab_toml_problem {
    size_t line, column; /* from 1 */
    char why[160];
};

/* Gives a JSON object, NUL-terminated, from malloc(); its length is put to *out_len. NULL
 * when the text is not TOML: *problem says where and why. */
char *ab_toml_to_json(const char *text, size_t len, size_t *out_len,
                      struct ab_toml_problem *problem);

#ifdef __cplusplus
}
#endif

#endif
