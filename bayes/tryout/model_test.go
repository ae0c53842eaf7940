package tryout_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// Parts of a model as a user's own, so that they are tried.
type (
	ownNetwork    struct{ nn.Network }
	ownLikelihood struct{ bayes.Likelihood }
	ownPoisson    struct{ bayes.Poisson }
	ownBinomial   struct{ bayes.NegativeBinomial }
	ownPrior      struct{ bayes.Prior }
)

// cauchy is a likelihood whose distribution has neither mean nor variance.
type cauchy struct{ bayes.Gaussian }

func (cauchy) LogDensity(_ nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	square := graph.Square(graph.Sub(bayes.Targets(y), outputs.Full()))
	return bayes.SumTargets(graph.Neg(graph.AddScalar(graph.Log1p(square), math.Log(math.Pi))))
}

func (cauchy) Predictive(outputs, _ []float64, target int) bayes.Distribution {
	return distuv.StudentsT{Mu: outputs[target], Sigma: 1, Nu: 1}
}

// tried binds a model to two features and tries it.
func tried(m bayes.Model, outputs int) error {
	bound, err := m.Bind(2, outputs)
	if err != nil {
		return err
	}
	return tryout.Model(bound)
}

// The library's own parts pass what is asked of a user's.
func TestGoodParts(t *testing.T) {
	mlp := nn.MLP{Hidden: []int{4, 3}}
	bind := func(size int, m bayes.Model) {
		t.Helper()
		if err := tried(m, size); err != nil {
			t.Errorf("%T with %T, %T and %d outputs: %v", m.Network, m.Likelihood, m.Prior, size, err)
		}
	}
	for _, l := range []bayes.Likelihood{bayes.Gaussian{}, bayes.Gaussian{Learn: true}, bayes.Heteroscedastic{},
		bayes.HeteroscedasticT{}, ownLikelihood{bayes.HeteroscedasticT{}}, cauchy{}, ownPoisson{},
		ownBinomial{}} {
		for _, size := range []int{1, 3} {
			bind(size, bayes.Model{Network: ownNetwork{mlp}, Likelihood: l, Stochastic: bayes.All()})
			bind(size, bayes.Model{Network: mlp, Likelihood: l, Stochastic: bayes.Layers(2)})
		}
	}
	bind(1, bayes.Model{Network: mlp, Likelihood: ownLikelihood{bayes.Bernoulli{}}, Stochastic: bayes.Layers(3)})
	bind(4, bayes.Model{Network: mlp, Likelihood: ownLikelihood{bayes.Categorical{}}, Stochastic: bayes.Layers(1)})
	for _, stochastic := range []bayes.Partition{bayes.Layers(1), bayes.All().And(bayes.Names("noise/cuts"))} {
		bind(4, bayes.Model{Network: mlp, Likelihood: ownLikelihood{bayes.Ordinal{}}, Stochastic: stochastic})
	}
	for _, p := range []bayes.Prior{bayes.Normal{StdDev: 3}, bayes.LearntPrecision{},
		correlated{}, spike{share: .5}} {
		bind(1, bayes.Model{Network: mlp, Likelihood: bayes.Gaussian{}, Prior: ownPrior{p}, Stochastic: bayes.All()})
	}
}

// spoiltLayer is an activation with a fault.
type spoiltLayer struct{ apply func(h nn.Value) nn.Value }

func (l spoiltLayer) Parameters() []nn.Parameter             { return nil }
func (l spoiltLayer) Apply(_ nn.Params, h nn.Value) nn.Value { return l.apply(h) }

// spoiltNetwork has such a layer at its end.
type spoiltNetwork struct {
	nn.MLP
	apply func(h nn.Value) nn.Value
}

func (n spoiltNetwork) Layers(inputs, outputs int) ([]nn.Layer, error) {
	layers, err := n.MLP.Layers(inputs, outputs)
	return append(layers, spoiltLayer{n.apply}), err
}

// onNode is a change of a value's node.
func onNode(change func(x *graph.Node) *graph.Node) func(nn.Value) nn.Value {
	return func(h nn.Value) nn.Value { return nn.Value{Node: change(h.Node), PerParticle: h.PerParticle} }
}

// spoiltLikelihood is a Gaussian of standard deviation 2 with faults.
type spoiltLikelihood struct {
	bayes.Gaussian
	density    func(density *graph.Node) *graph.Node
	predictive func(d bayes.Distribution) bayes.Distribution
}

