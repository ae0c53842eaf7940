package diag_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// resultOf is a result of a posterior of a linear model with 2 stochastic weights: flat [J, 2].
func resultOf(t *testing.T, phi, logWeights []float64, chains int, stored map[string]float64) *bayes.Result {
	t.Helper()
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{}, Stochastic: bayes.Weights(1)}.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, phi, len(logWeights), 2), Psi: compute.Floats(compute.Float64, []float64{0}, 1),
		LogWeights: logWeights, Chains: chains, Diagnostics: stored,
	}, bayes.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	return &bayes.Result{Posterior: p, Status: run.Completed}
}

// counted is a result that knows what its draws took.
type counted struct {
	*bayes.Result
	forwards float64
}

func (c counted) FullEvaluations() float64 { return c.forwards }

func normals(rng *rand.Rand, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = rng.NormFloat64()
	}
	return all
}

// Of says of chains what Summary says of their worst parameters, of weights what PSIS says, and of neither nothing.
func TestOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const chains, draws = 4, 250
	phi := normals(rng, 2*chains*draws)
	r := resultOf(t, phi, bayes.EqualLogWeights(chains*draws), chains, map[string]float64{"divergences": 3})
	r.Warnings = []string{"of the run"}
	d, err := diag.Of(r)
	if err != nil {
		t.Fatal(err)
	}
	by, err := diag.NewForPosterior(r.Posterior)
	if err != nil {
		t.Fatal(err)
	}
	rows := by.Summary().Rows
	if want := max(rows[0].RHat, rows[1].RHat); d.RHat != want || d.ESS != min(rows[0].BulkESS, rows[1].BulkESS) ||
		!math.IsNaN(d.KHat) {
		t.Errorf("R-hat %v, ESS %v, k-hat %v of %+v", d.RHat, d.ESS, d.KHat, rows)
	}
	if len(d.Warnings) != 1 || !strings.HasPrefix(d.String(), "4 chains of 250 draws, ESS ") ||
		!strings.Contains(d.String(), "divergences 3\n  of the run") {
		t.Errorf("says\n%s", d)
	}

	if d.PerEvaluation != nil {
		t.Errorf("ESS of evaluations that nobody counted: %v", d.PerEvaluation)
	}
	if d, err = diag.Of(counted{r, 5000}); err != nil {
		t.Fatal(err)
	}
	least := math.Inf(1)
	for _, row := range rows {
		least = min(least, row.BulkESS, row.TailESS, chains*draws)
	}
	if d.PerEvaluation == nil || math.Abs(d.PerEvaluation.Least*5000/least-1) > 1e-12 ||
		!strings.Contains(d.String(), ", ESS in 1000 full evaluations: least ") {
		t.Errorf("says\n%s", d)
	}
	if d, err = diag.Of(counted{r, 0}); err != nil || d.PerEvaluation != nil {
		t.Errorf("of no evaluations: %v, %v", d.PerEvaluation, err)
	}

	for j := range draws { // one chain elsewhere, in the second weight
		phi[2*j+1] += 5
	}
	r = resultOf(t, phi, bayes.EqualLogWeights(chains*draws), chains, nil)
	r.Status = run.Cancelled
	if d, err = diag.Of(r); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(d.Warnings, "\n"); len(d.Warnings) != 3 || !strings.Contains(all, "cancelled") ||
		!strings.Contains(all, "R-hat of layer1/weights[0,1]") || !strings.Contains(all,
		"effective sample size of layer1/weights[0,1]") {
		t.Errorf("warns\n%s", all)
	}

	heavy := make([]float64, 1000) // weights u^-1: k = 1
	for j := range heavy {
		heavy[j] = -math.Log(rng.Float64())
	}
	r = resultOf(t, normals(rng, 2000), heavy, 0, nil)
	if d, err = diag.Of(r); err != nil {
		t.Fatal(err)
	}
	k, err := diag.KHat(heavy)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(d.KHat-k) > 1e-9 || d.KHat < .7 || d.ESS != r.Posterior.LogWeights().EffectiveSampleSize() ||
		len(d.Warnings) != 1 || d.Chains != 0 {
		t.Errorf("k-hat %v, want %v; %+v", d.KHat, k, d)
	}

	d, err = diag.Of(resultOf(t, normals(rng, 20), bayes.EqualLogWeights(10), 0, nil))
	if err != nil || d.String() != "10 particles" {
		t.Errorf("equal particles of no chains: %v, %q", err, d)
	}
	if _, err := diag.Of(&bayes.Result{}); err == nil {
		t.Error("no posterior: no error")
	}
}

