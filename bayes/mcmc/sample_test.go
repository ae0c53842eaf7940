package mcmc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// sample runs chains on a problem, as a user does.
func sample(t testing.TB, problem density.Problem, c Chains, s run.Settings) (*fit.Result, *Details) {
	t.Helper()
	result, err := fit.Sample(t.Context(), problem, c, s)
	if err != nil {
		t.Fatal(err)
	}
	return result, fit.Details[*Details](result)
}

func with(c Chains, kernel Kernel) Chains {
	c.Kernel = kernel
	return c
}

// looked is Chains whose run a test looks at, or changes, before its first step.
type looked struct {
	Chains
	at func(r *sampling, l *fit.Loop[struct{}])
}

func (k looked) Prepare(j *fit.Job) (fit.Method, error) {
	prepared, err := k.Chains.Prepare(j)
	if err == nil {
		k.Chains = prepared.(Chains)
	}
	return k, err
}

func (k looked) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	problem, err := j.Density(k.Chains.Chains)
	if err != nil {
		return nil, err
	}
	r := newSampling(j, k.Chains, problem)
	l := r.loop()
	k.at(r, l)
	return l.Run(ctx, j)
}

var errEnough = errors.New("enough")

func zeros(rng random.Stream, dtype compute.DType, chains int) *Node {
	return MulScalar(rng.Normal(dtype, chains, 2), 0)
}

func says(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// standard is a standard normal in two dimensions, times what its data say.
func standard() density.Problem {
	return density.Problem{
		Name: "standard", Dim: 2, Data: map[string]*tensors.Tensor{"precision": tensors.FromValue([]float64{1, 1})},
		Target: func(data compute.Nodes, _ []*Node) density.Target {
			return density.Func(func(phi *Node) *Node {
				precision := BroadcastToShape(ExpandAxes(ConvertDType(data["precision"], phi.DType()), 0), phi.Shape())
				return MulScalar(ReduceSum(Mul(Square(phi), precision), 1), -.5)
			})
		},
	}
}

// Chains that begin at draws of the target, as those of a standard normal do by default, are draws of it after each of
// their transitions, however many moves these took.
func TestSampleInvariance(t *testing.T) {
	engine, dtype := computetest.Go(t), compute.Float32
	kernel := HMC{StepSize: 1.3, Steps: 3, Jitter: .7}
	_, result := sample(t, standard(), Chains{Kernel: kernel, Chains: 4000, Draws: 6, WarmUp: NoWarmUp},
		run.Settings{Seed: 1, DType: dtype, Engine: engine})
	acceptance := 0.0
	for _, c := range result.Stats {
		acceptance += c.Acceptance / 4000
	}
	if acceptance > .85 || acceptance < .3 {
		t.Errorf("acceptance %.2f: this tests little", acceptance)
	}
	for draw := range 6 {
		var phi, square []float64
		for chain := range 4000 {
			x := result.Draws.At(chain, draw)
			phi = append(phi, x...)
			square = append(square, math.Exp(-(x[0]*x[0]+x[1]*x[1])/2)) // uniform
		}
		follows(t, fmt.Sprintf("draw %d", draw), column(phi, 2, 0), distuv.UnitNormal.CDF)
		follows(t, fmt.Sprintf("draw %d: radius", draw), square, func(x float64) float64 { return x })
	}
}

// A chain does not depend on how many others there are, though they end their transitions at different moves; thinning
// keeps each third of the draws.
func TestSampleDraws(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		draws := func(c Chains) *Details {
			c.WarmUp = NoWarmUp
			_, d := sample(t, standard().Keyed("standard"), c, run.Settings{Seed: 5, DType: dtype, Engine: engine})
			if n, err := compute.Float64s(d.Draws.Tensor()); err != nil || len(n) != 2*c.Chains*c.Draws {
				t.Fatalf("%d numbers for %d draws of %d chains, %v", len(n), c.Draws, c.Chains, err)
			}
			return d
		}
		var kernel Kernel = HMC{StepSize: .8, Steps: 4, Jitter: .8}
		if engine.IsXLA() { // which compiles long: the rest is counted on the host
			kernel = RandomWalkMetropolis{StepSize: 1}
		}
		all := draws(Chains{Kernel: kernel, Chains: 5, Draws: 30})
		some := draws(Chains{Kernel: kernel, Chains: 3, Draws: 30})
		thin := draws(Chains{Kernel: kernel, Chains: 5, Draws: 10, Thin: 3})
		for chain := range 5 {
			for draw := range 30 {
				is := all.Draws.At(chain, draw)
				if chain < 3 && !slices.Equal(is, some.Draws.At(chain, draw)) {
					t.Fatalf("chain %d, draw %d is another among five chains than among three", chain, draw)
				}
				if draw%3 == 2 && !slices.Equal(is, thin.Draws.At(chain, draw/3)) {
					t.Fatalf("chain %d, draw %d: %v, thinned %v", chain, draw, is, thin.Draws.At(chain, draw/3))
				}
			}
		}
		if flat := numbers(t, all); !slices.Equal(flat[2*(30+7):2*(30+8)], all.Draws.At(1, 7)) ||
			all.Draws.Coordinate(1)[1][7] != all.Draws.At(1, 7)[1] {
			t.Error("chain 1, draw 7 is elsewhere in the tensor, or among the coordinates")
		}
	})
}

