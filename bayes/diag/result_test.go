package diag_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// resultOf is a result of a posterior of a linear model with 2 stochastic weights: flat [J, 2].
func resultOf(t *testing.T, phi, logWeights []float64, chains int) *fit.Result {
	t.Helper()
	p := posteriorOf(t, phi, logWeights, chains, bayes.Provenance{})
	return &fit.Result{Posterior: p, Status: run.Completed}
}

func posteriorOf(
	t *testing.T, phi, logWeights []float64, chains int, from bayes.Provenance,
) *bayes.Posterior {
	t.Helper()
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{},
		Stochastic: bayes.Names("layer1/weights")}.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, phi, len(logWeights), 2), Psi: compute.Floats(compute.Float64, []float64{0}, 1),
		LogWeights: logWeights, Chains: chains,
	}, bayes.Origin{Provenance: from})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

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
	r := resultOf(t, phi, bayes.EqualLogWeights(chains*draws), chains)
	r.Warnings = []string{"of the run"}
	d, err := diag.Of(r)
	if err != nil {
		t.Fatal(err)
	}
	by, err := diag.OfPosterior(r.Posterior)
	if err != nil {
		t.Fatal(err)
	}
	rows := by.Rows
	if want := max(rows[0].RHat, rows[1].RHat); d.RHat != want || d.ESS != min(rows[0].BulkESS, rows[1].BulkESS) ||
		!math.IsNaN(d.KHat) {
		t.Errorf("R-hat %v, ESS %v, k-hat %v of %+v", d.RHat, d.ESS, d.KHat, rows)
	}
	if len(d.Warnings) != 1 || !strings.HasPrefix(d.String(), "4 chains of 250 draws, ESS ") ||
		!strings.HasSuffix(d.String(), "\n  of the run") {
		t.Errorf("says\n%s", d)
	}

	for j := range draws { // one chain elsewhere, in the second weight
		phi[2*j+1] += 5
	}
	r = resultOf(t, phi, bayes.EqualLogWeights(chains*draws), chains)
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
	r = resultOf(t, normals(rng, 2000), heavy, 0)
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

	for particles, c := range map[int]struct {
		kHat float64
		says string
	}{10: {math.NaN(), "is 1.0, and k-hat"}, 1000: {math.Inf(1), "k-hat of the weights is +Inf, above 0.67"}} {
		lone := slices.Repeat([]float64{-1e5}, particles)
		lone[3] = 0
		d, err = diag.Of(resultOf(t, normals(rng, 2*particles), lone, 0))
		if err != nil || fmt.Sprint(d.KHat) != fmt.Sprint(c.kHat) || d.ESS != 1 || len(d.Warnings) != 1 ||
			!strings.Contains(d.Warnings[0], c.says) {
			t.Errorf("one of %d particles has all the weight: %v, %v", particles, err, d)
		}
	}
	halves := make([]float64, 1000) // two runs of different weight: of equal weights no tail can be fitted
	for j := range 500 {
		halves[j] = -1
	}
	if d, err = diag.Of(resultOf(t, normals(rng, 2000), halves, 0)); err != nil || len(d.Warnings) != 0 {
		t.Errorf("two weights: %v, %v", err, d)
	}

	d, err = diag.Of(resultOf(t, normals(rng, 20), bayes.EqualLogWeights(10), 0))
	if err != nil || d.String() != "10 particles" {
		t.Errorf("equal particles of no chains: %v, %q", err, d)
	}
	for _, c := range []struct {
		copies int
		ess    float64
		warns  int
	}{{2, 5, 0}, {5, 2, 1}} { // of each of 10/copies places
		d, err = diag.Of(resultOf(t, slices.Repeat(normals(rng, 20/c.copies), c.copies), bayes.EqualLogWeights(10), 0))
		if err != nil || math.Abs(d.ESS-c.ess) > 1e-9 || len(d.Warnings) != c.warns {
			t.Errorf("%d copies of each: %v, %v", c.copies, err, d)
		}
	}
	if _, err := diag.Of(&fit.Result{}); err == nil {
		t.Error("no posterior: no error")
	}
}

