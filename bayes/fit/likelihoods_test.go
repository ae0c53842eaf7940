package fit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/conformal"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/distill"
	"gobnn/bayes/effect"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/ohsmc"
	"gobnn/pbnn"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// few are methods of two packages, as short as can be.
func few() []method {
	return []method{
		{name: "SMC", Method: ohsmc.SMC{
			Training: particles.Training{Particles: 50, BatchSize: 42, Epochs: 1}, // all rows
			Kernel:   mcmc.RandomWalkMetropolis{StepSize: .5}, Moves: 1, Precondition: true,
		}},
		{name: "open horizon", Method: ohsmc.OpenHorizon{
			Training: particles.Training{Particles: 50, BatchSize: 20, Epochs: 10, ValidateEvery: 10},
			Kernel:   mcmc.RandomWalk{Variance: 1e-3},
		}},
		{name: "HMC", Method: mcmc.Chains{
			Kernel: mcmc.HMC{Steps: 3, Jitter: .5}, Chains: 12, Draws: 15, WarmUp: 30,
		}},
	}
}

// drawn is a table whose targets are drawn from distributions about lines: slope and height are multiplied by -1/2 from
// target to target.
func drawn(rows, targets int, draw func(line, x float64, rng *rand.Rand) float64) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(7, uint64(targets)))
	d := &dataset.Dataset{Name: "drawn", Features: []string{"x"}, Target: "y", X: mat.NewDense(rows, 1, nil)}
	for k := range targets {
		d.Targets = append(d.Targets, fmt.Sprintf("y%d", k))
	}
	for n := range rows {
		x := rng.NormFloat64()
		d.X.(*mat.Dense).Set(n, 0, x)
		for k := range targets {
			d.Y = append(d.Y, draw((.6+x)*math.Pow(-.5, float64(k)), x, rng))
		}
	}
	return d
}

func drawNormal(line, _ float64, rng *rand.Rand) float64 { return line + sd*rng.NormFloat64() }

func drawNoisy(line, x float64, rng *rand.Rand) float64 {
	return line + .4*math.Exp(.8*x)*rng.NormFloat64()
}

func drawStudent(line, _ float64, rng *rand.Rand) float64 {
	return distuv.StudentsT{Mu: line, Sigma: .3, Nu: 3, Src: rng}.Rand()
}

func drawPoisson(line, _ float64, rng *rand.Rand) float64 {
	return distuv.Poisson{Lambda: math.Exp(line), Src: rng}.Rand()
}

func drawOverdispersed(line, _ float64, rng *rand.Rand) float64 {
	return distuv.Poisson{Lambda: math.Exp(line) * distuv.Gamma{Alpha: 2, Beta: 2, Src: rng}.Rand(), Src: rng}.Rand()
}

// drawOrdered is a class of four, by the line and logistic noise.
func drawOrdered(line, _ float64, rng *rand.Rand) float64 {
	class, u := 0., rng.Float64()
	for _, cut := range []float64{-.8, .3, 1.2} {
		if line+.3*math.Log(u/(1-u)) > cut {
			class++
		}
	}
	return class
}

