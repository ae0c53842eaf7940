package pmcnet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// reference is steps b to d of Algorithm 1 in plain Go, on given draws and a given choice of means, without any of the
// package's functions.
type reference struct {
	PMC
	mean, theta [][]float64 // [M][D], [M K][D]
	sigma       [][]float64 // [M], flat [D, D]
	chosen      []int       // of M K
	beta, eta   float64
	share       float64 // of the draws, that tempering leaves
}

// target is a Gaussian with unlike scales; log pi has no constant.
func logTarget(theta []float64) float64 {
	sum := 0.
	for i, v := range theta {
		sum -= (v - .3) * (v - .3) * float64(i+1) / 2
	}
	return sum
}

// logTargetInGraph is logTarget of theta, [J, D].
func logTargetInGraph(theta *Node) *Node {
	scale := AddScalar(Iota(theta.Graph(), theta.Shape(), 1), 1)
	return MulScalar(ReduceSum(Mul(Square(SubScalar(theta, .3)), scale), 1), -.5)
}

// run gives the honest log-weights, those of the settings, and the next covariances, flat.
func (r reference) run(t *testing.T) (honest, weights, next []float64) {
	t.Helper()
	m, k, d := r.Proposals, r.Draws, len(r.mean[0])
	normals := make([]gaussianDensity, m)
	for i := range m {
		normals[i] = newGaussian(t, r.mean[i], r.sigma[i])
	}
	for _, theta := range r.theta {
		var terms []float64
		for _, normal := range normals {
			terms = append(terms, normal.LogProb(theta))
		}
		logQ := floats.LogSumExp(terms) - math.Log(float64(len(terms)))
		honest = append(honest, logTarget(theta)-logQ)
	}
	weights = slices.Clone(honest)
	if r.Weights == Tempered {
		floats.Scale(exponent(weights, r.share*float64(len(weights))), weights)
	}
	var all [][]float64
	for i := range m {
		rows, w := mat.NewDense(k, d, nil), make([]float64, k)
		for j := range k {
			rows.SetRow(j, r.theta[i*k+j])
		}
		covariance := func(l []float64) *mat.SymDense {
			for j, v := range l {
				w[j] = math.Exp(v - floats.LogSumExp(l))
			}
			var c mat.SymDense
			mean := make([]float64, d)
			for p := range d {
				mean[p] = stat.Mean(mat.Col(nil, p, rows), w)
			}
			c.ReuseAsSym(d)
			for j := range k {
				x := slices.Clone(r.theta[i*k+j])
				floats.Sub(x, mean)
				c.SymRankOne(&c, w[j], mat.NewVecDense(d, x))
			}
			return &c
		}
		own := weights[i*k : i*k+k]
		hat := covariance(own)
		clipped := slices.Clone(own)
		bound := slices.Sorted(slices.Values(own))[k-1-int(math.Sqrt(float64(k)))] // the next largest to sqrt(k)
		for j := range clipped {
			clipped[j] = min(clipped[j], bound)
		}
		tilde := covariance(clipped)
		var c []float64
		for p := range d {
			for q := range d {
				c = append(c, (1-r.beta)*r.sigma[i][p*d+q]+
					r.beta*((1-r.eta)*hat.At(p, q)+r.eta*tilde.At(p, q)))
			}
		}
		all = append(all, c)
	}
	for _, chosen := range r.chosen {
		next = append(next, all[chosen/k]...)
	}
	return honest, weights, next
}

// gaussianDensity is log N(x; mean, Sigma).
type gaussianDensity struct {
	mean []float64
	root mat.Cholesky
}

func newGaussian(t *testing.T, mean, sigma []float64) gaussianDensity {
	t.Helper()
	n := gaussianDensity{mean: mean}
	if !n.root.Factorize(mat.NewSymDense(len(mean), slices.Clone(sigma))) {
		t.Fatal("this tests nothing: a covariance is not definite")
	}
	return n
}

func (n gaussianDensity) LogProb(x []float64) float64 {
	e := mat.NewVecDense(len(x), nil)
	e.SubVec(mat.NewVecDense(len(x), x), mat.NewVecDense(len(x), n.mean))
	var solved mat.VecDense
	_ = n.root.SolveVecTo(&solved, e) // it is well conditioned
	return -mat.Dot(e, &solved)/2 - n.root.LogDet()/2 - float64(len(x))*math.Log(2*math.Pi)/2
}

