package annealed

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"
)

// known is a mixture of two t distributions in two dimensions.
func known(dof float64) mixture {
	lower := func(a, b, c float64) *mat.TriDense { return mat.NewTriDense(2, mat.Lower, []float64{a, 0, b, c}) }
	return mixture{
		{share: .7, dof: dof, mean: []float64{-2, 1}, lower: lower(1, .8, .5)},
		{share: .3, dof: dof, mean: []float64{3, 0}, lower: lower(.4, -.3, .6)},
	}
}

func drawn(m mixture, n int, rng *rand.Rand) *mat.Dense {
	x, from := mat.NewDense(n, 2, nil), 0
	for k, count := range m.counts(n) {
		m[k].draw(rng, x.Slice(from, from+count, 0, 2).(*mat.Dense))
		from += count
	}
	return x
}

func equal(n int) []float64 {
	w := make([]float64, n)
	floats.AddConst(1/float64(n), w)
	return w
}

// Densities are those of the definition, and integrate to 1; draws have the moments of the density.
func TestStudent(t *testing.T) {
	m := known(5)
	rng := rand.New(rand.NewPCG(1, 1))
	x := drawn(m, 20000, rng)
	got := m.logDensity(x)
	for j := range 100 {
		sum := 0.
		for _, s := range m {
			var sigma mat.SymDense
			sigma.SymOuterK(1, s.lower)
			dx, dy := x.At(j, 0)-s.mean[0], x.At(j, 1)-s.mean[1]
			p, q, r := sigma.At(0, 0), sigma.At(0, 1), sigma.At(1, 1)
			det := p*r - q*q
			square := (r*dx*dx - 2*q*dx*dy + p*dy*dy) / det
			sum += s.share * math.Pow(1+square/s.dof, -(s.dof+2)/2) / (2 * math.Pi * math.Sqrt(det)) // of two dimensions
		}
		computetest.Near(t, "log density", []float64{got[j]}, []float64{math.Log(sum)}, 1e-10)
	}
	total := quad.Fixed(func(a float64) float64 {
		return quad.Fixed(func(b float64) float64 {
			return math.Exp(m.logDensity(mat.NewDense(1, 2, []float64{a, b}))[0])
		}, -20, 20, 150, nil, 0)
	}, -20, 20, 150, nil, 0)
	computetest.Near(t, "integral", []float64{total}, []float64{1}, 2e-3)
	// The variance of t_5 is 5/3 of its squared scale; draws of the first component come first.
	first := x.Slice(0, 14000, 0, 2).(*mat.Dense)
	mean, square := 0., 0.
	for j := range 14000 {
		v := first.At(j, 1) - 1
		mean += v / 14000
		square += v * v / 14000
	}
	want := 5. / 3 * (.8*.8 + .5*.5)
	computetest.Near(t, "mean", []float64{mean}, []float64{0}, 5*math.Sqrt(want/14000))
	computetest.Near(t, "variance", []float64{square}, []float64{want}, .15*want)
}

