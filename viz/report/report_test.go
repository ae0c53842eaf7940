package report_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/viz/report"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// line is a posterior of four particles near y = slope x, or of the logit; of a regression with the given noise.
func line(t *testing.T, slope float64, likelihood bayes.Likelihood, names ...string) *bayes.Posterior {
	t.Helper()
	return lineAt(t, slope, 0, likelihood, names...)
}

// lineAt is line with an intercept.
func lineAt(t *testing.T, slope, intercept float64, likelihood bayes.Likelihood, names ...string) *bayes.Posterior {
	t.Helper()
	model := bayes.Model{Network: nn.MLP{}, Likelihood: likelihood, Stochastic: bayes.All()}
	bound, err := model.Bind(len(names), 1)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	const particles = 4 // two of them are copies
	phi := make([]float64, particles*bound.D)
	for j := range particles {
		phi[j*bound.D], phi[j*bound.D+len(names)] = slope+[]float64{-.02, -.005, .0025, .0025}[j], intercept
	}
	origin := bayes.Origin{FeatureNames: names, TargetNames: []string{"y"}, Engine: engine}
	if likelihood.Task() != dataset.Regression {
		origin.Classes = []string{"no", "yes"}
	}
	p, err := bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, phi, particles, bound.D), LogWeights: bayes.EqualLogWeights(particles),
	}, origin)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// made are rows of y = 2 x + N(0, 1), or of classes whose logit is 2 x.
func made(rows int, seed uint64, classes bool, names ...string) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(seed, 1))
	d := &dataset.Dataset{Name: "made", Features: names, Target: "y"}
	x := mat.NewDense(rows, len(names), nil)
	for i := range rows {
		for k := range names {
			x.Set(i, k, rng.NormFloat64())
		}
		y := 2*x.At(i, 0) + rng.NormFloat64()
		if classes {
			y = 0
			if rng.Float64() < 1/(1+math.Exp(-2*x.At(i, 0))) {
				y = 1
			}
		}
		d.Y = append(d.Y, y)
	}
	d.X = x
	if classes {
		d.Task, d.Classes = dataset.BinaryClassification, []string{"no", "yes"}
	}
	return d
}

// censor hides the targets above N(1, 1), whatever the features.
func censor(d *dataset.Dataset) {
	rng := rand.New(rand.NewPCG(3, 1))
	for i, y := range d.Y {
		last := 1 + rng.NormFloat64()
		d.Y[i], d.Censored = min(y, last), append(d.Censored, y > last)
	}
}