// A linear regression of known noise, of which leaving out a row is exact algebra. The draws are of the posterior, and
// once of a wider distribution with weights. With 4000 draws the Monte Carlo error of a row's ELPD is below .01 (k-hat
// below .5), of their sum below .05.
func TestLOOIsExact(t *testing.T) {
	const rows, draws = 25, 4000
	rng := rand.New(rand.NewPCG(1, 4))
	x, y := mat.NewDense(rows, 2, normals(rng, 2*rows)), normals(rng, rows)
	for n := range y {
		y[n] += .3*x.At(n, 0) - x.At(n, 1)
	}
	// posterior is that of N(0, 1) weights given all rows but one, as mean and covariance.
	posterior := func(without int) (*mat.VecDense, *mat.SymDense) {
		precision, b := mat.NewSymDense(2, []float64{1, 0, 0, 1}), mat.NewVecDense(2, nil)
		for n := range rows {
			if n != without {
				precision.SymRankOne(precision, 1, x.RowView(n))
				b.AddScaledVec(b, y[n], x.RowView(n))
			}
		}
		var root mat.Cholesky
		var mean mat.VecDense
		var covariance mat.SymDense
		if !root.Factorize(precision) || root.SolveVecTo(&mean, b) != nil || root.InverseTo(&covariance) != nil {
			t.Fatal("no posterior")
		}
		return &mean, &covariance
	}
	exact, pit := make([]float64, rows), make([]float64, rows)
	for n := range rows {
		mean, covariance := posterior(n)
		row := mat.NewVecDense(2, x.RawRowView(n))
		others := distuv.Normal{Mu: mat.Dot(row, mean), Sigma: math.Sqrt(1 + mat.Inner(row, covariance, row))}
		exact[n], pit[n] = others.LogProb(y[n]), others.CDF(y[n])
	}
	mean, covariance := posterior(-1)
	var root mat.Cholesky
	root.Factorize(covariance)
	var lower mat.TriDense
	root.LTo(&lower)
	for _, widen := range []float64{1, 1.3} {
		logWeights, phi := make([]float64, draws), make([]float64, 0, 2*draws)
		for j := range draws {
			z := mat.NewVecDense(2, normals(rng, 2))
			logWeights[j] = .5 * (1 - widen*widen) * mat.Dot(z, z)
			var theta mat.VecDense
			theta.MulVec(&lower, z)
			theta.AddScaledVec(mean, widen, &theta)
			phi = append(phi, theta.RawVector().Data...)
		}
		l, err := diag.NewLOOForPosterior(t.Context(), resultOf(t, phi, logWeights, 0, nil).Posterior,
			&dataset.Dataset{Name: "plane", X: x, Y: y, Features: []string{"a", "b"}, Target: "y"})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("draws %v times as wide: %v, exact %.3f", widen, l, floats.Sum(exact))
		for n, r := range l.Rows {
			if math.Abs(r.ELPD-exact[n]) > .04 || math.Abs(r.PIT[0]-pit[n]) > .02 {
				t.Errorf("draws %v times as wide, row %d: ELPD %.3f and PIT %.3f, exact %.3f and %.3f", widen, n, r.ELPD, r.PIT[0],
					exact[n], pit[n])
			}
		}
		if math.Abs(l.ELPD-floats.Sum(exact)) > .05 || math.Abs(l.Parameters-2) > 1 ||
			math.Abs(l.StdErr-math.Sqrt(rows*stat.Variance(exact, nil))) > .05 {
			t.Errorf("draws %v times as wide: %+v, exact %.3f", widen, l, floats.Sum(exact))
		}
		if len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "1 of 3 parameters were trained") { // the bias
			t.Errorf("warns %q", l.Warnings)
		}
	}
}

// Autocorrelated draws are worth less, which lengthens the tail that is smoothed, and few of them are warned of.
func TestLOOOfChains(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	x, y := mat.NewDense(8, 2, normals(rng, 16)), normals(rng, 8)
	phi := make([]float64, 2*4*300)
	for i := range phi {
		phi[i] = .05 * rng.NormFloat64()
		if i/2%300 > 0 {
			phi[i] += .98 * phi[i-2]
		}
	}
	l, err := diag.NewLOOForPosterior(t.Context(), resultOf(t, phi, bayes.EqualLogWeights(1200), 4, nil).Posterior,
		&dataset.Dataset{Name: "plane", X: x, Y: y, Features: []string{"a", "b"}, Target: "y"})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(l.Warnings, "\n"); !strings.Contains(all, "of 1200 draws are effective") {
		t.Errorf("warns %q", all)
	}
}