// The fit to draws of a known mixture is the mixture: means, scales, shares, degrees of freedom, and the log-density,
// from particles and from weighted ones.
func TestFitMixture(t *testing.T) {
	truth := known(5)
	rng := rand.New(rand.NewPCG(3, 1))
	x := drawn(truth, 8000, rng)
	got, err := fitMixture(t.Context(), x, equal(8000), 2, rng)
	if err != nil || len(got) != 2 {
		t.Fatal(err, len(got))
	}
	if got[0].mean[0] > got[1].mean[0] {
		got[0], got[1] = got[1], got[0]
	}
	for k, s := range got {
		want := truth[k]
		computetest.Near(t, "share", []float64{s.share}, []float64{want.share}, .02)
		computetest.Near(t, "mean", s.mean, want.mean, .06)
		computetest.Near(t, "L", s.lower.RawTriangular().Data[:1], want.lower.RawTriangular().Data[:1], .06)
		computetest.Near(t, "L", s.lower.RawTriangular().Data[2:], want.lower.RawTriangular().Data[2:], .06)
		if !(s.dof > 4 && s.dof < 6.5) {
			t.Errorf("%v degrees of freedom, want 5", s.dof)
		}
	}
	// Draws of the first component alone, weighted by the mixture's density over it, are the mixture's.
	wide := student{share: 1, dof: 4, mean: []float64{0, 0}, lower: mat.NewTriDense(2, mat.Lower, []float64{3, 0, 0, 2})}
	some := mat.NewDense(20000, 2, nil)
	wide.draw(rng, some)
	w := truth.logDensity(some)
	floats.Sub(w, mixture{wide}.logDensity(some))
	for j, v := range w {
		w[j] = math.Exp(v)
	}
	floats.Scale(1/floats.Sum(w), w)
	if got, err = fitMixture(t.Context(), some, w, 2, rng); err != nil || len(got) != 2 {
		t.Fatal(err, len(got))
	}
	if got[0].mean[0] > got[1].mean[0] {
		got[0], got[1] = got[1], got[0]
	}
	for k, s := range got {
		computetest.Near(t, "weighted share", []float64{s.share}, []float64{truth[k].share}, .04)
		computetest.Near(t, "weighted mean", s.mean, truth[k].mean, .1)
	}
	if n, err := components(t.Context(), x, equal(8000), rng); err != nil || n < 2 || n > 4 {
		t.Errorf("%d components are chosen of two, %v", n, err)
	}
	// More components than the particles can tell a covariance of are dropped.
	few := mat.DenseCopyOf(x.Slice(0, 12, 0, 2))
	if got, err = fitMixture(t.Context(), few, equal(12), 10, rng); err != nil || len(got) >= 10 {
		t.Errorf("%d components of 12 particles, %v", len(got), err)
	}
	// Particles that are all the same have no covariance: nothing is left.
	same := mat.NewDense(20, 2, nil)
	if got, err = fitMixture(t.Context(), same, equal(20), 1, rng); err != nil || len(got) != 0 {
		t.Errorf("%d components of one point, %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = fitMixture(ctx, x, equal(8000), 2, rng); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A warning says so where two estimates differ by more than three standard errors. Then the higher one is the result,
// but a bridge that is doubtful by itself never is, and SMC not beside one that is not.
func TestEstimatesDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	const n = 2000
	theta, logWeights := mat.NewDense(n, 1, nil), make([]float64, n)
	for j := range n {
		theta.Set(j, 0, rng.NormFloat64())
		logWeights[j] = -.1*theta.At(j, 0)*theta.At(j, 0) - 5
	}
	exact := -5 - math.Log(1.2)/2 // E exp(-.1 z^2), z normal
	equalWeights := bayes.EqualLogWeights(10)
	for _, c := range []struct {
		smc, bridge float64 // above the exact one; NaN: there is none
		doubtful    bool
		kHat        float64 // of the draws, instead of their own; 0: their own
		source      Estimator
		warns       bool
	}{
		{smc: 0, bridge: math.NaN(), source: ByImportance},
		{smc: .2, bridge: math.NaN(), source: ByImportance},
		{smc: -.5, bridge: math.NaN(), source: ByImportance, warns: true},
		{smc: .5, bridge: math.NaN(), source: BySMC, warns: true},
		{smc: -.5, bridge: .05, source: ByImportance, warns: true},
		{smc: .5, bridge: .55, source: ByBridge, warns: true},
		{smc: .5, bridge: .55, doubtful: true, source: BySMC, warns: true},
		{smc: 0, bridge: .05, kHat: .6, source: ByBridge},
		{smc: 0, bridge: .05, kHat: .6, doubtful: true, source: ByImportance},
		{smc: 0, bridge: math.NaN(), kHat: .6, source: ByImportance},
		{smc: 0, bridge: .05, kHat: .9, source: ByBridge},
		{smc: .5, bridge: .05, kHat: .9, source: ByBridge, warns: true},
		{smc: .5, bridge: .05, source: ByImportance, warns: true},
		{smc: -.5, bridge: .05, kHat: .9, source: ByBridge, warns: true},
		{smc: 0, bridge: .05, kHat: .9, doubtful: true, source: BySMC},
	} {
		particles := &fit.Result{Draws: bayes.Draws{LogWeights: equalWeights}, Details: []any{&smc.Details{}}}
		r := &annealing{Annealed: Annealed{Draws: n}, Job: &fit.Job{}, order: order{logImages: math.Log(6)}}
		r.DType = compute.Float64
		draws, err := r.judge(theta, logWeights)
		if err != nil {
			t.Fatal(err)
		}
		if c.kHat > 0 {
			r.details.KHat = c.kHat
		}
		if c.kHat > pmcnet.MaxKHat {
			draws, r.details.ImportanceEvidence = weightedDraws{}, unknown
		}
		r.details.tempered = particles
		r.details.SMCEvidence = bayes.Evidence{Value: exact + math.Log(6) + c.smc, StdErr: .1}
		var across *mat.Dense
		if !math.IsNaN(c.bridge) {
			across, r.details.bridged = mat.NewDense(10, 1, nil), &fit.Result{Draws: particles.Draws}
			r.details.BridgeEvidence = bayes.Evidence{Value: exact + math.Log(6) + c.bridge, StdErr: .05}
			if c.doubtful {
				r.details.bridged.Doubts = fit.Doubts{{Text: "few ancestors"}}
			}
		}
		result := r.choose(particles, mat.NewDense(10, 1, nil), draws, across)
		want := map[Estimator]bayes.Evidence{
			BySMC: r.details.SMCEvidence, ByImportance: r.details.ImportanceEvidence, ByBridge: r.details.BridgeEvidence,
		}[c.source]
		if r.details.Source != c.source || result.Draws.Evidence != want ||
			c.source == ByImportance && len(result.Draws.LogWeights) != n {
			t.Errorf("%+v: by %s, %+v: %s", c, r.details.Source, result.Draws.Evidence, r.details.why)
		}
		if e := r.details.ImportanceEvidence; e.Known() &&
			(math.Abs(e.Value-exact-math.Log(6)) > 4*e.StdErr || !(e.StdErr < .01)) {
			t.Errorf("%+v, exact %v", e, exact)
		}
		if warned := strings.Contains(strings.Join(result.Doubts.Sentences(), ";"), "differ by"); warned != c.warns {
			t.Errorf("%+v: warnings %q", c, result.Doubts.Sentences())
		}
	}
}
