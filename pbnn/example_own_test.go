package pbnn_test

import (
	"cmp"
	"context"
	"fmt"
	"log"

	"gobnn/bayes"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/pbnn"

	"github.com/gomlx/gomlx/core/graph"
)

// PowerPosterior is a target of one's own: the likelihood to a power eta, which makes a Bayesian whose model is wrong
// learn more slowly (Gruenwald 2012), by mini-batches.
type PowerPosterior struct{ Eta float64 }

var _ pbnn.FromMiniBatches = PowerPosterior{}

func (t PowerPosterior) String() string {
	return fmt.Sprintf("posterior to the power %g",
		t.Eta)
}
func (t PowerPosterior) EffectivePoints(rows int) float64      { return t.Eta * float64(rows) }
func (t PowerPosterior) ForBatchSize(int) pbnn.FromMiniBatches { return t }

func (t PowerPosterior) Check(int) error {
	if !(t.Eta > 0 && t.Eta <= 1) {
		return fmt.Errorf("PowerPosterior.Eta is %v: it must be above 0 and at most 1", t.Eta)
	}
	return nil
}

// Scaled is a sampler of one's own: a random walk whose steps have lengths of all scales, h exp(u) with u standard
// normal, so that no step size has to be right.
type Scaled struct {
	Target    pbnn.FromMiniBatches `json:"-"`
	BatchSize int                  `json:"batch_size"` // default 20
	Batches   int                  `json:"batches"`    // default 10
	StepSize  float64              `json:"step_size"`  // h, the median length of a step in a coordinate
}

var _ pbnn.Sampler = Scaled{}

func (s Scaled) Sampled() pbnn.Target { return s.Target }
func (s Scaled) RowsPerMove(int) int  { return 2 * s.BatchSize * s.Batches }

func (s Scaled) Prepare(rows int) (pbnn.Sampler, error) {
	s.BatchSize, s.Batches = cmp.Or(s.BatchSize, min(20, rows)), cmp.Or(s.Batches, 10)
	if s.Target == nil || s.BatchSize < 1 || s.BatchSize > rows || s.Batches < 2 {
		return nil, fmt.Errorf("%+v: Target must be set, BatchSize from 1 to %d and Batches at least 2", s, rows)
	}
	s.Target = s.Target.ForBatchSize(s.BatchSize)
	return s, nil
}

func (s Scaled) Problem(data *pbnn.Data) (density.Problem, mcmc.Kernel, error) {
	problem, err := data.MiniBatches(s.Target, s.BatchSize, s.Batches)
	return problem, scaledWalk{s.StepSize}, err
}

// scaledWalk is the kernel: it proposes, and leaves the rest of Algorithm 1 to pbnn.Judge. How long a step is does not
// depend on where it begins, so that the proposals' ratio is 1, and its logarithm 0.
type scaledWalk struct{ StepSize float64 }

func (scaledWalk) Carries() mcmc.Carries { return mcmc.CarriesNothing }
func (scaledWalk) UsesTarget() bool      { return true }

func (k scaledWalk) Check(int) error {
	if !(k.StepSize > 0) {
		return fmt.Errorf("Scaled.StepSize is %v: it must be positive", k.StepSize)
	}
	return nil
}

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
	sampler := pbnn.Metropolis{Target: PowerPosterior{Eta: .1}, BatchSize: 20, StepSize: .1}
	result, err := pbnn.Fit(context.Background(), model, sampler, parts, pbnn.Settings{
		Sampling: mcmc.Settings{Chains: 8, Draws: 500, Thin: 5, WarmUp: 100, Seed: 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, as of %g of %d rows\n", result.Target, result.Target.EffectivePoints(200), 200)
	_, err = pbnn.Fit(context.Background(), model, pbnn.Metropolis{Target: PowerPosterior{}}, parts, pbnn.Settings{})
	fmt.Println(err)
	// Output:
	// posterior to the power 0.1, as of 20 of 200 rows
	// PowerPosterior.Eta is 0: it must be above 0 and at most 1
}

// A sampler of one's own goes through the same Fit as those of this package.
func ExampleSampler() {
	model, parts := ownLine()
	sampler := Scaled{Target: pbnn.TargetExpected{}, StepSize: .05}
	result, err := pbnn.Fit(context.Background(), model, sampler, parts, pbnn.Settings{
		Sampling: mcmc.Settings{Chains: 8, Draws: 500, Thin: 5, WarmUp: 100, Seed: 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Posterior.Provenance().Algorithm)
	fmt.Printf("%d draws, %g passes over the rows for them\n", result.Posterior.Particles(), result.Passes)
	// Output:
	// pbnn: pbnn_test.Scaled of the expected posterior of 20 points
	// 4000 draws, 5000 passes over the rows for them
}