// Each likelihood and each prior, for one or several targets, goes through samplers: the posterior
// predicts new rows better than the prior, and the same to the bit after Save and Load.
func TestLikelihoodsAndPriors(t *testing.T) {
	noise, cuts := bayes.All().And(bayes.Names("noise/log_scale")), bayes.All().And(bayes.Names("noise/cuts"))
	hidden := nn.MLP{Hidden: []int{3}, Activation: nn.Tanh}
	gaussian := bayes.Gaussian{StdDev: sd}
	for _, c := range []struct {
		model   bayes.Model
		targets int
		draw    func(line, x float64, rng *rand.Rand) float64
	}{
		{bayes.Model{Likelihood: bayes.Heteroscedastic{}, Prior: bayes.Normal{StdDev: .5}}, 1, drawNoisy},
		{bayes.Model{Likelihood: bayes.Heteroscedastic{}, Prior: bayes.Normal{StdDev: .3}}, 2, drawNoisy},
		{bayes.Model{Likelihood: bayes.HeteroscedasticT{}, Prior: bayes.Normal{StdDev: .5}}, 1, drawStudent},
		{bayes.Model{Likelihood: bayes.Poisson{}}, 1, drawPoisson},
		{bayes.Model{Likelihood: bayes.Poisson{}}, 2, drawPoisson},
		{bayes.Model{Likelihood: bayes.NegativeBinomial{}, Stochastic: noise}, 2, drawOverdispersed},
		{bayes.Model{Likelihood: bayes.Gaussian{StdDev: .7, Learn: true}, Stochastic: noise}, 2, drawNormal},
		{bayes.Model{Likelihood: bayes.Ordinal{}}, 1, drawOrdered},
		{bayes.Model{Likelihood: bayes.Ordinal{}, Stochastic: cuts, Network: hidden}, 1, drawOrdered},
		{bayes.Model{Likelihood: gaussian, Prior: bayes.LearntPrecision{}, Network: hidden}, 1, drawNormal},
	} {
		if c.model.Network == nil {
			c.model.Network = nn.MLP{}
		}
		if len(c.model.Stochastic.Selectors) == 0 {
			c.model.Stochastic = bayes.All()
		}
		data := drawn(70, c.targets, c.draw)
		if data.Task = c.model.Likelihood.Task(); data.Task == dataset.Classification {
			data.Classes, data.Targets = []string{"none", "low", "medium", "high"}, nil
		}
		parts := computetest.Must(data.Split(dataset.Fractions{Train: .6, Test: .4}, 1))
		t.Run(fmt.Sprintf("%T, %T, %d targets", c.model.Likelihood, c.model.Prior, c.targets), func(t *testing.T) {
			engine := computetest.Go(t)
			prior := nlpdOf(t, priorOf(t, engine, c.model, parts), parts.Test)
			for i, m := range few() {
				result, err := m.fit(t.Context(), c.model, parts, run.Settings{Seed: 3, Engine: engine})
				if err != nil {
					t.Errorf("%s: %v", m.name, err)
					continue
				}
				p := result.Posterior
				posterior := nlpdOf(t, p, parts.Test)
				if i == 0 { // its particles have weights, as those of the next have
					haveScores(t, p, parts.Test)
				}
				if data.Task == dataset.Classification && p.Chains() == 0 {
					haveClasses(t, p, parts.Test)
				}
				t.Logf("%s: NLPD %.3f, the prior's %.3f", m.name, posterior, prior)
				if !(posterior < prior-.05) || math.IsInf(posterior, 0) {
					t.Errorf("%s: NLPD %.3f is not better than the prior's, %.3f", m.name, posterior, prior)
				}
				file := filepath.Join(t.TempDir(), "posterior")
				if err := p.Save(file); err != nil {
					t.Fatal(err)
				}
				loaded := computetest.Must(bayes.Load(file))
				before, after := densities(t, p, parts.Test), densities(t, loaded.On(engine), parts.Test)
				if !slices.Equal(before, after) {
					t.Errorf("%s: what was saved predicts otherwise", m.name)
				}
			}
		})
	}
}

// priorOf is draws from the prior as a posterior; what is not stochastic is 0.
func priorOf(t *testing.T, engine *compute.Engine, model bayes.Model, parts dataset.Parts) *bayes.Posterior {
	t.Helper()
	const draws = 200
	data := computetest.Must(fit.New("the prior", model, parts))
	phi := computetest.Run(t, engine, func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
		return []*graph.Node{data.Bound.SamplePrior(random.New(g, 1), compute.Float64, draws)}
	})[0]
	of := bayes.Draws{Phi: compute.Floats(compute.Float64, phi, draws, data.Bound.D),
		LogWeights: bayes.EqualLogWeights(draws)}
	if w := data.Bound.W; w > 0 {
		of.Psi = compute.Floats(compute.Float64, make([]float64, w), w)
	}
	p := computetest.Must(data.Posterior(of, bayes.Provenance{Algorithm: "the prior"}, engine))
	return p
}

func densities(t *testing.T, p *bayes.Posterior, d *dataset.Dataset) []float64 {
	t.Helper()
	prediction := computetest.Must(p.Predict(t.Context(), d.X))
	all := computetest.Must(prediction.LogDensity(d.Y))
	return all
}

// haveScores asks that all scores can be had, of each target.
func haveScores(t *testing.T, p *bayes.Posterior, d *dataset.Dataset) {
	t.Helper()
	prediction := computetest.Must(p.Predict(t.Context(), d.X))
	for k := range d.TargetNames() {
		one := computetest.Must(prediction.Of(k))
		if _, err := metric.Scores(one, d.TargetColumn(k)); err != nil {
			t.Fatal(err)
		}
	}
}

