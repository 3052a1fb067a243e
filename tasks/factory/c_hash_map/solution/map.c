#include "map.h"

#include <stdlib.h>
#include <string.h>

/* A slot is free when its key is NULL; a removed one is marked, so that searches go on behind it. */
struct slot {
    char *key;
    long value;
};

static char removed[1];

struct map {
    map_alloc alloc;
    void *user;
    struct slot *slots;
    size_t size;  /* slots, a power of two */
    size_t count; /* entries */
    size_t used;  /* slots that are not free: entries and removed ones */
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

static struct slot *new_slots(struct map *m, size_t size)
{
    struct slot *slots = m->alloc(m->user, NULL, size * sizeof *slots);
    if (slots)
        memset(slots, 0, size * sizeof *slots);
    return slots;
}

static bool is_entry(const struct slot *slot)
{
    return slot->key && slot->key != removed;
}

struct map *map_new(map_alloc alloc, void *user)
{
    if (!alloc)
        alloc = plain_alloc;
    struct map *m = alloc(user, NULL, sizeof *m);
    if (!m)
        return NULL;
    *m = (struct map){.alloc = alloc, .user = user, .size = 8};
    m->slots = new_slots(m, m->size);
    if (!m->slots) {
        alloc(user, m, 0);
        return NULL;
    }
    return m;
}

void map_free(struct map *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->size; i++) {
        if (is_entry(&m->slots[i]))
            m->alloc(m->user, m->slots[i].key, 0);
    }
    m->alloc(m->user, m->slots, 0);
    m->alloc(m->user, m, 0);
}

/* The slot of a key, or NULL. */
static struct slot *find(const struct map *m, const char *key)
{
    for (size_t at = hash_of(key);; at++) {
        struct slot *slot = &m->slots[at & (m->size - 1)];
        if (!slot->key)
            return NULL;
        if (slot->key != removed && strcmp(slot->key, key) == 0)
            return slot;
    }
}

/* The first slot without an entry on the way of a key that is not there. */
static struct slot *place_for(struct slot *slots, size_t size, const char *key)
{
    size_t at = hash_of(key) & (size - 1);
    while (is_entry(&slots[at]))
        at = (at + 1) & (size - 1);
    return &slots[at];
}

/* Lays everything out again without removed slots, in more room when entries need it. */
static bool make_room(struct map *m)
{
    size_t size = (m->count + 1) * 2 > m->size ? m->size * 2 : m->size;
    struct slot *slots = new_slots(m, size);
    if (!slots)
        return false;
    for (size_t i = 0; i < m->size; i++) {
        if (is_entry(&m->slots[i]))
            *place_for(slots, size, m->slots[i].key) = m->slots[i];
    }
    m->alloc(m->user, m->slots, 0);
    m->slots = slots;
    m->size = size;
    m->used = m->count;
    return true;
}

bool map_put(struct map *m, const char *key, long value)
{
    struct slot *slot = find(m, key);
    if (slot) {
        slot->value = value;
        return true;
    }
    if ((m->used + 1) * 4 > m->size * 3 && !make_room(m))
        return false;
    size_t bytes = strlen(key) + 1;
    char *copy = m->alloc(m->user, NULL, bytes);
    if (!copy)
        return false;
    memcpy(copy, key, bytes);
    slot = place_for(m->slots, m->size, key);
    if (!slot->key)
        m->used++;
    *slot = (struct slot){copy, value};
    m->count++;
    return true;
}

bool map_get(const struct map *m, const char *key, long *value)
{
    struct slot *slot = find(m, key);
    if (slot && value)
        *value = slot->value;
    return slot != NULL;
}

bool map_remove(struct map *m, const char *key)
{
    struct slot *slot = find(m, key);
    if (!slot)
        return false;
    m->alloc(m->user, slot->key, 0);
    slot->key = removed;
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
        if (is_entry(slot)) {
            if (value)
                *value = slot->value;
            return slot->key;
        }
    }
    return NULL;
}
