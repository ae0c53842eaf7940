package run

import "sync"

// Cache keeps values that are dear to make, such as compiled programs, by what they were made for: a comparable struct
// that names everything they depend on. The zero value is ready and keeps all. It may be used by several goroutines.
//
// A value has one user at a time: Take waits until the one before has given it back, and a value in use is not closed
// to make room. Different values are made, and used, side by side.
type Cache[K comparable, V interface{ Close() }] struct {
	// Most is how many values are kept; the one that was not used for the longest time goes first. There are more for
	// as long as more are in use. 0: no bound.
	Most int

	mu      sync.Mutex // of all below, but for an entry's value
	entries map[K]*entry[V]
	uses    uint64
	made    int
}

type entry[V interface{ Close() }] struct {
	turn  sync.Mutex // held by the user of the value
	value V
	made  bool
	users int    // that have the value or wait for it
	last  uint64 // use
}

// Take gives the value of a key, which make makes if there is none, and a function that gives it back, to be called
// once.
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

// enter is the entry of a key, with one user more.
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

// leave takes a user away, and closes what is beyond the bound.
func (c *Cache[K, V]) leave(e *entry[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	for key, e := range c.entries {
		if e.users == 0 && !e.made { // it could not be made
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

// Len is how many values there are.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// Made is how many values were made so far, those that are closed by now included.
func (c *Cache[K, V]) Made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

// Close closes all values, of which none may be in use. The cache may be used again.
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