// haveClasses asks that what is made of probabilities can be had of all classes, however many outputs the network has.
func haveClasses(t *testing.T, p *bayes.Posterior, d *dataset.Dataset) {
	t.Helper()
	prediction := computetest.Must(p.Predict(t.Context(), d.X))
	probabilities, err := prediction.Probabilities()
	if err != nil || len(probabilities[0]) != len(d.Classes) {
		t.Fatalf("%v, %v", probabilities, err)
	}
	c := computetest.Must(conformal.Calibrate(conformal.Part{Prediction: prediction, Y: d.Y}))
	sets, err := c.Sets(.999, nil, prediction)
	if err != nil || len(sets[0]) != len(d.Classes) { // of so few rows they are all classes
		t.Errorf("%v, %v", sets, err)
	}
	if _, err := metric.MutualInformation(prediction); err != nil {
		t.Error(err)
	}
	if _, err := metric.Energy(prediction); err == nil || !strings.Contains(err.Error(), "Ordinal") {
		t.Errorf("an energy without logits: %v", err)
	}
	for class := range d.Classes {
		if all, err := effect.Of(t.Context(), p, d, class); err != nil || len(all) != 1 {
			t.Errorf("the effect on class %d: %v, %v", class, all, err)
		}
	}
	small, off, err := distill.Posterior(t.Context(), p, d.X, .05)
	if err != nil || small.Particles() >= p.Particles() || off.Mean > .05 {
		t.Errorf("distilled to %d of %d, off by %v: %v", small.Particles(), p.Particles(), off, err)
	}
}

func nlpdOf(t *testing.T, p *bayes.Posterior, d *dataset.Dataset) float64 {
	t.Helper()
	prediction := computetest.Must(p.Predict(t.Context(), d.X))
	nlpd := computetest.Must(metric.NLPD(prediction, d.Y))
	return nlpd.Value
}

