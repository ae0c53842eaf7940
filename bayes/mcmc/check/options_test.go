package check

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
)

// odd kernels do not keep to the interface.
type odd struct{ how string }

func (odd) Traits() mcmc.Traits { return mcmc.Traits{Carries: mcmc.CarriesLogDensity} }
func (odd) Check(int) error     { return nil }
func (k odd) Start(_ random.Stream, s mcmc.State, _ density.Target) mcmc.State {
	s.Auxiliary = map[string]*Node{"mine": s.Phi}
	return s
}
func (k odd) Move(_ random.Stream, s mcmc.State, _ density.Target, _ mcmc.Tuning) (mcmc.State, mcmc.Info) {
	switch k.how {
	case "forgets its own":
		s.Auxiliary = nil
	case "never completes":
		return s, mcmc.Info{Complete: ZerosLike(s.LogDensity)}
	case "panics":
		panic(fmt.Errorf("boom"))
	}
	return s, mcmc.Info{}
}

func TestBadInput(t *testing.T) {
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	good := mcmc.RandomWalkMetropolis{StepSize: 1}
	line := gaussian([]float64{3}, [][]float64{{.5}})
	wrongDraw := banana()
	wrongDraw.Draw = func(*rand.Rand) (x, data []float64) { return []float64{1}, nil }
	for _, c := range []struct {
		kernel mcmc.Kernel
		o      Options
		says   string
	}{
		{nil, Options{}, "no kernel"},
		{mcmc.RandomWalkMetropolis{StepSize: -1}, Options{}, "RandomWalkMetropolis.StepSize"},
		{good, Options{Particles: 3}, "Particles is 3,"},
		{good, Options{DType: compute.DType(1)}, "DType"},
		{good, Options{Targets: []Target{}}, "Targets is empty"},
		{good, Options{Targets: []Target{line, banana()}}, `"Gaussian" has 1 coordinates, "banana" has 2`},
		{good, Options{Targets: []Target{{Name: "mine", D: 2}}}, `"mine" needs Draw`},
		{good, Options{Targets: []Target{wrongDraw}}, "draws 1 coordinates"},
		{odd{"forgets its own"}, Options{}, `"own/mine" is (Float32)[1000, 2] before a move and nil after it`},
		{odd{"never completes"}, Options{maxMoves: 20}, "in 20 moves"},
		{odd{"panics"}, Options{}, "boom"},
	} {
		c.o.Engine = engine
		if c.o.Particles == 0 {
			c.o.Particles = 100
		}
		if _, err := Run(c.kernel, c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v, %+v: error %v does not say %q", c.kernel, c.o, err, c.says)
		}
	}
}

// A table says what failed, and Kernel and Sequential fail the test with it.
func TestReport(t *testing.T) {
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Engine: engine, Particles: 200, Transitions: 10, Targets: []Target{banana()}}
	var failing recorder
	failing.TB = t
	Kernel(&failing, walk{"always accepts"}, o)
	if len(failing.errors) != 1 || !strings.Contains(failing.errors[0], "FAIL") ||
		!strings.Contains(failing.errors[0], "check.walk") || !strings.Contains(failing.errors[0], "banana") {
		t.Errorf("Kernel says %q", failing.errors)
	}
	failing.errors = nil
	Sequential(&failing, filter{Line(), 100, "resampling off by one"}.run, SequentialOptions{})
	if len(failing.errors) != 1 || !strings.Contains(failing.errors[0], "posterior") {
		t.Errorf("Sequential says %q", failing.errors)
	}
	report, err := Run(walk{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(report.Summary(), "passed") {
		t.Errorf("summary %q", report.Summary())
	}
}

// recorder keeps the errors that a test is failed with.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Helper()           {}
