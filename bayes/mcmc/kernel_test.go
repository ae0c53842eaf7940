package mcmc

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// The particles of these tests are independent of one another, so after any number of moves that leave the target
// invariant J particles that began as draws of it are J independent draws of it still: moments lie within zMax standard
// errors (7e-6 each) and Kolmogorov-Smirnov p-values above pMin. With the some 150 comparisons of this file a change of
// the random numbers raises a false alarm once in 400; the seeds are fixed.
const (
	zMax = 4.5
	pMin = 1e-5
)

// j is the number of particles J; -short takes fewer. A bias of a twelfth of a standard deviation, or of an eighth of a
// variance, is found nearly always (of a Gaussian); most mistakes in a kernel make a larger one.
var j = 8_000

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		j = 4000
	}
	os.Exit(m.Run())
}

// mover compiles the start and one move of a kernel. What it returns takes particles from phi, [J, D] flat, through the
// given number of transitions and gives the place of each at the end of its last, and the sums of Accepted and
// NonFinite over the transitions, [J]. Particles go on moving until all have ended theirs.
func mover(
	t *testing.T, engine *compute.Engine, dtype compute.DType, kernel Kernel, d int, target density.Target,
) func(phi []float64, transitions int) (moved, accepted, nonFinite []float64) {
	t.Helper()
	return tunedMover(t, engine, dtype, kernel, d, target, nil)
}

// tunedMover is mover with scales of the coordinates.
func tunedMover(
	t *testing.T, engine *compute.Engine, dtype compute.DType, kernel Kernel, d int, target density.Target,
	scale []float64,
) func(phi []float64, transitions int) (moved, accepted, nonFinite []float64) {
	t.Helper()
	var step uint32
	return countedMover(t, engine, dtype, kernel, d, target, scale, &step)
}

// countedMover is tunedMover that is told the number of the next move: with the same number come the same random
// numbers.
func countedMover(
	t *testing.T, engine *compute.Engine, dtype compute.DType, kernel Kernel, d int, target density.Target,
	scale []float64, step *uint32,
) func(phi []float64, transitions int) (moved, accepted, nonFinite []float64) {
	t.Helper()
	if err := kernel.Check(d); err != nil {
		t.Fatal(err)
	}
	m := &Carrier{kernel: kernel}
	var names []string
	var ranks []int
	start := computetest.Compile(t, engine, func(g *Graph, a []*Node) []*Node {
		s := Start(kernel, random.New(g, 16), a[0], target)
		m.own = slices.Sorted(maps.Keys(s.Auxiliary))
		names, ranks = m.Names(), nil
		var out []*Node
		for _, name := range names {
			out = append(out, MulScalar(m.pack(s)[name], 1)) // the Go backend cannot give back an input as it is
			ranks = append(ranks, m.pack(s)[name].Rank())
		}
		return out
	})
	run := computetest.Compile(t, engine, func(g *Graph, a []*Node) []*Node {
		nodes := compute.Nodes{}
		for i, name := range names {
			nodes[name] = a[1+i]
		}
		var tuning Tuning
		if scale != nil {
			tuning.Scale = Const(g, scale)
		}
		next, info := kernel.Move(random.New(g, 17).At(a[0]), m.unpack(nodes), target, tuning)
		var out []*Node
		for _, name := range names {
			out = append(out, m.pack(next)[name])
		}
		zeros := ZerosLike(ReduceSum(next.Phi, 1))
		for _, x := range []struct{ node, otherwise *Node }{
			{info.Complete, OnesLike(zeros)}, {info.Accepted, zeros}, {info.NonFinite, zeros},
		} {
			if x.node == nil {
				x.node = x.otherwise
			}
			out = append(out, x.node)
		}
		return out
	})
	return func(phi []float64, transitions int) (moved, accepted, nonFinite []float64) {
		n := len(phi) / d
		moved, accepted, nonFinite = slices.Clone(phi), make([]float64, n), make([]float64, n)
		ended, left := make([]int, n), n
		for state := start(compute.Floats(dtype, phi, n, d)); left > 0; *step++ {
			args := []any{*step}
			for i, flat := range state {
				dims := []int{n}
				if ranks[i] > 1 {
					dims = append(dims, len(flat)/n)
				}
				args = append(args, compute.Floats(dtype, flat, dims...))
			}
			out := run(args...)
			state = out[:len(names)]
			outcome := out[len(names):]
			for i := range n {
				if ended[i] == transitions {
					continue
				}
				nonFinite[i] += outcome[2][i]
				if outcome[0][i] == 0 {
					continue
				}
				accepted[i] += outcome[1][i]
				if ended[i]++; ended[i] == transitions {
					copy(moved[i*d:(i+1)*d], state[0][i*d:(i+1)*d])
					left--
				}
			}
		}
		return moved, accepted, nonFinite
	}
}

