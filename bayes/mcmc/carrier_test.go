package mcmc

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// The state of every kernel goes through tensors bit by bit: three moves in three calls are three moves in one graph.
func TestCarrier(t *testing.T) {
	const particles, d = 7, 2
	engine := computetest.Go(t)
	flat := func(g *Graph) density.Target { return normalAt(.2, .7) }
	for _, kernel := range append(every(), NUTS{StepSize: .3, MaxDepth: 3}) {
		carrier, err := NewCarrier(engine, kernel, shapes.Make(compute.Float64, particles, d), flat)
		if err != nil {
			t.Fatal(err)
		}
		carrier = carrier.WithPrefix("moving/")
		rng := func(g *Graph) random.Stream { return random.New(g, 3) }
		state := compute.NewState(engine)
		defer state.Close()
		start := carried(t, engine, "start", nil, carrier.Names(), func(_ compute.Nodes, inputs []*Node) compute.Nodes {
			return carrier.Start(rng(inputs[0].Graph()), inputs[0], normalAt(.2, .7))
		})
		move := carried(t, engine, "move", carrier.Names(), carrier.Names(), func(
			nodes compute.Nodes, inputs []*Node,
		) compute.Nodes {
			next, _ := carrier.Move(rng(inputs[0].Graph()).At(inputs[0]), nodes, normalAt(.2, .7), Tuning{}, nil)
			return next
		})
		phi := make([]float64, particles*d)
		for i := range phi {
			phi[i] = float64(i%5)/4 - .5
		}
		at := compute.Floats(compute.Float64, phi, particles, d)
		start(state, at)
		for i := range 3 {
			move(state, uint32(i))
		}
		host, err := state.Host(carrier.Names()...)
		if err != nil {
			t.Fatal(err)
		}
		want := computetest.Run(t, engine, func(g *Graph, a []*Node) []*Node {
			s := Start(kernel, rng(g), a[0], normalAt(.2, .7))
			for i := range 3 {
				s, _ = kernel.Move(rng(g).At(Const(g, uint32(i))), s, normalAt(.2, .7), Tuning{})
			}
			packed := carrier.pack(s)
			var out []*Node
			for _, name := range carrier.Names() {
				out = append(out, packed[name])
			}
			return out
		}, at)
		for i, name := range carrier.Names() {
			got, err := compute.Float64s(host[name])
			if err != nil {
				t.Fatal(err)
			}
			computetest.Near(t, fmt.Sprintf("%T: %s", kernel, name), got, want[i], 1e-13)
		}
	}
}

