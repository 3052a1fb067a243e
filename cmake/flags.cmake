# Warnings, hardening and sanitizers, the same for every target of ours: link to ab_flags. Without sanitizers, for a
# program that finds none of their libraries where it runs: ab_plain_flags.
add_library(ab_plain_flags INTERFACE)
target_include_directories(ab_plain_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(ab_plain_flags INTERFACE _GNU_SOURCE AB_VERSION="${PROJECT_VERSION}"
  $<$<BOOL:${AB_FAULTS}>:AB_FAULTS>)
target_compile_options(ab_plain_flags INTERFACE
  -Wall -Wextra -Wshadow -Wundef -Wwrite-strings -Wcast-align -Wvla
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>
  $<$<BOOL:${AB_WERROR}>:-Werror>
  $<$<CONFIG:Release>:-fstack-protector-strong>)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_definitions(ab_plain_flags INTERFACE _FORTIFY_SOURCE=2)
  target_link_options(ab_plain_flags INTERFACE -Wl,-z,relro,-z,now)
endif()
add_library(ab_flags INTERFACE)
target_link_libraries(ab_flags INTERFACE ab_plain_flags)
if(AB_SANITIZE)
  target_compile_options(ab_flags INTERFACE -fsanitize=${AB_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(ab_flags INTERFACE -fsanitize=${AB_SANITIZE})
endif()
if(AB_FUZZ)
  target_compile_options(ab_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
