package pbnn_test

import (
	"context"
	"fmt"
	"log"

	"gobnn/bayes"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/pbnn"

	"github.com/gomlx/gomlx/core/graph"
)

// PowerPosterior is a target of one's own: the likelihood to a power eta above 0, which makes a Bayesian whose model is
// wrong learn more slowly (Gruenwald 2012), by mini-batches.
type PowerPosterior struct{ Eta float64 }

var _ pbnn.FromMiniBatches = PowerPosterior{}

func (t PowerPosterior) String() string {
	return fmt.Sprintf("posterior to the power %g",
		t.Eta)
}
func (t PowerPosterior) EffectivePoints(rows int) float64      { return t.Eta * float64(rows) }
func (t PowerPosterior) ForBatchSize(int) pbnn.FromMiniBatches { return t }

// Scaled is a sampler of one's own: a random walk whose steps have lengths of all scales, h exp(u) with u standard
// normal, so that no step size has to be right.
type Scaled struct {
	pbnn.Sampling
	Target    pbnn.FromMiniBatches // must be set
	BatchSize int                  // default 20
	StepSize  float64              // h, the median length of a step in a coordinate
}

var _ pbnn.Sampler = Scaled{}

func (Scaled) Title() string { return "a random walk of all scales" }

func (s Scaled) Prepare(j *fit.Job) (m fit.Method, err error) {
	if err := limits.Fill("Scaled",
		limits.Int("BatchSize", &s.BatchSize, 20).Between(1, j.Rows()).Because("the rows of the data"),
		limits.Float("StepSize", &s.StepSize).Positive(),
	); err != nil {
		return nil, err
	}
	s.Target = s.Target.ForBatchSize(s.BatchSize)
	s.Sampling, err = s.Sampling.Prepared(j, s.Target)
	return s, err
}

func (s Scaled) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return pbnn.Run(ctx, j, s, s.Target)
}

func (s Scaled) Problem(data *pbnn.Data) (density.Problem, mcmc.Kernel, error) {
	problem, err := data.MiniBatches(s.Target, s.BatchSize, 10)
	return problem, scaledWalk{s.StepSize}, err
}

// scaledWalk is the kernel: it proposes, and leaves the rest of Algorithm 1 to pbnn.Judge. How long a step is does not
// depend on where it begins, so that the proposals' ratio is 1, and its logarithm 0.
type scaledWalk struct{ StepSize float64 }

func (scaledWalk) Traits() mcmc.Traits { return mcmc.Traits{} }
func (scaledWalk) Check(int) error     { return nil }

func (k scaledWalk) Move(
	rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	dtype, chains := s.Phi.DType(), s.Phi.Shape().Dim(0)
	length := graph.MulScalar(graph.Exp(rng.Named("length").Normal(dtype, chains, 1)), k.StepSize) // [J, 1]
	z := rng.Named("proposal").Normal(dtype, s.Phi.Shape().Dimensions...)                          // [J, D]
	proposal := graph.Add(s.Phi, graph.Mul(graph.BroadcastToShape(length, z.Shape()), z))
	equal := graph.Zeros(s.Phi.Graph(), s.PerParticle())
	return pbnn.Judge(rng, s, proposal, equal, target, pbnn.MeanOfBatches, pbnn.Corrected)
}

// ownLine is a line of 200 rows and a regression on it.
func ownLine() (bayes.Model, dataset.Parts) {
	data, err := dataset.NoisyLine(200, .5, 1)
	if err != nil {
		log.Fatal(err)
	}
	return bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}, dataset.Parts{Train: data}
}

// A target of one's own is sampled by all samplers that take its kind.
func ExampleTarget() {
	model, parts := ownLine()
	sampler := pbnn.Metropolis{
		Sampling: pbnn.Sampling{Chains: 8, Draws: 500, Thin: 5, WarmUp: 100},
		Target:   PowerPosterior{Eta: .1}, BatchSize: 10, StepSize: .1,
	}
	result, err := fit.Fit(context.Background(), model, sampler, parts, run.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Posterior.Provenance().Algorithm)
	sampler.Target = PowerPosterior{}
	_, err = fit.Fit(context.Background(), model, sampler, parts, run.Settings{})
	fmt.Println(err)
	// Output:
	// pbnn: pbnn.Metropolis of the posterior to the power 0.1
	// pbnn: Sampling.pbnn_test.PowerPosterior.EffectivePoints is 0: it must be positive and finite
}

// A sampler of one's own is a method as those of this package are.
func ExampleSampler() {
	model, parts := ownLine()
	sampler := Scaled{
		Sampling: pbnn.Sampling{Chains: 8, Draws: 500, Thin: 5, WarmUp: 100},
		Target:   pbnn.TargetExpected{}, StepSize: .05,
	}
	result, err := fit.Fit(context.Background(), model, sampler, parts, run.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	passes := fit.Details[*pbnn.Details](result).Passes
	fmt.Println(result.Posterior.Provenance().Algorithm)
	fmt.Printf("%d draws, %g passes over the rows for them\n", result.Posterior.Particles(), passes)
	// Output:
	// pbnn_test: a random walk of all scales
	// 4000 draws, 5000 passes over the rows for them
}