func (l spoiltLikelihood) LogDensity(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	density := l.Gaussian.LogDensity(params, outputs, y)
	if l.density != nil {
		density = l.density(density)
	}
	return density
}

func (l spoiltLikelihood) Predictive(outputs, own []float64, target int) bayes.Distribution {
	d := l.Gaussian.Predictive(outputs, own, target)
	if l.predictive != nil {
		d = l.predictive(d)
	}
	return d
}

// noFactorial is a Poisson likelihood that lacks -log y!.
type noFactorial struct{ bayes.Poisson }

func (l noFactorial) LogDensity(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	rate := outputs.Full()
	return bayes.SumTargets(graph.Sub(graph.Mul(bayes.Targets(y), rate), graph.Exp(rate)))
}

// lastForgotten is a classification that forgets the last class when it normalises, in training and in prediction.
type lastForgotten struct{ bayes.Categorical }

func (l lastForgotten) LogDensity(_ nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	all := outputs.Full()
	classes := all.Shape().Dim(1)
	others := graph.Slice(all, graph.AxisRange(), graph.AxisRange(0, classes-1))
	logSum := graph.Squeeze(graph.Log(graph.ReduceAndKeep(graph.Exp(others), graph.ReduceSum, 1)), 1)
	oneHot := graph.OneHot(graph.ConvertDType(graph.Reshape(y, y.Shape().Dim(1)), dtypes.Int32), classes, all.DType())
	picked := graph.Mul(all, graph.ExpandAxes(graph.Transpose(oneHot, 0, 1), 0, -1))
	return graph.Sub(graph.ReduceSum(picked, 1), logSum)
}

func (l lastForgotten) Predictive(outputs, _ []float64, _ int) bayes.Distribution {
	return withoutLast{slices.Clone(outputs), floats.LogSumExp(outputs[:len(outputs)-1])}
}

// withoutLast has the log-probability logits[c] - logSum for class c, though they do not sum to 1, and the quantiles of
// the other classes.
type withoutLast struct {
	logits []float64
	logSum float64
}

func (d withoutLast) Mean() float64              { return 0 }
func (d withoutLast) Variance() float64          { return 1 }
func (d withoutLast) LogProb(y float64) float64  { return d.logits[int(y)] - d.logSum }
func (d withoutLast) Survival(y float64) float64 { return 1 - d.CDF(y) }

func (d withoutLast) CDF(y float64) float64 {
	sum := 0.
	for c := 0; c <= int(y); c++ {
		sum += math.Exp(d.LogProb(float64(c)))
	}
	return sum
}

func (d withoutLast) Quantile(p float64) float64 {
	c := 0.
	for d.CDF(c) < p && int(c) < len(d.logits)-1 {
		c++
	}
	return c
}

// jumping is a normal distribution of which LogDensity, but not Predictive, has another density
// beyond 2.5 standard deviations, as a robust likelihood does whose two parts do not meet.
type jumping struct{ bayes.Gaussian }

func (l jumping) LogDensity(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	z := graph.DivScalar(graph.Sub(bayes.Targets(y), outputs.Full()), l.StdDev)
	square := graph.MulScalar(graph.Square(z), -.5)
	far := graph.GreaterThan(graph.Abs(z), graph.ConstAs(z, 2.5))
	density := graph.Where(far, graph.MulScalar(graph.Abs(z), -2.5), square)
	return bayes.SumTargets(graph.SubScalar(density, .5*math.Log(2*math.Pi)+math.Log(l.StdDev)))
}

// spoiltDistribution is a distribution with one method of another.
type spoiltDistribution struct {
	bayes.Distribution
	mean, variance, survival, cdf, quantile float64 // added
}

func (d spoiltDistribution) Mean() float64     { return d.Distribution.Mean() + d.mean }
func (d spoiltDistribution) Variance() float64 { return d.Distribution.Variance() + d.variance }
func (d spoiltDistribution) Survival(y float64) float64 {
	return d.Distribution.Survival(y) + d.survival
}
func (d spoiltDistribution) CDF(y float64) float64 { return d.Distribution.CDF(y) + d.cdf }
func (d spoiltDistribution) Quantile(p float64) float64 {
	return d.Distribution.Quantile(p) + d.quantile
}

