package task

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// How long goroutines may take. Once something hung there is no use in waiting long again.
var patience = 5 * time.Second

func giveUp(t *testing.T, format string, args ...interface{}) {
	t.Helper()
	patience = 50 * time.Millisecond
	t.Fatalf(format, args...)
}

func setUp(capacity int, ttl time.Duration) (*Cache, *clock) {
	c := &clock{now: time.Unix(1000, 0)}
	return New(Options{Capacity: capacity, TTL: ttl, Now: c.Now}), c
}

func want(t *testing.T, c *Cache, key, value string) {
	t.Helper()
	got, ok := c.Get(key)
	if ok != (value != "") || got != value {
		t.Fatalf("Get(%q) = %q, %v; want %q", key, got, ok, value)
	}
}

func wantStats(t *testing.T, c *Cache, expected Stats) {
	t.Helper()
	if got := c.Stats(); got != expected {
		t.Fatalf("Stats() = %+v; want %+v", got, expected)
	}
}

func TestGetAndSet(t *testing.T) {
	c, _ := setUp(3, 0)
	want(t, c, "a", "")
	c.Set("a", "1")
	c.Set("b", "2")
	c.Set("a", "3")
	want(t, c, "a", "3")
	want(t, c, "b", "2")
	if c.Len() != 2 {
		t.Fatalf("Len() = %d", c.Len())
	}
	wantStats(t, c, Stats{Hits: 2, Misses: 1})
}

func TestLeastRecentlyUsedLeaves(t *testing.T) {
	c, _ := setUp(3, 0)
	for _, key := range []string{"a", "b", "c"} {
		c.Set(key, key)
	}
	want(t, c, "a", "a")
	c.Set("b", "b2")
	c.Set("d", "d")
	want(t, c, "c", "")
	want(t, c, "a", "a")
	want(t, c, "b", "b2")
	want(t, c, "d", "d")
	c.Set("e", "e")
	want(t, c, "a", "")
	wantStats(t, c, Stats{Hits: 4, Misses: 2, Evictions: 2})
}

func TestTimeToLive(t *testing.T) {
	c, clock := setUp(3, 10*time.Second)
	c.Set("a", "1")
	clock.advance(10*time.Second - 1)
	want(t, c, "a", "1")
	clock.advance(1)
	if c.Len() != 1 {
		t.Fatal("a stale entry counts until it is found")
	}
	want(t, c, "a", "")
	if c.Len() != 0 {
		t.Fatal("a stale entry that was found must be removed")
	}
	c.Set("a", "2")
	clock.advance(6 * time.Second)
	c.Set("a", "3")
	clock.advance(6 * time.Second)
	want(t, c, "a", "3")
}

func TestStaleEntriesLeaveFirst(t *testing.T) {
	c, clock := setUp(2, 10*time.Second)
	c.Set("old", "1")
	clock.advance(5 * time.Second)
	c.Set("new", "2")
	want(t, c, "old", "1")
	clock.advance(5 * time.Second)
	c.Set("x", "3")
	want(t, c, "new", "2")
	want(t, c, "x", "3")
	want(t, c, "old", "")
	wantStats(t, c, Stats{Hits: 3, Misses: 1})
}

func TestDelete(t *testing.T) {
	c, clock := setUp(2, 10*time.Second)
	c.Set("a", "1")
	c.Set("b", "2")
	if !c.Delete("a") || c.Delete("a") || c.Delete("x") {
		t.Fatal("Delete says whether the key was there")
	}
	c.Set("c", "3")
	want(t, c, "b", "2")
	clock.advance(time.Minute)
	if c.Delete("b") {
		t.Fatal("a stale entry is not there")
	}
	if c.Len() != 1 || c.Stats().Evictions != 0 {
		t.Fatalf("Len() = %d, %+v", c.Len(), c.Stats())
	}
}

func TestLoadStores(t *testing.T) {
	c, clock := setUp(2, 10*time.Second)
	n := 0
	load := func() (string, error) { n++; return fmt.Sprint("v", n), nil }
	for i, expected := range []string{"v1", "v1", "v2"} {
		if i == 2 {
			clock.advance(10 * time.Second)
		}
		if got, err := c.Load("k", load); got != expected || err != nil {
			t.Fatalf("Load %d = %q, %v", i, got, err)
		}
	}
	want(t, c, "k", "v2")
	wantStats(t, c, Stats{Hits: 2, Misses: 2, Loads: 2})
}