// Inputs come anew for each move: with a gradient u_t = t + 1 instead of 0 SGLD of step size e moves by e/2 times their
// sum.
func TestSampleInputs(t *testing.T) {
	engine, dtype := computetest.Go(t), compute.Float64
	draws := func(slope float64) *Details {
		problem := density.Problem{
			Dim: 1,
			Inputs: func(move int) []any {
				return []any{float64(move+1) * slope, tensors.FromValue([]float32{1, 2})}
			},
			Target: func(_ compute.Nodes, inputs []*Node) density.Target {
				return density.Func(func(phi *Node) *Node { return Mul(ReduceSum(phi, 1), ConvertDType(inputs[0], phi.DType())) })
			},
		}
		_, result := sample(t, problem, Chains{Kernel: SGLD{StepSize: .2}, Chains: 2, Draws: 5, WarmUp: 3},
			run.Settings{DType: dtype, Engine: engine})
		return result
	}
	with, without := draws(1), draws(0)
	sum := 1.0 + 2 + 3
	for draw := range 5 {
		sum += float64(draw + 4)
		if got := with.Draws.At(1, draw)[0] - without.Draws.At(1, draw)[0]; math.Abs(got-.1*sum) > 1e-5 {
			t.Errorf("draw %d: moved by %v, want %v", draw, got, .1*sum)
		}
	}
}

// after is a context that is cancelled when it is asked for the n-th time.
type after struct {
	context.Context
	left *int
}

func (a after) Err() error {
	if *a.left--; *a.left < 0 {
		return context.Canceled
	}
	return nil
}