// spoiltPrior is N(0, scale^2) with faults.
type spoiltPrior struct {
	bayes.Normal
	density, draws func(x *graph.Node) *graph.Node
}

func (p spoiltPrior) LogDensity(phi *graph.Node, slots []bayes.Slot) *graph.Node {
	if p.density == nil {
		return p.Normal.LogDensity(phi, slots)
	}
	return p.density(p.Normal.LogDensity(phi, slots))
}

func (p spoiltPrior) Sample(rng random.Stream, t compute.DType, particles int, slots []bayes.Slot) *graph.Node {
	if p.draws == nil {
		return p.Normal.Sample(rng, t, particles, slots)
	}
	return p.draws(p.Normal.Sample(rng, t, particles, slots))
}

// scaleless is a prior that does not use scales, and has none.
type scaleless struct{ bayes.Normal }

func (scaleless) Scale(nn.Parameter) float64 { return 0 }

// correlated is N(0, scale^2) for each number, with a correlation of 0.5 between neighbours, of which the logarithm of
// the covariance's determinant may be left out.
type correlated struct {
	bayes.Normal
	lacking bool
}

const correlation = .5

var innovation = math.Sqrt(1 - correlation*correlation) // the standard deviation of a number given the one before it

func (p correlated) LogDensity(phi *graph.Node, slots []bayes.Slot) *graph.Node {
	n := phi.Shape().Dim(1)
	columns := func(from, to int) *graph.Node { return graph.Slice(phi, graph.AxisRange(), graph.AxisRange(from, to)) }
	z := phi
	if n > 1 {
		rest := graph.Sub(columns(1, n), graph.MulScalar(columns(0, n-1), correlation))
		z = graph.Concatenate([]*graph.Node{columns(0, 1), graph.DivScalar(rest, innovation)}, 1)
	}
	density := p.Normal.LogDensity(z, slots)
	if !p.lacking {
		density = graph.AddScalar(density, -float64(n-1)*math.Log(innovation))
	}
	return density
}

func (p correlated) Sample(rng random.Stream, t compute.DType, particles int, slots []bayes.Slot) *graph.Node {
	z := p.Normal.Sample(rng, t, particles, slots)
	var columns []*graph.Node
	for i := range z.Shape().Dim(1) {
		x := graph.Slice(z, graph.AxisRange(), graph.AxisRange(i, i+1))
		if i > 0 {
			x = graph.Add(graph.MulScalar(columns[i-1], correlation), graph.MulScalar(x, innovation))
		}
		columns = append(columns, x)
	}
	return graph.Concatenate(columns, 1)
}

// oneConstant is N(0, scale^2) with the constant of one number, however many there are.
type oneConstant struct{ bayes.Normal }

func (p oneConstant) LogDensity(phi *graph.Node, slots []bayes.Slot) *graph.Node {
	more := .5 * float64(phi.Shape().Dim(1)-1) * math.Log(2*math.Pi)
	return graph.AddScalar(p.Normal.LogDensity(phi, slots), more)
}

// spoiltHierarchy lacks a constant of its joint density.
type spoiltHierarchy struct{ bayes.LearntPrecision }

func (p spoiltHierarchy) LogDensity(phi *graph.Node, slots []bayes.Slot) *graph.Node {
	return graph.AddScalar(p.LearntPrecision.LogDensity(phi, slots), .1*float64(numbers(slots)-1))
}

func numbers(slots []bayes.Slot) int {
	n := 0
	for _, slot := range slots {
		n += slot.Size()
	}
	return n
}

// hump has the density 3/4 (1 - x^2) from -1 to 1, where it ends without a jump.
type hump struct{ bayes.Normal }

func (hump) LogDensity(phi *graph.Node, _ []bayes.Slot) *graph.Node {
	return graph.ReduceSum(graph.Log(graph.MulScalar(graph.AddScalar(graph.Neg(graph.Square(phi)), 1), .75)), 1)
}

// Sample is the median of three uniform numbers.
func (hump) Sample(rng random.Stream, t compute.DType, particles int, slots []bayes.Slot) *graph.Node {
	var u [3]*graph.Node
	for i, name := range []string{"a", "b", "c"} {
		u[i] = graph.AddScalar(graph.MulScalar(rng.Named(name).Uniform(t, particles, numbers(slots)), 2), -1)
	}
	return graph.Max(graph.Min(u[0], u[1]), graph.Min(graph.Max(u[0], u[1]), u[2]))
}