func TestLoadErrorsAreNotStored(t *testing.T) {
	c, _ := setUp(2, 0)
	bad := errors.New("bad")
	if got, err := c.Load("k", func() (string, error) { return "junk", bad }); got != "" || err != bad {
		t.Fatalf("Load = %q, %v", got, err)
	}
	if c.Len() != 0 {
		t.Fatal("something was stored")
	}
	if got, err := c.Load("k", func() (string, error) { return "v", nil }); got != "v" || err != nil {
		t.Fatalf("Load = %q, %v", got, err)
	}
}

// Starts a load of "k" that waits for the returned function, and `others` more calls of Load that wait for it.
func flying(t *testing.T, c *Cache, others int, load func() (string, error)) (release func(), results chan string) {
	t.Helper()
	started, gate := make(chan bool), make(chan bool)
	results = make(chan string, others+1)
	report := func(load func() (string, error)) {
		defer func() {
			if p := recover(); p != nil {
				results <- fmt.Sprint("panic ", p)
			}
		}()
		value, err := c.Load("k", load)
		results <- fmt.Sprintf("%s %v", value, err)
	}
	go report(func() (string, error) { close(started); <-gate; return load() })
	select {
	case <-started:
	case <-time.After(patience):
		giveUp(t, "load was not called")
	}
	before := c.Stats().Misses
	for i := 0; i < others; i++ {
		go report(func() (string, error) { return "second load", nil })
	}
	for deadline := time.Now().Add(patience); c.Stats().Misses < before+others; runtime.Gosched() {
		if time.Now().After(deadline) {
			giveUp(t, "calls of Load do not wait as misses")
		}
	}
	return func() { close(gate) }, results
}

func collect(t *testing.T, results chan string, n int) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for i := 0; i < n; i++ {
		select {
		case result := <-results:
			seen[result]++
		case <-time.After(patience):
			giveUp(t, "%d of %d calls of Load came back: %v", i, n, seen)
		}
	}
	return seen
}

func TestOneLoadForAll(t *testing.T) {
	c, _ := setUp(2, 0)
	release, results := flying(t, c, 20, func() (string, error) { return "v", nil })
	c.Set("other", "usable")
	want(t, c, "other", "usable")
	if got, err := c.Load("third", func() (string, error) { return "x", nil }); got != "x" || err != nil {
		t.Fatalf("another key: %q, %v", got, err)
	}
	release()
	if seen := collect(t, results, 21); seen["v <nil>"] != 21 {
		t.Fatalf("%v", seen)
	}
	want(t, c, "k", "v")
	wantStats(t, c, Stats{Hits: 2, Misses: 22, Loads: 2, Evictions: 1})
}

func TestAnErrorForAll(t *testing.T) {
	c, _ := setUp(2, 0)
	release, results := flying(t, c, 3, func() (string, error) { return "junk", errors.New("bad") })
	release()
	if seen := collect(t, results, 4); seen[" bad"] != 4 {
		t.Fatalf("%v", seen)
	}
	want(t, c, "k", "")
}

func TestPanic(t *testing.T) {
	c, _ := setUp(2, 0)
	release, results := flying(t, c, 3, func() (string, error) { panic("boom") })
	release()
	if seen := collect(t, results, 4); seen["panic boom"] != 1 || seen[" "+ErrPanic.Error()] != 3 {
		t.Fatalf("%v", seen)
	}
	if got, err := c.Load("k", func() (string, error) { return "v", nil }); got != "v" || err != nil {
		t.Fatalf("after a panic: %q, %v", got, err)
	}
}

func TestSetWhileLoading(t *testing.T) {
	c, _ := setUp(2, 0)
	release, results := flying(t, c, 2, func() (string, error) { return "loaded", nil })
	c.Set("k", "set")
	release()
	if seen := collect(t, results, 3); seen["loaded <nil>"] != 3 {
		t.Fatalf("%v", seen)
	}
	want(t, c, "k", "set")
}

func TestDeleteWhileLoading(t *testing.T) {
	c, _ := setUp(2, 0)
	release, results := flying(t, c, 0, func() (string, error) { return "loaded", nil })
	if c.Delete("k") {
		t.Fatal("nothing is there yet")
	}
	release()
	collect(t, results, 1)
	want(t, c, "k", "")
	if got, _ := c.Load("k", func() (string, error) { return "again", nil }); got != "again" {
		t.Fatalf("Load = %q", got)
	}
	want(t, c, "k", "again")
}
