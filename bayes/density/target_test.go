package density

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
)

const (
	// with all weights stochastic evaluated in blocks of 8, the last with padding; in chunks of 16 in blocks and the rest
	// one by one
	particles = 38
	rows      = 7
	dims      = 3
)

// models are one of each likelihood, prior, activation and kind of partition.
var weights = bayes.Names("layer1/weights", "layer2/weights", "layer3/weights")

var models = []struct {
	name    string
	model   bayes.Model
	outputs int
}{
	{"first layer", bayes.Model{Network: mlp(nn.GELU), Likelihood: bayes.Gaussian{StdDev: .7},
		Stochastic: bayes.Layers(1)}, 1},
	{"middle layer", bayes.Model{Network: mlp(nn.Tanh), Likelihood: bayes.Gaussian{}, Stochastic: bayes.Layers(2),
		Prior: bayes.Normal{PerLayer: map[int]float64{2: .5}}}, 1},
	{"last layer", bayes.Model{Network: mlp(nn.Swish), Likelihood: bayes.Bernoulli{}, Stochastic: bayes.Layers(3),
		Prior: bayes.LearntPrecision{}}, 1},
	{"all", bayes.Model{Network: mlp(nn.Softplus), Likelihood: bayes.Categorical{}, Stochastic: bayes.All()}, 4},
	{"all and the noise", bayes.Model{Network: mlp(nn.GELU), Likelihood: bayes.Gaussian{Learn: true},
		Stochastic: bayes.All()}, 1},
	{"all weights", bayes.Model{Network: mlp(nn.ReLU), Likelihood: bayes.Bernoulli{}, Stochastic: weights}, 1},
	{"weights", bayes.Model{Network: mlp(nn.Sigmoid), Likelihood: bayes.Categorical{},
		Stochastic: bayes.Names("layer2/weights", "layer3/weights")}, 4},
	{"biases", bayes.Model{Network: mlp(nn.GELU), Likelihood: bayes.Gaussian{StdDev: 2, Learn: true},
		Stochastic: bayes.Names("layer1/biases", "layer2/biases", "layer3/biases")}, 1},
	{"noise", bayes.Model{Network: mlp(nn.Tanh), Likelihood: bayes.Gaussian{Learn: true},
		Stochastic: bayes.Names("noise/log_scale")}, 1},
	{"noise and a weight", bayes.Model{Network: mlp(nn.Tanh), Likelihood: bayes.Gaussian{Learn: true},
		Stochastic: bayes.Names("noise/log_scale", "layer2/weights")}, 1},
	{"linear", bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{}, Stochastic: bayes.Layers(1)}, 1},
	{"first convolution", bayes.Model{Network: cnn(nn.Tanh), Likelihood: bayes.Categorical{}, Stochastic: bayes.Layers(1)},
		4},
	{"all and convolutions", bayes.Model{Network: cnn(nn.GELU), Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}, 1},
}

// compiled says whether a model is tested on the engine. XLA compiles long: it has one model with shared layers
// before the stochastic one, and one without; a Bernoulli likelihood and convolutions are compiled by
// TestConvolutionInChunks. The Go backend has all models, by the same graphs.
func compiled(engine *compute.Engine, model string) bool {
	return !engine.IsXLA() || slices.Contains([]string{"middle layer", "all"}, model)
}

func mlp(a nn.Activation) nn.MLP { return nn.MLP{Hidden: []int{4, 3}, Activation: a} }

// cnn takes a row as an image of one row of pixels, each of which passes through the same two layers.
func cnn(a nn.Activation) nn.CNN {
	return nn.CNN{Height: 1, Width: dims, Activation: a,
		Convolutions: []nn.Conv{{Filters: 2, Kernel: 1}, {Filters: 3, Kernel: 1}}}
}

// scene is a model with data and parameters that are all different numbers.
type scene struct {
	bound                      *bayes.BoundModel
	phi, psi, logWeights, x, y []float64
	phiRows, xRows             [][]float64
	likelihood                 func(chunk int) Likelihood
}

