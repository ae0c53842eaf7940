package mcmc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
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
	result, err := Sample(
		context.Background(), standard(), kernel,
		Settings{Chains: 4000, Draws: 6, WarmUp: NoWarmUp, Seed: 1, DType: dtype, Engine: engine},
	)
	if err != nil {
		t.Fatal(err)
	}
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
// keeps each third of the draws; and every gradient is counted.
func TestSampleDraws(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		samplers := map[Kernel]*Sampler{}
		run := func(kernel Kernel, s Settings) *Result {
			if samplers[kernel] == nil {
				samplers[kernel] = &Sampler{Problem: standard(), Kernel: kernel}
			}
			s.WarmUp, s.Seed, s.DType, s.Engine = NoWarmUp, 5, dtype, engine
			result, err := samplers[kernel].Sample(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			if d := result.Draws; d.Chains != s.Chains || d.PerChain != s.Draws || d.Dim != 2 || result.Status != run.Completed {
				t.Fatalf("%d chains of %d draws of dimension %d, %s", d.Chains, d.PerChain, d.Dim, result.Status)
			}
			return result
		}
		if engine.IsXLA() { // which compiles long: the rest is counted on the host
			walk := RandomWalkMetropolis{StepSize: 1}
			all, some := run(walk, Settings{Chains: 5, Draws: 30}), run(walk, Settings{Chains: 3, Draws: 30})
			for chain := range 3 {
				for draw := range 30 {
					if !slices.Equal(all.Draws.At(chain, draw), some.Draws.At(chain, draw)) {
						t.Fatalf("chain %d, draw %d is another among five chains than among three", chain, draw)
					}
				}
			}
			return
		}
		kernel := HMC{StepSize: .8, Steps: 4, Jitter: .8}
		all, some, thin := run(kernel, Settings{Chains: 5, Draws: 30}), run(kernel, Settings{Chains: 3, Draws: 30}), run(
			kernel, Settings{Chains: 5, Draws: 10, Thin: 3},
		)
		gradients := 0
		for chain := range 5 {
			for draw := range 30 {
				if chain < 3 && !slices.Equal(all.Draws.At(chain, draw), some.Draws.At(chain, draw)) {
					t.Fatalf(
						"chain %d, draw %d: %v among five chains, %v among three", chain, draw, all.Draws.At(chain, draw),
						some.Draws.At(chain, draw),
					)
				}
				if draw%3 == 2 && !slices.Equal(all.Draws.At(chain, draw), thin.Draws.At(chain, draw/3)) {
					t.Fatalf("chain %d, draw %d: %v, thinned %v", chain, draw, all.Draws.At(chain, draw), thin.Draws.At(chain, draw/3))
				}
			}
			c := all.Stats[chain]
			gradients += c.Gradients
			if c.Transitions != 30 || c.Gradients < 30 || c.Gradients > 30*7 || c.NonFinite != 0 || c.Divergences != 0 ||
				!(c.MaxEnergyError >= c.MeanEnergyError) || !(c.EnergyBFMI > .3) {
				t.Errorf("chain %d: %+v", chain, c)
			}
		}
		if all.Gradients != gradients || all.Gradients > 5*all.Moves || all.Gradients == 5*all.Moves {
			t.Errorf("%d gradients in %d moves of 5 chains, want %d", all.Gradients, all.Moves, gradients)
		}
		if flat, err := compute.Float64s(all.Draws.Tensor()); err != nil ||
			!slices.Equal(
				flat[2*(30+7):2*(30+8)], all.Draws.At(1, 7),
			) || all.Draws.Coordinate(1)[1][7] != all.Draws.At(1, 7)[1] {
			t.Errorf("chain 1, draw 7 is elsewhere in the tensor, or among the coordinates; %v", err)
		}
		for _, c := range []struct {
			kernel Kernel
			want   int
		}{
			{HMC{StepSize: .5, Steps: 3}, 3 * 3 * 10}, {HMC{StepSize: .5, Steps: 3, AtOnce: 2}, 3 * 3 * 10},
			{MALA{StepSize: .5}, 3 * 10}, {RandomWalkMetropolis{StepSize: .5}, 0},
			{SGHMC{LearningRate: .1}, 3 * 10},
		} {
			if result := run(c.kernel, Settings{Chains: 3, Draws: 10}); result.Gradients != c.want {
				t.Errorf("%T: %d gradients, want %d", c.kernel, result.Gradients, c.want)
			}
		}
	})
}