// onGo runs a test in both types on the Go backend, which compiles nothing. That XLA computes kernels right is for the
// tests of package check and for those below of numbers that are not finite.
func onGo(t *testing.T, test func(t *testing.T, engine *compute.Engine, dtype compute.DType)) {
	t.Helper()
	for _, dtype := range []compute.DType{compute.Float32, compute.Float64} {
		t.Run(dtype.String(), func(t *testing.T) { test(t, computetest.Go(t), dtype) })
	}
}

func column(phi []float64, d, k int) []float64 {
	var c []float64
	for i := k; i < len(phi); i += d {
		c = append(c, phi[i])
	}
	return c
}

func follows(t *testing.T, what string, draws []float64, cdf func(float64) float64) {
	t.Helper()
	if p := computetest.Kolmogorov(draws, cdf); !(p >= pMin) {
		mean, sd := stat.MeanStdDev(draws, nil)
		t.Errorf("%s: Kolmogorov-Smirnov p-value %.2g (mean %.4f, standard deviation %.4f)", what, p, mean, sd)
	}
}

// expect compares the mean of f over the rows of phi, [J, D] flat, with its exact value.
func expect(t *testing.T, what string, phi []float64, d int, f func(x []float64) float64, want float64) {
	t.Helper()
	values := make([]float64, len(phi)/d)
	for i := range values {
		values[i] = f(phi[i*d : (i+1)*d])
	}
	mean, sd := stat.MeanStdDev(values, nil)
	if z := (mean - want) / (sd / math.Sqrt(float64(len(values)))); !(math.Abs(z) <= zMax) {
		t.Errorf("%s is %.5f, want %.5f: off by %.1f standard errors", what, mean, want, z)
	}
}

// A target in one dimension or two, with exact draws and exact answers.
type exactTarget struct {
	name       string
	d          int
	logDensity density.Func
	draw       func(r *rand.Rand) []float64
	cdf        []func(float64) float64 // of each coordinate
	mean, sd   []float64
	third      []float64 // central moments
	covariance float64   // of the two coordinates
}

// correlated is a Gaussian with different means and scales and correlation 0.8.
func correlated() exactTarget {
	m, s, rho := []float64{1.5, -.7}, []float64{2, .5}, .8
	return exactTarget{
		name: "correlated Gaussian", d: 2,
		logDensity: func(phi *Node) *Node {
			z := Div(Sub(phi, row(phi, m)), row(phi, s))
			precision := ConvertDType(Const(phi.Graph(), [][]float64{{1, -rho}, {-rho, 1}}), phi.DType())
			q := ReduceSum(Mul(z, Einsum("jk,kl->jl", z, precision)), 1)
			return MulScalar(q, -.5/(1-rho*rho))
		},
		draw: func(r *rand.Rand) []float64 {
			a, b := r.NormFloat64(), r.NormFloat64()
			return []float64{m[0] + s[0]*a, m[1] + s[1]*(rho*a+math.Sqrt(1-rho*rho)*b)}
		},
		cdf:  []func(float64) float64{distuv.Normal{Mu: m[0], Sigma: s[0]}.CDF, distuv.Normal{Mu: m[1], Sigma: s[1]}.CDF},
		mean: m, sd: s, third: []float64{0, 0}, covariance: rho * s[0] * s[1],
	}
}

// gumbel has density exp(-z - exp(-z)) / b, z = (x - a) / b, and is skewed: mean a + b gamma, variance (pi b)^2 / 6,
// third central moment 2 zeta(3) b^3.
func gumbel() exactTarget {
	const a, b, zeta3 = -1, .7, 1.2020569031595943
	return exactTarget{
		name: "Gumbel", d: 1,
		logDensity: func(phi *Node) *Node {
			z := DivScalar(SubScalar(Squeeze(phi, 1), a), b)
			return Neg(Add(z, Exp(Neg(z))))
		},
		draw: func(r *rand.Rand) []float64 { return []float64{a - b*math.Log(r.ExpFloat64())} },
		cdf:  []func(float64) float64{func(x float64) float64 { return math.Exp(-math.Exp(-(x - a) / b)) }},
		mean: []float64{a + b*0.5772156649015329}, sd: []float64{math.Pi * b / math.Sqrt(6)},
		third: []float64{2 * zeta3 * b * b * b},
	}
}

