package task

import (
	"container/list"
	"errors"
	"sync"
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
	mu      sync.Mutex
	entries map[string]*list.Element // of *entry
	recent  *list.List               // the most recently used is at the front
	flights map[string]*flight
	stats   Stats
}

type entry struct {
	key    string
	value  string
	stored time.Time
}

type flight struct {
	done  chan struct{}
	stale bool // the key was set or deleted meanwhile
	value string
	err   error
}

// New makes a cache.
func New(options Options) *Cache {
	return &Cache{options: options, entries: map[string]*list.Element{}, recent: list.New(), flights: map[string]*flight{}}
}

func (c *Cache) drop(element *list.Element) {
	c.recent.Remove(element)
	delete(c.entries, element.Value.(*entry).key)
}

func (c *Cache) isStale(e *entry) bool {
	return c.options.TTL > 0 && c.options.Now().Sub(e.stored) >= c.options.TTL
}

// Looks a key up and counts; c.mu is held.
func (c *Cache) lookup(key string) (string, bool) {
	if element, ok := c.entries[key]; ok {
		e := element.Value.(*entry)
		if !c.isStale(e) {
			c.recent.MoveToFront(element)
			c.stats.Hits++
			return e.value, true
		}
		c.drop(element)
	}
	c.stats.Misses++
	return "", false
}

// Stores a value; c.mu is held.
func (c *Cache) store(key, value string) {
	if element, ok := c.entries[key]; ok {
		c.drop(element)
	}
	c.entries[key] = c.recent.PushFront(&entry{key, value, c.options.Now()})
	if c.recent.Len() <= c.options.Capacity {
		return
	}
	for element := c.recent.Back(); element != nil; element = element.Prev() {
		if c.isStale(element.Value.(*entry)) {
			c.drop(element)
			return
		}
	}
	c.drop(c.recent.Back())
	c.stats.Evictions++
}

// Get gives the value of a key unless it is missing or stale. It makes the entry the most recently used one. A stale entry that is
// found is removed.
func (c *Cache) Get(key string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lookup(key)
}

// Set stores a value, as the most recently used one and with a new age. When there are more than Capacity entries then, one leaves:
// a stale one if there is any (which of them does not matter), otherwise the least recently used one.
func (c *Cache) Set(key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(key, value)
	if f := c.flights[key]; f != nil {
		f.stale = true
	}
}

// Delete removes a key and says whether it was there and not stale.
func (c *Cache) Delete(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[key]; f != nil {
		f.stale = true
	}
	element, ok := c.entries[key]
	if !ok {
		return false
	}
	c.drop(element)
	return !c.isStale(element.Value.(*entry))
}

// Len counts the entries, stale ones too.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}

// Load gives the value of a key as Get does, or else calls load, stores what it gives and returns it.
//
// While a load of a key runs, other calls of Load for it wait and return what it gives; they count as misses, not as loads. An error is
// returned to all of them and nothing is stored; the next Load tries again. When load panics, nothing is stored, the panic goes on in
// the goroutine that called load, and those who waited get ErrPanic. When the key is set or deleted while its load runs, the loaded
// value is returned to all who wait, but not stored.
func (c *Cache) Load(key string, load func() (string, error)) (string, error) {
	c.mu.Lock()
	if value, ok := c.lookup(key); ok {
		c.mu.Unlock()
		return value, nil
	}
	if f := c.flights[key]; f != nil {
		c.mu.Unlock()
		<-f.done
		return f.value, f.err
	}
	f := &flight{done: make(chan struct{}), err: ErrPanic}
	c.flights[key] = f
	c.stats.Loads++
	c.mu.Unlock()

	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if f.err == nil && !f.stale {
			c.store(key, f.value)
		}
		delete(c.flights, key)
		close(f.done)
	}()
	value, err := load()
	if err != nil {
		value = ""
	}
	f.value, f.err = value, err
	return value, err
}

// Stats gives the counts so far.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}