// Inputs come anew for each move: with a gradient u_t = t + 1 instead of 0 SGLD of step size e moves by e/2 times their
// sum.
func TestSampleInputs(t *testing.T) {
	engine, dtype := computetest.Go(t), compute.Float64
	run := func(slope float64) *Result {
		problem := density.Problem{
			Dim: 1,
			Inputs: func(move int) []any {
				return []any{float64(move+1) * slope, tensors.FromValue([]float32{1, 2})}
			},
			Target: func(_ compute.Nodes, inputs []*Node) density.Target {
				return density.Func(func(phi *Node) *Node { return Mul(ReduceSum(phi, 1), ConvertDType(inputs[0], phi.DType())) })
			},
		}
		result, err := Sample(
			context.Background(), problem, SGLD{StepSize: .2},
			Settings{Chains: 2, Draws: 5, WarmUp: 3, DType: dtype, Engine: engine},
		)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	with, without := run(1), run(0)
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

// A run that is cancelled, in its warm-up or later, gives the draws that all chains have; resumed, it comes to the same
// bits as one that was not.
func TestCheckpoint(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		settings := Settings{Chains: 3, Draws: 60, WarmUp: 40, Seed: 2, DType: dtype, Engine: engine}
		kernel := HMC{Steps: 3, Jitter: .7}
		sampler := Sampler{Problem: standard(), Kernel: kernel}
		whole, err := sampler.Sample(context.Background(), settings)
		if err != nil {
			t.Fatal(err)
		}
		before := 0 // steps until all chains have a draw
		chains, of := settings.apart(kernel)
		for now, err := range fit.SampleSteps(t.Context(), sampler.keyed(), chains, of) {
			if err != nil {
				t.Fatal(err)
			}
			if before++; now.Stage == "draws" && now.Step >= settings.Chains {
				break
			}
		}
		settings.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
		left := 0
		for sitting, looks := range []int{17, before / 2, before/2 + 8, 20, 1 << 30} {
			left = looks
			var last run.Progress
			settings.Progress = func(p run.Progress) { last = p }
			result, err := sampler.Sample(after{context.Background(), &left}, settings)
			if err != nil {
				t.Fatal(err)
			}
			if sitting < 2 && result.Draws.PerChain != 0 || sitting == 2 &&
				(result.Draws.PerChain == 0 || result.Draws.PerChain == 60) {
				t.Errorf("session %d ends with %d draws", sitting, result.Draws.PerChain)
			}
			for chain := range 3 {
				for draw := range result.Draws.PerChain {
					if !slices.Equal(result.Draws.At(chain, draw), whole.Draws.At(chain, draw)) {
						t.Fatalf(
							"session %d, chain %d, draw %d: %v, uninterrupted %v", sitting, chain, draw, result.Draws.At(chain, draw),
							whole.Draws.At(chain, draw),
						)
					}
				}
			}
			if sitting < 4 {
				if result.Status != run.Cancelled {
					t.Errorf("session %d: %s", sitting, result.Status)
				}
				continue
			}
			if result.Status != run.Completed || result.Draws.PerChain != 60 ||
				!reflect.DeepEqual(result.Tuned, whole.Tuned) {
				t.Errorf(
					"resumed: %s, %d draws, tuned %+v, uninterrupted %+v", result.Status, result.Draws.PerChain, result.Tuned,
					whole.Tuned,
				)
			}
			if !reflect.DeepEqual(result.Draws.Divergent(), whole.Draws.Divergent()) {
				t.Errorf("resumed: divergent %v, uninterrupted %v", result.Draws.Divergent(), whole.Draws.Divergent())
			}
			if !reflect.DeepEqual(result.Stats, whole.Stats) || result.Moves != whole.Moves ||
				result.Gradients != whole.Gradients {
				t.Errorf("resumed: %+v, uninterrupted %+v", result.Stats, whole.Stats)
			}
			if last.Stage != "draws" || last.Step != 180 || last.Steps != 180 || !(last.Score("acceptance") > 0) ||
				!(last.Score("step size") > 0) {
				t.Errorf("progress at the end: %+v", last)
			}
		}
	})
}