// A linear regression of known noise, of which leaving out a row is exact algebra. The draws are of the posterior, or
// of one whose likelihood has a power, once of a wider distribution with weights. With 40 000 draws the Monte Carlo
// error of a row's ELPD is below .01 (k-hat below .5), of their sum below .05.
func TestLOOIsExact(t *testing.T) {
	const rows, draws = 25, 40_000
	rng := rand.New(rand.NewPCG(1, 4))
	x, y := mat.NewDense(rows, 2, normals(rng, 2*rows)), normals(rng, rows)
	for n := range y {
		y[n] += .3*x.At(n, 0) - x.At(n, 1)
	}
	data := &dataset.Dataset{Name: "plane", X: x, Y: y, Features: []string{"a", "b"}, Target: "y"}
	// posterior is that of N(0, 1) weights given all rows but one, as mean and covariance.
	posterior := func(without int, power float64) (*mat.VecDense, *mat.SymDense) {
		precision, b := mat.NewSymDense(2, []float64{1, 0, 0, 1}), mat.NewVecDense(2, nil)
		for n := range rows {
			if n != without {
				precision.SymRankOne(precision, power, x.RowView(n))
				b.AddScaledVec(b, power*y[n], x.RowView(n))
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
	for _, c := range []struct {
		widen, power float64
		about        string
		warns        []string // what was trained always is: the bias
	}{
		{widen: 1, power: 1},
		{widen: 1.3, power: 1},
		{widen: 1, power: .3},
		{widen: 1, power: 2},
		{widen: 1, power: 1, about: "a Gaussian at the mode", warns: []string{"but of a Gaussian at the mode"}},
	} {
		exact := make([]float64, rows)
		for n := range rows {
			mean, covariance := posterior(n, c.power)
			row := mat.NewVecDense(2, x.RawRowView(n))
			others := distuv.Normal{Mu: mat.Dot(row, mean), Sigma: math.Sqrt(1 + mat.Inner(row, covariance, row))}
			exact[n] = others.LogProb(y[n])
		}
		mean, covariance := posterior(-1, c.power)
		var root mat.Cholesky
		root.Factorize(covariance)
		var lower mat.TriDense
		root.LTo(&lower)
		logWeights, phi := make([]float64, draws), make([]float64, 0, 2*draws)
		for j := range draws {
			z := mat.NewVecDense(2, normals(rng, 2))
			logWeights[j] = .5 * (1 - c.widen*c.widen) * mat.Dot(z, z)
			var theta mat.VecDense
			theta.MulVec(&lower, z)
			theta.AddScaledVec(mean, c.widen, &theta)
			phi = append(phi, theta.RawVector().Data...)
		}
		from := bayes.Provenance{DataHash: data.Hash(), LikelihoodPower: c.power, Approximation: c.about}
		l, err := diag.NewLOOForPosterior(t.Context(), posteriorOf(t, phi, logWeights, 0, from), data)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v: %v, exact %.3f", c, l, floats.Sum(exact))
		for n, r := range l.Rows {
			if math.Abs(r.ELPD-exact[n]) > .04 {
				t.Errorf("%+v, row %d: ELPD %.3f, exact %.3f", c, n, r.ELPD, exact[n])
			}
		}
		if math.Abs(l.ELPD-floats.Sum(exact)) > .05 || math.Abs(l.Parameters-2) > 1.5 ||
			math.Abs(l.StdErr-math.Sqrt(rows*stat.Variance(exact, nil))) > .05 {
			t.Errorf("%+v: %+v, exact %.3f", c, l, floats.Sum(exact))
		}
		want := append(c.warns, "1 of 3 parameters were trained")
		if len(l.Warnings) != len(want) {
			t.Errorf("%+v: warns %q", c, l.Warnings)
		}
		for i, w := range l.Warnings {
			if !strings.Contains(w, want[i]) {
				t.Errorf("%+v: warns %q, not of %q", c, w, want[i])
			}
		}
	}
}

// Copies of draws, as Resample makes them, are no more draws.
func TestLOOOfCopies(t *testing.T) {
	const rows, draws = 8, 60
	rng := rand.New(rand.NewPCG(1, 7))
	data := &dataset.Dataset{Name: "plane", X: mat.NewDense(rows, 2, normals(rng, 2*rows)), Y: normals(rng, rows),
		Features: []string{"a", "b"}, Target: "y"}
	phi := normals(rng, 2*draws)
	var said [2]string
	for i, copies := range []int{1, 20} {
		p := posteriorOf(t, slices.Repeat(phi, copies), bayes.EqualLogWeights(copies*draws), 0,
			bayes.Provenance{DataHash: data.Hash()})
		l, err := diag.NewLOOForPosterior(t.Context(), p, data)
		if err != nil {
			t.Fatal(err)
		}
		said[i] = fmt.Sprintf("%.6f, %q", l.ELPD, l.Warnings)
	}
	if said[0] != said[1] || !strings.Contains(said[0], "only 60 of 60 draws are effective") {
		t.Errorf("%s\nof copies: %s", said[0], said[1])
	}
}

// Rows that the posterior was not given are refused; where it does not know its own, that is said.
func TestLOOOfOtherRows(t *testing.T) {
	const rows, draws = 8, 100
	rng := rand.New(rand.NewPCG(1, 6))
	rowsOf := func() *dataset.Dataset {
		return &dataset.Dataset{Name: "plane", X: mat.NewDense(rows, 2, normals(rng, 2*rows)), Y: normals(rng, rows),
			Features: []string{"a", "b"}, Target: "y"}
	}
	own, other := rowsOf(), rowsOf()
	scanned, err := dataset.Examine(t.Context(), dataset.RowsOf(own), rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		hash string
		data *dataset.Dataset
		fail bool
		says string
	}{
		"its own":              {own.Hash(), own, false, ""},
		"its own, from a file": {scanned.Hash, own, false, ""},
		"others":               {own.Hash(), other, true, own.Hash()[:12]},
		"not known":            {"", other, false, "does not know the hash"},
	} {
		p := posteriorOf(t, normals(rng, 2*draws), bayes.EqualLogWeights(draws), 0, bayes.Provenance{DataHash: c.hash})
		l, err := diag.NewLOOForPosterior(t.Context(), p, c.data)
		said := strings.Join(l.Warnings, "; ")
		if c.fail {
			said = fmt.Sprint(err)
		}
		if errors.Is(err, diag.ErrOtherRows) != c.fail || !c.fail && err != nil || !strings.Contains(said, c.says) ||
			c.says == "" && strings.Contains(said, "hash") {
			t.Errorf("%s: error %v, warns %q; want %q", name, err, l.Warnings, c.says)
		}
	}
}

// Parameters that never change are warned of, and their ESS, by convention the number of draws, is not taken for the
// least. Chains that each stand still where they began are warned of by their R-hat.
func TestOfChainsThatStandStill(t *testing.T) {
	const chains, draws, still = 4, 100, "parameters never change: all their draws are equal"
	moves := func(j int) float64 { return math.Mod(float64(j)*math.Phi, 1) } // evenly over 0 to 1: ESS above 400
	stands := func(int) float64 { return .1 }
	apart := func(j int) float64 { return .1 * float64(1+j/draws) }
	for name, c := range map[string]struct {
		first, second func(j int) float64
		warns         []string // each begins so
		of            int      // the weight that ESS and R-hat are of; -1: none
	}{
		"both move":             {moves, moves, nil, 0},
		"neither moves":         {stands, stands, []string{"2 of 2 " + still}, -1},
		"the first stands":      {stands, moves, []string{"1 of 2 " + still}, 1},
		"the second stands":     {moves, stands, []string{"1 of 2 " + still}, 0},
		"each chain by itself":  {apart, apart, []string{"R-hat of layer1/weights[0,0] is +Inf", "the effective"}, 0},
		"the first, by itself":  {apart, moves, []string{"R-hat of layer1/weights[0,0] is +Inf", "the effective"}, 0},
		"one still, one itself": {stands, apart, []string{"1 of 2 " + still, "R-hat of layer1/weights[0,1]", "the eff"}, 1},
	} {
		var phi []float64
		for j := range chains * draws {
			phi = append(phi, c.first(j), c.second(j))
		}
		r := resultOf(t, phi, bayes.EqualLogWeights(chains*draws), chains)
		d, err := diag.Of(r)
		if err != nil {
			t.Fatal(err)
		}
		summary, err := diag.OfPosterior(r.Posterior)
		if err != nil {
			t.Fatal(err)
		}
		right := len(d.Warnings) == len(c.warns)
		for i := range min(len(d.Warnings), len(c.warns)) {
			right = right && strings.HasPrefix(d.Warnings[i], c.warns[i])
		}
		if !right {
			t.Errorf("%s: warns %q, want %q", name, d.Warnings, c.warns)
		}
		if c.of < 0 {
			if !math.IsNaN(d.ESS) || !math.IsNaN(d.RHat) || !strings.HasPrefix(d.String(), "4 chains of 100 draws\n") {
				t.Errorf("%s: says\n%s", name, d)
			}
			continue
		}
		want := summary.Rows[c.of]
		if d.ESS != want.BulkESS || d.RHat != want.RHat {
			t.Errorf("%s: ESS %v and R-hat %v, want %v and %v", name, d.ESS, d.RHat, want.BulkESS, want.RHat)
		}
	}
}

// Columns that stand in another order than the posterior's are an error.
func TestLOOOfAnotherOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{},
		Stochastic: bayes.Names("layer1/weights")}.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, normals(rng, 100), 50, 2),
		Psi: compute.Floats(compute.Float64, []float64{0}, 1), LogWeights: bayes.EqualLogWeights(50),
	}, bayes.Origin{FeatureNames: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	data := &dataset.Dataset{Name: "table", X: mat.NewDense(6, 2, normals(rng, 12)), Features: []string{"b", "a"},
		Target: "y", Y: normals(rng, 6)}
	_, err = diag.NewLOOForPosterior(t.Context(), p, data)
	if err == nil || !strings.Contains(err.Error(), `feature "b" is number 0`) {
		t.Errorf("error %v", err)
	}
}
