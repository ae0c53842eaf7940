package compute_test

import (
	"errors"
	"sync"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
)

// handle is something that is kept, and is closed once.
type handle struct{ closed int }

func (h *handle) Close() { h.closed++ }

// What was made for a key is found again by the next run, not by one at the same time; without a key nothing is kept.
func TestKeep(t *testing.T) {
	engine := computetest.Go(t)
	take := func(key string) (*handle, func()) {
		h, release, err := compute.Keep(engine, key, func() (*handle, error) { return &handle{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		return h, release
	}
	first, release := take("TestKeep")
	second, releaseSecond := take("TestKeep")
	if first == second {
		t.Error("two runs at one time share a value")
	}
	release()
	if again, release := take("TestKeep"); again != first {
		t.Error("what was given back was made anew")
	} else {
		release()
	}
	releaseSecond()
	alone, release := take("")
	if release(); alone.closed != 1 {
		t.Errorf("without a key it was closed %d times", alone.closed)
	}
	for range 100 { // others
		h, release := take(t.Name() + string(rune('a'+engine.Compiled()%1000)))
		defer func() { _ = h }()
		release()
	}
	if first.closed != 1 || second.closed != 1 {
		t.Errorf("after a hundred others the first was closed %d times, the second %d", first.closed, second.closed)
	}
	fault := errors.New("no memory")
	if _, _, err := compute.Keep(engine, "x", func() (*handle, error) { return nil, fault }); !errors.Is(err, fault) {
		t.Errorf("error %v", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, release := take("at once")
			release()
		})
	}
	all.Wait()
}

// Two values have one key only if all is equal, also what is behind a pointer or not exported; a function has none.
func TestKeyOf(t *testing.T) {
	type inner struct {
		a float64
		b []int
	}
	type other inner
	type outer struct {
		Name string
		of   *inner
		any  any
		m    map[string]int
	}
	base := func() outer {
		return outer{"x", &inner{1, []int{2, 3}}, inner{b: []int{4}}, map[string]int{"a": 1, "b": 2}}
	}
	key := compute.KeyOf(base(), 3)
	if key == "" || key != compute.KeyOf(base(), 3) {
		t.Errorf("keys %q and %q of the same", key, compute.KeyOf(base(), 3))
	}
	for name, change := range map[string]func(*outer){
		"field":     func(o *outer) { o.Name = "y" },
		"pointer":   func(o *outer) { o.of.a = 2 },
		"slice":     func(o *outer) { o.of.b[1] = 4 },
		"length":    func(o *outer) { o.of.b = append(o.of.b, 0) },
		"interface": func(o *outer) { o.any = other{b: []int{4}} },
		"map":       func(o *outer) { o.m["b"] = 3 },
		"nil":       func(o *outer) { o.of = nil },
	} {
		o := base()
		if change(&o); compute.KeyOf(o, 3) == key {
			t.Errorf("another %s has the same key", name)
		}
	}
	if compute.KeyOf(base(), int64(3)) == key {
		t.Error("another type has the same key")
	}
	if k := compute.KeyOf(struct{ F func() }{func() {}}); k != "" {
		t.Errorf("a function has the key %q", k)
	}
	if compute.KeyOf(struct{ F func() }{}) == "" {
		t.Error("no function has no key")
	}
	type ring struct{ next *ring }
	r := &ring{}
	if r.next = r; compute.KeyOf(r) != "" {
		t.Error("a circle has a key")
	}
}
