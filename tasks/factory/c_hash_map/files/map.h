/* map.h - a hash map from texts to numbers. */
#ifndef MAP_H
#define MAP_H

#include <stdbool.h>
#include <stddef.h>

struct map;

/* Gives `bytes` bytes at `old` (NULL: new ones), or frees `old` when bytes is 0. NULL when there is no memory; `old` stays as it is. */
typedef void *(*map_alloc)(void *user, void *old, size_t bytes);

/* A map without entries, with 8 slots. `alloc` NULL means realloc() and free(). NULL when there is no memory. All memory, that of
 * struct map too, comes from `alloc`. */
struct map *map_new(map_alloc alloc, void *user);

/* Frees everything. NULL is fine. */
void map_free(struct map *m);

/* Stores a copy of the key; the map keeps nothing of the caller's. false when there is no memory: then the map is as before.
 * A key that is there gets the new value; that never fails. */
bool map_put(struct map *m, const char *key, long value);

/* Whether the key is there; *value is set when it is (value may be NULL). */
bool map_get(const struct map *m, const char *key, long *value);

/* Whether the key was there. Never fails, never moves other entries to slots that map_next() has passed. */
bool map_remove(struct map *m, const char *key);

/* How many entries there are. */
size_t map_count(const struct map *m);

/* How many slots there are: a power of two, at least 8, and never more than 4 times what was ever in the map at once, or 8. */
size_t map_slots(const struct map *m);

/* Goes through the entries in any order, each once: for (size_t at = 0; (key = map_next(m, &at, &value)); ). The entry that was given
 * last may be removed meanwhile; nothing may be put. NULL at the end. The key is valid until it is removed or something is put. */
const char *map_next(const struct map *m, size_t *at, long *value);

#endif
