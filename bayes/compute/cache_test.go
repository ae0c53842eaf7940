package compute

import (
	"errors"
	"sync"
	"testing"
)

type program struct {
	made, closed *int
	used         int // not guarded: the race detector looks
}

func (p *program) Close() { *p.closed++ }

// One key is made once, by however many goroutines, and has one user at a time; what cannot be made is tried again.
func TestCache(t *testing.T) {
	type key struct{ rows, width int }
	var c Cache[key, *program]
	made, closed := 0, 0
	newProgram := func() (*program, error) {
		made++
		return &program{made: &made, closed: &closed}, nil
	}
	fault := errors.New("no memory")
	_, _, err := c.Take(key{1, 2}, func() (*program, error) { return nil, fault })
	if err != fault || len(c.entries) != 0 {
		t.Fatalf("%v, %d entries", err, len(c.entries))
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			p, giveBack, err := c.Take(key{1, 2}, newProgram)
			if err != nil {
				t.Error(err)
				return
			}
			defer giveBack()
			p.used++
		})
	}
	wait.Wait()
	p, giveBack, err := c.Take(key{1, 2}, newProgram)
	if err != nil || p.used != 20 || made != 1 || c.Made() != 1 || len(c.entries) != 1 {
		t.Fatalf("%v: used %d times, made %d", err, p.used, made)
	}
	giveBack()
	c.Close()
	if closed != 1 || len(c.entries) != 0 {
		t.Errorf("%d closed, %d left", closed, len(c.entries))
	}
}

// With a bound the value that was not used for the longest time goes, but none that is in use.
func TestCacheBound(t *testing.T) {
	c := Cache[int, *program]{Most: 2}
	made, closed := 0, 0
	take := func(key int) func() {
		_, giveBack, err := c.Take(key, func() (*program, error) {
			made++
			return &program{made: &made, closed: &closed}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return giveBack
	}
	held := take(1)
	take(2)()
	take(3)()
	if len(c.entries) != 2 || closed != 1 {
		t.Fatalf("%d values, %d closed", len(c.entries), closed)
	}
	held() // 2 is gone: 1 was in use
	take(3)()
	take(1)()
	if made != 3 {
		t.Errorf("1 and 3 were closed: %d made", made)
	}
	take(2)()
	take(1)()
	take(3)() // took 2's place before, and gave it up to 2
	if made != 5 || closed != 3 {
		t.Errorf("%d made, %d closed", made, closed)
	}
	all := []func(){take(1), take(2), take(3)}
	if len(c.entries) != 3 {
		t.Errorf("%d of three values in use are there", len(c.entries))
	}
	for _, giveBack := range all {
		giveBack()
	}
	if len(c.entries) != 2 {
		t.Errorf("%d values with a bound of 2", len(c.entries))
	}
}