// A checkpoint of another run is an error that says what differs.
func TestCheckpointOfAnotherRun(t *testing.T) {
	engine := computetest.Go(t)
	settings := Settings{
		Chains: 3, Draws: 5, WarmUp: NoWarmUp, Engine: engine, Checkpoint: filepath.Join(t.TempDir(), "run.safetensors"),
	}
	kernel := MALA{StepSize: .5}
	if _, err := Sample(context.Background(), standard(), kernel, settings); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(p *density.Problem, k *Kernel, s *Settings)
		says   []string
	}{
		{
			func(_ *density.Problem, k *Kernel, _ *Settings) { *k = HMC{StepSize: .5} },
			[]string{"other settings", "mcmc.HMC", "mcmc.MALA"},
		},
		{
			func(_ *density.Problem, k *Kernel, _ *Settings) { *k = MALA{StepSize: .4} },
			[]string{"other settings", "0.4", "0.5"},
		},
		{
			func(_ *density.Problem, _ *Kernel, s *Settings) { s.Seed = 9 },
			[]string{"another seed", "the file has 0, this run 9"},
		},
		{func(_ *density.Problem, _ *Kernel, s *Settings) { s.Chains = 4 }, []string{"other settings", `"chains":4`}},
		{
			func(_ *density.Problem, _ *Kernel, s *Settings) { s.DType = compute.Float64 },
			[]string{"other settings", "Float64"},
		},
		{func(p *density.Problem, _ *Kernel, _ *Settings) { p.Name = "other" }, []string{"another problem", "other"}},
		{func(p *density.Problem, _ *Kernel, _ *Settings) {
			p.Dim = 3
			p.Data = map[string]*tensors.Tensor{"precision": tensors.FromValue([]float64{1, 1, 1})}
		}, []string{"another problem", "dimension 3"}},
		{func(p *density.Problem, _ *Kernel, _ *Settings) {
			p.Data = map[string]*tensors.Tensor{"precision": tensors.FromValue([]float64{1, 2})}
		}, []string{"other data"}},
		{func(p *density.Problem, _ *Kernel, _ *Settings) {
			p.Start = tensors.FromValue([][]float32{{1, 1}, {2, 2}, {3, 3}})
		}, []string{"another start", "the file has draws of Initial"}},
		{
			func(p *density.Problem, _ *Kernel, _ *Settings) { p.Climb = &density.Climb{Rate: .7} },
			[]string{"another start", "200 steps uphill: {Steps:0 Rate:0.7 Fixed:[]}"},
		},
	} {
		p, k, s := standard(), Kernel(kernel), settings
		c.change(&p, &k, &s)
		_, err := Sample(context.Background(), p, k, s)
		for _, text := range append(c.says, "run.safetensors", "delete the file") {
			if !says(err, text) {
				t.Errorf("error %v does not say %q", err, text)
			}
		}
	}
	if err := os.WriteFile(settings.Checkpoint, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Sample(context.Background(), standard(), kernel, settings); !says(err, "resuming") {
		t.Errorf("a file of nonsense: %v", err)
	}
	settings.Replace = true
	for _, seed := range []uint64{9, 10} { // over nonsense, and over another run
		settings.Seed = seed
		if result, err := Sample(context.Background(), standard(), kernel, settings); err != nil || result.Moves != 5 {
			t.Errorf("Replace with seed %d: %+v, %v", seed, result, err)
		}
	}
	settings.Checkpoint = filepath.Join(t.TempDir(), "none", "run.safetensors")
	if _, err := Sample(context.Background(), standard(), kernel, settings); !says(err, "checkpoint") {
		t.Errorf("a folder that is not there: %v", err)
	}
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
		settings := Settings{Chains: 5, Draws: 10, WarmUp: NoWarmUp, Seed: 1, Engine: computetest.Go(t)}
		sampler := Sampler{Problem: problem, Kernel: c.kernel}
		result, err := sampler.Sample(context.Background(), settings)
		if !errors.Is(err, ErrStuck) || !says(err, c.says) || result != nil {
			t.Errorf("%T: %v, error %v, want ErrStuck that says %q", c.kernel, result, err, c.says)
		}
		settings.Draws = 1 << 20 // it does not wait for all of them
		if _, err := sampler.Sample(context.Background(), settings); !errors.Is(err, ErrStuck) {
			t.Errorf("%T, many draws: error %v", c.kernel, err)
		}
	}
}

