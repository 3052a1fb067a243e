package task

import (
	"errors"
	"time"
)

// ErrPanic is what the others get when the load that they waited for has panicked.
var ErrPanic = errors.New("load panicked")

// Options say how a cache behaves.
type Options struct {
	Capacity int              // most entries; at least 1
	TTL      time.Duration    // an entry is stale when this much time has passed since it was stored (exactly TTL: stale); 0: never
	Now      func() time.Time // the clock
}

// Stats are counted since New.
type Stats struct {
	Hits      int // Get or Load found a value that was not stale
	Misses    int // Get or Load did not
	Loads     int // calls of a load function
	Evictions int // entries that left because of Capacity (not stale ones, not deleted ones)
}

// Cache is safe for use by many goroutines.
type Cache struct {
	options Options
}

// New makes a cache.
func New(options Options) *Cache {
	return &Cache{options: options}
}

// Get gives the value of a key unless it is missing or stale. It makes the entry the most recently used one. A stale entry that is
// found is removed.
func (c *Cache) Get(key string) (string, bool) {
	return "", false
}

// Set stores a value, as the most recently used one and with a new age. When there are more than Capacity entries then, one leaves:
// a stale one if there is any (which of them does not matter), otherwise the least recently used one.
func (c *Cache) Set(key, value string) {
}

// Delete removes a key and says whether it was there and not stale.
func (c *Cache) Delete(key string) bool {
	return false
}

// Len counts the entries, stale ones too.
func (c *Cache) Len() int {
	return 0
}

// Load gives the value of a key as Get does, or else calls load, stores what it gives and returns it.
//
// While a load of a key runs, other calls of Load for it wait and return what it gives; they count as misses, not as loads. An error is
// returned to all of them and nothing is stored; the next Load tries again. When load panics, nothing is stored, the panic goes on in
// the goroutine that called load, and those who waited get ErrPanic. When the key is set or deleted while its load runs, the loaded
// value is returned to all who wait, but not stored.
func (c *Cache) Load(key string, load func() (string, error)) (string, error) {
	return load()
}

// Stats gives the counts so far.
func (c *Cache) Stats() Stats {
	return Stats{}
}
