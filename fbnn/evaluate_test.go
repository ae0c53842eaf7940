package fbnn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// conjugate is a linear regression, rows of it in memory and in blocks of 8, the last of which has 6, and what is to be
// computed at some places, in closed form: with r = y - X theta, noise s and prior N(0, tau^2),
//
//	Phi = |r|^2/(2 s^2) + N log(s sqrt(2 pi)),   log p(theta) = -|theta|^2/(2 tau^2) - D log(tau sqrt(2 pi))
//
// and the gradient of the log-likelihood is X'r/s^2.
type conjugate struct {
	jobs            map[string]*job
	source          *asked     // of the job in blocks
	x               *mat.Dense // [rows, D], with a column of ones for the intercept
	y               []float64
	theta           *mat.Dense // [places, D]
	phi, logDensity []float64
	gradient, slope *mat.Dense // of the log-likelihood and of the log-posterior, [places, D]
}

const conjugateRows = 30

func newConjugate(t *testing.T, engine *compute.Engine, places int) conjugate {
	t.Helper()
	const rows, features, noise, tau = conjugateRows, 3, .5, .7
	const d = features + 1
	rng := rand.New(rand.NewPCG(8, 1))
	data := &dataset.Dataset{
		Name: "line", Task: dataset.Regression, X: mat.NewDense(rows, features, nil), Target: "y",
		Features: []string{"a", "b", "c"},
	}
	x := mat.NewDense(rows, d, nil)
	for i := range rows {
		for k := range features {
			data.X.(*mat.Dense).Set(i, k, rng.NormFloat64())
			x.Set(i, k, data.X.At(i, k))
		}
		x.Set(i, features, 1)
		data.Y = append(data.Y, 2*rng.NormFloat64())
	}
	c := conjugate{
		jobs: map[string]*job{}, source: &asked{Source: dataset.RowsOf(data)}, x: x, y: data.Y,
		theta: mat.NewDense(places, d, nil), gradient: mat.NewDense(places, d, nil), slope: mat.NewDense(places, d, nil),
	}
	c.theta.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, c.theta)
	for i := range places {
		at := c.theta.RawRowView(i)
		var r, g mat.VecDense
		r.MulVec(x, c.theta.RowView(i))
		r.SubVec(mat.NewVecDense(rows, data.Y), &r)
		g.MulVec(x.T(), &r)
		phi := mat.Dot(&r, &r)/(2*noise*noise) + rows*math.Log(noise*math.Sqrt(2*math.Pi))
		prior := -floats.Dot(at, at)/(2*tau*tau) - d*math.Log(tau*math.Sqrt(2*math.Pi))
		c.phi, c.logDensity = append(c.phi, phi), append(c.logDensity, prior-phi)
		for k := range d {
			c.gradient.Set(i, k, g.AtVec(k)/(noise*noise))
			c.slope.Set(i, k, c.gradient.At(i, k)-at[k]/(tau*tau))
		}
	}

	model := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: noise}, Prior: bayes.Normal{StdDev: tau},
		Stochastic: bayes.All(), Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}
	ReadAtOnce(t, 8)
	for name, parts := range map[string]dataset.Parts{"in memory": {Train: data}, "in blocks": {Source: c.source}} {
		j, _ := fittest.Job(t, model, CES{BatchSize: 3}, parts, run.Settings{Engine: engine, DType: compute.Float64})
		own, err := newJob(j)
		if err != nil {
			t.Fatal(err)
		}
		c.jobs[name] = own
	}
	return c
}

// asked counts how often it is read, and calls then each time.
type asked struct {
	dataset.Source
	times atomic.Int64
	then  func()
}

func (a *asked) Read(ctx context.Context, from int, x, y []float64) error {
	a.times.Add(1)
	if a.then != nil {
		a.then()
	}
	return a.Source.Read(ctx, from, x, y)
}

// Phi, the log-posterior and both gradients are those in closed form. Of the 53 places 50 are evaluated at once, so
// that the second call has some to spare.
func TestEvaluated(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		c := newConjugate(t, engine, atOnce+3)
		for name, job := range c.jobs {
			e, err := newEvaluator(job, job.problem)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			c.source.times.Store(0)
			phi, err := e.potential(t.Context(), c.theta)
			if err != nil {
				t.Fatal(err)
			}
			computetest.Near(t, name+": Phi", phi, c.phi, 1e-10)
			if n := c.source.times.Load(); job.Source != nil && n != 4 {
				t.Errorf("the source is read %d times for 4 blocks", n)
			}
			logDensity, err := e.logDensity(t.Context(), c.theta)
			if err != nil {
				t.Fatal(err)
			}
			computetest.Near(t, name+": log-posterior", logDensity, c.logDensity, 1e-10)
			gradient, err := e.gradient(t.Context(), c.theta)
			if err != nil {
				t.Fatal(err)
			}
			computetest.Near(t, name+": gradient of the log-likelihood", gradient.RawMatrix().Data,
				c.gradient.RawMatrix().Data, 1e-10)
		}
	}
}