func (e exactTarget) draws(n int) []float64 {
	r := rand.New(rand.NewPCG(5, 6))
	var phi []float64
	for range n {
		phi = append(phi, e.draw(r)...)
	}
	return phi
}

// check compares draws with the target's exact moments and distribution functions.
func (e exactTarget) check(t *testing.T, when string, phi []float64) {
	t.Helper()
	for k := range e.d {
		what := fmt.Sprintf("%s, %s, coordinate %d: ", e.name, when, k)
		follows(t, what, column(phi, e.d, k), e.cdf[k])
		central := func(power int) func([]float64) float64 {
			return func(x []float64) float64 { return math.Pow(x[k]-e.mean[k], float64(power)) }
		}
		expect(t, what+"mean", phi, e.d, func(x []float64) float64 { return x[k] }, e.mean[k])
		expect(t, what+"variance", phi, e.d, central(2), e.sd[k]*e.sd[k])
		expect(t, what+"third moment", phi, e.d, central(3), e.third[k])
	}
	if e.d == 2 {
		expect(
			t, e.name+", "+when+": covariance", phi, 2,
			func(x []float64) float64 { return (x[0] - e.mean[0]) * (x[1] - e.mean[1]) }, e.covariance,
		)
	}
}

// The Metropolis kernels leave their target invariant, and bring particles that begin elsewhere to it. Each is computed
// in both types, by the Go backend, which compiles nothing: TestKernels of package check runs them on XLA.
func TestMetropolisInvariance(t *testing.T) {
	engine := computetest.Go(t)
	for _, c := range []struct {
		target exactTarget
		kernel Kernel
	}{
		{correlated(), RandomWalkMetropolis{StepSize: .6}},
		{gumbel(), RandomWalkMetropolis{StepSize: 1.2}},
		{correlated(), PreconditionedCrankNicolson{Beta: .4, StdDev: []float64{1.5, 1}}},
		{gumbel(), PreconditionedCrankNicolson{Beta: .7}},
		{correlated(), MALA{StepSize: .9}},
		{gumbel(), MALA{StepSize: 1.4}},
		{correlated(), HMC{StepSize: 1, Steps: 3, Jitter: .4}},
		{gumbel(), HMC{StepSize: 1.3, Steps: 2}},
	} {
		dtype := compute.Float32
		if c.target.d == 2 {
			dtype = compute.Float64
		}
		var scale []float64
		if c.target.d == 2 && c.kernel.Traits().Carries == CarriesGradient {
			scale = []float64{1.5, .4}
		}
		move := tunedMover(t, engine, dtype, c.kernel, c.target.d, c.target.logDensity, scale)
		phi := c.target.draws(j)
		c.target.check(t, "the exact draws", phi)
		phi, accepted, nonFinite := move(phi, 20)
		c.target.check(t, fmt.Sprintf("%+v, after 20 transitions", c.kernel), phi)
		if share := stat.Mean(accepted, nil) / 20; share < .3 || share > .8 {
			t.Errorf("%s, %T: %.2f of the moves were accepted: this tests little", c.target.name, c.kernel, share)
		}
		if slices.Max(nonFinite) != 0 {
			t.Errorf("%s: proposals were not finite", c.target.name)
		}

		if c.target.d == 1 { // the other mixes slowly
			from, transitions := -3.0, 100
			if c.kernel.Traits().Carries == CarriesGradient {
				from, transitions = 3, 40 // at -3 the gradient is 19: steps that suit the rest throw every proposal far beyond
			}
			phi, _, _ = move(slices.Repeat([]float64{from}, j), transitions)
			c.target.check(t, fmt.Sprintf("%+v, begun at %v, after %d transitions", c.kernel, from, transitions), phi)
		}
	}
}

// Trajectories have from L - s to L + s steps, all equally often. Seeded: by chance it fails once in 10 000 times.
func TestJitter(t *testing.T) {
	onGo(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		const rows = 10_000
		exec := computetest.Compile(t, engine, func(g *Graph, a []*Node) []*Node {
			return []*Node{HMC{Steps: 5, Jitter: .5}.steps(random.New(g, 3), State{Phi: a[0]}, Tuning{})}
		})
		out := exec(compute.Floats(dtype, make([]float64, rows), rows, 1))
		counts := map[float64]float64{}
		for _, steps := range out[0] {
			counts[steps]++
		}
		for steps := 3.; steps <= 7; steps++ {
			if off := (counts[steps] - rows/5) / math.Sqrt(rows*.2*.8); !(math.Abs(off) < 4.4) {
				t.Errorf("%v steps are %v of %d, want a fifth: %.1f standard deviations off", steps, counts[steps], rows, off)
			}
		}
	})
}

