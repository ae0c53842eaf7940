package check

import (
	"cmp"
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
)

// byBatch is a conjugate posterior under N = 4 rows, two and two the same, by a batch of n = 2 that holds each once,
// whose log-likelihood is multiplied by scale: N/n = 2 is right. Two rows of noise s are one of noise s/sqrt(2), and so
// the exact answers are those of two rows.
func byBatch(scale float64) Target {
	x, noise := [][]float64{{1, .3}, {-.2, .9}}, 1.4
	l := Linear{X: x, NoiseStdDev: noise / math.Sqrt2, PriorMean: []float64{.5, -1}, PriorStdDev: []float64{1.5, .8}}
	t := regression(l)
	t.LogDensity = func(phi, data *Node) *Node {
		prior := halfSquares(Div(Sub(phi, row(phi, l.PriorMean)), row(phi, l.PriorStdDev)))
		fit := Einsum("jk,ik->ji", phi, matrix(phi, x))
		return Add(prior, MulScalar(halfSquares(DivScalar(Sub(data, fit), noise)), scale))
	}
	return t
}

// Every fault is found, and the kernel that it is built into passes without it.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("some dozens of faulty samplers take a minute and more")
	}
	t.Parallel()
	engine, err := compute.Open(compute.GoBackend) // a fault is one on every backend, and this one compiles in no time
	if err != nil {
		t.Fatal(err)
	}
	faults := []struct {
		kernel func(fault string) mcmc.Kernel
		faults []string
	}{
		{func(f string) mcmc.Kernel { return walk{f} }, []string{
			"", "steps have a mean", "step grows with |phi|", "one particle's NaN reaches all", "likelihood tempered",
			"log-density stays behind", "log-density goes ahead",
			"all count as accepted", "acceptance above 1", "non-finite is not counted", "proposal's random numbers again",
			"accepts with > for <",
			"always accepts", "accepts only what is better",
			"accepts with min(r, 1/2)",
		}},
		{func(f string) mcmc.Kernel { return stretch{f} }, []string{"", "no Jacobian", "Jacobian upside down"}},
		{
			func(f string) mcmc.Kernel { return crank{f} },
			[]string{"", "no reference term", "reference term upside down", "does not contract"},
		},
		{func(f string) mcmc.Kernel { return langevin{f} }, []string{
			"", "gradient's sign, in the proposal", "gradient's sign, in both", "another step back", "no backward density",
			"proposal taken as symmetric", "proposal ratio swapped",
			"gradient stays behind", "always accepts",
		}},
		{func(f string) mcmc.Kernel { return hamiltonian{f} }, []string{
			"", "gradient's sign", "momentum not refreshed", "last half step of the momentum missing",
			"first half step of the momentum twice", "no kinetic energy", "always accepts",
		}},
	}
	few := []Target{Targets()[0], skewed(), bounded(), conjugate()} // for time: what these do not find, all might
	for _, c := range faults {
		for _, fault := range c.faults {
			kernel := c.kernel(fault)
			o := Options{Engine: engine, Particles: 600, Transitions: 80, Targets: few}
			report, err := found(kernel, o, fault != "")
			if err != nil {
				t.Fatal(err)
			}
			if (report.Failures() > 0) != (fault != "") {
				t.Errorf("%T, fault %q: %s", kernel, fault, report.Summary())
			}
		}
	}
}

// found is Run, but of a faulty kernel first by fewer chains that go less far, on the first target: these find nearly
// all faults. They need not have converged so early, since right kernels would not have.
func found(kernel mcmc.Kernel, o Options, faulty bool) (Report, error) {
	if faulty {
		less := o
		less.Particles, less.Transitions, less.Targets, less.Slow = o.Particles/2, 20, o.Targets[:1], true
		if report, err := Run(kernel, less); err != nil || report.Failures() > 0 {
			return report, err
		}
	}
	return Run(kernel, o)
}

// What is wrong without being a fault in a step: discretisation without a test of Metropolis, a wrong stationary
// distribution, a path that is not reversible, and a mini-batch without N/n. Each is seen, and by the tests that are
// for it.
func TestBias(t *testing.T) {
	t.Parallel()
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	plane := []Target{gaussian([]float64{1, -.5}, [][]float64{{1}, {0, 1}})}
	for _, c := range []struct {
		what    string
		kernel  mcmc.Kernel
		options Options
		finds   string
	}{
		{"large steps", mcmc.SGLD{StepSize: .5}, Options{Targets: smooth(), Slow: true}, "invariant"},
		{
			"large steps", mcmc.SGHMC{LearningRate: .3}, Options{Targets: smooth(), Slow: true, NotReversible: true},
			"invariant",
		},
		{"a wrong mean", mcmc.OrnsteinUhlenbeck{Mean: []float64{1.2, -.5}}, Options{Targets: plane}, "invariant"},
		{
			"a wrong scale", mcmc.OrnsteinUhlenbeck{Mean: []float64{1, -.5}, StdDev: []float64{1, 1.2}}, Options{Targets: plane},
			"invariant",
		},
		{
			"steps that shrink in time", mcmc.SGLD{StepSize: .08, Decay: .55, Offset: 2},
			Options{Targets: smooth(), Slow: true, Transitions: 120}, "rank",
		},
		{"rotation", turning{}, Options{Targets: plane}, "balance"},
		{"no N/n", mcmc.RandomWalkMetropolis{StepSize: 1.2}, Options{Targets: []Target{byBatch(1)}}, "invariant"},
		{"N/n", mcmc.RandomWalkMetropolis{StepSize: 1.2}, Options{Targets: []Target{byBatch(2)}}, ""},
		{"steps that move nothing", mcmc.RandomWalkMetropolis{StepSize: .01}, Options{Targets: plane}, "converged"},
	} {
		o := c.options
		o.Engine, o.Particles, o.Transitions = engine, 600, cmp.Or(o.Transitions, 60)
		report, err := Run(c.kernel, o)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, f := range report.failed() {
			if kind, _, _ := strings.Cut(f.name, ":"); kind == c.finds {
				found = kind
			}
		}
		if found != c.finds || c.finds == "" && report.Failures() > 0 {
			t.Errorf("%T with %s should fail in tests of %q: %s", c.kernel, c.what, c.finds, report.Summary())
		}
	}
}