// waves are n numbers between -1.3 and 1.3.
func waves(n int, frequency float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Sin(frequency*float64(i+1)) * 1.3
	}
	return v
}

func newScene(t *testing.T, model bayes.Model, outputs int) *scene {
	bound := computetest.Must(model.Bind(dims, outputs))
	s := &scene{bound: bound, phi: waves(particles*bound.D, 1.7), psi: waves(max(1, bound.W), 2.3),
		x: waves(rows*dims, .9), y: waves(rows, 3.1)}
	if bound.Model.Likelihood.Task() != dataset.Regression {
		for i := range s.y {
			s.y[i] = float64(i % max(2, outputs))
		}
	}
	for j := range particles {
		s.phiRows = append(s.phiRows, s.phi[j*bound.D:(j+1)*bound.D])
		s.logWeights = append(s.logWeights, math.Log(float64(j+1)*2/(particles*(particles+1))))
	}
	for n := range rows {
		s.xRows = append(s.xRows, s.x[n*dims:(n+1)*dims])
	}
	s.likelihood = func(chunk int) Likelihood {
		plan := compute.NewPlan(particles, 1, chunk)
		if chunk == 16 { // the third waits for the first, not for the second
			plan.Concurrent = 2
		}
		return Likelihood{Model: bound, Plan: plan}
	}
	return s
}

// parameter is one parameter of one particle, from the flat vectors.
func (s *scene) parameter(name string, j int) []float64 {
	for _, slot := range s.bound.Slots {
		if slot.Name == name {
			if slot.Stochastic {
				return s.phiRows[j][slot.Offset : slot.Offset+slot.Size()]
			}
			return s.psi[slot.Offset : slot.Offset+slot.Size()]
		}
	}
	return nil
}

// plainLogLikelihood is log p(y_n | phi_j; psi) by loops over numbers: a second, plain way to what the graph computes.
func (s *scene) plainLogLikelihood(j, n int) float64 {
	net, pixels := nn.MLP{}, 1 // of an image, which all hidden layers treat alike
	switch network := s.bound.Model.Network.(type) {
	case nn.MLP:
		net = network
	case nn.CNN:
		pixels, net.Activation = network.Width, network.Activation
		for _, c := range network.Convolutions {
			net.Hidden = append(net.Hidden, c.Filters)
		}
	}
	activation := map[nn.Activation]func(float64) float64{
		nn.GELU: func(x float64) float64 { return x * .5 * (1 + math.Erf(x/math.Sqrt2)) }, nn.Tanh: math.Tanh,
		nn.Swish: func(x float64) float64 { return x / (1 + math.Exp(-x)) }, nn.Softplus: func(x float64) float64 {
			return math.Log1p(math.Exp(x))
		},
		nn.Sigmoid: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, nn.ReLU: func(x float64) float64 {
			return max(0, x)
		},
	}[net.Activation]
	h := s.xRows[n]
	for layer := 1; layer <= len(net.Hidden)+1; layer++ {
		w, b := s.parameter(fmt.Sprintf("layer%d/weights", layer), j), s.parameter(fmt.Sprintf("layer%d/biases", layer), j)
		if layer > len(net.Hidden) {
			pixels = 1
		}
		var next []float64
		for pixel := range slices.Chunk(h, len(h)/pixels) {
			for o := range b {
				z := b[o] + floats.Dot(w[o*len(pixel):(o+1)*len(pixel)], pixel)
				if layer <= len(net.Hidden) {
					z = activation(z)
				}
				next = append(next, z)
			}
		}
		h = next
	}
	switch l := s.bound.Model.Likelihood.(type) {
	case bayes.Gaussian:
		sd := l.StdDev
		if sd == 0 {
			sd = 1
		}
		if t := s.parameter("noise/log_scale", j); t != nil {
			sd *= math.Exp(t[0])
		}
		r := (s.y[n] - h[0]) / sd
		return -r*r/2 - math.Log(sd) - math.Log(2*math.Pi)/2
	case bayes.Bernoulli:
		return -math.Log1p(math.Exp(-h[0] * (2*s.y[n] - 1)))
	default:
		return h[int(s.y[n])] - floats.LogSumExp(h)
	}
}