// A run that is left, in its warm-up or later, and goes on comes to the same bits as one that was not, in its draws and
// in what is counted, and all its draws so far are the whole run's.
func TestCheckpoint(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		chains := Chains{Kernel: HMC{Steps: 3, Jitter: .7}, Chains: 3, Draws: 200, WarmUp: 40}
		s := run.Settings{Seed: 2, DType: dtype, Engine: engine}
		problem := standard().Keyed("checkpoint")
		_, whole := sample(t, problem, chains, s)
		s.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
		var last run.Progress
		s.Progress = func(p run.Progress) { last = p }
		for session, left := range []int{17, 20, 30, 0, 1 << 30} { // steps; 0: some draws
			steps := 0
			ctx, cancel := context.WithCancel(t.Context())
			soFar, err := fit.Sample(run.Watched(ctx, func(p run.Progress, _ run.Machine) {
				if steps++; steps == left || left == 0 && p.Stage == "draws" && p.Step > 10 {
					cancel()
				}
			}), problem, chains, s)
			cancel()
			if errors.Is(err, context.Canceled) && session < 3 { // there are no draws yet
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			d := fit.Details[*Details](soFar)
			if n := d.Draws.PerChain; session < 2 || n == 0 || (n == 200) != (session == 4) {
				t.Errorf("session %d ends with %d draws", session, n)
			}
			for chain := range 3 {
				for draw := range d.Draws.PerChain {
					if !slices.Equal(d.Draws.At(chain, draw), whole.Draws.At(chain, draw)) {
						t.Fatalf("session %d, chain %d: draw %d is another", session, chain, draw)
					}
				}
			}
			if session == 4 && (!reflect.DeepEqual(d.Tuned, whole.Tuned) || !reflect.DeepEqual(d.Stats, whole.Stats) ||
				d.Moves != whole.Moves || d.WarmUpMoves != whole.WarmUpMoves || d.Evaluations != whole.Evaluations) {
				t.Errorf("resumed: %+v, uninterrupted %+v", d, whole)
			}
		}
		if last.Stage != "draws" || last.Step != 600 || last.Steps != 600 || !(last.Score("acceptance") > 0) ||
			!(last.Score("step size") > 0) {
			t.Errorf("progress at the end: %+v", last)
		}
	})
}

// Chains that do not move are an error with counts, and no posterior: every trajectory divergent, and no proposal
// accepted.
func TestStuck(t *testing.T) {
	problem := standard()
	problem.Data = map[string]*tensors.Tensor{"precision": tensors.FromValue([]float64{1e8, 1e8})}
	for _, c := range []struct {
		kernel Kernel
		says   string
	}{
		{HMC{StepSize: 1}, "of 50 transitions 0 were accepted, 50 diverged"},
		{RandomWalkMetropolis{StepSize: 1e3}, "of 50 transitions 0 were accepted, 0 diverged"},
	} {
		chains := Chains{Kernel: c.kernel, Chains: 5, Draws: 10, WarmUp: NoWarmUp}
		settings := run.Settings{Seed: 1, Engine: computetest.Go(t)}
		result, err := fit.Sample(t.Context(), problem, chains, settings)
		if !errors.Is(err, ErrStuck) || !says(err, c.says) || result != nil {
			t.Errorf("%T: %v, error %v, want ErrStuck that says %q", c.kernel, result, err, c.says)
		}
		chains.Draws = 1 << 20 // it does not wait for all of them
		if _, err := fit.Sample(t.Context(), problem, chains, settings); !errors.Is(err, ErrStuck) {
			t.Errorf("%T, many draws: error %v", c.kernel, err)
		}
	}
}