// exponent is the power of log-weights at which their effective sample size is as wanted, by bisection.
func exponent(l []float64, wanted float64) float64 {
	ess := func(power float64) float64 {
		scaled := slices.Clone(l)
		floats.Scale(power, scaled)
		w, err := bayes.NewLogWeights(scaled)
		if err != nil {
			return 0
		}
		return w.EffectiveSampleSize()
	}
	low, high := 0., 1.
	if ess(1) >= wanted {
		return 1
	}
	for range 100 {
		if middle := (low + high) / 2; ess(middle) >= wanted {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// Weights and covariances are those of an independent implementation to 1e-9, with a global choice of means, for honest
// and for tempered weights.
func TestStep(t *testing.T) {
	const d = 3
	for _, weights := range []Weights{honestWeights, Tempered} {
		t.Run(string(weights), func(t *testing.T) {
			a := PMC{Proposals: 4, Draws: 7, StdDev: .5, Covariance: fullCovariance, Weights: weights}
			r := rand.New(rand.NewPCG(1, 2))
			draw := func(n int, scale float64) (x [][]float64) {
				for range n {
					row := make([]float64, d)
					for i := range row {
						row[i] = scale * r.NormFloat64()
					}
					x = append(x, row)
				}
				return x
			}
			ref := reference{PMC: a, mean: draw(4, 1), theta: draw(28, 1), chosen: []int{9, 3, 9, 27}, beta: .3,
				eta: .4, share: .9}
			for range 4 {
				root := mat.NewDense(d, d, flat2(draw(d, .6)))
				var s mat.Dense
				s.Mul(root, root.T())
				for i := range d {
					s.Set(i, i, s.At(i, i)+.3)
				}
				ref.sigma = append(ref.sigma, s.RawMatrix().Data)
			}
			got := computetest.Run(t, computetest.Go(t), func(g *Graph, args []*Node) []*Node {
				q := proposals{mean: args[0], family: full{}, covariance: fullOf(Reshape(args[1], 4, d, d))}
				target := density.Func(logTargetInGraph)
				n := now{rng: random.New(g, 1), global: Const(g, true), beta: args[3], eta: args[4]}
				w := a.weigh(q, Reshape(args[2], 4, 7, d), target)
				w.weights, w.exponent = a.weights(w.honest, ref.share)
				next := a.adapt(q, w, args[5], n)
				return []*Node{w.honest, w.weights, next.covariance[covarianceName], next.mean, next.distinct}
			}, ref.mean, flat2(ref.sigma), flat2(ref.theta), ref.beta, ref.eta, int32s(ref.chosen))
			parts := []string{"honest weights", "weights", "covariances"}
			honest, weights, next := ref.run(t)
			for i, want := range [][]float64{honest, weights, next} {
				computetest.Near(t, parts[i], got[i], want, 1e-9)
			}
			var means []float64
			for _, j := range ref.chosen {
				means = append(means, ref.theta[j]...)
			}
			computetest.Near(t, "means", got[3], means, 0)
			computetest.Near(t, "different draws", got[4], []float64{3}, 0)
		})
	}
}

// The first iterations of a run have the weights and covariances of the independent implementation, with beta = 1/2
// and eta = 1/t at iteration t.
func TestIterations(t *testing.T) {
	const m, k, d = 4, 9, 3
	problem := density.Problem{
		Dim: d, Target: func(compute.Nodes, []*Node) density.Target { return density.Func(logTargetInGraph) },
		Initial: func(rng random.Stream, dtype compute.DType, count int) *Node { return rng.Normal(dtype, count, d) },
	}
	a := PMC{
		Proposals: m, Draws: k, Iterations: 3, StdDev: .7, Start: FromPrior, Covariance: fullCovariance,
	}
	settings := run.Settings{Seed: 3, DType: compute.Float64, Engine: computetest.Go(t)}
	made := 0
	byStep(t, problem, a, settings, func(a PMC, at *fit.Trail[IterationRecord], step func() error) error {
		entry := func(name string, width int) [][]float64 {
			host, err := at.Host(name)
			if err != nil {
				t.Fatal(err)
			}
			flat, err := compute.Float64s(host[name])
			if err != nil {
				t.Fatal(err)
			}
			return shaped(flat, width)
		}
		iteration := at.Step + 1
		ref := reference{
			PMC: a, mean: entry(meanName, d), sigma: entry(covarianceName, d*d),
			chosen: []int{0, k, 2 * k, 3 * k}, // local
			beta:   .5, eta: 1 / float64(iteration),
		}
		if err := step(); err != nil {
			return err
		}
		ref.theta = entry(phiName, d)
		honest, _, next := ref.run(t)
		got := flat2(entry(covarianceName, d*d))
		computetest.Near(t, fmt.Sprintf("weights of iteration %d", iteration), flat2(entry(outputName, 1)), honest, 1e-9)
		computetest.Near(t, fmt.Sprintf("covariances of iteration %d", iteration), got, next, 1e-9)
		made++
		return nil
	})
	if made != 3 {
		t.Errorf("%d iterations were compared, want 3", made)
	}
}

// Covariances that are not positive definite, here of two draws in three dimensions where nothing is left of the ones
// before (beta = 1), are replaced by these, and counted.
func TestSingular(t *testing.T) {
	const m, k, d = 4, 2, 3
	got := computetest.Run(t, computetest.Go(t), func(g *Graph, args []*Node) []*Node {
		q := proposals{mean: Zeros(g, shapes.Make(compute.Float64, m, d)), family: full{}}
		q.covariance = q.family.initial(g, compute.Float64, m, d, .5)
		a := PMC{Proposals: m, Draws: k, Weights: honestWeights, Covariance: fullCovariance}
		n := now{rng: random.New(g, 1), global: Const(g, false), beta: args[0], eta: args[1]}
		theta := q.draw(n.rng, k)
		w := a.weigh(q, theta, density.Func(logTargetInGraph))
		next := a.adapt(q, w, Const(g, []int32{0, 2, 4, 6}), n)
		return []*Node{next.replaced, Sub(next.covariance[covarianceName], q.covariance[covarianceName])}
	}, 1., .5)
	computetest.Near(t, "replaced", got[0], []float64{m}, 0)
	computetest.Near(t, "changes", got[1], make([]float64, m*d*d), 0)
}

// Floored weights are exp(l) + 1e-50: those of log-weights near 0 are what they were, those below -115 are all 1e-50.
func TestFlooredWeights(t *testing.T) {
	in := [][]float64{{0, -3, -100}, {-115.1292546497, -400, math.Inf(-1)}}
	got := computetest.Run(t, computetest.Go(t), func(g *Graph, _ []*Node) []*Node {
		weights, _ := PMC{Weights: Floored}.weights(Const(g, in), leastESS)
		return []*Node{weights}
	})
	var want []float64
	for _, l := range flat2(in) {
		want = append(want, math.Log(math.Exp(l)+1e-50))
	}
	computetest.Near(t, "floored weights", got[0], want, 1e-9)
}

func shaped(x []float64, d int) (rows [][]float64) {
	for row := range slices.Chunk(x, d) {
		rows = append(rows, row)
	}
	return rows
}

// Densities of full covariances are gonum's, for proposals that lie ten thousand standard deviations apart and for ones
// that overlap: what is left of the rounding is that of the distance itself. All,
// some or none of the pairs of a proposal and another's draws count, which a part of the rows tells, or half, or all.
func TestFullDensities(t *testing.T) {
	const m, k, d = 12, 3, 65
	// Compiled once, for all cases.
	type densities struct {
		run   func(args ...any) [][]float64
		onCPU bool
	}
	compiled := map[compute.DType]*densities{}
	compile := func(engine *compute.Engine, dtype compute.DType) *densities {
		if compiled[dtype] == nil {
			c := &densities{}
			c.run = computetest.Compile(t, engine, func(g *Graph, args []*Node) []*Node {
				c.onCPU = compute.OnCPU(g.Backend())
				of := compute.Nodes{inverseName: args[1], logDetName: Reshape(args[3], m)}
				q := proposals{mean: args[0], family: full{}, covariance: of}
				return []*Node{q.logMixture(args[2]), full{}.logDensities(of, q.mean, Reshape(args[2], m*k, d))}
			})
			compiled[dtype] = c
		}
		return compiled[dtype]
	}
	for _, c := range []struct {
		name      string
		places    int     // that the proposals lie in
		apart     float64 // of places, in each coordinate from the first; a standard deviation is .01
		first     int
		leftOut   int     // of the 132 pairs of a proposal and another's draws, those whose distance is not finished
		notFinite int     // of a mean's coordinates
		astray    bool    // whether a draw of a proposal lies where another is
		wide      float64 // how much larger are the standard deviations of every other proposal
	}{
		{name: "in one place", places: 1},
		{name: "in three places", places: 3, apart: 100}, // too many pairs count to be finished one by one
		{name: "in six places", places: 6, apart: 20, leftOut: 120},
		{name: "in twelve places", places: m, apart: 20, leftOut: 132},
		{name: "half the rows tell", places: m, apart: 20, first: 17, leftOut: 132},
		{name: "the last rows tell", places: m, apart: 20, first: 49},
		{name: "neighbours count", places: m, apart: .0178, leftOut: 110},
		{name: "near", places: m, apart: .003},
		{name: "unlike widths", places: 3, apart: 20, wide: 2.5},
		{name: "a draw astray", places: m, apart: 20, leftOut: 121, astray: true},
		{name: "a mean that is not finite", places: m, apart: 20, leftOut: 110, notFinite: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(8, 2))
			short := func(v float64) float64 { return float64(float32(v)) } // what both types hold
			var mean, inverse, logDet, x []float64
			var normals []gaussianDensity
			for i := range m {
				own := make([]float64, d)
				for p := range own {
					if own[p] = short(.0001 * r.NormFloat64()); p >= c.first {
						own[p] = short(own[p] + c.apart*float64(i*c.places/m))
					}
				}
				s := make([]float64, d*d)
				for p := range d {
					for q := range d {
						variance := 1e-4
						if c.wide > 0 && i%2 == 1 {
							variance *= c.wide * c.wide
						}
						if s[p*d+q] = short(.1 * variance / (1 + math.Abs(float64(p-q)))); p == q {
							s[p*d+q] = short(variance * (1 + .01*float64(p+i)))
						}
					}
				}
				normal := newGaussian(t, own, s)
				mean, normals, logDet = append(mean, own...), append(normals, normal), append(logDet, normal.root.LogDet())
				lower := mat.NewTriDense(d, mat.Lower, nil)
				normal.root.LTo(lower)
				if err := lower.InverseTri(lower); err != nil {
					t.Fatal(err)
				}
				inverse = append(inverse, mat.DenseCopyOf(lower).RawMatrix().Data...)
				for range k {
					for p := range d {
						x = append(x, short(own[p]+.01*r.NormFloat64()))
					}
				}
			}
			if c.astray {
				copy(x[4*k*d:(4*k+1)*d], x[10*k*d:])
			}
			for i := range c.notFinite {
				mean[2*d+i] = math.NaN()
			}
			computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
				tolerance := 1e-9
				if dtype == compute.Float32 {
					tolerance = 1e-4
				}
				of := compile(engine, dtype) // Pair has one engine for a type
				got := of.run(compute.Floats(dtype, mean, m, d), compute.Floats(dtype, inverse, m, d, d),
					compute.Floats(dtype, x, m, k, d), compute.Floats(dtype, logDet, m, 1))
				for j := range m * k {
					var terms []float64
					for _, normal := range normals {
						terms = append(terms, normal.LogProb(x[j*d:j*d+d]))
					}
					want := floats.LogSumExp(terms) - math.Log(m)
					if c.notFinite > 0 {
						want = math.NaN()
					}
					if what := fmt.Sprintf("draw %d", j); math.IsNaN(want) != math.IsNaN(got[0][j]) {
						t.Errorf("%s: %g, want %g", what, got[0][j], want)
					} else if !math.IsNaN(want) {
						computetest.Near(t, what, got[0][j:j+1], []float64{want}, tolerance)
					}
				}
				leftOut := 0
				for pair := range m * m {
					larger := 0
					for j := range k {
						exact := normals[pair/m].LogProb(x[(pair%m*k+j)*d : (pair%m*k+j+1)*d])
						if v := got[1][pair*k+j]; v > exact+1+.01*math.Abs(exact) {
							larger++
						}
					}
					if larger == k {
						leftOut++
					} else if larger > 0 {
						t.Errorf("pair %d: %d of %d draws are left out", pair, larger, k)
					}
				}
				want := c.leftOut
				if !of.onCPU {
					want = 0
				}
				if leftOut != want {
					t.Errorf("%d pairs are left out, want %d", leftOut, want)
				}
			})
		})
	}
}