// compile prepares fn on the scene's tensors, in a type; what it returns evaluates fn at the scene's present numbers.
func (s *scene) compile(
	t *testing.T, engine *compute.Engine, dtype compute.DType, fn func(phi, psi, logWeights *Node, b Batch) []*Node,
) func() [][]float64 {
	run := computetest.Compile(t, engine, func(_ *Graph, a []*Node) []*Node {
		for i := range a {
			a[i] = ConvertDType(a[i], dtype)
		}
		return fn(a[0], a[1], a[2], Batch{X: a[3], Y: a[4]})
	})
	return func() [][]float64 { return run(s.phiRows, s.psi, s.logWeights, s.xRows, s.y) }
}

func tolerance(dtype compute.DType) float64 {
	if dtype == compute.Float32 {
		return 2e-4
	}
	return 1e-11
}

// Log-likelihood, predictive density and evidence agree with plain loops, and are the same for every chunk size.
func TestAgainstPlainLoops(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, m := range models {
			if !compiled(engine, m.name) {
				continue
			}
			s := newScene(t, m.model, m.outputs)
			var logLik, predictive, byRow []float64
			for j := range particles {
				sum := 0.0
				for n := range rows {
					byRow = append(byRow, s.plainLogLikelihood(j, n))
					sum += byRow[len(byRow)-1]
				}
				logLik = append(logLik, sum)
			}
			for n := range rows {
				var terms []float64
				for j := range particles {
					terms = append(terms, s.logWeights[j]+s.plainLogLikelihood(j, n))
				}
				predictive = append(predictive, floats.LogSumExp(terms))
			}
			joint := slices.Clone(logLik)
			floats.Add(joint, s.logWeights)
			for _, chunk := range []int{0, 16} {
				if chunk != 0 && engine.IsXLA() {
					continue // compiles long: the gradients are compiled in chunks
				}
				out := s.compile(t, engine, dtype, func(phi, psi, logWeights *Node, b Batch) []*Node {
					l := s.likelihood(chunk)
					known := Batch{Features: l.Features(psi, b, b.Y.DType()), Y: b.Y}
					return []*Node{
						l.LogLikelihood(phi, psi, b), l.LogPredictive(phi, psi, logWeights, b),
						l.Reweight(phi, psi, logWeights, b, LikelihoodPotential).LogSum, l.LogLikelihood(phi, psi, known),
						l.Rows(phi, psi, b),
					}
				})()
				name := fmt.Sprintf("%s, chunk %d: ", m.name, chunk)
				computetest.Near(t, name+"log-likelihood", out[0], logLik, tolerance(dtype))
				computetest.Near(t, name+"predictive", out[1], predictive, tolerance(dtype))
				computetest.Near(t, name+"log-likelihood of features", out[3], logLik, tolerance(dtype))
				computetest.Near(t, name+"rows", out[4], byRow, tolerance(dtype))
				computetest.Near(t, name+"evidence", out[2], []float64{floats.LogSumExp(joint)}, tolerance(dtype))
			}
		}
	})
}

