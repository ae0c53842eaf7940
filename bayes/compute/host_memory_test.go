package compute

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// What does not fit the machine's memory is refused before anything is computed, with what would fit.
func TestTooLittleHostMemory(t *testing.T) {
	if limit, known := hostMemory(); known && (limit.bytes < 64<<20 || limit.bytes > 1<<50) {
		t.Errorf("the machine has %v", limit)
	}
	before := hostMemory
	hostMemory = func() (room, bool) { return room{1 << 20, "the machine has %s"}, true }
	t.Cleanup(func() { hostMemory = before })
	engine, err := Open(GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	over := func(particles int, bytes int64, chunk int) error {
		plan := NewPlan(particles, bytes, chunk)
		exec, err := graph.NewExec(engine.Backend(), func(phi *graph.Node) *graph.Node {
			_, sums := plan.Over(phi, Pass{
				Chunk: func(_ Span, phi *graph.Node, _ []*graph.Node) (rows, sums []*graph.Node) {
					return nil, []*graph.Node{graph.ReduceAllSum(phi)}
				},
				Merge: func(a, b []*graph.Node) []*graph.Node { return []*graph.Node{graph.Add(a[0], b[0])} },
			})
			return sums[0]
		})
		if err != nil {
			return err
		}
		defer exec.Finalize()
		_, err = exec.Call([][]float32{{1}, {2}, {3}, {4}})
		return err
	}
	need, program := demand{}, &Program{engine: engine}
	need.add(program, "phi", shapes.Make(Float32, 3<<18))
	for _, c := range []struct {
		name string
		err  error
		says []string // nil: it fits
	}{
		{"1 MiB of 1 MiB", over(4, 1<<18, 4), nil},
		{"2 MiB of 1 MiB", over(4, 1<<19, 4), []string{"the machine has 0.00098 GiB", "at most 1/2 of the particles"}},
		{"a particle of 4 MiB", over(4, 1<<22, 1), []string{"1/4 of the particles of a Chunk, or of the rows"}},
		{"a state of 3 MiB", need.check(program), []string{`"phi"`, "take at most 1/3 of the particles"}},
	} {
		if (c.err == nil) != (c.says == nil) || c.err != nil && !errors.Is(c.err, ErrOutOfMemory) {
			t.Errorf("%s: %v", c.name, c.err)
		}
		for _, want := range c.says {
			if !strings.Contains(c.err.Error(), want) {
				t.Errorf("%s: %v does not say %q", c.name, c.err, want)
			}
		}
	}
}
