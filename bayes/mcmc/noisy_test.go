package mcmc

import (
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
)

// wavering is a standard normal whose gradient is estimated with an error of standard deviation `noise`, the same for
// all chains.
type wavering struct {
	density.Target
	noise float64
}

func (w wavering) WithMiniBatch(rng random.Stream) density.Target {
	slip := MulScalar(Reshape(rng.Normal(compute.Float64, 1)), w.noise)
	return density.Func(func(phi *Node) *Node {
		tilt := Mul(phi, BroadcastToDims(slip, phi.Shape().Dimensions...))
		return ReduceSum(Add(MulScalar(Square(phi), -0.5), tilt), 1)
	})
}

func (w wavering) Differences(_ random.Stream, from, to *Node) (estimates, variance *Node, degrees float64) {
	d := ReduceSum(MulScalar(Sub(Square(from), Square(to)), 0.5), 1)
	return ExpandAxes(d, 1), nil, 0
}

func waveringProblem(w wavering) density.Problem {
	w.Target = density.Func(func(phi *Node) *Node { return MulScalar(ReduceSum(Square(phi), 1), -0.5) })
	return density.Problem{Dim: 1, Target: func(compute.Nodes, []*Node) density.Target { return w }}
}

// compares is a kernel that takes differences once a move and reports their mean as the noise.
type compares struct{ SGLD }

func (k compares) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	estimates, _, _ := target.(density.MiniBatchTarget).Differences(rng, s.Phi, AddScalar(s.Phi, 1))
	next, info := k.SGLD.Move(rng, s, target, tuning)
	info.Noise = ReduceSum(estimates, 1)
	return next, info
}

// Each move of a kernel that carries nothing is given a new draw: SGLD with step h^2 on the standard normal has the
// stationary variance (h^2 + h^4 noise^2 / 4) / (1 - (1 - h^2/2)^2), here 1.33 with the noise and 1.14 without. The
// chains share each draw, so that what the noise adds moves all of them together: the spread between chains stays
// 1.14.
func TestNoisyTarget(t *testing.T) {
	const h = 0.7
	chains, settings := Chains{Chains: 50, Draws: 8000, WarmUp: 100}, run.Settings{Seed: 4, DType: compute.Float64}
	_, result := sample(t, waveringProblem(wavering{noise: 1.2}), with(chains, compares{SGLD{StepSize: h * h}}), settings)
	between, together := 0.0, 0.0
	all := result.Draws.Coordinate(0)
	for i := range result.Draws.PerChain {
		sum, square := 0.0, 0.0
		for _, chain := range all {
			sum += chain[i]
			square += chain[i] * chain[i]
		}
		n := float64(len(all))
		between += (square - sum*sum/n) / (n - 1) / float64(result.Draws.PerChain)
		together += sum / n * sum / n / float64(result.Draws.PerChain)
	}
	decay := 1 - (1-h*h/2)*(1-h*h/2)
	if want := h * h / decay; between < want*.98 || between > want*1.02 {
		t.Errorf("variance between chains %.3f, want %.3f", between, want)
	}
	// standard error of the mean square of a path with autocorrelation 0.755: 2.7 % of it; four of them
	if want := (h*h/50 + h*h*h*h/4*1.2*1.2) / decay; together < want*.89 || together > want*1.11 {
		t.Errorf("variance of the mean of all chains %.4f, want %.4f", together, want)
	}
	// from phi to phi + 1 the log-density falls by phi + 1/2, in the mean by 1/2
	for _, c := range result.Stats {
		if c.Noise < -.8 || c.Noise > -.2 {
			t.Errorf("mean difference %v, want about -0.5", c.Noise)
		}
	}
}

// A kernel that carries a log-density cannot take a target that changes under it.
func TestNoisyTargetBadInput(t *testing.T) {
	for _, c := range []struct {
		target wavering
		kernel Kernel
		says   string
	}{
		{wavering{}, MALA{StepSize: 1}, "carries the log-density"},
		{wavering{}, RandomWalkMetropolis{StepSize: 1}, "carries the log-density"},
	} {
		_, err := fit.Sample(t.Context(), waveringProblem(c.target), Chains{Kernel: c.kernel},
			run.Settings{DType: compute.Float64})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%T: error %v does not say %q", c.kernel, err, c.says)
		}
	}
}