// Gradients with respect to phi per particle and to psi weighted equal central differences in float64: the error of a
// difference with step 1e-5 is below 1e-8 here.
func TestGradientsAgainstDifferences(t *testing.T) {
	engine := computetest.Go(t) // TestLoopOverChunks and TestNaNBesideOthers compile gradients by XLA
	for _, m := range models {
		s := newScene(t, m.model, m.outputs)
		mini := func(chunk int) Posterior { return MiniBatch(s.likelihood(chunk), 3*rows) }
		evaluate := s.compile(t, engine, compute.Float64, func(phi, psi, logWeights *Node, b Batch) []*Node {
			weighed := s.likelihood(0).Reweight(phi, psi, logWeights, b, LikelihoodPotential)
			return []*Node{mini(0).logPosterior(phi, psi, b), weighed.LogSum}
		})
		values := func() ([]float64, float64) {
			out := evaluate()
			return out[0], out[1][0]
		}
		const h = 1e-5
		phiDifferences := make([]float64, len(s.phi))
		for d := range s.bound.D { // all particles at once: none depends on another
			for j := range particles {
				s.phi[j*s.bound.D+d] += h
			}
			up, _ := values()
			for j := range particles {
				s.phi[j*s.bound.D+d] -= 2 * h
			}
			down, _ := values()
			for j := range particles {
				s.phi[j*s.bound.D+d] += h
				phiDifferences[j*s.bound.D+d] = (up[j] - down[j]) / (2 * h)
			}
		}
		psiDifferences := make([]float64, s.bound.W)
		for i := range psiDifferences {
			s.psi[i] += h
			_, up := values()
			s.psi[i] -= 2 * h
			_, down := values()
			s.psi[i] += h
			psiDifferences[i] = (up - down) / (2 * h)
		}
		for _, chunk := range []int{0, 16} {
			out := s.compile(t, engine, compute.Float64, func(phi, psi, logWeights *Node, b Batch) []*Node {
				_, gradient := mini(chunk).Gradient(phi, psi, b)
				outputs := []*Node{gradient}
				if s.bound.W > 0 {
					outputs = append(outputs, s.likelihood(chunk).Reweight(phi, psi, logWeights, b, LikelihoodPotential).Gradient)
				}
				return outputs
			})()
			what := fmt.Sprintf("%s, chunk %d: ", m.name, chunk)
			computetest.Near(t, what+"phi", out[0], phiDifferences, 1e-7)
			if s.bound.W > 0 {
				computetest.Near(t, what+"psi", out[1], psiDifferences, 1e-7)
			}
		}
	}
}

// Full never scales, MiniBatch multiplies the likelihood by N/n and Points by Points/n, also when the batch is padded;
// padding counts for nothing, even NaN.
func TestScale(t *testing.T) {
	engine, dtype := computetest.Go(t), compute.Float64
	s := newScene(t, models[1].model, 1)
	real := 4
	var prior, whole, some, points []float64
	for j := range particles {
		a, b := 0.0, 0.0
		for n := range rows {
			if n < real {
				b += s.plainLogLikelihood(j, n)
			}
			a += s.plainLogLikelihood(j, n)
		}
		p := 0.0
		for _, v := range s.phiRows[j] {
			p += -v*v/2/.25 - math.Log(.5) - math.Log(2*math.Pi)/2
		}
		prior, whole, some, points = append(prior, p), append(whole, p+a), append(some, p+21./4*b), append(points, p+3./4*b)
	}
	padded := func(b Batch) Batch {
		b.Count = ConstAs(b.X, float64(real))
		index := Iota(b.Y.Graph(), b.Y.Shape(), 0)
		nans := MulScalar(OnesLike(b.Y), math.NaN())
		isReal := LessThan(index, ConstAs(index, real))
		b.Y = Where(isReal, b.Y, nans)
		b.X = Where(BroadcastToDims(ExpandAxes(isReal, 1), rows, dims), b.X, MulScalar(OnesLike(b.X), math.NaN()))
		return b
	}
	out := s.compile(t, engine, dtype, func(phi, psi, logWeights *Node, b Batch) []*Node {
		l := s.likelihood(16)
		return []*Node{
			s.bound.LogPrior(phi), Full(l).logPosterior(phi, psi, b),
			MiniBatch(l, 21).logPosterior(phi, psi, padded(b)),
			l.Reweight(phi, psi, logWeights, padded(b), LikelihoodPotential).Gradient,
			l.LogPredictive(phi, psi, logWeights, padded(b)),
			Tempered(l, 3).logPosterior(phi, psi, padded(b)),
		}
	})()
	computetest.Near(t, "Points", out[5], points, tolerance(dtype))
	computetest.Near(t, "log prior", out[0], prior, tolerance(dtype))
	computetest.Near(t, "Full", out[1], whole, tolerance(dtype))
	computetest.Near(t, "MiniBatch", out[2], some, tolerance(dtype))
	for i, g := range out[3] {
		if math.IsNaN(g) {
			t.Fatalf("gradient %d is NaN: padding leaks into it", i)
		}
	}
	for n := real; n < rows; n++ {
		if out[4][n] != 0 {
			t.Errorf("predictive density of padding row %d is %v, want 0", n, out[4][n])
		}
	}
}

