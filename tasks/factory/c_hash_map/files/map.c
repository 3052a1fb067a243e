#include "map.h"

#include <stdlib.h>
#include <string.h>

struct slot {
    const char *key;
    long value;
};

struct map {
    map_alloc alloc;
    void *user;
    struct slot *slots;
    size_t size;  /* slots, a power of two */
    size_t count; /* entries */
};

static void *plain_alloc(void *user, void *old, size_t bytes)
{
    (void)user;
    if (bytes == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, bytes);
}

static size_t hash_of(const char *key)
{
    size_t h = 14695981039346656037u;
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * 1099511628211u;
    return h ^ h >> 32;
}

struct map *map_new(map_alloc alloc, void *user)
{
    if (!alloc)
        alloc = plain_alloc;
    struct map *m = alloc(user, NULL, sizeof *m);
    m->alloc = alloc;
    m->user = user;
    m->size = 8;
    m->count = 0;
    m->slots = alloc(user, NULL, m->size * sizeof *m->slots);
    memset(m->slots, 0, m->size * sizeof *m->slots);
    return m;
}

void map_free(struct map *m)
{
    m->alloc(m->user, m->slots, 0);
    m->alloc(m->user, m, 0);
}

/* The slot of a key, or the free slot where it would be. */
static struct slot *find(const struct map *m, const char *key)
{
    size_t at = hash_of(key) & (m->size - 1);
    while (m->slots[at].key && strcmp(m->slots[at].key, key) != 0)
        at = (at + 1) & (m->size - 1);
    return &m->slots[at];
}

static void grow(struct map *m)
{
    struct slot *old = m->slots;
    size_t size = m->size;
    m->size = size * 2;
    m->slots = m->alloc(m->user, NULL, m->size * sizeof *m->slots);
    memset(m->slots, 0, m->size * sizeof *m->slots);
    for (size_t i = 0; i < size; i++) {
        if (old[i].key)
            *find(m, old[i].key) = old[i];
    }
    m->alloc(m->user, old, 0);
}

bool map_put(struct map *m, const char *key, long value)
{
    if (m->count * 4 >= m->size * 3)
        grow(m);
    struct slot *slot = find(m, key);
    if (!slot->key)
        m->count++;
    slot->key = key;
    slot->value = value;
    return true;
}

bool map_get(const struct map *m, const char *key, long *value)
{
    struct slot *slot = find(m, key);
    if (!slot->key)
        return false;
    *value = slot->value;
    return true;
}

bool map_remove(struct map *m, const char *key)
{
    struct slot *slot = find(m, key);
    if (!slot->key)
        return false;
    slot->key = NULL;
    m->count--;
    return true;
}

size_t map_count(const struct map *m)
{
    return m->count;
}

size_t map_slots(const struct map *m)
{
    return m->size;
}

const char *map_next(const struct map *m, size_t *at, long *value)
{
    while (*at < m->size) {
        const struct slot *slot = &m->slots[(*at)++];
        if (slot->key) {
            *value = slot->value;
            return slot->key;
        }
        (*at)++;
    }
    return NULL;
}