// The calibration's mini-batches sum up over an epoch to the log-posterior and its gradient, though the last one of a
// block has fewer rows: those in memory, (N/n) times the log-likelihood of n rows and the prior, weighted by n/N, since
// any row may be in the last one; those of blocks, to which rows belong for good, as their mean.
func TestCalibrationBatches(t *testing.T) {
	const size = 3
	for _, engine := range computetest.Engines(t) {
		c := newConjugate(t, engine, 1)
		d := c.theta.RawMatrix().Cols
		want := slices.Concat(c.logDensity, c.slope.RawRowView(0))
		for name, epoch := range map[string]int{"in memory": 10, "in blocks": 3*3 + 2} {
			job := c.jobs[name]
			r := &ces{CES: CES{Calibration: mcmc.SGHMC{}, BatchSize: size}, job: job}
			problem, _, err := r.calibration(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			state := compute.NewState(engine)
			defer state.Close()
			for name, tensor := range problem.Data {
				state.Set(name, tensor)
			}
			program, err := compute.NewProgram(engine, "an estimate", state.Names(), nil,
				func(data compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
					logDensity, gradient := problem.Target(data, inputs[1:]).Gradient(inputs[0])
					all := graph.Concatenate([]*graph.Node{logDensity, graph.Reshape(gradient, d)}, 0)
					if name == "in blocks" {
						return nil, graph.DivScalar(all, float64(epoch))
					}
					count := graph.ConvertDType(inputs[len(inputs)-1], compute.Float64)
					return nil, graph.Mul(all, graph.DivScalar(count, conjugateRows))
				})
			if err != nil {
				t.Fatal(err)
			}
			defer program.Close()
			got := make([]float64, 1+d)
			for move := range epoch {
				inputs := []any{compute.Floats(compute.Float64, c.theta.RawMatrix().Data, 1, d)}
				if problem.HostInputs != nil {
					of, err := problem.HostInputs.Inputs(t.Context(), move, nil)
					if err != nil {
						t.Fatal(err)
					}
					inputs = append(inputs, of...)
				} else {
					inputs = append(inputs, problem.Inputs(move)...)
				}
				part, err := program.Run(state, inputs...)
				if err != nil {
					t.Fatal(err)
				}
				floats.Add(got, part)
			}
			computetest.Near(t, name, got, want, 1e-10)
		}
	}
}

// The inner products of the pairs' outputs g = X theta about their mean m over the learnt ones, (g_i - m)'(g_j - m),
// and with the targets, (g_j - m)'(y - m) and |y - m|^2, are those of all rows, and of no padding.
func TestOutputsOfPairs(t *testing.T) {
	const count = 13
	for _, engine := range computetest.Engines(t) {
		c := newConjugate(t, engine, count)
		p, err := newPairs(c.theta, c.phi)
		if err != nil {
			t.Fatal(err)
		}
		var outputs, gram mat.Dense // outputs are [count, rows]
		outputs.Mul(c.theta, c.x.T())
		mean := make([]float64, conjugateRows)
		for i := range p.learnt {
			floats.AddScaled(mean, 1/float64(p.learnt), outputs.RawRowView(i))
		}
		rest := slices.Clone(c.y)
		floats.Sub(rest, mean)
		var residual []float64
		for i := range count {
			floats.Sub(outputs.RawRowView(i), mean)
			residual = append(residual, floats.Dot(outputs.RawRowView(i), rest))
		}
		gram.Mul(&outputs, outputs.T())
		for name, job := range c.jobs {
			got, err := p.outputs(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			computetest.Near(t, name+": inner products", mat.DenseCopyOf(got.gram).RawMatrix().Data, gram.RawMatrix().Data,
				1e-10)
			computetest.Near(t, name+": those with the targets", got.residual, residual, 1e-10)
			computetest.Near(t, name+": the targets' own", []float64{got.residual2}, []float64{floats.Dot(rest, rest)}, 1e-10)
		}
	}
}