// The Ornstein-Uhlenbeck process leaves N(m, s^2) invariant, forgets its start as exp(-time), and from a point x goes
// to N(m + exp(-time) (x - m), s^2 (1 - exp(-2 time))).
func TestOrnsteinUhlenbeck(t *testing.T) {
	onGo(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, kernel := range []OrnsteinUhlenbeck{
			{Time: .05, Mean: []float64{2, -1}, StdDev: []float64{.5, 3}},
			{}, // time 0.1, mean 0, standard deviation 1
		} {
			time, m, s := kernel.Time, kernel.Mean, kernel.StdDev
			if time == 0 {
				time, m, s = .1, []float64{0, 0}, []float64{1, 1}
			}
			move := mover(t, engine, dtype, kernel, 2, nil)
			r := rand.New(rand.NewPCG(3, 4))
			var start, point []float64
			for range j {
				start = append(start, m[0]+s[0]*r.NormFloat64(), m[1]+s[1]*r.NormFloat64())
				point = append(point, 3, -4)
			}
			phi, _, _ := move(start, 20)
			after, _, _ := move(point, 2)
			for k := range 2 {
				what := fmt.Sprintf("time %v, coordinate %d", time, k)
				exact := distuv.Normal{Mu: m[k], Sigma: s[k]}
				follows(t, what, column(phi, 2, k), exact.CDF)
				both := make([]float64, 0, 2*j)
				for i := range j {
					both = append(both, (start[2*i+k]-m[k])/s[k], (phi[2*i+k]-m[k])/s[k])
				}
				expect(t, what+": mean", both, 2, func(x []float64) float64 { return x[1] }, 0)
				expect(t, what+": variance", both, 2, func(x []float64) float64 { return x[1] * x[1] }, 1)
				expect(t, what+": third moment", both, 2, func(x []float64) float64 { return x[1] * x[1] * x[1] }, 0)
				expect(
					t, what+": correlation with the start", both, 2, func(x []float64) float64 { return x[0] * x[1] },
					math.Exp(-20*time),
				)

				decay := math.Exp(-2 * time)
				follows(t, what+" from a point", column(after, 2, k), distuv.Normal{
					Mu: m[k] + decay*(point[k]-m[k]), Sigma: s[k] * math.Sqrt(1-decay*decay),
				}.CDF)
			}
			expect(
				t, fmt.Sprintf("time %v: covariance", time), phi, 2,
				func(x []float64) float64 { return (x[0] - m[0]) * (x[1] - m[1]) }, 0,
			)
		}
	})
}

// Two steps of the random walk have twice the stated variance, whatever the start, and independent coordinates.
func TestRandomWalk(t *testing.T) {
	onGo(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, kernel := range []RandomWalk{{Variance: .3}, {}} { // default 0.01
			v := kernel.Variance
			if v == 0 {
				v = .01
			}
			start := make([]float64, 2*j)
			for i := range start {
				start[i] = float64(i%2) - .5
			}
			phi, _, _ := mover(t, engine, dtype, kernel, 2, nil)(start, 2)
			for k := range 2 {
				follows(
					t, fmt.Sprintf("variance %v, coordinate %d", v, k), column(phi, 2, k),
					distuv.Normal{Mu: float64(k) - .5, Sigma: math.Sqrt(2 * v)}.CDF,
				)
			}
			expect(t, "covariance", phi, 2, func(x []float64) float64 { return (x[0] + .5) * (x[1] - .5) }, 0)
		}
	})
}

