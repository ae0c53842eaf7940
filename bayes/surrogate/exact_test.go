package surrogate

import (
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"

	. "github.com/gomlx/gomlx/core/graph"
)

// anyTarget is splitHMC for any target in two dimensions, in coordinates of no target in particular.
type anyTarget struct {
	splitHMC
	cheap  func(target density.Target) density.Target
	judged bool // by the target; else by the surrogate
}

// on is the target with the coordinates and its surrogate.
func (k anyTarget) on(target density.Target, like *Node) density.Target {
	w := &whitening{
		mode: []float64{.3, -.4}, toZ: []float64{1, -.3, 0, 1.25}, toTheta: []float64{1, .24, 0, .8},
	}
	data := compute.Nodes{}
	for name, t := range w.tensors(like.DType()) {
		data[name] = ConstTensor(like.Graph(), t)
	}
	of := surrogated{whitened{target, whiteningOf(data)}, k.cheap(target)}
	if !k.judged {
		of.Target = of.cheap
	}
	return of
}

func (k anyTarget) Start(rng random.Stream, s mcmc.State, target density.Target) mcmc.State {
	return k.splitHMC.Start(rng, s, k.on(target, s.Phi))
}

func (k anyTarget) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	return k.splitHMC.Move(rng, s, k.on(target, s.Phi), tuning)
}

// Split HMC leaves every target invariant, in any coordinates: with the target's own gradient and with that of any
// surrogate. Without the final test on the target the harness finds the difference.
func TestSplitHMCExact(t *testing.T) {
	t.Parallel()
	own := func(target density.Target) density.Target { return target }
	flat := func(phi *Node, by, sd float64) *Node {
		return MulScalar(ReduceSum(Square(DivScalar(AddScalar(phi, by), sd)), 1), -.5)
	}
	wrong := func(target density.Target) density.Target { // wider, and its mean elsewhere
		return density.Func(func(phi *Node) *Node {
			tilt := ConvertDType(Const(phi.Graph(), [][]float64{{.4, -.3}}), phi.DType())
			tilted := ReduceSum(Mul(phi, BroadcastToShape(tilt, phi.Shape())), 1)
			return Add(MulScalar(target.LogDensity(phi), .7), tilted)
		})
	}
	useless := func(density.Target) density.Target {
		return density.Func(func(phi *Node) *Node { return flat(phi, 0, 3) })
	}
	stuck := func(density.Target) density.Target { // far from every target, and narrow
		return density.Func(func(phi *Node) *Node { return flat(phi, 20, .3) })
	}
	surrogate := func(step float64, steps int) splitHMC {
		return splitHMC{StepSize: step, Steps: steps, Jitter: .1, OnSurrogate: true}
	}
	for name, c := range map[string]struct {
		kernel      anyTarget
		transitions int
		slow        bool // too bad to be reached from far
	}{
		"target":  {anyTarget{splitHMC{StepSize: .5, Steps: 2, Jitter: .5}, own, true}, 40, false},
		"right":   {anyTarget{surrogate(1.3, 1), own, true}, 100, false}, // a single step goes less far
		"wrong":   {anyTarget{surrogate(.65, 2), wrong, true}, 40, false},
		"useless": {anyTarget{surrogate(1.3/3, 3), useless, true}, 40, true},
		"stuck":   {anyTarget{surrogate(1.3, 1), stuck, true}, 40, true},
	} {
		t.Run(name, func(t *testing.T) {
			check.Kernel(t, c.kernel, check.Options{
				Engine: computetest.Go(t), DType: compute.Float64, Particles: 400, Transitions: c.transitions, Slow: c.slow,
			})
		})
	}
	report, err := check.Run(anyTarget{splitHMC{StepSize: .5, Steps: 2, OnSurrogate: true}, wrong, false}, check.Options{
		Engine: computetest.Go(t), DType: compute.Float64, Particles: 400, Transitions: 30,
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Failures() < 5 {
		t.Errorf("the harness does not tell the surrogate from the target: %s", report.Summary())
	}
}
