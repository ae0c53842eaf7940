package run

import (
	"context"
	"slices"
	"testing"
	"time"

	"gobnn/bayes/compute/computetest"

	"github.com/gomlx/gomlx/core/tensors"
)

// keeper is an adder that notes after which step it is asked for its state.
type keeper struct {
	adder
	kept []int
}

func (k *keeper) Keep() (any, map[string]*tensors.Tensor, error) {
	k.kept = append(k.kept, k.step)
	return k.adder.Keep()
}

// A checkpoint is written as a run begins, once each time that Options.Every has passed, and at the end.
func TestCheckpointEvery(t *testing.T) {
	o := options(t)
	o.Every = time.Hour
	k := &keeper{adder: adder{steps: 100}}
	r := New(k, o)
	k.before = func(_ context.Context, step int) error {
		if step == 30 || step == 70 {
			r.saved = r.saved.Add(-2 * time.Hour) // as if they had passed
		}
		return nil
	}
	computetest.NoError(t, r.Loop(t.Context()))
	if want := []int{0, 30, 70, 100}; !slices.Equal(k.kept, want) {
		t.Errorf("the state was kept after steps %v, want %v", k.kept, want)
	}
}

// The error about a checkpoint of other settings shows only the fields that differ, also within nested objects.
func TestDifference(t *testing.T) {
	for _, c := range []struct{ a, b, old, now string }{
		{"3", "4", "3", "4"},
		{`{"draws":3,"seed":1}`, `{"draws":3,"seed":2}`, `{"seed":1}`, `{"seed":2}`},
		{`{"k":{"type":"A","step":1}}`, `{"k":{"type":"B","step":1}}`, `{"k":{"type":"A"}}`, `{"k":{"type":"B"}}`},
		{`{"old":1}`, `{"now":1}`, `{"old":1}`, `{"now":1}`},
		{`{"x":null}`, `{"x":{"y":1}}`, `{"x":null}`, `{"x":{"y":1}}`},
		{"text", `{"x":1}`, "text", `{"x":1}`},
	} {
		if old, now := difference(c.a, c.b); old != c.old || now != c.now {
			t.Errorf("difference(%s, %s) is %s, %s; want %s, %s", c.a, c.b, old, now, c.old, c.now)
		}
	}
}