func TestBadInput(t *testing.T) {
	engine := computetest.Go(t)
	nan := math.NaN()
	with := func(change func(*density.Problem, *Settings)) func(*density.Problem, *Kernel, *Settings) {
		return func(p *density.Problem, _ *Kernel, s *Settings) { change(p, s) }
	}
	kernel := func(k Kernel) func(*density.Problem, *Kernel, *Settings) {
		return func(_ *density.Problem, was *Kernel, _ *Settings) { *was = k }
	}
	for _, c := range []struct {
		change func(*density.Problem, *Kernel, *Settings)
		is     error
		says   []string
	}{
		{with(func(p *density.Problem, _ *Settings) { p.Dim = 0 }), nil, []string{"Problem.Dim", "0"}},
		{with(func(p *density.Problem, _ *Settings) { p.Target = nil }), nil, []string{"Problem.Target"}},
		{with(func(_ *density.Problem, s *Settings) { s.Chains = -2 }), nil, []string{"Chains.Chains", "-2"}},
		{with(func(_ *density.Problem, s *Settings) { s.Draws = -1 }), nil, []string{"Chains.Draws", "-1"}},
		{
			with(func(p *density.Problem, _ *Settings) { p.Dim = 1 << 40 }), nil,
			[]string{"Chains.Draws is 2", "6.6e+12 numbers"},
		},
		{
			with(func(_ *density.Problem, s *Settings) { s.Draws = math.MaxInt }), nil,
			[]string{"Chains.Draws", "[3 92233"},
		},
		{with(func(_ *density.Problem, s *Settings) { s.Thin = -1 }), nil, []string{"Chains.Thin", "-1"}},
		{with(func(_ *density.Problem, s *Settings) { s.WarmUp = -7 }), nil, []string{"Chains.WarmUp", "-7"}},
		{with(func(_ *density.Problem, s *Settings) { s.CheckpointEvery = -1 }), nil, []string{"CheckpointEvery"}},
		{with(func(_ *density.Problem, s *Settings) { s.DType = compute.DType(1) }), nil, []string{"Settings.DType"}},
		{with(func(_ *density.Problem, s *Settings) { s.Tuned.StepSize = nan }), nil, []string{"Tuned.StepSize", "NaN"}},
		{
			with(func(_ *density.Problem, s *Settings) { s.Tuned.Scale = []float64{1} }), nil,
			[]string{"Tuned.Scale", "1", "D, 2"},
		},
		{
			with(func(_ *density.Problem, s *Settings) { s.Tuned.Scale = []float64{1, 0} }), nil,
			[]string{"Tuned.Scale[1]", "0"},
		},
		{kernel(RandomWalk{}), nil, []string{"mcmc.RandomWalk", "does not ask its target", "mcmc.NUTS"}},
		{kernel(OrnsteinUhlenbeck{}), nil, []string{"mcmc.OrnsteinUhlenbeck", "does not ask its target", "mcmc.NUTS"}},
		{kernel(HMC{}), nil, []string{"mcmc.HMC.StepSize is 0", "warm-up"}},
		{kernel(MALA{StepSize: -1}), nil, []string{"MALA.StepSize", "-1"}},
		{kernel(HMC{StepSize: nan}), nil, []string{"HMC.StepSize", "NaN"}},
		{kernel(HMC{StepSize: 1, Steps: -3}), nil, []string{"HMC.Steps", "-3"}},
		{kernel(HMC{StepSize: 1, Jitter: 1}), nil, []string{"HMC.Jitter", "1"}},
		{kernel(HMC{StepSize: 1, AtOnce: -1}), nil, []string{"HMC.AtOnce", "-1"}},
		{kernel(HMC{StepSize: 1, AtOnce: 1025}), nil, []string{"HMC.AtOnce", "1025", "1024"}},
		{kernel(ULA{}), nil, []string{"ULA.StepSize", "0"}},
		{kernel(SGLD{StepSize: nan}), nil, []string{"SGLD.StepSize", "NaN"}},
		{kernel(SGLD{StepSize: 1, Decay: 2}), nil, []string{"SGLD.Decay", "2"}},
		{kernel(SGLD{StepSize: 1, Offset: -1}), nil, []string{"SGLD.Offset", "-1"}},
		{kernel(SGHMC{}), nil, []string{"SGHMC.LearningRate", "0"}},
		{kernel(SGHMC{LearningRate: 1, Friction: 1}), nil, []string{"SGHMC.Friction", "1"}},
		{kernel(SGHMC{LearningRate: 1, Noise: .2}), nil, []string{"SGHMC.Noise", "0.2", "0.1"}},
		{
			with(func(p *density.Problem, _ *Settings) { p.Inputs = func(int) []any { return nil } }), nil,
			[]string{"mcmc.MALA", "mcmc.SGLD"},
		},
		{with(func(p *density.Problem, _ *Settings) {
			p.Target = func(compute.Nodes, []*Node) density.Target { return nil }
		}), nil, []string{"no target"}},
		{with(func(p *density.Problem, _ *Settings) {
			p.Target = func(compute.Nodes, []*Node) density.Target {
				return density.Func(func(phi *Node) *Node { return ReduceAllSum(phi) })
			}
		}), nil, []string{"log-density has shape", "[3]"}},
		{with(func(p *density.Problem, _ *Settings) {
			p.Initial = func(rng random.Stream, dtype compute.DType, chains int) *Node { return rng.Normal(dtype, chains, 7) }
		}), nil, []string{"Initial gives shape", "[3, 7]", "[3, 2]"}},
		{with(func(p *density.Problem, _ *Settings) { // chain 1 of 3 begins at 1, where the density is NaN
			p.Initial = func(rng random.Stream, dtype compute.DType, chains int) *Node {
				phi := Iota(rng.Normal(dtype, 1).Graph(), shapes.Make(dtype, chains, 2), 0)
				return Sub(phi, MulScalar(Square(SubScalar(phi, 1)), .5))
			}
			p.Target = func(compute.Nodes, []*Node) density.Target {
				return density.Func(func(phi *Node) *Node { return Log(ReduceSum(Neg(SubScalar(phi, .9)), 1)) })
			}
		}), errStart, []string{"2 of 3", "chain 1"}},
	} {
		p, k, s := standard(), Kernel(MALA{StepSize: .5}), Settings{Chains: 3, Draws: 2, WarmUp: NoWarmUp, Engine: engine}
		c.change(&p, &k, &s)
		result, err := Sample(context.Background(), p, k, s)
		if err == nil || result != nil || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%v: result %v, error %v", c.says, result, err)
		}
		for _, text := range c.says {
			if !says(err, text) {
				t.Errorf("error %v does not say %q", err, text)
			}
		}
	}
}

