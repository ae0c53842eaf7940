package compute

import (
	"sync"
)

// Cache keeps values that are expensive to make, such as compiled programs, by a key: a comparable struct of everything
// that they depend on. The zero value is ready and keeps all. It may be used by several goroutines.
//
// A value has one user at a time: Take waits until it is given back, and a value in use is not evicted. Different
// values are made and used concurrently.
type Cache[K comparable, V interface{ Close() }] struct {
	// Most is the number of values that are kept; the least recently used one is closed first. There can be more while
	// more are in use. 0: no bound.
	Most int

	mu      sync.Mutex // guards the fields below, but not an entry's value
	entries map[K]*entry[V]
	uses    uint64
	made    int
}

type entry[V interface{ Close() }] struct {
	turn  sync.Mutex // held by the user of the value
	value V
	made  bool
	users int    // number that have the value or wait for it
	last  uint64 // use, as a count of all uses
}

// Take returns the value of a key, made by make if there is none, and a function that gives it back, to be called once.
func (c *Cache[K, V]) Take(key K, make func() (V, error)) (value V, giveBack func(), err error) {
	e := c.enter(key)
	e.turn.Lock()
	if !e.made {
		if e.value, err = make(); err == nil {
			e.made = true
			c.mu.Lock()
			c.made++
			c.mu.Unlock()
		}
	}
	giveBack = func() {
		e.turn.Unlock()
		c.leave(e)
	}
	if err != nil {
		giveBack()
		return value, nil, err
	}
	return e.value, giveBack, nil
}

// enter returns the entry of a key and counts a user more.
func (c *Cache[K, V]) enter(key K) *entry[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		if c.entries == nil {
			c.entries = map[K]*entry[V]{}
		}
		e = &entry[V]{}
		c.entries[key] = e
	}
	c.uses++
	e.users, e.last = e.users+1, c.uses
	return e
}

// leave counts a user less, and closes values beyond the bound.
func (c *Cache[K, V]) leave(e *entry[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	for key, e := range c.entries {
		if e.users == 0 && !e.made { // make failed
			delete(c.entries, key)
		}
	}
	for c.Most > 0 && len(c.entries) > c.Most {
		var oldest K
		var victim *entry[V]
		for key, e := range c.entries {
			if e.users == 0 && (victim == nil || e.last < victim.last) {
				oldest, victim = key, e
			}
		}
		if victim == nil {
			return // all are in use
		}
		victim.value.Close()
		delete(c.entries, oldest)
	}
}

// Made is the number of values made so far, including those that are closed.
func (c *Cache[K, V]) Made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

// Close closes all values; none may be in use. The cache may be used again.
func (c *Cache[K, V]) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if e.made {
			e.value.Close()
		}
	}
	clear(c.entries)
}