// A particle that is NaN, or overflows, or has weight 0, changes nothing for the others: evidence and gradient are
// those without it.
func TestOneBadParticle(t *testing.T) {
	engine := computetest.Go(t) // XLA has such particles in TestOverflowLosesItsWeight and TestNaNBesideOthers
	for _, dtype := range []compute.DType{compute.Float32, compute.Float64} {
		s := newScene(t, models[0].model, 1)
		evaluate := s.compile(t, engine, dtype, func(phi, psi, logWeights *Node, b Batch) []*Node {
			e := s.likelihood(16).Reweight(phi, psi, logWeights, b, LikelihoodPotential)
			return []*Node{e.LogSum, e.Gradient, e.LogLikelihood}
		})
		s.logWeights[2] = math.Inf(-1)
		total := floats.LogSumExp(s.logWeights)
		for j := range s.logWeights {
			s.logWeights[j] -= total
		}
		want := evaluate()
		for _, bad := range []float64{math.NaN(), math.Inf(1), 1e30} {
			s.phi[2*s.bound.D+1] = bad
			s.logWeights[2] = math.Inf(-1)
			got := evaluate()
			computetest.Near(t, fmt.Sprint("evidence beside ", bad), got[0], want[0], 1e-6)
			computetest.Near(t, fmt.Sprint("gradient beside ", bad), got[1], want[1], 1e-6)

			s.logWeights[2] = math.Log(.1) // now it has a weight: it loses it, and the others still stand
			got = evaluate()
			computetest.Near(t, fmt.Sprint("evidence that drops ", bad), got[0], want[0], 1e-6)
			computetest.Near(t, fmt.Sprint("gradient that drops ", bad), got[1], want[1], 1e-6)
			if !math.IsInf(got[2][2], -1) && !(dtype == compute.Float64 && got[2][2] < -1e30) {
				t.Errorf("log-likelihood of a particle with %v is %v, want -Inf", bad, got[2][2])
			}
		}
	}
}

// A particle of weight 0 may be anywhere, even where two layers' product overflows though each coordinate's square does
// not, next to the largest that is taken for finite: it is not evaluated as it is, so neither the gradient with respect
// to psi nor the evidence depends on it.
func TestFarParticleOfWeightZero(t *testing.T) {
	far := .9 * largest(compute.Float32)
	engine := computetest.Go(t)
	s := newScene(t, bayes.Model{Network: mlp(nn.GELU), Likelihood: bayes.Gaussian{Learn: true}, Stochastic: bayes.All()},
		1)
	evaluate := s.compile(t, engine, compute.Float32, func(phi, psi, logWeights *Node, b Batch) []*Node {
		w := s.likelihood(16).Reweight(phi, psi, logWeights, b, LikelihoodPotential)
		return []*Node{w.LogSum, w.Gradient, w.LogWeights, s.likelihood(16).Rows(phi, psi, b)}
	})
	for _, bad := range []int{2, particles - 1} { // in a block, and alone
		kept := s.logWeights[bad]
		s.logWeights[bad] = math.Inf(-1)
		want := evaluate()
		coordinates := s.phiRows[bad]
		before := slices.Clone(coordinates)
		for d := range coordinates {
			coordinates[d] = far
		}
		got := evaluate()
		copy(coordinates, before)
		s.logWeights[bad] = kept
		if density := got[3][bad*rows]; !math.IsInf(density, -1) && !math.IsNaN(density) {
			t.Errorf("%s: particle %d has the log-density %v as it is: this tests little", engine.Name(), bad, density)
		}
		computetest.Near(t, "evidence", got[0], want[0], 1e-6)
		computetest.Near(t, "gradient", got[1], want[1], 1e-6)
		if !math.IsInf(got[2][bad], -1) {
			t.Errorf("%s: particle %d now has the log-weight %v", engine.Name(), bad, got[2][bad])
		}
	}
}