// Of each draw it is known whether its transition diverged, as the chain's statistics count it, unless the kernel does
// not report it.
func TestDivergent(t *testing.T) {
	// The tails of exp(-x^4/4) are so steep that a long step from further out diverges.
	quartic := density.Problem{Name: "quartic", Dim: 2, Target: func(compute.Nodes, []*Node) density.Target {
		return density.Func(func(phi *Node) *Node { return MulScalar(ReduceSum(Square(Square(phi)), 1), -.25) })
	}}
	settings := Settings{Chains: 3, Draws: 200, WarmUp: NoWarmUp, Engine: computetest.Go(t), DType: compute.Float64}
	result, err := Sample(t.Context(), quartic, HMC{StepSize: 1.2, Steps: 3}, settings)
	if err != nil {
		t.Fatal(err)
	}
	divergent := result.Draws.Divergent()
	if len(divergent) != 3 {
		t.Fatalf("divergences of %d chains, want 3", len(divergent))
	}
	all := 0
	for chain, stats := range result.Stats {
		count := 0
		for i, diverged := range divergent[chain] {
			if diverged {
				count++
				if i > 0 && !slices.Equal(result.Draws.At(chain, i), result.Draws.At(chain, i-1)) {
					t.Errorf("chain %d moved to draw %d, though its transition diverged", chain, i)
				}
			}
		}
		if count != stats.Divergences {
			t.Errorf("chain %d: %d divergent draws, %d divergences", chain, count, stats.Divergences)
		}
		all += count
	}
	if all == 0 || all == 600 {
		t.Errorf("%d of 600 transitions diverged: this tests little", all)
	}

	settings.Draws = 5
	result, err = Sample(t.Context(), quartic, RandomWalkMetropolis{StepSize: .5}, settings)
	if err != nil {
		t.Fatal(err)
	}
	if result.Draws.Divergent() != nil {
		t.Errorf("a random walk has divergences %v", result.Draws.Divergent())
	}
}

