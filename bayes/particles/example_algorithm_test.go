package particles_test

import (
	"context"
	"fmt"
	"log"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
)

// importance is an algorithm of one's own: each step draws particles from the prior anew, weighs them by the batch, and
// moves psi along the evidence's gradient. It is importance sampling from the prior: few particles carry the weight.
type importance struct{ particles.Training }

func (importance) Title() string { return "importance sampling from the prior" }

func (a importance) Prepare(j *fit.Job) (m fit.Method, err error) {
	a.Training, err = a.Training.Prepared(j, 1, smc.Stratified)
	return a, err
}

func (a importance) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return particles.Run(ctx, j, a.Training, a)
}

func (importance) Compile(c *particles.Core) (particles.Stepper, error) {
	step := func(s particles.State, batch density.Batch, now particles.Now) (particles.State, particles.StepInfo) {
		s.Phi = c.Bound.SamplePrior(now.RNG, c.DType, c.Particles)
		weighed := c.Target.Reweight(s.Phi, s.Psi, c.EqualWeights(s.Phi), batch, density.LikelihoodPotential)
		s.LogWeights, _ = smc.Normalise(weighed.LogWeights)
		s, _ = c.Learn(s, weighed.Gradient, batch, now)
		return s, particles.StepInfo{LogEvidence: weighed.LogSum, ESS: smc.EffectiveSampleSize(s.LogWeights)}
	}
	return particles.NewStepper(c, particles.Graphs{Step: step})
}

// An algorithm of one's own: what is written is the step; validation, checkpoints, progress and the posterior are the
// run's.
func ExampleAlgorithm() {
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{Learn: true},
		Stochastic: bayes.Layers(3),
	}
	training := particles.Training{Particles: 100, BatchSize: 20, Epochs: 20, ValidateEvery: 10}
	result, err := fit.Fit(context.Background(), model, importance{training}, parts, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	details := fit.Details[*particles.Details](result)
	fmt.Println(result.Status, "after", details.Steps, "steps and", len(details.Validated), "validations, by",
		result.Posterior.Provenance().Algorithm)
	first, last := details.Validated[0].NLPD, details.Best.NLPD
	fmt.Println("the validation NLPD fell:", last < first-.2)
	// Output:
	// completed after 200 steps and 20 validations, by particles_test: importance sampling from the prior
	// the validation NLPD fell: true
}