// What cannot be sampled is refused with what is wrong, and what to do.
func TestBadInput(t *testing.T) {
	settings := func(c Chains, want ...string) badInput {
		c.Kernel = cmp.Or[Kernel](c.Kernel, MALA{StepSize: .5})
		return badInput{standard(), c, want}
	}
	kernel := func(k Kernel, want ...string) badInput { return settings(Chains{Kernel: k}, want...) }
	problem := func(change func(*density.Problem), want ...string) badInput {
		bad := settings(Chains{}, want...)
		change(&bad.problem)
		return bad
	}
	target := func(of density.Target) func(p *density.Problem) {
		return func(p *density.Problem) { p.Target = func(compute.Nodes, []*Node) density.Target { return of } }
	}
	for _, c := range []badInput{
		settings(Chains{Chains: -2}, "Chains.Chains is -2"), settings(Chains{Draws: -1}, "Chains.Draws is -1"),
		settings(Chains{Draws: math.MaxInt}, "Chains.Draws", "[3 92233"), settings(Chains{Thin: -1}, "Chains.Thin is -1"),
		settings(Chains{WarmUp: -7}, "Chains.WarmUp is -7"),
		settings(Chains{Tuned: Tuned{StepSize: math.NaN()}}, "Tuned.StepSize is NaN"),
		settings(Chains{Tuned: Tuned{Scale: []float64{1}}}, "Tuned.Scale", "D, 2"),
		settings(Chains{Tuned: Tuned{Scale: []float64{1, 0}}}, "Tuned.Scale[1] is 0"),
		kernel(RandomWalk{}, "mcmc.RandomWalk", "does not ask its target", "mcmc.NUTS"),
		kernel(OrnsteinUhlenbeck{}, "mcmc.OrnsteinUhlenbeck", "does not ask its target"),
		kernel(HMC{}, "mcmc.HMC.StepSize is 0", "warm-up"), kernel(MALA{StepSize: -1}, "MALA.StepSize is -1"),
		problem(func(p *density.Problem) { p.Dim = 1 << 40 }, "Chains.Draws is 2", "6.6e+12 numbers"),
		problem(func(p *density.Problem) { p.Inputs = func(int) []any { return nil } }, "mcmc.MALA", "mcmc.SGLD"),
		problem(target(nil), "no target"),
		problem(target(density.Func(func(phi *Node) *Node { return ReduceAllSum(phi) })), "log-density has shape", "[3]"),
		problem(func(p *density.Problem) {
			p.Initial = func(rng random.Stream, dtype compute.DType, chains int) *Node {
				return rng.Normal(dtype, chains, 7)
			}
		}, "Initial gives shape", "[3, 7]", "[3, 2]"),
		problem(func(p *density.Problem) { // chain 1 of 3 begins at 1, where the density is NaN
			p.Initial = func(rng random.Stream, dtype compute.DType, chains int) *Node {
				phi := Iota(rng.Normal(dtype, 1).Graph(), shapes.Make(dtype, chains, 2), 0)
				return Sub(phi, MulScalar(Square(SubScalar(phi, 1)), .5))
			}
			target(density.Func(func(phi *Node) *Node { return Log(ReduceSum(Neg(SubScalar(phi, .9)), 1)) }))(p)
		}, errStart.Error(), "2 of 3", "chain 1"),
	} {
		c.Chains.Chains, c.Draws = cmp.Or(c.Chains.Chains, 3), cmp.Or(c.Draws, 2)
		c.WarmUp = cmp.Or(c.WarmUp, NoWarmUp)
		result, err := fit.Sample(t.Context(), c.problem, c.Chains, run.Settings{Engine: computetest.Go(t)})
		if result != nil {
			t.Errorf("%v: result %v", c.want, result)
		}
		for _, text := range c.want {
			if !says(err, text) {
				t.Errorf("error %v does not say %q", err, text)
			}
		}
	}
}

type badInput struct {
	problem density.Problem
	Chains
	want []string
}

