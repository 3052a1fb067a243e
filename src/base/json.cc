// json.cc - the C++ behind json.c. The only file that includes simdjson.h.
#include "base/json_index.h"

#include <charconv>
#include <memory>
#include <new>
#include <system_error>

#include <simdjson.h>

struct ab_json_index {
    std::unique_ptr<simdjson::internal::dom_parser_implementation> parser;
};

static bool make_room(struct ab_json_index *ix, size_t len)
{
    if (!ix->parser)
        return simdjson::get_active_implementation()->create_dom_parser_implementation(
                   len, 1, ix->parser) == simdjson::SUCCESS;
    if (len <= ix->parser->capacity())
        return true;
    return ix->parser->allocate(len, 1) == simdjson::SUCCESS;
}

static enum ab_json_index_status status_of(simdjson::error_code rc)
{
    switch (rc) {
    case simdjson::SUCCESS:
        return AB_JSON_INDEX_OK;
    case simdjson::EMPTY:
        return AB_JSON_INDEX_EMPTY;
    case simdjson::UTF8_ERROR:
        return AB_JSON_INDEX_UTF8;
    case simdjson::UNESCAPED_CHARS:
        return AB_JSON_INDEX_CONTROL;
    case simdjson::UNCLOSED_STRING:
        return AB_JSON_INDEX_OPEN;
    default:
        AB_BUG("simdjson: %s", simdjson::error_message(rc));
    }
}

extern "C" {

struct ab_json_index *ab_json_index_new(void)
{
    struct ab_json_index *ix = new (std::nothrow) ab_json_index;
    if (!ix)
        AB_BUG("out of memory");
    return ix;
}

void ab_json_index_free(struct ab_json_index *ix)
{
    delete ix;
}

size_t ab_json_index_capacity(const struct ab_json_index *ix)
{
    return ix->parser ? ix->parser->capacity() * sizeof(uint32_t) : 0;
}

enum ab_json_index_status ab_json_index_run(struct ab_json_index *ix, const char *text,
                                            size_t len, const uint32_t **at, size_t *count)
{
    if (len == 0)
        return AB_JSON_INDEX_EMPTY;
    if (len >= simdjson::SIMDJSON_MAXSIZE_BYTES - simdjson::SIMDJSON_PADDING)
        return AB_JSON_INDEX_TOOBIG;
    if (!make_room(ix, len))
        AB_BUG("out of memory (%zu)", len);
    simdjson::error_code rc =
        ix->parser->stage1(reinterpret_cast<const uint8_t *>(text), len,
                           simdjson::stage1_mode::regular);
    *at = ix->parser->structural_indexes.get();
    *count = ix->parser->n_structural_indexes;
    return status_of(rc);
}

bool ab_json_read_double(const char *s, size_t len, double *v)
{
    auto r = std::from_chars(s, s + len, *v);
    return r.ec == std::errc() && r.ptr == s + len;
}

size_t ab_json_format_scientific(double v, char out[32])
{
    auto r = std::to_chars(out, out + 32, v, std::chars_format::scientific);
    return static_cast<size_t>(r.ptr - out);
}

} // extern "C"
