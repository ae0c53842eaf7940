package pbnn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const noiseStdDev = .6

// line is conjugate.
var line = fittest.Line(noiseStdDev)

// exact is the distribution of (w, b) when the data count as so many points: the likelihood to the power points/N is
// one with another noise.
func exact(data *dataset.Dataset, points float64) (mean []float64, covariance *mat.SymDense) {
	mean, covariance, _ = fittest.Exact(data, noiseStdDev*math.Sqrt(float64(data.Rows())/points)).Posterior()
	return mean, covariance
}

// atExact is a posterior whose particles are exact draws, for chains to begin at.
func atExact(t testing.TB, mean []float64, covariance *mat.SymDense, particles int) *bayes.Posterior {
	bound, err := line.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	var factor mat.Cholesky
	if !factor.Factorize(covariance) {
		t.Fatal("the covariance is not positive definite")
	}
	var lower mat.TriDense
	factor.LTo(&lower)
	rng := rand.New(rand.NewPCG(1, 2))
	var phi []float64
	for range particles {
		z := mat.NewVecDense(len(mean), nil)
		for i := range mean {
			z.SetVec(i, rng.NormFloat64())
		}
		var draw mat.VecDense
		draw.MulVec(&lower, z)
		for i, m := range mean {
			phi = append(phi, m+draw.AtVec(i))
		}
	}
	p, err := bayes.NewPosterior(bound,
		bayes.Draws{Phi: compute.Floats(compute.Float64, phi, particles, bound.D),
			LogWeights: bayes.EqualLogWeights(particles)}, bayes.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// worst compares the draws with the exact distribution: the mean and the variance of each coordinate, and of the
// prediction at three places, so covariances too. What is compared is averaged over the chains, which share their
// mini-batches, and over 15 stretches of time of at least 200 moves each, several times as long as these samplers
// remember, so nearly independent; the p-value is the smallest of Student's tests, times their number (Bonferroni): a
// right sampler's is below 0.001 for one seed in a thousand at most. It is -1 where the draws are too few.
func worst(draws *mcmc.Draws, mean []float64, covariance *mat.SymDense) (p float64, what string) {
	directions := [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, {1, -1, 1}, {-.5, .5, 1}}
	const stretches = 15
	p = 1
	for _, v := range directions {
		direction := mat.NewVecDense(len(v), v)
		center := mat.Dot(direction, mat.NewVecDense(len(mean), mean))
		var spread mat.VecDense
		spread.MulVec(covariance, direction)
		variance := mat.Dot(direction, &spread)
		first, second := make([]float64, stretches), make([]float64, stretches)
		length := draws.PerChain / stretches
		for chain := range draws.Chains {
			for i := range length * stretches {
				z := (mat.Dot(direction, mat.NewVecDense(len(v), draws.At(chain, i))) - center) / math.Sqrt(variance)
				each := 1 / float64(length*draws.Chains)
				first[i/length] += z * each
				second[i/length] += (z*z - 1) * each
			}
		}
		for name, values := range map[string][]float64{"mean": first, "variance": second} {
			m, sd := stat.MeanStdDev(values, nil)
			if !(sd/math.Sqrt(stretches) < .2) { // of the exact standard deviation, or variance: a test that could find nothing
				return -1, fmt.Sprintf("the %s in direction %v has a standard error of %.2f: the chains have not arrived, or are "+
					"too short", name, v, sd/math.Sqrt(stretches))
			}
			t := m / (sd / math.Sqrt(stretches))
			one := 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: stretches - 1}.Survival(math.Abs(t)) * float64(2*len(directions))
			if one < p {
				p, what = one, fmt.Sprintf("the %s in direction %v is off by %.3f (t %.1f)", name, v, m, t)
			}
		}
	}
	return p, what
}

// steps are in the posterior's widths of so many points, which are about noise/sqrt(points).
func step(times, points float64) float64 { return times * noiseStdDev / math.Sqrt(points) }

const rowsOfLine = 200

// exactCase is a sampler with the distribution that it must have, or must not.
type exactCase struct {
	name    string
	sampler Sampler
	points  float64 // that the target counts for
	biased  bool
	long    bool // not in short runs
}

// exactCases are a random walk and Langevin's, of the two targets; TestExactOnALineLong has the others.
var exactCases = []exactCase{
	{name: "penalty, full", sampler: Metropolis{Target: TargetFull{}, BatchSize: 10, Batches: 10,
		StepSize: step(.5, rowsOfLine)}, points: rowsOfLine},
	{name: "penalised MALA, expected",
		sampler: Metropolis{Target: TargetExpected{}, BatchSize: 10, Batches: 10, Proposal: Langevin, StepSize: step(1, 10)},
		points:  10, long: true},
}

// Samplers that claim a distribution have its means, variances and predictive bands. In TestExactOnALineLong the naive
// one and unadjusted ones at large steps have not, by the same test.
func TestExactOnALine(t *testing.T) {
	t.Parallel()
	exactOnALine(t, computetest.Go(t), 1500, exactCases) // XLA would compile for half of the time
}

func exactOnALine(t *testing.T, engine *compute.Engine, draws int, cases []exactCase) {
	t.Helper()
	data := fittest.Data(rowsOfLine)
	for _, c := range cases {
		if c.long && testing.Short() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			const chains = 8
			mean, covariance := exact(data, c.points)
			sampling := Sampling{Chains: chains, Draws: draws, Thin: 2, WarmUp: 30}
			method := fit.From{Trained: atExact(t, mean, covariance, chains), Method: with(sampling, c.sampler)}
			result := fitted(t, bayes.Model{}, method, data, run.Settings{Seed: 3, DType: compute.Float64, Engine: engine})
			p, what := worst(result.chains.Draws, mean, covariance)
			t.Logf("p %.2g: %s; sigma^2 %.2f, acceptance %.2f, %.0f passes, %s", p, what, result.Noise, result.Acceptance,
				result.Passes, result.Elapsed)
			if !c.biased && p < 1e-3 {
				t.Errorf("%s, p %.2g", what, p)
			}
			if c.biased && !(p >= 0 && p < 1e-3) {
				t.Errorf("the bias is not found: p %.2g", p)
			}
		})
	}
}