// The chains' mean and mean square of each parameter are those by quadrature, where the only feature is 0 so that the
// biases are all that the data tell of. Chains begin where they do by default, though some draws from the prior have
// gradients hundreds of times those of the posterior: all of them move and agree. Averages of independent chains are
// compared by Student's t-test: a right sampler fails in one of 1000 runs.
func TestLikelihoodsAndPriorsAreExact(t *testing.T) {
	const alarm, chains = 1e-3, 50
	unit := func(b []float64) float64 { return distuv.UnitNormal.LogProb(b[0]) }
	biases := []string{"layer1/biases"}
	counts, numbers, ordered := []float64{1, 0, 4, 2, 2}, []float64{.8, 1.1, .3, 4}, []float64{0, 2, 2, 1, 2, 0}
	cases := []struct {
		model   bayes.Model
		y       []float64
		names   []string
		size    int                       // of all named parameters
		biases  int                       // how many of them, at the beginning, are the network's outputs
		prior   func(b []float64) float64 // log-density of them
		reaches float64                   // all but nothing of the posterior is within
		rows    dataset.Dataset           // its Weights, Exposure and Censored
	}{
		{bayes.Model{Likelihood: bayes.Poisson{}}, counts, biases, 1, 1, unit, 5, dataset.Dataset{}},
		{bayes.Model{Likelihood: bayes.Heteroscedastic{}}, numbers, biases, 2, 2,
			func(b []float64) float64 { return unit(b) + unit(b[1:]) }, 6, dataset.Dataset{}},
		{bayes.Model{Likelihood: bayes.Gaussian{}, Prior: bayes.LearntPrecision{}}, numbers, biases, 1, 1,
			func(b []float64) float64 { return distuv.StudentsT{Sigma: 1, Nu: 2}.LogProb(b[0]) }, 6,
			dataset.Dataset{}},
		{bayes.Model{Likelihood: bayes.Poisson{}}, counts, biases, 1, 1, unit, 5,
			dataset.Dataset{Exposure: []float64{1, 2, .5, 3, 1}, Weights: []float64{1, 2, 1, .3, 0}}},
		{bayes.Model{Likelihood: bayes.Heteroscedastic{}}, numbers, biases, 2, 2,
			func(b []float64) float64 { return unit(b) + unit(b[1:]) }, 6,
			dataset.Dataset{Censored: []bool{false, true, false, true}, Weights: []float64{1, 2, .5, 1}}},
		{bayes.Model{Likelihood: bayes.Gaussian{StdDev: .5}}, numbers, biases, 1, 1, unit, 6,
			dataset.Dataset{Censored: []bool{true, false, true, true}}},
		{bayes.Model{Likelihood: bayes.Ordinal{}, Stochastic: bayes.All().And(bayes.Names("noise/cuts"))}, ordered,
			[]string{"layer1/biases", "noise/cuts"}, 3, 1,
			func(b []float64) float64 { return unit(b) + unit(b[1:]) + unit(b[2:]) }, 5, dataset.Dataset{}},
	}
	comparisons := 0
	for _, c := range cases {
		comparisons += 2 * c.size
	}
	for _, c := range cases {
		if c.model.Network = (nn.MLP{}); len(c.model.Stochastic.Selectors) == 0 {
			c.model.Stochastic = bayes.All()
		}
		c.model.Scaling = bayes.Scaling{KeepFeatures: true, KeepTarget: true}
		data := &dataset.Dataset{Name: "few", Features: []string{"none"}, Target: "y", Y: c.y,
			X: mat.NewDense(len(c.y), 1, nil), Weights: c.rows.Weights, Exposure: c.rows.Exposure, Censored: c.rows.Censored}
		var own int // parameters of the likelihood, the last
		if data.Task = c.model.Likelihood.Task(); data.Task == dataset.Classification {
			data.Classes = []string{"low", "medium", "high"}
			own = c.size - c.biases
		}
		name := fmt.Sprintf("%T, %T, %v", c.model.Likelihood, c.model.Prior, data.Extras())
		sampler := pbnn.AllRows{Sampling: pbnn.Sampling{Chains: chains, Draws: 150, WarmUp: 60},
			Kernel: mcmc.HMC{Steps: 5, Jitter: .5}}
		result, err := fit.Fit(t.Context(), c.model, sampler, dataset.Parts{Train: data},
			run.Settings{Seed: 5, Engine: computetest.Go(t), DType: compute.Float64})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d := computetest.Must(diag.Of(result))
		if !(d.RHat < 1.05) {
			t.Errorf("%s: R-hat %.3f", name, d.RHat)
		}
		if w := fmt.Sprint(result.Warnings); strings.Contains(w, "stood still") {
			t.Errorf("%s: %s", name, w)
		}
		moments := byGrid(c.size, c.reaches, func(b []float64) float64 {
			density := c.prior(b)
			for i, y := range c.y {
				outputs, weight := slices.Clone(b[:c.biases]), 1.
				if data.Exposure != nil {
					outputs[0] += math.Log(data.Exposure[i])
				}
				if data.Weights != nil {
					weight = data.Weights[i]
				}
				of := c.model.Likelihood.Predictive(outputs, b[c.size-own:], 0)
				if data.Censored != nil && data.Censored[i] {
					density += weight * math.Log(of.Survival(y))
				} else {
					density += weight * of.LogProb(y)
				}
			}
			return density
		})
		var columns [][]float64 // [parameter][draw]
		for _, parameter := range c.names {
			values, _, err := result.Posterior.Parameter(parameter)
			if err != nil {
				t.Fatal(err)
			}
			each := len(values) / result.Posterior.Particles()
			for k := range each {
				column := make([]float64, result.Posterior.Particles())
				for j := range column {
					column[j] = values[j*each+k]
				}
				columns = append(columns, column)
			}
		}
		for k, column := range columns {
			for power := 1; power <= 2; power++ {
				var averages []float64
				for chain := range slices.Chunk(column, len(column)/chains) {
					sum := 0.0
					for _, v := range chain {
						sum += math.Pow(v, float64(power))
					}
					averages = append(averages, sum/float64(len(chain)))
				}
				mean, deviation := stat.MeanStdDev(averages, nil)
				z := (mean - moments[k][power-1]) / (deviation / math.Sqrt(chains))
				p := 2 * distuv.StudentsT{Sigma: 1, Nu: chains - 1}.Survival(math.Abs(z))
				t.Logf("%s: parameter %d, mean of power %d: %.4f, exactly %.4f, p %.2g", name, k, power, mean,
					moments[k][power-1], p)
				if !(p > alarm/float64(comparisons)) {
					t.Errorf("%s: parameter %d, mean of power %d: %.4f, exactly %.4f, p %.2g", name, k, power, mean,
						moments[k][power-1], p)
				}
			}
		}
	}
}

// byGrid are mean and mean square of each coordinate of a log-density of one to three numbers, by the midpoint rule.
func byGrid(size int, reaches float64, density func([]float64) float64) [][2]float64 {
	points := []int{4000, 600, 60}[size-1]
	sums, total := make([][2]float64, size), 0.0
	b := make([]float64, size)
	var over func(k int) // the coordinates from k on
	over = func(k int) {
		if k < size {
			for i := range points {
				b[k] = reaches * (2*(float64(i)+.5)/float64(points) - 1)
				over(k + 1)
			}
			return
		}
		weight := math.Exp(density(b))
		total += weight
		for k, v := range b {
			sums[k][0] += weight * v
			sums[k][1] += weight * v * v
		}
	}
	over(0)
	for k := range sums {
		sums[k][0] /= total
		sums[k][1] /= total
	}
	return sums
}