// A particle whose likelihood overflows in this batch loses its weight, and the gradient with respect to psi is that of
// the others: 0 times the infinite gradient of its density is not added to it.
func TestOverflowLosesItsWeight(t *testing.T) {
	for i, c := range []struct {
		model bayes.Model
		far   float64
	}{
		{bayes.Model{Network: mlp(nn.GELU), Likelihood: bayes.Poisson{}, Stochastic: bayes.Layers(2)}, 1e5},
		{bayes.Model{Network: mlp(nn.GELU), Likelihood: bayes.Gaussian{}, Stochastic: weights}, 1e15},
		{bayes.Model{Network: mlp(nn.Tanh), Likelihood: bayes.Gaussian{Learn: true},
			Stochastic: bayes.Names("noise/log_scale")}, -300},
	} {
		for _, engine := range computetest.Engines(t) {
			if i > 0 && engine.IsXLA() {
				continue // compiles long: one of them shows that XLA keeps infinities apart
			}
			s := newScene(t, c.model, 1)
			evaluate := s.compile(t, engine, compute.Float32, func(phi, psi, logWeights *Node, b Batch) []*Node {
				w := s.likelihood(16).Reweight(phi, psi, logWeights, b, LikelihoodPotential)
				return []*Node{w.LogSum, w.Gradient, w.LogLikelihood}
			})
			for _, bad := range []int{2, particles - 1} { // in a block, and alone
				kept, coordinates := s.logWeights[bad], slices.Clone(s.phiRows[bad])
				s.logWeights[bad] = math.Inf(-1)
				want := evaluate()
				s.logWeights[bad] = kept
				for d := range coordinates {
					s.phiRows[bad][d] = c.far
				}
				got := evaluate()
				copy(s.phiRows[bad], coordinates)
				if !math.IsInf(got[2][bad], -1) {
					t.Errorf("%s: particle %d has the log-likelihood %v: this tests little", engine.Name(), bad, got[2][bad])
				}
				what := fmt.Sprintf("%s, %T, particle %d at %v: ", engine.Name(), c.model.Likelihood, bad, c.far)
				computetest.Near(t, what+"evidence", got[0], want[0], 1e-6)
				computetest.Near(t, what+"gradient", got[1], want[1], 1e-6)
			}
		}
	}
}

// A particle that is NaN has neighbours in its block: their densities and gradients are what they are without it.
func TestNaNBesideOthers(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		s := newScene(t, bayes.Model{Network: mlp(nn.GELU), Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}, 1)
		evaluate := s.compile(t, engine, dtype, func(phi, _, _ *Node, b Batch) []*Node {
			value, gradient := Full(s.likelihood(0)).Gradient(phi, nil, b)
			return []*Node{value, gradient}
		})
		want := evaluate()
		for _, bad := range []int{0, 3} { // the first particle of a block stands for it where values are stored
			kept := s.phi[bad*s.bound.D]
			s.phi[bad*s.bound.D] = math.NaN()
			got := evaluate()
			s.phi[bad*s.bound.D] = kept
			for j := range particles {
				if j != bad {
					computetest.Near(t, "density", got[0][j:j+1], want[0][j:j+1], 1e-6)
					computetest.Near(t, "gradient", got[1][j*s.bound.D:(j+1)*s.bound.D], want[1][j*s.bound.D:(j+1)*s.bound.D], 1e-6)
				} else if !math.IsInf(got[0][j], -1) {
					t.Errorf("the log-posterior of a NaN particle is %v", got[0][j])
				}
			}
		}
	})
}