// A model that is right is trusted, and one that is too sure, or knows nothing, is not: the verdict's two checks.
func TestVerdict(t *testing.T) {
	gaussian := func(noise float64) bayes.Likelihood { return bayes.Gaussian{StdDev: noise} }
	for _, c := range []struct {
		name       string
		slope      float64
		likelihood bayes.Likelihood
		rows       int
		want       report.Trust
		why        string
		censored   bool
	}{
		{"right", 2, gaussian(1), 400, report.Yes, "", false},
		{"too sure", 2, gaussian(.5), 400, report.No, "too narrow", false},
		{"too wide", 2, gaussian(2), 400, report.WithinLimits, "wider than they need be", false},
		{"ignorant", 0, gaussian(math.Sqrt(5)), 400, report.No, "not clearly better than a guess", false},
		{"few rows", 2, gaussian(1), 40, report.WithinLimits, "Only 40 rows", false},
		{"right classes", 2, bayes.Bernoulli{}, 400, report.Yes, "", false},
		{"too sure of classes", 8, bayes.Bernoulli{}, 400, report.No, "surer than they should be", false},
		{"timid of classes", .5, bayes.Bernoulli{}, 400, report.WithinLimits, "less sure than they could be", false},
		{"right, censored", 2, gaussian(1), 400, report.Yes, "", true},
		{"too sure, censored", 2, gaussian(.5), 400, report.No, "too narrow", true},
		{"ignorant, censored", 0, gaussian(math.Sqrt(5)), 400, report.No, "not clearly better than a guess", true},
		{"ignorant, by few rows", 0, gaussian(math.Sqrt(5)), 40, report.No, "not clearly better than a guess", false},
		{"few seen", 2, gaussian(1), 80, report.WithinLimits, "whose target was seen", true},
	} {
		_, classes := c.likelihood.(bayes.Bernoulli)
		r := &report.Report{Posterior: line(t, c.slope, c.likelihood, "x"), Rows: made(c.rows, 7, classes, "x")}
		if c.censored {
			censor(r.Rows)
		}
		v, err := r.Judge(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		why := strings.Join(v.Reasons, " ")
		if v.Trust != c.want || (c.why == "") != (why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v %q %q, want %v, %q", c.name, v.Trust, v.Reasons, v.Merits, c.want, c.why)
		}
	}
}

// What is wrong with the rows is named, before features or model are blamed; what makes scores too good comes first.
func TestVerdictsCause(t *testing.T) {
	all := func(d *dataset.Dataset, f func(i int, y float64) float64) {
		for i, y := range d.Y {
			d.Y[i] = f(i, y)
		}
	}
	column := func(d *dataset.Dataset, at int, f func(i int) float64) {
		for i := range d.Y {
			d.X.(*mat.Dense).Set(i, at, f(i))
		}
	}
	for _, c := range []struct {
		name    string
		classes bool
		change  func(r *report.Report)
		want    report.Trust
		first   string
	}{
		{"nothing", false, func(*report.Report) {}, report.Yes, ""},
		{"drifted", false, func(r *report.Report) { all(r.Rows, func(_ int, y float64) float64 { return 1.1*y + 12 }) },
			report.No, "are too low by 12"},
		{"constant", false, func(r *report.Report) { all(r.Rows, func(int, float64) float64 { return 3 }) }, report.No,
			"are 3: there is nothing to predict"},
		{"zeros", false, func(r *report.Report) {
			all(r.Rows, func(i int, y float64) float64 { return float64(i%2) * (y + 20) })
		}, report.No, "50 % of the values of y are exactly 0"},
		{"one class", true, func(r *report.Report) {
			all(r.Rows, func(int, float64) float64 { return 0 })
			column(r.Rows, 0, func(i int) float64 { return -5 - float64(i)/100 })
		}, report.No, "No row that judges them is of yes"},
		{"hardly another class", true, func(r *report.Report) {
			all(r.Rows, func(i int, _ float64) float64 { return float64(max(0, i-397)) / 2 })
			column(r.Rows, 0, func(i int) float64 { return -5 - float64(i)/100 })
			r.Rows.Y[398] = 0
		}, report.No, "They are not clearly better than a guess that ignores the features"},
		{"target twice", false, func(r *report.Report) { column(r.Rows, 1, func(i int) float64 { return 7 * r.Rows.Y[i] }) },
			report.No, `The feature "b" gives the target by itself`},
		{"row numbers", false, func(r *report.Report) { column(r.Rows, 1, func(i int) float64 { return float64(i + 1) }) },
			report.WithinLimits, `The feature "b" counts the rows`},
		{"trained on", false, func(r *report.Report) { r.Train = r.Rows }, report.No, "400 of the 400 rows that judge"},
		{"stand twice", false, func(r *report.Report) {
			var rows []int
			for i := range 400 {
				rows = append(rows, i/2)
			}
			var err error
			if r.Rows, err = r.Rows.Subset(rows); err != nil {
				t.Fatal(err)
			}
		}, report.WithinLimits, "200 of the rows are exact copies of the other 200"},
		{"stopped", false, func(r *report.Report) {
			r.Posterior = r.Posterior.WithDoubts(string(run.Cancelled), []string{"the chains disagree"})
		}, report.WithinLimits, "The run did not end by itself (cancelled)"},
		{"warned", false, func(r *report.Report) {
			r.Posterior = r.Posterior.WithDoubts(string(run.Completed), []string{"the chains disagree"})
		}, report.WithinLimits, "The fit warns: the chains disagree"},
		{"better before", false, func(r *report.Report) { r.Posterior = leftOut(t, r.Posterior, 1.1) }, report.WithinLimits,
			"predicted worse than those that the fit left out"},
		{"alike before", false, func(r *report.Report) { r.Posterior = leftOut(t, r.Posterior, 1.4) }, report.Yes, ""},
	} {
		var likelihood bayes.Likelihood = bayes.Gaussian{StdDev: 1}
		if c.classes {
			likelihood = bayes.Bernoulli{}
		}
		r := &report.Report{Posterior: line(t, 2, likelihood, "x", "b"), Rows: made(400, 7, c.classes, "x", "b")}
		c.change(r)
		v, err := r.Judge(t.Context())
		if err != nil {
			t.Fatal(c.name, err)
		}
		why := strings.Join(v.Reasons, "\n")
		if v.Trust != c.want || c.first == "" != (why == "") || !strings.Contains(strings.Split(why+"\n", "\n")[0], c.first) {
			t.Errorf("%s: %v\n%s", c.name, v.Trust, why)
		}
		if strings.Contains(why, "say too little") || strings.Contains(why, "surer") {
			t.Errorf("%s: the features or the model are blamed:\n%s", c.name, why)
		}
	}
}

// leftOut is the same posterior whose fit had this NLPD on rows that it left out.
func leftOut(t *testing.T, p *bayes.Posterior, nlpd float64) *bayes.Posterior {
	t.Helper()
	draws, err := p.Draws()
	if err != nil {
		t.Fatal(err)
	}
	draws.Diagnostics = map[string]float64{bayes.LeftOut: nlpd, bayes.LeftOutErr: .03}
	if p, err = bayes.NewPosterior(p.Bound(), draws, p.Origin()); err != nil {
		t.Fatal(err)
	}
	return p
}

// heavy is Student's t with 3 degrees of freedom.
type heavy struct{ bayes.Gaussian }

func (heavy) Predictive(outputs, _ []float64, k int) bayes.Distribution {
	return distuv.StudentsT{Mu: outputs[k], Sigma: 1, Nu: 3}
}

// Rare counts are judged by probabilities, and heavy tails are no skill: what counts is what the features say.
func TestVerdictOfOthers(t *testing.T) {
	for _, c := range []struct {
		name       string
		likelihood bayes.Likelihood
		draw       func(rng *rand.Rand, x float64) float64
		slope      float64
		want       report.Trust
	}{
		{"rare counts", bayes.Poisson{}, func(rng *rand.Rand, x float64) float64 {
			return distuv.Poisson{Lambda: .05 * math.Exp(2*x), Src: rng}.Rand()
		}, 2, report.Yes},
		{"heavy tails", heavy{}, func(rng *rand.Rand, _ float64) float64 {
			return distuv.StudentsT{Sigma: 1, Nu: 3, Src: rng}.Rand()
		}, .001, report.No},
	} {
		rows := made(1000, 7, false, "x")
		rng := rand.New(rand.NewPCG(5, 5))
		for i := range rows.Y {
			rows.Y[i] = c.draw(rng, rows.X.At(i, 0))
		}
		p := line(t, c.slope, c.likelihood, "x")
		if c.name == "rare counts" {
			p = lineAt(t, c.slope, math.Log(.05), c.likelihood, "x")
		}
		v, err := (&report.Report{Posterior: p, Rows: rows}).Judge(t.Context())
		if err != nil || v.Trust != c.want {
			t.Errorf("%s: %v %q %q, %v", c.name, v.Trust, v.Reasons, v.Merits, err)
		}
	}
}

// A right model is doubted in about one of a hundred tables for each of three checks: in at most 12 of 200, but for one
// time in a hundred.
func TestVerdictsFalseAlarms(t *testing.T) {
	p := line(t, 2, bayes.Gaussian{StdDev: 1}, "x")
	doubted := 0
	for seed := range uint64(200) {
		v, err := (&report.Report{Posterior: p, Rows: made(200, 100+seed, false, "x")}).Judge(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v.Trust != report.Yes {
			doubted++
		}
	}
	if doubted > 12 {
		t.Errorf("a right model is doubted on %d of 200 tables", doubted)
	}
}

// The page stands alone, escapes what the file says, and has what it promises.
func TestPage(t *testing.T) {
	evil := `<script>alert("1")</script>`
	for _, classes := range []bool{false, true} {
		rows := made(200, 3, classes, evil, "b")
		rows.Target = "y"
		var likelihood bayes.Likelihood = bayes.Gaussian{StdDev: 1}
		if classes {
			likelihood = bayes.Bernoulli{}
		}
		p := line(t, 2, likelihood, evil, "b")
		r := &report.Report{Posterior: p, Rows: rows, Result: &fit.Result{
			Posterior: p, Status: run.Cancelled, Warnings: []string{"something " + evil},
			Curves: []fit.Curve{{Name: fit.LossCurve, Steps: []int{1, 2}, Values: []float64{2, 1}}},
		}}
		v, err := r.Judge(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var page, again bytes.Buffer
		if err := v.Write(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		if err := v.Write(t.Context(), &again); err != nil || !bytes.Equal(page.Bytes(), again.Bytes()) {
			t.Errorf("the same report gives another page: %v", err)
		}
		text := page.String()
		for _, never := range []string{"<script", "http://", "https://", "<no value>", "%!", "ZgotmplZ"} {
			if strings.Contains(text, never) {
				at := strings.Index(text, never)
				t.Errorf("the page has %q: %.200q", never, text[max(0, at-100):])
			}
		}
		for _, always := range []string{"within limits", "The run did not end by itself", "&lt;script&gt;", "Scores",
			"by guessing", "Where it is wrong", "What the features do", "How it was found", "training rows are not at hand",
			"effective sample size of the particles"} {
			if !strings.Contains(text, always) {
				t.Errorf("the page has no %q", always)
			}
		}
		want := map[bool]int{false: 6, true: 5} // calibration, residuals (two of a regression), two curves, training
		if got := strings.Count(text, "<img "); got != want[classes] {
			t.Errorf("%d pictures, want %d", got, want[classes])
		}
	}
}

func TestRefuses(t *testing.T) {
	rows, p := made(20, 1, false, "x", "z"), line(t, 2, bayes.Gaussian{StdDev: 1}, "x", "z")
	blind := *rows
	blind.Y = nil
	other := *rows
	other.Features = slices.Clone(rows.Features)
	slices.Reverse(other.Features)
	for _, c := range []struct {
		want string
		r    report.Report
	}{
		{"the posterior is nil", report.Report{Rows: rows}},
		{"Rows are nil", report.Report{Posterior: p}},
		{"is not known", report.Report{Posterior: p, Rows: &blind}},
		{"order", report.Report{Posterior: p, Rows: rows, Train: &other}},
	} {
		if _, err := c.r.Judge(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v does not say %q", err, c.want)
		}
	}
}