// spike has the density of a spike in a slab, of equal weights: N(0, 1/400^2) and N(0, 1). Its draws come from the
// spike with another probability.
type spike struct {
	bayes.Normal
	share float64
}

const spikeWidth = 1. / 400

func (spike) LogDensity(phi *graph.Node, _ []bayes.Slot) *graph.Node {
	part := func(width float64) *graph.Node {
		return graph.DivScalar(graph.Exp(graph.MulScalar(graph.Square(graph.DivScalar(phi, width)), -.5)), width)
	}
	density := graph.MulScalar(graph.Add(part(1), part(spikeWidth)), .5/math.Sqrt(2*math.Pi))
	return graph.ReduceSum(graph.Log(density), 1)
}

func (s spike) Sample(rng random.Stream, t compute.DType, particles int, slots []bayes.Slot) *graph.Node {
	z := rng.Named("z").Normal(t, particles, numbers(slots))
	u := rng.Named("u").Uniform(t, particles, numbers(slots))
	return graph.Where(graph.LessThan(u, graph.Scalar(u.Graph(), t, s.share)), graph.MulScalar(z, spikeWidth), z)
}

// Parts of a model that contradict themselves are refused, with what is wrong.
func TestSpoiltParts(t *testing.T) {
	network := func(change func(x *graph.Node) *graph.Node) bayes.Model {
		return bayes.Model{Network: spoiltNetwork{nn.MLP{Hidden: []int{3}}, onNode(change)}}
	}
	density := func(change func(x *graph.Node) *graph.Node) bayes.Model {
		return bayes.Model{Likelihood: spoiltLikelihood{Gaussian: bayes.Gaussian{StdDev: 2}, density: change}}
	}
	predictive := func(change func(d bayes.Distribution) bayes.Distribution) bayes.Model {
		return bayes.Model{Likelihood: spoiltLikelihood{Gaussian: bayes.Gaussian{StdDev: 2}, predictive: change}}
	}
	distribution := func(fault spoiltDistribution) bayes.Model {
		return predictive(func(d bayes.Distribution) bayes.Distribution { fault.Distribution = d; return fault })
	}
	prior := func(p spoiltPrior) bayes.Model { return bayes.Model{Prior: p} }
	scaled := func(factor float64) func(x *graph.Node) *graph.Node {
		return func(x *graph.Node) *graph.Node { return graph.MulScalar(x, factor) }
	}
	plus := func(term float64) func(x *graph.Node) *graph.Node {
		return func(x *graph.Node) *graph.Node { return graph.AddScalar(x, term) }
	}
	// less is x less its mean over an axis.
	less := func(axis int) func(x *graph.Node) *graph.Node {
		return func(x *graph.Node) *graph.Node { return graph.Sub(x, graph.ReduceAndKeep(x, graph.ReduceMean, axis)) }
	}
	// after adds half of what is before it on an axis.
	after := func(axis int) func(x *graph.Node) *graph.Node {
		return func(x *graph.Node) *graph.Node {
			first, before := make([]graph.SliceAxisSpec, x.Rank()), make([]graph.SliceAxisSpec, x.Rank())
			for i := range first {
				first[i], before[i] = graph.AxisRange(), graph.AxisRange()
			}
			first[axis], before[axis] = graph.AxisRange(0, 1), graph.AxisRange(0, -1)
			none := graph.ZerosLike(graph.Slice(x, first...))
			return graph.Add(x, graph.MulScalar(graph.Concatenate([]*graph.Node{none, graph.Slice(x, before...)}, axis), .5))
		}
	}
	// toAndFro moves the coordinates of draws, [particles, n], by numbers whose sum is 0.
	toAndFro := func(x *graph.Node) *graph.Node {
		number := graph.Iota(x.Graph(), x.Shape(), 1)
		return graph.Add(x, graph.MulScalar(less(1)(graph.Mod(number, graph.Scalar(x.Graph(), x.DType(), 2))), 2))
	}
	for name, c := range map[string]struct {
		model bayes.Model
		want  string
	}{
		"likelihood, no factorial": {bayes.Model{ // whose rates are so small that most counts are 0 or 1
			Network: nn.MLP{Hidden: []int{4, 3}}, Likelihood: noFactorial{}}, "with all constants"},
		"likelihood, tails":             {bayes.Model{Likelihood: jumping{bayes.Gaussian{StdDev: 40}}}, "with all constants"},
		"likelihood, a class forgotten": {bayes.Model{Likelihood: lastForgotten{}}, "probabilities of 4 classes sum to"},
		"network, rows before":          {network(after(2)), "other rows"},
		"network, particles before": {network(func(x *graph.Node) *graph.Node {
			if x.Shape().Dim(0) == 1 {
				return x
			}
			return after(0)(x)
		}), "other particles"},
		"network, NaN and rows": {network(func(x *graph.Node) *graph.Node {
			return graph.Add(less(2)(graph.Sin(x)), graph.MulScalar(graph.Log(graph.AddScalar(x, .5)), 0))
		}), "other rows"},
		"prior, particles":        {prior(spoiltPrior{density: less(0)}), "other particles"},
		"prior, no scale":         {bayes.Model{Prior: scaleless{}}, "scaleless has the scale 0 for "},
		"prior, one number":       {prior(spoiltPrior{density: graph.ReduceAllSum}), "one number a particle"},
		"prior, moved to and fro": {prior(spoiltPrior{draws: toAndFro}), "Sample draws for number"},
		"network, rows":           {network(less(2)), "other rows"},
		"network, place of a row": {network(func(x *graph.Node) *graph.Node {
			return graph.Add(x, graph.MulScalar(graph.Iota(x.Graph(), x.Shape(), 2), .1))
		}), "place of a row"},
		"network, particles": {network(less(0)), "other particles"},
		"network, blocks": {network(func(x *graph.Node) *graph.Node {
			return graph.MulScalar(x, float64(x.Shape().Dim(3)))
		}), "laid out"},
		"likelihood, rows":      {density(less(1)), "other rows"},
		"likelihood, particles": {density(less(0)), "other particles"},
		"likelihood, blocks":    {density(less(2)), "laid out"},
		"likelihood, constant":  {density(plus(.5 * math.Log(2*math.Pi))), "with all constants"},
		"likelihood, power":     {density(scaled(.5)), "contradicts itself"},
		"likelihood, variance for a standard deviation": {predictive(func(d bayes.Distribution) bayes.Distribution {
			return distuv.Normal{Mu: d.Mean(), Sigma: d.Variance()}
		}), "contradicts itself"},
		"distribution, mean":            {distribution(spoiltDistribution{mean: .3}), "Mean"},
		"distribution, variance":        {distribution(spoiltDistribution{variance: -2}), "Variance"},
		"distribution, survival":        {distribution(spoiltDistribution{survival: .01}), "Survival"},
		"distribution, CDF":             {distribution(spoiltDistribution{cdf: .01, survival: -.01}), "Quantile"},
		"distribution, quantile":        {distribution(spoiltDistribution{quantile: .1}), "Quantile"},
		"distribution, no quantile":     {distribution(spoiltDistribution{quantile: math.NaN()}), "Quantile"},
		"prior, wider draws":            {prior(spoiltPrior{draws: scaled(1.1)}), "Sample"},
		"prior, moved draws":            {prior(spoiltPrior{draws: plus(.1)}), "Sample"},
		"prior, power":                  {prior(spoiltPrior{density: scaled(2)}), "Sample"},
		"prior, no draws":               {prior(spoiltPrior{draws: scaled(math.NaN())}), "Sample"},
		"prior, constant":               {prior(spoiltPrior{density: plus(1)}), "integrates to 2.718"},
		"prior, constant of one number": {bayes.Model{Prior: oneConstant{}}, "for two coordinates together"},
		"prior, no determinant":         {bayes.Model{Prior: correlated{lacking: true}}, "integrates to about 0.8"},
		"prior, hierarchy, constant":    {bayes.Model{Prior: spoiltHierarchy{}}, "for two coordinates together"},
		"prior, draws of the spike":     {bayes.Model{Prior: spike{share: .1}}, "lies below"},
		"prior, ends without a jump":    {bayes.Model{Prior: hump{}}, "ends at about"},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.model
			m.Stochastic = bayes.All()
			if m.Network == nil {
				m.Network = nn.MLP{Hidden: []int{3}}
			}
			if m.Likelihood == nil {
				m.Likelihood = bayes.Gaussian{}
			}
			outputs := 1
			if m.Likelihood.Task() == dataset.Classification {
				outputs = 4
			}
			err := tried(m, outputs)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