// A chain's statistics are the plain sums over its transitions, kept in JSON as in memory.
func TestTally(t *testing.T) {
	m := &moves{chains: 2, carrier: &Carrier{
		infos: []info{
			infoComplete, infoAcceptance, infoAccepted, infoNonFinite, infoDivergent, infoEnergy, infoLength,
		},
	}}
	var sum tally
	energies := []float64{3, 5, 4, 8}
	for i, e := range energies {
		for _, ended := range []float64{0, 1} {
			// The other chain, 0, holds what must not count.
			values := []float64{
				9, ended, 9, .5 + float64(i)/10, 9, float64(i % 2), 9, 1 - ended, 9, float64(i / 3), 9, e, 9, 4,
			}
			if got := sum.add(moveRecord{moves: m, values: values}, 1); got != (ended == 1) {
				t.Errorf("a move that ends a transition: %v, says %v", ended, got)
			}
			text, err := json.Marshal(sum)
			if err != nil {
				t.Fatal(err)
			}
			sum = tally{}
			if err := json.Unmarshal(text, &sum); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := sum.stats(true, 0)
	want := ChainStats{
		Transitions: 4, Acceptance: .65, Accepted: 2, Standstill: 1, Divergences: 1, NonFinite: 4, Gradients: 16,
		Evaluations: Evaluations{FullGradients: 16},
		EnergyBFMI:  (4 + 1 + 16) / (3 * stat.Variance(energies, nil)),
	}
	computetest.Near(
		t, "means", []float64{got.Acceptance, got.EnergyBFMI}, []float64{want.Acceptance, want.EnergyBFMI}, 1e-12,
	)
	got.Acceptance, got.EnergyBFMI = want.Acceptance, want.EnergyBFMI
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A problem with a key gives what it gives without, whatever was sampled before, and takes other data of one shape.
func TestKeyed(t *testing.T) {
	chains := Chains{Kernel: RandomWalkMetropolis{}, Chains: 4, Draws: 30, WarmUp: 30}
	s := run.Settings{DType: compute.Float64, Engine: computetest.Go(t)}
	compiled := s.Engine.Compiled()
	narrow := map[string]*tensors.Tensor{"precision": tensors.FromValue([]float64{1e4, 1e4})}
	for _, c := range []struct {
		data map[string]*tensors.Tensor
		seed uint64
	}{{standard().Data, 1}, {narrow, 2}, {standard().Data, 1}} {
		problem := standard()
		problem.Data, s.Seed = c.data, c.seed
		_, got := sample(t, problem.Keyed("keyed"), chains, s)
		_, want := sample(t, problem, chains, s)
		if !slices.Equal(numbers(t, got), numbers(t, want)) || got.Tuned.StepSize != want.Tuned.StepSize {
			t.Errorf("seed %d: with a key it has other draws", c.seed)
		}
	}
	if n := s.Engine.Compiled() - compiled; n != 4 { // once, and without a key each time
		t.Errorf("it compiled %d times", n)
	}
}

// stepped is a random walk whose step size a function gives.
type stepped struct {
	RandomWalkMetropolis
	size func() float64
}

func (k stepped) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	k.StepSize = k.size()
	return k.RandomWalkMetropolis.Move(rng, s, target, Tuning{Scale: tuning.Scale})
}

// Two kernels that hold functions of one literal are not taken for each other.
func TestKernelsWithFunctions(t *testing.T) {
	chains := Chains{Chains: 2, Draws: 5, WarmUp: NoWarmUp}
	settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	for _, size := range []float64{.5, 1} {
		kernel := stepped{RandomWalkMetropolis{StepSize: 1}, func() float64 { return size }}
		_, got := sample(t, standard().Keyed("standard"), with(chains, kernel), settings)
		_, want := sample(t, standard(), with(chains, kernel), settings)
		if !reflect.DeepEqual(got.Draws.Coordinate(0), want.Draws.Coordinate(0)) {
			t.Errorf("steps of %v: %v, want %v", size, got.Draws.Coordinate(0), want.Draws.Coordinate(0))
		}
	}
}

// Draws that the machine has no memory for are refused before the start.
func TestDrawsBeyondMemory(t *testing.T) {
	if compute.CheckHost(math.MaxInt64, "", "") == nil {
		t.Skip("how much memory the machine has is not known")
	}
	chains := Chains{Kernel: MALA{StepSize: .5}, Chains: 3, Draws: 1 << 35, WarmUp: NoWarmUp}
	_, err := fit.Sample(t.Context(), standard(), chains, run.Settings{Engine: computetest.Go(t)})
	if !says(err, "before the start: the draws of all chains take") || !says(err, "of the draws") {
		t.Errorf("%v", err)
	}
}

// A run that ends in its warm-up says how far it came.
func TestEndsInWarmUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := run.Settings{Engine: computetest.Go(t), Progress: func(p run.Progress) {
		if p.Step > 3 {
			cancel()
		}
	}}
	_, err := fit.Sample(ctx, standard(), Chains{Kernel: HMC{}, Chains: 2, Draws: 10, WarmUp: 100_000}, s)
	for _, text := range []string{"of 100000 transitions", "auto.Method"} {
		if !says(err, text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not wrap the context's error", err)
	}
}
