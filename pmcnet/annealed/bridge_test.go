package annealed

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// inGraph evaluates a function of x, [J, D], and of data on the Go backend in float64.
func inGraph(
	t *testing.T, data map[string]*tensors.Tensor, x *mat.Dense, f func(data compute.Nodes, x *graph.Node) *graph.Node,
) []float64 {
	t.Helper()
	rows, d := x.Dims()
	program, err := compute.NewProgram(computetest.Go(t), "test", nil, nil,
		func(_ compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
			nodes := compute.Nodes{}
			for name, tensor := range data {
				nodes[name] = graph.ConstTensor(inputs[0].Graph(), tensor)
			}
			return nil, f(nodes, inputs[0])
		})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	state := compute.NewState(computetest.Go(t))
	defer state.Close()
	out, err := program.Run(state, compute.Floats(compute.Float64, x.RawMatrix().Data, rows, d))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// In a graph a mixture has the density that it has on the host, and the gradient of that.
func TestMixtureInGraph(t *testing.T) {
	const d = 6
	rng := rand.New(rand.NewPCG(3, 3))
	particles := mat.NewDense(400, d, nil)
	for j := range 400 {
		common := rng.NormFloat64()
		for i := range d {
			particles.Set(j, i, 3*float64(j%2)+common+float64(i+1)*rng.NormFloat64())
		}
	}
	m, err := fitMixture(t.Context(), particles, equal(400), 2, rng)
	if err != nil || len(m) != 2 {
		t.Fatal(len(m), err)
	}
	m[0].share, m[1].share = .6, .4
	data := m.data(compute.Float64)
	inside := func(data compute.Nodes, x *graph.Node) *graph.Node { return logDensityOf(data, x, 2) }
	x := mat.DenseCopyOf(particles.Slice(0, 20, 0, d))
	x.Apply(func(_, _ int, v float64) float64 { return 2 * v }, x) // in the tails too
	computetest.Near(t, "log-density", inGraph(t, data, x, inside), m.logDensity(x), 1e-9)
	gradient := inGraph(t, data, x, func(data compute.Nodes, x *graph.Node) *graph.Node {
		_, g := density.Func(func(x *graph.Node) *graph.Node { return inside(data, x) }).Gradient(x)
		return g
	})
	const h = 1e-5
	for i := range d {
		up, down := mat.DenseCopyOf(x), mat.DenseCopyOf(x)
		up.Set(0, i, up.At(0, i)+h)
		down.Set(0, i, down.At(0, i)-h)
		if by := (m.logDensity(up)[0] - m.logDensity(down)[0]) / (2 * h); math.Abs(by-gradient[i]) > 1e-6 {
			t.Errorf("gradient %v in a graph, %v by differences", gradient[i], by)
		}
	}
}

// In a graph particles come into the order that they come into on the host, of one and of two layers, and so does what
// is differentiated through it: the gradient of a linear function of the ordered particle is its coefficients, moved
// back.
func TestOrderInGraph(t *testing.T) {
	for _, c := range []struct {
		hidden     []int
		activation nn.Activation
	}{{[]int{4}, nn.Tanh}, {[]int{3, 2}, nn.Tanh}, {[]int{3, 3}, nn.ReLU}} {
		b := bound(t, nn.MLP{Hidden: c.hidden, Activation: c.activation}, bayes.Normal{})
		rng := rand.New(rand.NewPCG(1, 2))
		particles := mat.NewDense(40, b.D, nil)
		particles.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, particles)
		o, ordered := newOrder(b), mat.DenseCopyOf(particles)
		o.learn(ordered)
		got := inGraph(t, o.data(compute.Float64), particles, o.canonical)
		if !slices.Equal(got, ordered.RawMatrix().Data) {
			t.Errorf("%v: another order in a graph", c)
		}
		linear := make([]float64, b.D)
		for i := range linear {
			linear[i] = rng.NormFloat64()
		}
		data := o.data(compute.Float64)
		data["linear"] = compute.Floats(compute.Float64, linear, b.D)
		gradient := inGraph(t, data, particles, func(data compute.Nodes, x *graph.Node) *graph.Node {
			_, g := density.Func(func(x *graph.Node) *graph.Node {
				return graph.Einsum("jd,d->j", o.canonical(data, x), data["linear"])
			}).Gradient(x)
			return g
		})
		for j := range 40 {
			// The function is linear nearby, without a constant: so it is the gradient times the particle.
			value, by := 0., 0.
			for i := range b.D {
				value += linear[i] * ordered.At(j, i)
				by += gradient[j*b.D+i] * particles.At(j, i)
			}
			if math.Abs(value-by) > 1e-9 {
				t.Fatalf("%v: particle %d has the value %v, by its gradient %v", c, j, value, by)
			}
		}
	}
}

