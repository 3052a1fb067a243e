// toml.cc - the C++ behind toml.h. The only file that includes toml++.
#include "base/toml.h"

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>

#define TOML_EXCEPTIONS  0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

static void tell(struct ab_toml_problem *problem, const toml::parse_error &error)
{
    std::string_view why = error.description();
    size_t n = why.copy(problem->why, sizeof problem->why - 1);
    problem->why[n] = '\0';
    problem->line = error.source().begin.line;
    problem->column = error.source().begin.column;
}

extern "C" char *ab_toml_to_json(const char *text, size_t len, size_t *out_len,
                                 struct ab_toml_problem *problem)
{
    toml::parse_result result = toml::parse(std::string_view(text, len));
    if (!result) {
        tell(problem, result.error());
        return nullptr;
    }
    std::ostringstream out;
    out << toml::json_formatter(result.table());
    std::string json = out.str();
    char *copy = static_cast<char *>(malloc(json.size() + 1));
    if (!copy)
        AB_BUG("out of memory (%zu)", json.size());
    memcpy(copy, json.c_str(), json.size() + 1);
    *out_len = json.size();
    return copy;
}
