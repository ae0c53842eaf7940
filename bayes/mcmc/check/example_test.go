package check_test

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"

	. "github.com/gomlx/gomlx/core/graph"
)

// multiplicative is a kernel of a user's own: it proposes phi exp(z / 2) and should multiply the ratio by |phi'| /
// |phi| for each coordinate, which is the Jacobian. Forgetful forgets it.
type multiplicative struct{ forgetful bool }

func (multiplicative) Traits() mcmc.Traits { return mcmc.Traits{Carries: mcmc.CarriesLogDensity} }
func (multiplicative) Check(int) error     { return nil }

func (k multiplicative) Move(
	rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	dtype, dims := s.Phi.DType(), s.Phi.Shape().Dimensions
	z := MulScalar(rng.Named("proposal").Normal(dtype, dims...), 0.5)
	phi := Mul(s.Phi, Exp(z))
	logDensity := compute.Gate(target.LogDensity(phi))
	logRatio := Sub(logDensity, s.LogDensity)
	if !k.forgetful {
		logRatio = Add(logRatio, ReduceSum(z, 1))
	}
	accepted := And(IsFinite(logDensity), LessThan(Log(rng.Named("accept").Uniform(dtype, dims[0])), logRatio))
	next := mcmc.State{
		Phi:        Where(BroadcastToDims(ExpandAxes(accepted, 1), dims...), phi, s.Phi),
		LogDensity: Where(accepted, logDensity, s.LogDensity),
	}
	return next, mcmc.Info{Accepted: ConvertDType(accepted, dtype)}
}

// In a test one line does: check.Kernel(t, kernel, check.Options{Slow: true}).
func ExampleRun() {
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, kernel := range []multiplicative{{}, {forgetful: true}} {
		// It does not change the sign of phi, and so cannot arrive from anywhere: Slow.
		report, err := check.Run(kernel, check.Options{Engine: engine, Particles: 500, Transitions: 20, Slow: true})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%T%+v passes: %v\n", kernel, kernel, report.Failures() == 0)
	}
	// Output:
	// check_test.multiplicative{forgetful:false} passes: true
	// check_test.multiplicative{forgetful:true} passes: false
}
