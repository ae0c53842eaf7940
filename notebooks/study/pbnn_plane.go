package study

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/pbnn"

	"gonum.org/v1/gonum/mat"
)

// plane is a regression whose posteriors are known: y ~ N(w x + b, noise^2), w and b with the prior N(0, 1).
type plane struct {
	data  *dataset.Dataset
	noise float64
}

// newPlane has N(0, 1) features, each but the first correlated with the one before, and residuals by the given
// function.
func newPlane(name string, rows, features int, noise float64, residual func(*rand.Rand) float64) plane {
	rng := rand.New(rand.NewPCG(20, 26))
	d := &dataset.Dataset{Name: name, Task: dataset.Regression, Target: "y", X: mat.NewDense(rows, features, nil),
		Y: make([]float64, rows)}
	for k := range features {
		d.Features = append(d.Features, fmt.Sprintf("x%d", k+1))
	}
	for i := range rows {
		d.Y[i] = .3 + residual(rng)
		before := rng.NormFloat64()
		for k := range features {
			x := before
			if k > 0 {
				x = .5*before + math.Sqrt(.75)*rng.NormFloat64()
			}
			d.X.Set(i, k, x)
			d.Y[i] += x / float64(k+1)
			before = x
		}
	}
	return plane{d, noise}
}

func (p plane) model() bayes.Model {
	return bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: p.noise}, Prior: bayes.Normal{StdDev: 1},
		Stochastic: bayes.All()}
}

// width is about a posterior's standard deviation of one weight, given so many points.
func (p plane) width(points float64) float64 { return p.noise / math.Sqrt(points) }

// distribution is the posterior of (w, b) when the data count as so many points: the likelihood to the power points/N
// (Bishop 2006, eq. 3.53 and 3.54, with another noise).
func (p plane) distribution(points float64) (*normal, error) {
	features := p.data.Dims()
	precision, right := mat.NewSymDense(features+1, nil), mat.NewVecDense(features+1, nil)
	for k := range features + 1 {
		precision.SetSym(k, k, 1)
	}
	scale := points / float64(p.data.Rows()) / (p.noise * p.noise)
	for i, y := range p.data.Y {
		row := withOne(mat.Row(nil, i, p.data.X))
		precision.SymRankOne(precision, scale, row)
		right.AddScaledVec(right, scale*y, row)
	}
	var factor mat.Cholesky
	if !factor.Factorize(precision) {
		return nil, fmt.Errorf("%s: the posterior's precision is not positive definite", p.data.Name)
	}
	var mean mat.VecDense
	if err := factor.SolveVecTo(&mean, right); err != nil {
		return nil, fmt.Errorf("%s: the posterior's mean: %w", p.data.Name, err)
	}
	n := &normal{mean: mean.RawVector().Data}
	factor.UTo(&n.root)
	return n, nil
}

// withOne is x and the intercept's 1.
func withOne(x []float64) *mat.VecDense { return mat.NewVecDense(len(x)+1, append(x, 1)) }

// normal is N(mean, (U' U)^-1).
type normal struct {
	mean []float64
	root mat.TriDense // U
}

// white is U (theta - mean): N(0, I) if theta is of the distribution.
func (n *normal) white(theta []float64) []float64 {
	d := mat.NewVecDense(len(theta), nil)
	for k, v := range theta {
		d.SetVec(k, v-n.mean[k])
	}
	d.MulVec(&n.root, d)
	return d.RawVector().Data
}

// prediction is mean and standard deviation of w x + b.
func (n *normal) prediction(x []float64) (center, spread float64, err error) {
	row := withOne(x)
	var z mat.VecDense
	if err := z.SolveVec(n.root.T(), row); err != nil {
		return 0, 0, fmt.Errorf("predict: %w", err)
	}
	return mat.Dot(row, mat.NewVecDense(len(n.mean), n.mean)), mat.Norm(&z, 2), nil
}

// start has exact draws, for chains to begin at: errors are then the sampler's, not those of too short a warm-up.
func (p plane) start(n *normal, particles int, seed uint64) (*bayes.Posterior, error) {
	bound, err := p.model().Bind(p.data.Dims(), 1)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	var phi []float64
	for range particles {
		z := mat.NewVecDense(len(n.mean), nil)
		for k := range n.mean {
			z.SetVec(k, rng.NormFloat64())
		}
		if err := z.SolveVec(&n.root, z); err != nil {
			return nil, fmt.Errorf("draw: %w", err)
		}
		for k, m := range n.mean {
			phi = append(phi, m+z.AtVec(k))
		}
	}
	draws := bayes.Draws{Phi: compute.Floats(compute.Float64, phi, particles, bound.D),
		LogWeights: bayes.EqualLogWeights(particles)}
	return bayes.NewPosterior(bound, draws, bayes.Origin{})
}

// sample runs chains of a sampler from exact draws of its distribution. A cancelled run is an error, as it is no
// repetition.
func (p plane) sample(ctx context.Context, sampler pbnn.Sampler, s mcmc.Settings) (*pbnn.Result, *normal, error) {
	distribution, err := p.distribution(sampler.Sampled().EffectivePoints(p.data.Rows()))
	if err != nil {
		return nil, nil, err
	}
	start, err := p.start(distribution, s.Chains, s.Seed)
	if err != nil {
		return nil, nil, err
	}
	result, err := pbnn.FitFrom(ctx, start, sampler, dataset.Parts{Train: p.data}, pbnn.Settings{Sampling: s})
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	return result, distribution, err
}

// moments are the errors of the draws' mean and variance, in standard deviations and as a share of the variance: mean
// over the whitened coordinates.
func (n *normal) moments(draws *mcmc.Draws) (center, variance float64) {
	each := 1 / float64(draws.Chains*draws.PerChain*draws.Dim)
	for chain := range draws.Chains {
		for i := range draws.PerChain {
			for _, z := range n.white(draws.At(chain, i)) {
				center += z * each
				variance += (z*z - 1) * each
			}
		}
	}
	return center, variance
}