// A setting that is wrong is named with its value, for three coordinates.
func TestCheck(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for want, kernel := range map[string]Kernel{
		"RandomWalk.Variance is -0.5":                         RandomWalk{Variance: -.5},
		"RandomWalkMetropolis.StepSize is +Inf":               RandomWalkMetropolis{StepSize: inf},
		"PreconditionedCrankNicolson.Beta is 1.5":             PreconditionedCrankNicolson{Beta: 1.5},
		"PreconditionedCrankNicolson.StdDev[1] is -1":         PreconditionedCrankNicolson{StdDev: []float64{1, -1, 2}},
		"OrnsteinUhlenbeck.Time is NaN":                       OrnsteinUhlenbeck{Time: nan},
		"Mean has 2 values, and StdDev 0":                     OrnsteinUhlenbeck{Mean: []float64{1, 2}},
		"Mean[2] is +Inf":                                     OrnsteinUhlenbeck{Mean: []float64{1, 1, inf}},
		"StdDev[2] is NaN":                                    OrnsteinUhlenbeck{StdDev: []float64{1, 1, nan}},
		"HMC.StepSize is NaN":                                 HMC{StepSize: nan},
		"HMC.Steps is -3":                                     HMC{StepSize: 1, Steps: -3},
		"HMC.Jitter is 1":                                     HMC{StepSize: 1, Jitter: 1},
		"HMC.Acceptance is 1: it must be above 0 and below 1": HMC{Acceptance: 1},
		"HMC.Acceptance is 0.9: it must be 0 with a":          HMC{Acceptance: .9, StepSize: .1},
		"NUTS.Acceptance is -0.1":                             NUTS{Acceptance: -.1},
		"NUTS.MaxDepth is 21":                                 NUTS{MaxDepth: 21},
		"MALA.StepSize is -1":                                 MALA{StepSize: -1},
		"SGLD.StepSize is 0":                                  SGLD{},
		"SGLD.Decay is 2":                                     SGLD{StepSize: 1, Decay: 2},
		"SGLD.Offset is -1":                                   SGLD{StepSize: 1, Offset: -1},
		"SGHMC.LearningRate is 0":                             SGHMC{},
		"SGHMC.Friction is 1":                                 SGHMC{LearningRate: 1, Friction: 1},
		"MCLMC.EnergyVariance is NaN":                         MCLMC{EnergyVariance: nan},
	} {
		if err := kernel.Check(3); !says(err, want) {
			t.Errorf("%+v: error %v does not say %q", kernel, err, want)
		}
	}
	if err := (MCLMC{}).Check(1); !says(err, "MCLMC has particles of 1 coordinate") {
		t.Error(err)
	}
	if err := Check(NUTS{}, 3, false); !says(err, "StepSize") {
		t.Errorf("no step size and no warm-up: error %v", err)
	}
}

// A kernel with scales s goes on a target where it goes without on the target of z, phi = s z: other units change
// nothing.
func TestScalesChangeUnits(t *testing.T) {
	const d, particles, moves = 3, 4, 12
	scale := []float64{1.5, .4, 2}
	target := density.Func(func(phi *Node) *Node {
		x := SubScalar(phi, .3)
		quartic := MulScalar(ReduceSum(Square(Square(x)), 1), -.1)
		return Sub(quartic, MulScalar(Square(ReduceSum(x, 1)), .7))
	})
	times := func(z *Node) *Node {
		return Mul(z, BroadcastToShape(Reshape(Const(z.Graph(), scale), 1, d), z.Shape()))
	}
	inZ := density.Func(func(z *Node) *Node { return target.LogDensity(times(z)) })
	for _, kernel := range []Kernel{
		RandomWalkMetropolis{StepSize: .5}, MALA{StepSize: .3}, HMC{StepSize: .2, Steps: 3}, NUTS{StepSize: .2, MaxDepth: 4},
		MCLMC{StepSize: .3}, SGLD{StepSize: .02}, SGHMC{LearningRate: .01},
	} {
		run := computetest.Compile(t, computetest.Go(t), func(g *Graph, a []*Node) []*Node {
			walk := func(phi *Node, target density.Target, tuning Tuning) (*Node, *Node) {
				s := Start(kernel, random.New(g, 1), phi, target)
				var jump *Node
				for i := range moves {
					var info Info
					s, info = kernel.Move(random.New(g, 2).At(Const(g, uint32(i))), s, target, tuning)
					if jump = info.SquaredJump; jump == nil {
						jump = ZerosLike(Squeeze(Slice(phi, AxisRange(), AxisElem(0)), 1))
					}
				}
				return s.Phi, jump
			}
			phi, jump := walk(times(a[0]), target, Tuning{Scale: Const(g, scale)})
			z, jumpInZ := walk(a[0], inZ, Tuning{})
			return []*Node{phi, times(z), jump, jumpInZ, Sub(z, a[0])}
		})
		r := rand.New(rand.NewPCG(3, 4))
		begin := make([]float64, particles*d)
		for i := range begin {
			begin[i] = .3 * r.NormFloat64()
		}
		out := run(compute.Floats(compute.Float64, begin, particles, d))
		computetest.Near(t, fmt.Sprintf("%T: phi", kernel), out[0], out[1], 1e-9)
		computetest.Near(t, fmt.Sprintf("%T: jumps", kernel), out[2], out[3], 1e-9)
		if floats.Norm(out[4], 2) < .1 {
			t.Errorf("%T: nothing moved", kernel)
		}
	}
}
