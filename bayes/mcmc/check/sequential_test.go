package check

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"

	"gonum.org/v1/gonum/mat"
)

// filter is a sequential Monte Carlo sampler for a Linear, in plain Go: it takes the rows one after another, weighs,
// resamples where the effective sample size is below half, and moves by random-walk Metropolis under the rows so far.
// It is wrong in one respect if fault names one.
type filter struct {
	Linear
	particles int
	fault     string
}

func (f filter) run(seed uint64) (SequentialRun, error) {
	r := rand.New(rand.NewPCG(seed, 77))
	j, d := f.particles, len(f.X[0])
	m, sd := f.prior()
	phi := make([]float64, j*d)
	for i := range phi {
		phi[i] = m[i%d] + sd[i%d]*r.NormFloat64()
	}
	w := make([]float64, j)
	for i := range w {
		w[i] = 1 / float64(j)
	}
	before := slices.Clone(w) // the weights, one row earlier
	var out SequentialRun
	variance := 0.0
	for n := range f.X {
		sum, squares, plain, older := 0.0, 0.0, 0.0, 0.0
		for i := range w {
			l := math.Exp(f.logLikelihood(phi[i*d:(i+1)*d], n, n+1))
			sum += w[i] * l
			plain += l
			older += before[i] * l
			before[i] = w[i]
			w[i] *= l
		}
		for i := range w {
			w[i] /= sum
			squares += w[i] * w[i]
		}
		switch f.fault {
		case "increments by equal weights":
			sum = plain / float64(j)
		case "increments by the weights of the row before":
			sum = older
		}
		if f.fault == "sum of the weights for their mean" && n == 0 {
			sum *= float64(j)
		}
		if !(f.fault == "first increment missing" && n == 0 || f.fault == "last increment missing" && n == len(f.X)-1) {
			out.LogEvidence += math.Log(sum)
		}
		if squares*float64(j) > 2 {
			if f.fault == "increments of resampled steps missing" {
				out.LogEvidence -= math.Log(sum)
			}
			variance += squares - 1/float64(j) // as if particles were independent when they were last resampled
			ancestors := f.ancestors(r, w)
			phi = f.resampled(phi, ancestors, d)
			switch f.fault {
			case "weights not reset":
			case "weights go with the ancestors":
				w = f.resampled(w, ancestors, 1)
			default:
				for i := range w {
					w[i] = 1 / float64(j)
				}
			}
		} else if n == len(f.X)-1 {
			variance += squares - 1/float64(j)
		}
		f.move(r, phi, n+1, d)
	}
	out.Phi = phi
	for _, v := range w {
		out.LogWeights = append(out.LogWeights, math.Log(v)+3)
	}
	out.StdErr = math.Sqrt(variance)
	switch f.fault {
	case "evidence a factor of 1.4 too large":
		out.LogEvidence += math.Log(1.4)
	case "evidence a factor of 1.4 too small":
		out.LogEvidence -= math.Log(1.4)
	case "standard error three times too small":
		out.StdErr /= 3
	case "standard error five times too large":
		out.StdErr *= 5
	case "weights forgotten":
		out.LogWeights = nil
	case "weights without logs":
		out.LogWeights = w
	}
	return out, nil
}

func (f filter) logLikelihood(theta []float64, from, to int) float64 {
	sum := 0.0
	variance := f.NoiseStdDev * f.NoiseStdDev
	for n := from; n < to; n++ {
		e := f.Y[n]
		for i, x := range f.X[n] {
			e -= x * theta[i]
		}
		sum -= e * e / (2 * variance)
	}
	constant := math.Log(2*math.Pi*variance) / 2
	if f.fault == "likelihood without its constant" {
		constant = math.Log(variance) / 2
	}
	return sum - float64(to-from)*constant
}

// ancestors are drawn by stratified resampling.
func (f filter) ancestors(r *rand.Rand, w []float64) []int {
	j := len(w)
	var out []int
	a, cumulative := 0, w[0]
	for i := range j {
		u := (float64(i) + r.Float64()) / float64(j)
		for cumulative < u && a < j-1 {
			a++
			cumulative += w[a]
		}
		if f.fault == "resampling off by one" {
			out = append(out, (a+1)%j)
		} else {
			out = append(out, a)
		}
	}
	return out
}

func (f filter) resampled(x []float64, ancestors []int, d int) []float64 {
	next := make([]float64, 0, len(x))
	for _, a := range ancestors {
		next = append(next, x[a*d:(a+1)*d]...)
	}
	return next
}

func (f filter) move(r *rand.Rand, phi []float64, rows, d int) {
	m, sd := f.prior()
	density := func(x []float64) float64 {
		sum := 0.0
		for i := range x {
			z := (x[i] - m[i]) / sd[i]
			if f.fault != "moves without the prior" {
				sum -= z * z / 2
			}
		}
		switch f.fault {
		case "moves under the rows but one":
			return sum + f.logLikelihood(x, 0, rows-1)
		case "moves without N/n":
			return sum + f.logLikelihood(x, 0, rows)/2
		}
		return sum + f.logLikelihood(x, 0, rows)
	}
	step := 1 / math.Sqrt(1+float64(rows))
	proposal := make([]float64, d)
	for j := range len(phi) / d {
		x := phi[j*d : (j+1)*d]
		here := density(x)
		for range 2 {
			for i := range x {
				proposal[i] = x[i] + step*r.NormFloat64()
			}
			if there := density(proposal); math.Log(r.Float64()) < there-here {
				copy(x, proposal)
				here = there
			}
		}
	}
}

