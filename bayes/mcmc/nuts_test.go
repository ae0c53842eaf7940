package mcmc

import (
	"maps"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// nutsMove is what a test sees of one move: Phi, [J, D], and Info, [J], flat.
type nutsMove struct {
	phi                                                             []float64
	complete, acceptance, accepted, nonFinite, divergent, gradients []float64
}

// nutsChains are particles that NUTS moves.
type nutsChains struct {
	t             *testing.T
	dtype         compute.DType
	starts, moves *Exec
	state         []*tensors.Tensor
	step          uint32
}

const nutsSeed, nutsStartSeed = 17, 4

// newNUTSChains compiles the kernel; scale may be nil.
func newNUTSChains(
	t *testing.T, engine *compute.Engine, dtype compute.DType, kernel NUTS, target density.Func, scale []float64,
) *nutsChains {
	t.Helper()
	var names []string // of Auxiliary
	pack := func(s State) []*Node {
		nodes := []*Node{s.Phi, s.LogDensity, s.Gradient}
		for _, name := range names {
			nodes = append(nodes, s.Auxiliary[name])
		}
		return nodes
	}
	program := func(fn func(args []*Node) []*Node) *Exec {
		exec, err := NewExec(engine.Backend(), fn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(exec.Finalize)
		return exec
	}
	return &nutsChains{
		t: t, dtype: dtype,
		starts: program(func(a []*Node) []*Node {
			s := Start(kernel, random.New(a[0].Graph(), nutsStartSeed), a[0], target)
			names = slices.Sorted(maps.Keys(s.Auxiliary))
			return pack(s)
		}),
		moves: program(func(a []*Node) []*Node {
			s := State{Phi: a[2], LogDensity: a[3], Gradient: a[4], Auxiliary: map[string]*Node{}}
			for i, name := range names {
				s.Auxiliary[name] = a[5+i]
			}
			tuning := Tuning{StepSize: a[1]}
			if scale != nil {
				tuning.Scale = Const(a[0].Graph(), scale)
			}
			next, info := kernel.Move(random.New(a[0].Graph(), nutsSeed).At(a[0]), s, target, tuning)
			return append(pack(next), Stack([]*Node{
				info.Complete, info.Acceptance, info.Accepted, info.NonFinite, info.Divergent, info.Length,
			}, 0))
		}),
	}
}

// start puts the particles at phi, [J, D] flat, about to begin.
func (c *nutsChains) start(phi []float64, d int) {
	c.t.Helper()
	c.step = 0
	c.state = c.call(c.starts, compute.Floats(c.dtype, phi, len(phi)/d, d))
}

func (c *nutsChains) move(stepSize float64) nutsMove {
	c.t.Helper()
	args := []any{c.step, stepSize}
	for _, s := range c.state {
		args = append(args, s)
	}
	out := c.call(c.moves, args...)
	c.step++
	for _, s := range c.state {
		s.MustFinalizeAll()
	}
	c.state = out[:len(out)-1]
	phi, info := c.float64s(out[0]), c.float64s(out[len(out)-1])
	out[len(out)-1].MustFinalizeAll()
	n := len(info) / 6
	field := func(i int) []float64 { return info[i*n : (i+1)*n] }
	return nutsMove{phi, field(0), field(1), field(2), field(3), field(4), field(5)}
}

func (c *nutsChains) call(exec *Exec, args ...any) []*tensors.Tensor {
	c.t.Helper()
	out, err := exec.Call(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c *nutsChains) float64s(x *tensors.Tensor) []float64 {
	c.t.Helper()
	values, err := compute.Float64s(x)
	if err != nil {
		c.t.Fatal(err)
	}
	return values
}

// afterTransitions moves until each particle has made n transitions, and gives where each was after its n-th, and the
// share that moved.
func (c *nutsChains) afterTransitions(stepSize float64, d, n int) (phi []float64, accepted float64) {
	c.t.Helper()
	var made []int
	for range 10_000 {
		m := c.move(stepSize)
		if made == nil {
			phi, made = make([]float64, len(m.phi)), make([]int, len(m.complete))
		}
		left := false
		for j := range made {
			if m.complete[j] == 1 && made[j] < n {
				if made[j]++; made[j] == n {
					copy(phi[j*d:(j+1)*d], m.phi[j*d:(j+1)*d])
				}
				accepted += m.accepted[j] / float64(n*len(made))
			}
			left = left || made[j] < n
		}
		if !left {
			return phi, accepted
		}
	}
	c.t.Fatalf("10 000 moves are not enough for %d transitions", n)
	return nil, 0
}