// within runs a test in a job of Annealed, and ends it with errSeen.
type within struct {
	Annealed
	run func(j *fit.Job, a Annealed) error
}

var errSeen = errors.New("the test has run")

func (w within) Prepare(j *fit.Job) (fit.Method, error) {
	a, err := w.Annealed.Prepare(j)
	if err != nil {
		return nil, err
	}
	return within{a.(Annealed), w.run}, nil
}

func (w within) Run(_ context.Context, j *fit.Job) (*fit.Result, error) {
	if err := w.run(j, w.Annealed); err != nil {
		return nil, err
	}
	return nil, errSeen
}

// The weights of draws count the draws that each component made. Of two components far apart, whose shares .7 and .3 of
// five draws are rounded to four and one, the first is the target: its four draws have the weight 5/4 each, the other
// 0, and their mean is the evidence, 1, without error. By the shares before rounding it is 1.14.
func TestWeighByCounts(t *testing.T) {
	const dof, apart = 30., 400.
	unit := mat.NewTriDense(2, mat.Lower, []float64{1, 0, 0, 1})
	q := mixture{
		{share: .7, dof: dof, mean: []float64{-apart, 0}, lower: unit},
		{share: .3, dof: dof, mean: []float64{apart, 0}, lower: unit},
	}
	first := density.Func(func(phi *graph.Node) *graph.Node {
		mean := graph.ConvertDType(graph.Const(phi.Graph(), [][]float64{q[0].mean}), phi.DType())
		square := graph.ReduceSum(graph.Square(graph.Sub(phi, graph.BroadcastToShape(mean, phi.Shape()))), 1)
		tail := graph.MulScalar(graph.Log1p(graph.DivScalar(square, dof)), -(dof+2)/2)
		return graph.AddScalar(tail, q[0].logConstant())
	})
	problem := density.Problem{
		Dim: 2, Target: func(compute.Nodes, []*graph.Node) density.Target { return first },
		Initial: fittest.Normal(2),
	}
	var logWeights []float64
	_, err := fit.Sample(t.Context(), problem, within{Annealed{}, func(j *fit.Job, a Annealed) (err error) {
		r := &annealing{Annealed: a, Job: j, problem: problem}
		r.Draws = 5
		_, logWeights, err = r.weigh(t.Context(), q)
		return err
	}}, run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
	if !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
	mean := 0.
	for _, w := range logWeights {
		mean += math.Exp(w) / float64(len(logWeights))
	}
	if math.Abs(mean-1) > 1e-9 {
		t.Errorf("the log-weights %v have a mean weight of %v, want 1", logWeights, mean)
	}
}

// Where the canonical region cuts away most of the mixture, and the target has as many images as the network, the
// bridge's evidence is exact: of a normal prior, which is symmetric under all exchanges of units and signs, times a
// constant, that constant. Forgetting |G| would be wrong by 2.1 and .7, ignoring the region by 1.4 or more.
func TestBridgeRegion(t *testing.T) {
	for _, activation := range []nn.Activation{nn.Tanh, nn.ReLU} {
		b := bound(t, nn.MLP{Hidden: []int{2}, Activation: activation}, bayes.Normal{})
		d := b.D
		target := smc.Posterior{
			Prior: func(phi *graph.Node) *graph.Node {
				square := graph.ReduceSum(graph.Square(phi), 1)
				return graph.AddScalar(graph.MulScalar(square, -.5), -float64(d)*math.Log(2*math.Pi)/2)
			},
			Likelihood: func(phi *graph.Node) *graph.Node {
				return graph.AddScalar(graph.MulScalar(graph.ReduceSum(phi, 1), 0), -3)
			},
		}
		lower, mean := mat.NewTriDense(d, mat.Lower, nil), make([]float64, d)
		for i := range d {
			lower.SetTri(i, i, .8)
			mean[i] = .6 * float64(i%3)
		}
		q := mixture{
			{share: .8, dof: 30, mean: mean, lower: lower},
			{share: .2, dof: 4, mean: make([]float64, d), lower: lower},
		}
		problem := density.Problem{
			Dim: d, Target: func(compute.Nodes, []*graph.Node) density.Target { return target },
			Initial: fittest.Normal(d),
		}
		// With several powers on the way.
		several := Annealed{SMC: smc.Tempered{Kernel: mcmc.HMC{Steps: 5}, Particles: 400, Threshold: .95}}
		r := &annealing{order: newOrder(b)}
		rng := rand.New(rand.NewPCG(4, 4))
		r.order.learn(q.draws(rng, 500))
		var x *mat.Dense
		_, err := fit.Sample(t.Context(), problem, within{several, func(j *fit.Job, a Annealed) (err error) {
			r.Annealed, r.Job, r.problem = a, j, problem
			x, err = r.bridge(t.Context(), q)
			return err
		}}, run.Settings{Seed: 1, Engine: computetest.Go(t), DType: compute.Float64})
		if !errors.Is(err, errSeen) {
			t.Fatal(err)
		}
		e := r.details.BridgeEvidence
		t.Logf("%s: evidence %.3f +- %.3f, exact -3", activation, e.Value, e.StdErr)
		if math.Abs(e.Value+3) > 4*e.StdErr || !(e.StdErr < .12) ||
			len(fit.Details[*smc.Details](r.details.bridged).Trace) < 3 || len(r.details.bridged.Doubts) > 0 {
			t.Errorf("%s: evidence %+v, exact -3, warnings %q", activation, e, r.details.bridged.Doubts)
		}
		square := 0.
		for j := range 400 {
			if !r.order.inside(x.RawRowView(j)) {
				t.Fatalf("%s: particle %d is not in order", activation, j)
			}
			square += floats.Dot(x.RawRowView(j), x.RawRowView(j)) / float64(400*d)
		}
		if math.Abs(square-1) > .1 { // its standard deviation is sqrt(2/3600) = .024 of independent particles
			t.Errorf("%s: the mean square is %.3f", activation, square)
		}
	}
}

// Weighted draws are the result where k-hat is surely low enough for weights to have a variance: not where it may be so
// by chance, as in four of 100 runs on boston whose evidence was too low. Then a bridge is built, and is the result.
func TestSureKHat(t *testing.T) {
	for _, c := range []struct {
		khat float64
		want Estimator
	}{{.2, ByImportance}, {.39, ByImportance}, {.42, ByBridge}, {.5, ByBridge}, {math.NaN(), ByBridge}} {
		details := Details{
			KHat: c.khat, kHatStdErr: .1, ESS: 200, bridged: &fit.Result{},
			SMCEvidence:        bayes.Evidence{Value: -285.04, StdErr: .088},
			ImportanceEvidence: bayes.Evidence{Value: -285.2, StdErr: .06},
			BridgeEvidence:     bayes.Evidence{Value: -285, StdErr: .04},
		}
		details.decide(true)
		r := &annealing{Annealed: Annealed{Bridge: bridgeIfNeeded}, details: details}
		needed := r.bridges(true)
		if details.Source != c.want || needed != (c.want == ByBridge) {
			t.Errorf("k-hat %v: the result is by %s, a bridge is needed: %v; want %s", c.khat, details.Source, needed, c.want)
		}
	}
}