// A right sampler passes with several numbers of particles, and each of the faults is found.
func TestSequentialFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("some dozens of faulty samplers take a minute and more")
	}
	t.Parallel()
	for _, fault := range []string{
		"", "resampling off by one", "weights not reset", "weights go with the ancestors", "weights forgotten",
		"weights without logs",
		"sum of the weights for their mean", "first increment missing", "last increment missing",
		"increments of resampled steps missing",
		"increments by equal weights", "increments by the weights of the row before", "likelihood without its constant",
		"moves without the prior", "moves under the rows but one", "moves without N/n",
		"standard error three times too small", "standard error five times too large",
	} {
		report, err := runSequential(filter{Line(), 200, fault}.run, SequentialOptions{StdDev: .6})
		if err != nil {
			t.Fatal(err)
		}
		if (report.Failures() > 0) != (fault != "") {
			t.Errorf("fault %q: %s", fault, report.Summary())
		}
	}
	Sequential(t, filter{Line(), 500, ""}.run, SequentialOptions{})
	l := Linear{
		X: [][]float64{{1, 2}, {0, 1}, {3, -1}}, Y: []float64{1, 3, -2}, NoiseStdDev: 1.5, PriorMean: []float64{1, 0},
		PriorStdDev: []float64{2, .5},
	}
	Sequential(t, filter{l, 500, ""}.run, SequentialOptions{Problem: &l})
}

// The evidence is the density of N(X m, X S X' + v) at Y, and the posterior, row by row, solves the normal equations.
func TestLinearExact(t *testing.T) {
	for _, l := range []Linear{
		Line(),
		{
			X: [][]float64{{1, 2}, {0, 1}, {3, -1}}, Y: []float64{1, 3, -2}, NoiseStdDev: 1.5, PriorMean: []float64{1, 0},
			PriorStdDev: []float64{2, .5},
		},
	} {
		mean, covariance, logEvidence := l.Posterior()
		n := len(l.Y)
		m, s := l.prior()
		precision, right := mat.NewSymDense(len(m), nil), mat.NewVecDense(len(m), nil)
		for i := range m {
			precision.SetSym(i, i, 1/(s[i]*s[i]))
			right.SetVec(i, m[i]/(s[i]*s[i]))
		}
		for i, x := range l.X {
			row := mat.NewVecDense(len(m), x)
			precision.SymRankOne(precision, 1/(l.NoiseStdDev*l.NoiseStdDev), row)
			right.AddScaledVec(right, l.Y[i]/(l.NoiseStdDev*l.NoiseStdDev), row)
		}
		var one mat.Dense
		one.Mul(precision, covariance)
		for i := range m {
			one.Set(i, i, one.At(i, i)-1)
		}
		if off := mat.Max(&one) - mat.Min(&one); off > 1e-12 {
			t.Errorf("precision times covariance is off 1 by %v", off)
		}
		var solution mat.VecDense
		solution.MulVec(precision, mat.NewVecDense(len(m), mean))
		computetest.Near(t, "precision times mean", solution.RawVector().Data, right.RawVector().Data, 1e-11)
		v := mat.NewSymDense(n, nil)
		rest := mat.NewVecDense(n, nil)
		for i := range n {
			rest.SetVec(i, l.Y[i])
			for d := range m {
				rest.SetVec(i, rest.AtVec(i)-l.X[i][d]*m[d])
			}
			for k := range i + 1 {
				sum := 0.0
				for d := range m {
					sum += l.X[i][d] * l.X[k][d] * s[d] * s[d]
				}
				if i == k {
					sum += l.NoiseStdDev * l.NoiseStdDev
				}
				v.SetSym(i, k, sum)
			}
		}
		var factor mat.Cholesky
		if !factor.Factorize(v) {
			t.Fatal("not positive definite")
		}
		var solved mat.VecDense
		if err := factor.SolveVecTo(&solved, rest); err != nil {
			t.Fatal(err)
		}
		want := -(mat.Dot(rest, &solved) + factor.LogDet() + float64(n)*math.Log(2*math.Pi)) / 2
		computetest.Near(t, "log evidence", []float64{logEvidence}, []float64{want}, 1e-12)
	}
}

func TestSequentialBadInput(t *testing.T) {
	good := filter{Line(), 100, ""}.run
	boom := errors.New("boom")
	gives := func(r SequentialRun) func(uint64) (SequentialRun, error) {
		return func(uint64) (SequentialRun, error) { return r, nil }
	}
	for _, c := range []struct {
		sample func(uint64) (SequentialRun, error)
		o      SequentialOptions
		says   string
	}{
		{good, SequentialOptions{Runs: 3}, "Runs is 3"},
		{gives(SequentialRun{Phi: make([]float64, 4)}), SequentialOptions{}, "are 4 numbers in Phi"},
		{
			gives(SequentialRun{Phi: make([]float64, 6), LogWeights: make([]float64, 3)}), SequentialOptions{},
			"3 LogWeights for 2",
		},
		{gives(SequentialRun{Phi: make([]float64, 3), LogEvidence: math.NaN()}), SequentialOptions{}, "NaN"},
	} {
		if _, err := runSequential(c.sample, c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v does not say %q", err, c.says)
		}
	}
	if _, err := runSequential(
		func(uint64) (SequentialRun, error) { return SequentialRun{}, boom }, SequentialOptions{},
	); !errors.Is(err, boom) {
		t.Errorf("error %v is not the sampler's", err)
	}
}