// A chain's statistics are the plain sums over its transitions, kept in JSON as in memory.
func TestTally(t *testing.T) {
	m := &moves{chains: 2, carrier: &Carrier{
		infos: []info{
			infoComplete, infoAcceptance, infoAccepted, infoNonFinite, infoDivergent, infoEnergyError, infoEnergy, infoLength,
		},
	}}
	var sum tally
	energies := []float64{3, 5, 4, 8}
	for i, e := range energies {
		errorOf := []float64{.5, -1.5, math.Inf(1), .25}[i]
		for _, ended := range []float64{0, 1} {
			// The other chain, 0, holds what must not count.
			values := []float64{
				9, ended, 9, .5 + float64(i)/10, 9, float64(i % 2), 9, 1 - ended, 9, float64(i / 3), 9, errorOf, 9, e, 9, 4,
			}
			if got := sum.add(moveRecord{moves: m, values: values}, 1, CarriesGradient); got != (ended == 1) {
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
		Evaluations:    Evaluations{FullGradients: 16},
		MaxEnergyError: 1.5, MeanEnergyError: .75,
		EnergyBFMI: (4 + 1 + 16) / (3 * stat.Variance(energies, nil)),
	}
	computetest.Near(
		t, "means", []float64{got.Acceptance, got.EnergyBFMI}, []float64{want.Acceptance, want.EnergyBFMI}, 1e-12,
	)
	got.Acceptance, got.EnergyBFMI = want.Acceptance, want.EnergyBFMI
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A sampler gives what Sample gives, whatever it sampled before, and takes other data of the same shape.
func TestSampler(t *testing.T) {
	engine, dtype := computetest.Go(t), compute.Float64
	kernel, settings := RandomWalkMetropolis{}, Settings{
		Chains: 4, Draws: 30, WarmUp: 30, Seed: 1, DType: dtype, Engine: engine,
	}
	sampler := Sampler{Problem: standard(), Kernel: kernel}
	compiled := engine.Compiled()
	narrow := map[string]*tensors.Tensor{"precision": tensors.FromValue([]float64{1e4, 1e4})}
	for _, c := range []struct {
		data map[string]*tensors.Tensor
		seed uint64
	}{{standard().Data, 1}, {standard().Data, 2}, {narrow, 2}, {standard().Data, 1}} {
		sampler.Problem.Data, settings.Seed = c.data, c.seed
		got, err := sampler.Sample(context.Background(), settings)
		if err != nil {
			t.Fatal(err)
		}
		problem := standard()
		problem.Data = c.data
		want, err := Sample(context.Background(), problem, kernel, settings)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Draws.At(3, 29), want.Draws.At(3, 29)) || got.Tuned.StepSize != want.Tuned.StepSize {
			t.Errorf("seed %d: the sampler's last draw is %v, Sample's %v", c.seed, got.Draws.At(3, 29), want.Draws.At(3, 29))
		}
	}
	if n := engine.Compiled() - compiled; n != 5 { // once, and in each Sample
		t.Errorf("it compiled %d times", n)
	}
}

// On an accelerator a transition of HMC takes the fewest calls of at most 16 steps, and these as short as can be.
func TestHMCOnAccelerator(t *testing.T) {
	for kernel, want := range map[HMC][2]int{ // steps in a Move, Moves
		{}: {10, 1}, {Steps: 1}: {1, 1}, {Steps: 16}: {16, 1}, {Steps: 17}: {9, 2}, {Steps: 50}: {13, 4},
		{Steps: 10, Jitter: .5}: {15, 1},
	} {
		if k := kernel.onAccelerator(); k.AtOnce != want[0] || k.mostMoves() != want[1] {
			t.Errorf("%+v: %d steps at once in %d moves, want %v", kernel, k.AtOnce, k.mostMoves(), want)
		}
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
	settings := Settings{Chains: 2, Draws: 5, WarmUp: NoWarmUp, Engine: computetest.Go(t), DType: compute.Float64}
	for _, size := range []float64{.5, 1} {
		kernel := stepped{RandomWalkMetropolis{StepSize: 1}, func() float64 { return size }}
		got, err := Sample(t.Context(), standard().Keyed("standard"), kernel, settings)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Sample(t.Context(), standard(), kernel, settings)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Draws.Coordinate(0), want.Draws.Coordinate(0)) {
			t.Errorf("steps of %v: %v, want %v", size, got.Draws.Coordinate(0), want.Draws.Coordinate(0))
		}
	}
}

// A run that ends in its warm-up says how far it came and what all of it would take.
func TestEndsInWarmUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := run.Settings{Engine: computetest.Go(t), Progress: func(p run.Progress) {
		if p.Step > 3 {
			cancel()
		}
	}}
	_, err := fit.Sample(ctx, standard(), Chains{Kernel: HMC{}, Chains: 2, Draws: 10, WarmUp: 100_000}, s)
	for _, text := range []string{"of 100000 transitions", "all would take about", "auto.Method"} {
		if !says(err, text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not wrap the context's error", err)
	}
}