// carried compiles a step without a record, and runs it on a state.
func carried(
	t *testing.T, engine *compute.Engine, name string, reads, updates []string,
	step func(nodes compute.Nodes, inputs []*Node) compute.Nodes,
) func(*compute.State, ...any) {
	t.Helper()
	program, err := compute.NewProgram(engine, name, reads, updates, func(
		nodes compute.Nodes, inputs []*Node,
	) (compute.Nodes, *Node) {
		return step(nodes, inputs), Const(inputs[0].Graph(), []float64{0})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(program.Close)
	return func(state *compute.State, inputs ...any) {
		t.Helper()
		if _, err := program.Run(state, inputs...); err != nil {
			t.Fatal(err)
		}
	}
}

// Transitions of all particles together: each particle stays where its first transition ended, which is where it ends
// when none waits.
func TestMoveUnfinished(t *testing.T) {
	const particles = 30
	engine := computetest.Go(t)
	normal := density.Func(func(phi *Node) *Node { return MulScalar(ReduceSum(Square(phi), 1), -.5) })
	at := compute.Floats(compute.Float64, slices.Repeat([]float64{.3}, particles), particles, 1)
	for _, kernel := range []Kernel{HMC{StepSize: .4, Steps: 4, Jitter: .8}, RandomWalkMetropolis{StepSize: 1}} {
		carrier, err := NewCarrier(engine, kernel, at.Shape(), func(*Graph) density.Target { return normal })
		if err != nil {
			t.Fatal(err)
		}
		names := append(carrier.Names(), "unfinished")
		start := carried(t, engine, "start", nil, names, func(_ compute.Nodes, inputs []*Node) compute.Nodes {
			nodes := carrier.Start(random.New(inputs[0].Graph(), 1), inputs[0], normal)
			nodes["unfinished"] = Squeeze(OnesLike(inputs[0]), 1)
			return nodes
		})
		run := func(waits bool) (moves []int, phi []float64) {
			state := compute.NewState(engine)
			defer state.Close()
			start(state, at)
			move := carried(t, engine, "move", names, names, func(nodes compute.Nodes, inputs []*Node) compute.Nodes {
				rng := random.New(inputs[0].Graph(), 2).At(inputs[0])
				unfinished := nodes["unfinished"]
				delete(nodes, "unfinished")
				if waits {
					next, ended, _ := carrier.MoveUnfinished(rng, nodes, unfinished, normal, Tuning{})
					next["unfinished"] = Sub(unfinished, ended)
					return next
				}
				next, outcome := carrier.Move(rng, nodes, normal, Tuning{}, nil)
				next["unfinished"] = ZerosLike(unfinished)
				if outcome.Complete != nil {
					next["unfinished"] = Mul(unfinished, OneMinus(outcome.Complete))
				}
				return next
			})
			moves, phi = make([]int, particles), make([]float64, particles)
			for n := 0; slices.Contains(moves, 0); n++ {
				move(state, uint32(n))
				host, err := state.Host("unfinished", "phi")
				if err != nil {
					t.Fatal(err)
				}
				left, _ := compute.Float64s(host["unfinished"])
				now, _ := compute.Float64s(host["phi"])
				for i := range moves {
					if waits && moves[i] > 0 && now[i] != phi[i] {
						t.Fatalf("%T: particle %d does not wait", kernel, i)
					}
					if left[i] == 0 && moves[i] == 0 {
						moves[i], phi[i] = n+1, now[i]
					}
				}
			}
			return moves, phi
		}
		freeMoves, free := run(false)
		moves, phi := run(true)
		if !slices.Equal(moves, freeMoves) || !slices.Equal(phi, free) {
			t.Errorf("%T: transitions end after %v moves at %v, but %v at %v if none waits", kernel, moves, phi, freeMoves, free)
		}
		if several := slices.Max(moves) > slices.Min(moves); several != carrier.SeveralMoves() {
			t.Errorf("%T: transitions take %v moves: this tests little", kernel, moves)
		}
	}
}

// jumping is a kernel of one's own that reports how far each transition went, which is NaN where it stayed.
type jumping struct{ RandomWalkMetropolis }

func (k jumping) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	next, info := k.RandomWalkMetropolis.Move(rng, s, target, tuning)
	jump := Sqrt(ReduceSum(Square(Sub(next.Phi, s.Phi)), 1))
	info.Extra = map[string]*Node{"jump": Div(jump, info.Accepted), "two": AddScalar(ZerosLike(jump), 2)}
	return next, info
}

// What a kernel reports beside the fields of Info is in ChainStats by its name, over the transitions where it is
// finite, also of a run that went on from a checkpoint.
func TestExtraInfo(t *testing.T) {
	chains := Chains{Chains: 2, Draws: 40, WarmUp: NoWarmUp}
	settings := run.Settings{Engine: computetest.Go(t), Seed: 3, Checkpoint: filepath.Join(t.TempDir(), "run")}
	kernel := jumping{RandomWalkMetropolis{StepSize: 1}}
	left := 17
	if _, err := fit.Sample(after{t.Context(), &left}, standard(), with(chains, kernel), settings); err != nil {
		t.Fatal(err)
	}
	_, result := sample(t, standard(), with(chains, kernel), settings)
	for chain, stats := range result.Stats {
		sum := 0.0
		for i := 1; i < result.Draws.PerChain; i++ { // the first draw's jump began at a place that is not kept
			from, to := result.Draws.At(chain, i-1), result.Draws.At(chain, i)
			sum += math.Hypot(to[0]-from[0], to[1]-from[1])
		}
		mean, moved := stats.Extra["jump"], float64(stats.Accepted)
		if first := mean*moved - sum; first < -1e-4 || first > 5 || stats.Extra["two"] != 2 || moved == 0 || moved == 40 {
			t.Errorf("chain %d: extra %v; %v of 40 transitions moved, by %v after the first", chain, stats.Extra, moved, sum)
		}
	}
}

// The work of a node is what it computes, that of a product and of a convolution what they multiply.
func TestWorkOf(t *testing.T) {
	g := NewGraph(computetest.Go(t).Backend(), "work")
	defer g.Finalize()
	of := func(dims ...int) *Node { return Zeros(g, shapes.Make(compute.Float32, dims...)) }
	for name, c := range map[string]struct {
		node *Node
		want int
	}{
		"sum":         {Add(of(3, 5), of(3, 5)), 15},
		"product":     {Einsum("ik,kj->ij", of(3, 7), of(7, 5)), 3 * 7 * 5},
		"convolution": {Convolve(of(2, 8, 9, 3), of(3, 3, 3, 4)).PadSame().Done(), 2 * 8 * 9 * 4 * 3 * 3 * 3},
		"groups":      {Convolve(of(2, 8, 9, 6), of(3, 3, 3, 4)).ChannelGroupCount(2).PadSame().Done(), 2 * 8 * 9 * 4 * 27},
		"nothing":     {of(0, 3), 0},
	} {
		if got := compute.Work([]*Node{c.node}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A kernel's start and move build one graph each time, else none of its compiled programs would be found again by the
// next process.
func TestKernelsBuildOneGraph(t *testing.T) {
	engine := computetest.Go(t)
	target := surrogated{normalAt(0, 1), normalAt(0, 1)}
	for _, kernel := range []Kernel{
		HMC{StepSize: .5, Steps: 3}, NUTS{StepSize: .5, MaxDepth: 3},
		DelayedAcceptance{Inner: HMC{StepSize: .5}},
	} {
		built := func() string {
			g := NewGraph(engine.Backend(), "move")
			defer g.Finalize()
			phi := Parameter(g, "phi", shapes.Make(compute.Float32, 3, 2))
			carrier, err := NewCarrier(engine, kernel, phi.Shape(), func(*Graph) density.Target { return target })
			if err != nil {
				t.Fatal(err)
			}
			nodes := carrier.Start(random.New(g, 1), phi, target)
			unfinished := Ones(g, shapes.Make(compute.Float32, 3))
			carrier.MoveUnfinished(random.New(g, 2), nodes, unfinished, target, Tuning{})
			return g.String()
		}
		if first, second := built(), built(); first != second {
			t.Errorf("%T builds another graph each time", kernel)
		}
	}
}
