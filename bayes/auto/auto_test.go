package auto

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// small is a model that compiles quickly, for a table's task.
func small(t *testing.T, data *dataset.Dataset) bayes.Model {
	t.Helper()
	model, err := bayes.ModelFor(data)
	if err != nil {
		t.Fatal(err)
	}
	model.Network, model.Prior = nn.MLP{Hidden: []int{8}, Activation: nn.GELU}, bayes.Normal{}
	return model
}

// noisy is y = sin 2x + (.1 + .2 |x|) e, with errors e of Student's t with 4 degrees of freedom.
func noisy(rows int, seed uint64) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(seed, 3))
	errors := distuv.StudentsT{Sigma: 1, Nu: 4, Src: rng}
	x, y := mat.NewDense(rows, 1, nil), make([]float64, rows)
	for i := range y {
		v := 2*rng.Float64() - 1
		x.Set(i, 0, v)
		y[i] = math.Sin(2*v) + (.1+.2*math.Abs(v))*errors.Rand()
	}
	return &dataset.Dataset{Name: "noisy", Features: []string{"x"}, Target: "y", X: x, Y: y}
}

// quick is a plan for tests that do not look at what is found.
var quick = plan{folds: 2, members: 4, manyRows: 500, passed: 2_000_000, epochs: 10, warmUp: 20, draws: 5, thin: 2}

// It finds the noise and its outliers: over four data sets its NLPD is near that of the law that drew them, and 90 %
// intervals cover as they should, within 3.3 standard errors of four fits' mean. A fit's coverage varies by .011 from
// one data set of 400 rows to the next (25 were tried).
func TestFindsTheNoise(t *testing.T) {
	test := noisy(2000, 5)
	method := Method{Seconds: 1e6, plan: quick}
	method.plan.folds, method.plan.members, method.plan.epochs, method.plan.warmUp = 3, 6, 150, 100
	truth, density, covered := 0., 0., 0.
	for i, y := range test.Y {
		v := test.X.At(i, 0)
		law := distuv.StudentsT{Mu: math.Sin(2 * v), Sigma: .1 + .2*math.Abs(v), Nu: 4}
		truth -= law.LogProb(y) / float64(test.Rows())
	}
	for seed := range uint64(4) {
		train := noisy(400, seed+1)
		s := run.Settings{Seed: seed, Engine: computetest.CPU(t)}
		result, err := fit.Fit(t.Context(), small(t, train), method, dataset.Parts{Train: train}, s)
		if err != nil {
			t.Fatal(err)
		}
		p, err := result.Posterior.Predict(t.Context(), test.X)
		if err != nil {
			t.Fatal(err)
		}
		nlpd, err := metric.NLPD(p, test.Y)
		if err != nil {
			t.Fatal(err)
		}
		coverage, err := metric.Coverage(p, test.Y, .9)
		if err != nil {
			t.Fatal(err)
		}
		density, covered = density+nlpd.Value/4, covered+coverage.Value/4
		d := fit.Details[*Details](result)
		if d.Scored != 3 || !(math.Abs(d.Networks.Value-nlpd.Value) < .25) || !strings.Contains(d.String(), "3 of 3 folds") {
			t.Errorf("%+v", d)
		}
		total, networks := 0., 2 // of the first fold
		if d.Prior > 0 {
			networks = 4
		}
		for _, w := range result.Posterior.LogWeights().Weights()[:networks] {
			total += w
		}
		if math.Abs(total-(1-d.Weight)/3) > 1e-6 {
			t.Errorf("the networks of a fold weigh %v, the draws %v", total, d.Weight)
		}
	}
	if density > truth+.05 || math.Abs(covered-.9) > 3.3*.011/2 {
		t.Errorf("NLPD %.3f, want %.3f; coverage %.3f", density, truth, covered)
	}
	t.Logf("NLPD %.3f, the law's %.3f, coverage %.3f", density, truth, covered)
}

// A run that is cancelled and resumed from its checkpoints ends as one that is not, to the bit.
func TestResume(t *testing.T) {
	parts := dataset.Parts{Train: noisy(60, 1)}
	s := run.Settings{Seed: 1, Engine: computetest.Go(t)}
	model, method := small(t, parts.Train), Method{Seconds: 1e6, plan: quick}
	whole, err := fit.Fit(t.Context(), model, method, parts, s)
	if err != nil {
		t.Fatal(err)
	}
	x := mat.NewDense(3, 1, []float64{-.5, 0, .5})
	want, err := whole.Posterior.Predict(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"fold 2: sampling", "sampling all rows"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.Checkpoint = filepath.Join(t.TempDir(), "auto")
		s.Progress = func(p run.Progress) {
			if strings.HasPrefix(p.Stage, stage) {
				cancel()
			}
		}
		first, err := fit.Fit(ctx, model, method, parts, s)
		if err != nil || first.Status != run.Cancelled || fit.Details[*Details](first).Scored > 2 {
			t.Fatalf("cancelled in %s: %+v, %v", stage, first, err)
		}
		s.Progress = nil
		rest, err := fit.Fit(t.Context(), model, method, parts, s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := rest.Posterior.Predict(t.Context(), x)
		if err != nil || !slices.Equal(got.Outputs, want.Outputs) || !slices.Equal(got.Weights, want.Weights) {
			t.Errorf("a run that is resumed from %s ends otherwise (%v)", stage, err)
		}
	}
}

// A fit whose chains the budget ended is, read again from its checkpoints, what it was, and says what it said; also by
// settings that begin anew over another fit's, as these do first.
func TestReadAgain(t *testing.T) {
	parts := dataset.Parts{Train: noisy(60, 1)}
	folder := t.TempDir()
	for _, s := range []run.Settings{
		{Seed: 1, Checkpoint: filepath.Join(folder, "auto")},
		{Seed: 2, Checkpoint: filepath.Join(folder, "auto"), Replace: true},
		{Seed: 2, Checkpoint: filepath.Join(folder, "auto-*"), Replace: true},
	} {
		s.Engine = computetest.Go(t)
		method := Method{Seconds: 2, plan: quick}
		method.plan.draws = 20_000
		var first *fit.Result
		for range 2 {
			result, err := fit.Fit(t.Context(), small(t, parts.Train), method, parts, s)
			if err != nil || len(result.Warnings) > 0 {
				t.Fatalf("%+v, %v", result, err)
			}
			if first == nil {
				first = result
				continue
			}
			a, err := first.Posterior.Draws()
			if err != nil {
				t.Fatal(err)
			}
			b, err := result.Posterior.Draws()
			if err != nil || !a.Phi.Equal(b.Phi) || !slices.Equal(a.LogWeights, b.LogWeights) {
				t.Errorf("%s, %v: %d particles, read again %d: %v", s.Checkpoint, s.Replace, first.Posterior.Particles(),
					result.Posterior.Particles(), err)
			}
			said, says := fit.Details[*Details](first).String(), fit.Details[*Details](result).String()
			if says != said {
				t.Errorf("it said %s, and says, read again, %s", said, says)
			}
		}
	}
}

// A fit that is stopped before the first epoch of its first fold ends has nothing; in that of the second it has the
// first fold, and says so.
func TestStoppedEarly(t *testing.T) {
	parts := dataset.Parts{Train: noisy(240, 1)}
	for _, stage := range []string{"fold 1", "fold 2"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := run.Settings{Seed: 1, Engine: computetest.Go(t), Progress: func(p run.Progress) {
			if strings.HasPrefix(p.Stage, stage) {
				cancel()
			}
		}}
		result, err := fit.Fit(ctx, small(t, parts.Train), Method{Seconds: 1e6, plan: quick}, parts, s)
		if stage == "fold 1" {
			if result != nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "there is nothing yet") {
				t.Errorf("%s: %+v, %v", stage, result, err)
			}
			continue
		}
		if err != nil || fit.Details[*Details](result).Scored != 1 || result.Posterior.Provenance().Status != "cancelled" ||
			!strings.Contains(strings.Join(result.Warnings, ""), "1 of 2 folds count") {
			t.Errorf("%s: %+v, %v", stage, result, err)
		}
	}
}

// Of rows in three groups there are three folds, and each leaves out a group.
func TestGroups(t *testing.T) {
	rows := noisy(60, 1)
	for i := range rows.Y {
		rows.Group = append(rows.Group, fmt.Sprint(i/25))
	}
	plan := quick
	plan.folds = 5
	s := run.Settings{Seed: 1, Engine: computetest.Go(t)}
	result, err := fit.Fit(t.Context(), small(t, rows), Method{Seconds: 1e6, plan: plan}, dataset.Parts{Train: rows}, s)
	if err != nil {
		t.Fatal(err)
	}
	if d := fit.Details[*Details](result); d.Folds != 3 || d.Scored != 3 {
		t.Errorf("%d folds, %d scored", d.Folds, d.Scored)
	}
}

// The weight of the draws is where the density of both is largest; nothing is gained where they are worse.
func TestWeigh(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	networks, draws, equal := make([]float64, 4000), make([]float64, 4000), make([]float64, 4000)
	for i := range networks { // rows are of two kinds, which the one and the other predict: .3 and .7 of them
		networks[i], draws[i] = math.Log(.9), math.Log(.1)
		if rng.Float64() < .7 {
			networks[i], draws[i] = draws[i], networks[i]
		}
		equal[i] = networks[i] - .1
	}
	for _, c := range []struct {
		draws    []float64
		low, top float64
		added    float64
	}{ // (1-w) .9 + w .1 : (1-w) .1 + w .9 = .3 : .7 at w = .75, where .3 log(.3/.9) + .7 log(.7/.1) are added
		{draws, .73, .77, 1.0325}, {equal, 0, 0, 0}, {nil, 0, 0, 0},
	} {
		one := &fold{networks: &particles{density: networks}}
		if c.draws != nil {
			one.sampled = &particles{density: c.draws}
		}
		var d Details
		d.weigh([]*fold{one})
		if d.Weight < c.low || d.Weight > c.top || math.Abs(d.Added.Value-c.added) > .05 || d.String() == "" ||
			d.useless != (c.draws != nil && c.top == 0) {
			t.Errorf("weight %v, want %v to %v; added %v, useless %v", d.Weight, c.low, c.top, d.Added, d.useless)
		}
	}
}

// A row of weight 2 counts as two, and the size of the weights does not matter.
func TestWeighWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	weighted := &fold{networks: &particles{}, sampled: &particles{}}
	repeated := &fold{networks: &particles{}, sampled: &particles{}}
	for range 300 {
		network, draw := rng.NormFloat64(), rng.NormFloat64()
		weight := 1 + rng.IntN(3)
		for k := range weight {
			repeated.networks.density = append(repeated.networks.density, network)
			repeated.sampled.density = append(repeated.sampled.density, draw)
			if k == 0 {
				weighted.networks.density = append(weighted.networks.density, network)
				weighted.sampled.density = append(weighted.sampled.density, draw)
				weighted.weights = append(weighted.weights, float64(weight))
			}
		}
	}
	var want Details
	want.weigh([]*fold{repeated})
	for _, size := range []float64{1, 1e-3, 1e3} {
		floats.Scale(size, weighted.weights)
		var got Details
		got.weigh([]*fold{weighted})
		floats.Scale(1/size, weighted.weights)
		if math.Abs(got.Weight-want.Weight) > 1e-9 || math.Abs(got.Added.Value-want.Added.Value) > 1e-9 ||
			math.Abs(got.Networks.Value-want.Networks.Value) > 1e-9 || !(want.Weight > .1) {
			t.Errorf("weights times %v: %v, added %v; by repetitions %v, %v", size, got.Weight, got.Added, want.Weight,
				want.Added)
		}
	}
}

func TestRefuses(t *testing.T) {
	s := run.Settings{Engine: computetest.Go(t)}
	data := noisy(60, 1)
	rare := noisy(100, 1)
	rare.Task, rare.Classes = dataset.BinaryClassification, []string{"no", "yes"}
	for i := range rare.Y {
		rare.Y[i] = 0
	}
	rare.Y[7] = 1
	constant := noisy(60, 1)
	for i := range constant.Y {
		constant.Y[i] = 4
	}
	wide := noisy(20, 1)
	wide.X, wide.Features = mat.NewDense(20, 30, nil), nil
	for j := range 30 {
		wide.Features = append(wide.Features, "x"+string(rune('a'+j%26))+string(rune('a'+j/26)))
		for i := range 20 {
			wide.X.(*mat.Dense).Set(i, j, float64((i*(j+3))%7))
		}
	}
	alone, grouped := noisy(10, 1), noisy(60, 1)
	alone.Task, grouped.Task = dataset.Classification, dataset.Classification
	grouped.Classes = []string{"a", "b", "c"}
	for i := range alone.Y {
		alone.Y[i], alone.Classes = float64(i), append(alone.Classes, fmt.Sprint(i))
	}
	for i := range grouped.Y { // class c is in the last of six groups alone
		grouped.Y[i], grouped.Group = float64(i%2+i/59), append(grouped.Group, fmt.Sprint(i/10))
	}
	some, err := data.Subset([]int{0, 1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		model  bayes.Model
		method Method
		data   *dataset.Dataset
		want   string // of the error; empty: none
	}{
		"negative":          {small(t, data), Method{Seconds: -1}, data, "Method.Seconds is -1"},
		"few rows":          {small(t, data), Method{}, some, "5 rows"},
		"another task":      {small(t, rare), Method{}, data, "is for binary classification"},
		"constant target":   {small(t, constant), Method{Seconds: 3, plan: quick}, constant, ""},
		"one row of a kind": {small(t, rare), Method{Seconds: 3, plan: quick}, rare, ""},
		"more features":     {small(t, wide), Method{Seconds: 3, plan: quick}, wide, ""},
		"all of a kind":     {small(t, alone), Method{plan: quick}, alone, "in one row or group alone"},
		"a kind in a group": {small(t, grouped), Method{Seconds: 3, plan: quick}, grouped, ""},
	} {
		result, err := fit.Fit(t.Context(), c.model, c.method, dataset.Parts{Train: c.data}, s)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			p, err := result.Posterior.Predict(t.Context(), c.data.X)
			if err != nil {
				t.Fatal(err)
			}
			if nlpd, err := metric.NLPD(p, c.data.Y); err != nil || !(nlpd.Value < 3) {
				t.Errorf("%s: NLPD %v, %v", name, nlpd, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}

// A budget that ends before the first epoch does still gives a posterior, of at most an epoch of one fold or of the one
// split, with its doubts, and read again from its checkpoint the same.
func TestNoTime(t *testing.T) {
	for rows, want := range map[int]string{
		60: "1 of 2 folds count: the budget of 1e-09 s", quick.manyRows: "in epoch 1 of 10",
	} {
		parts := dataset.Parts{Train: noisy(rows, 1)}
		s := run.Settings{Seed: 1, Engine: computetest.Go(t), Checkpoint: filepath.Join(t.TempDir(), "auto")}
		var first []float64
		for range 2 {
			result, err := fit.Fit(t.Context(), small(t, parts.Train), Method{Seconds: 1e-9, plan: quick}, parts, s)
			if err != nil {
				t.Fatal(err)
			}
			d, values := fit.Details[*train.Details](result), []float64(nil)
			if d.Steps < 1 || d.Steps > d.PerEpoch || fit.Details[*Details](result).Scored != 1 ||
				!strings.Contains(strings.Join(result.Warnings, "\n"), want) {
				t.Errorf("%d rows: %d steps, %d in an epoch; warnings %q", rows, d.Steps, d.PerEpoch, result.Warnings)
			}
			if values, err = result.Posterior.Coordinate(0); err != nil || first != nil && !slices.Equal(values, first) {
				t.Errorf("%d rows: read again %v, first %v (%v)", rows, values, first, err)
			}
			first = values
		}
	}
}

// Of many rows, without hope of a draw, training has the whole budget: by a clock that each step moves on by a second,
// of 90 steps it makes those that there is time for, and what was cut, or is left, is said. Of an epoch that does not
// end within twice the budget there is what has been made.
func TestWholeBudget(t *testing.T) {
	data := noisy(quick.manyRows, 1)
	for seconds, want := range map[float64]struct {
		steps     int
		cut, left string
	}{
		1:  {2, "in epoch 1 of 10", ""},
		60: {60, "the budget of 60 s ended the training in epoch 7 of 10", ""},
		95: {90, "", ", 5 s are left;"},
	} {
		var clock time.Duration
		method := Method{Seconds: seconds, plan: quick}
		method.plan.clock = &clock
		ctx := run.Watched(t.Context(), func(run.Progress, run.Machine) { clock += time.Second })
		s := run.Settings{Seed: 1, Engine: computetest.Go(t)}
		result, err := fit.Fit(ctx, small(t, data), method, dataset.Parts{Train: data}, s)
		if err != nil {
			t.Fatal(err)
		}
		d := fit.Details[*Details](result)
		steps, said := fit.Details[*train.Details](result).Steps, strings.Join(result.Warnings, "")
		if steps != want.steps || !strings.Contains(d.String(), want.left) || !strings.Contains(said, want.cut) ||
			(want.cut == "") != (said == "") {
			t.Errorf("of %v s: %d steps; %v; %q", seconds, steps, d, result.Warnings)
		}
	}
}

// A fold whose training is stopped after an epoch does not count as much as the one before, which is whole.
func TestCutFold(t *testing.T) {
	parts := dataset.Parts{Train: noisy(240, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	trainings := 0
	watched := run.Watched(ctx, func(p run.Progress, _ run.Machine) {
		if p.Stage == "training" && p.Step == 1 {
			trainings++
		}
		if trainings == 3 && p.Step == 5 { // the first fold has two; of three steps in an epoch
			cancel()
		}
	})
	s := run.Settings{Seed: 1, Engine: computetest.Go(t)}
	result, err := fit.Fit(watched, small(t, parts.Train), Method{Seconds: 1e6, plan: quick}, parts, s)
	if err != nil || fit.Details[*Details](result).Scored != 1 || trainings != 3 ||
		!strings.Contains(strings.Join(result.Warnings, ""), "1 of 2 folds count: the fit was stopped") {
		t.Fatalf("%+v, %v", result, err)
	}
	if n := fit.Details[*train.Details](result).Steps; n != 30 {
		t.Errorf("the training that counts has %d steps, want the 30 of the first fold", n)
	}
}

// Random numbers are each fold's own: no other fold of this seed has them, nor one of another seed.
func TestFoldSeeds(t *testing.T) {
	seen := map[uint64]string{}
	for seed := range uint64(20) {
		j := &fit.Job{Settings: run.Settings{Seed: seed}, Data: &fit.Data{}}
		for f := range 5 {
			of := onFold(j, dataset.Parts{}, f).Seed
			if before, ok := seen[of]; ok || of < 100 {
				t.Errorf("fold %d of seed %d has the seed %d, as %s", f, seed, of, before)
			}
			seen[of] = fmt.Sprintf("fold %d of seed %d", f, seed)
		}
	}
}

// From many rows on there is one split.
func TestManyRows(t *testing.T) {
	data := noisy(quick.manyRows, 1)
	s := run.Settings{Seed: 1, Engine: computetest.Go(t)}
	result, err := fit.Fit(t.Context(), small(t, data), Method{Seconds: 30, plan: quick}, dataset.Parts{Train: data}, s)
	if err != nil {
		t.Fatal(err)
	}
	if d := fit.Details[*Details](result); d.Scored != 1 || result.Posterior.Particles() < quick.members {
		t.Errorf("%+v of %d particles", d, result.Posterior.Particles())
	}
}

// ending is the result of these folds.
func ending(
	ctx context.Context, m Method, j *fit.Job, together *particles, details *Details, folds ...*fold,
) (*fit.Result, error) {
	return (&course{Method: m, job: j, folds: folds, details: details}).result(ctx, together, nil)
}

// probe is a method that trains and samples one fold, by a chain of a single step, and takes part of the draws.
type probe struct{ Method }

func (p probe) Prepare(j *fit.Job) (fit.Method, error) {
	m, err := p.Method.Prepare(j)
	if err != nil {
		return nil, err
	}
	return probe{m.(Method)}, nil
}

func (p probe) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	details := Details{Folds: 1}
	one, err := p.fold(ctx, onFold(j, j.Parts, 0), j.Parts, time.Hour, &details)
	if err != nil {
		return nil, err
	}
	details.Weight = .3
	alone := &fold{parts: one.parts, networks: one.networks, training: one.training}
	return ending(ctx, p.Method, j, nil, &details, one, alone)
}

// judgedFold judges one fold with draws, as the one of the result.
type judgedFold struct {
	probe
	t *testing.T
}

func (p judgedFold) Prepare(j *fit.Job) (fit.Method, error) {
	m, err := p.probe.Prepare(j)
	if err != nil {
		return nil, err
	}
	return judgedFold{m.(probe), p.t}, nil
}

func (p judgedFold) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	details := Details{Folds: 1, useless: p.plan.draws == 1}
	one, err := p.fold(ctx, onFold(j, j.Parts, 0), j.Parts, time.Hour, &details)
	if err != nil {
		return nil, err
	}
	if details.useless {
		if one.sampled != nil {
			p.t.Error("chains that add nothing are begun")
		}
		return ending(ctx, p.Method, j, nil, &details, one)
	}
	details.Weight, details.Prior = .3, .4
	result, err := ending(ctx, p.Method, j, nil, &details, one)
	if err != nil {
		return nil, err
	}
	rows := j.Parts.Validation
	prediction, err := result.Posterior.Predict(ctx, rows.X)
	if err != nil {
		return nil, err
	}
	nlpd, err := metric.NLPD(prediction, rows.Y)
	if err != nil {
		return nil, err
	}
	covered, err := metric.Coverage(prediction, rows.Y, .9)
	if err != nil {
		return nil, err
	}
	left, err := newLeft(j.Bound, []*fold{one}, &details)
	if err != nil {
		return nil, err
	}
	share, _, err := left.covered()
	if err != nil {
		return nil, err
	}
	own := nlpd.Value - details.leftOut([]*fold{one}).Value + left.gain
	if !(math.Abs(own) < 1e-4) || share != covered.Value {
		p.t.Errorf("rows left out: the fold's NLPD differs by %v; its intervals hold %v, want %v", own, share,
			covered.Value)
	}
	if share, err := shareOfAllRows([]*fold{one}, p.plan.draws-1, 4, p.plan.draws); share != 1 || err != nil {
		p.t.Errorf("draws given all rows that are nearly as good as more have the share %v (%v)", share, err)
	}
	floats.AddConst(1, one.sampled.density) // all draws are better than these few
	share, err = shareOfAllRows([]*fold{one}, p.plan.draws-1, 4, p.plan.draws)
	if want := 4 / (4 + 4*float64(p.plan.draws)); share != want || err != nil {
		p.t.Errorf("4 draws given all rows have the share %v, want %v (%v)", share, want, err)
	}
	details.compiled, details.step = time.Second, 1e6*time.Second // of 1e6
	together, err := p.sampleAll(ctx, j, []*fold{one}, p.seconds()-p.elapsed(j), &details)
	if together != nil || err != nil {
		p.t.Errorf("chains on all rows that cannot have a draw are begun (%v)", err)
	}
	return result, nil
}

// A fold is judged by the rows that it leaves out: its mixture's density and intervals are those of its particles as a
// posterior. Few draws given all rows join the others where left out rows lose by so few, and chains that add nothing,
// or cannot have a draw, are not begun.
func TestJudged(t *testing.T) {
	parts, of := oneFold(t)
	method := judgedFold{of.(probe), t}
	s := run.Settings{Seed: 1, Engine: computetest.Go(t)}
	for _, draws := range []int{9, 1} {
		method.plan.draws = draws
		if _, err := fit.Fit(t.Context(), small(t, parts.Train), method, parts, s); err != nil {
			t.Fatal(err)
		}
	}
}

// What folds warn of reaches the result, by fold and once for what is alike, as do intervals that hold too few.
func TestFoldDoubts(t *testing.T) {
	one := func(doubts ...fit.Doubt) *fold { return &fold{doubts: doubts} }
	in := func(text string) fit.Doubt { return fit.Doubt{Kind: "in", Text: text} }
	d := &Details{Folds: 5}
	for name, c := range map[string]struct {
		all    []*fold
		inside float64
		want   []string
	}{
		"none": {[]*fold{one(), one(), one()}, 361, nil},
		"alike": {[]*fold{one(in("in 5 steps")), one(), one(in("in 1e+03 steps"), fit.Doubt{Text: "other"},
			in("in 6 steps"))}, 358,
			[]string{"fold 1, 3: in 5 steps", "fold 3: other"}},
		"narrow": {[]*fold{one(), one()}, 280, []string{"90 % intervals hold 70 % of the targets of 400 validation rows"}},
		"wide":   {[]*fold{one(), one()}, 400, []string{"90 % intervals hold 100 % of the targets of 400 validation rows"}},
	} {
		got := Method{Seconds: 1}.doubtsOf(c.all, d, c.inside/400, 400).Sentences()
		for i, text := range c.want {
			if i >= len(got) || !strings.HasPrefix(got[i], text) {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A training's doubts are the fit's: its score still falls when all epochs are made.
func TestTrainingDoubts(t *testing.T) {
	data := noisy(300, 1)
	floats.Scale(1e-3, data.Y)
	for i := range data.Y {
		data.Y[i] += 20 * data.X.At(i, 0)
	}
	method := Method{Seconds: 1000, plan: quick}
	method.plan.epochs, method.plan.warmUp = 20, 1e8
	s := run.Settings{Seed: 1, Engine: computetest.Go(t)}
	result, err := fit.Fit(t.Context(), small(t, data), method, dataset.Parts{Train: data}, s)
	if err != nil || !strings.Contains(strings.Join(result.Warnings, "\n"), "fold 1, 2: the training ended too early") {
		t.Errorf("%q, %v", result.Warnings, err)
	}
}

// oneFold are rows, and a probe with four networks, each with two draws after a single step.
func oneFold(t *testing.T) (dataset.Parts, fit.Method) {
	t.Helper()
	parts, err := noisy(60, 1).Split(dataset.Fractions{Train: .7, Validation: .3}, 1)
	if err != nil {
		t.Fatal(err)
	}
	step := quick
	step.folds, step.members, step.warmUp, step.draws, step.thin = 1, 4, 1, 2, 1
	return parts, probe{Method{Seconds: 1e6, plan: step}}
}

// Of many rows the networks are trained with the prior if the left out rows have more density by it: where features say
// nothing a prior that keeps weights small is better, and one that is far from what the data ask for is not.
func TestPriorOfNetworks(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const rows, features = 400, 20
	data := &dataset.Dataset{Name: "wide", Target: "y", X: mat.NewDense(rows, features, nil)}
	for k := range features {
		data.Features = append(data.Features, fmt.Sprint("x", k))
	}
	for i := range rows {
		for k := range features {
			data.X.(*mat.Dense).Set(i, k, rng.NormFloat64())
		}
		data.Y = append(data.Y, 3*data.X.At(i, 0)+rng.NormFloat64())
	}
	parts, err := data.Split(dataset.Fractions{Train: .25, Validation: .75}, 1)
	if err != nil {
		t.Fatal(err)
	}
	method := Method{Seconds: 1000, plan: quick}
	method.plan.manyRows, method.plan.epochs, method.plan.warmUp = rows, 60, 1e8
	for stdDev, want := range map[float64]bool{.3: true, .001: false} {
		model := small(t, data)
		model.Prior = bayes.Normal{StdDev: stdDev}
		result, err := fit.Fit(t.Context(), model, method, parts, run.Settings{Seed: 2})
		if err != nil {
			t.Fatal(err)
		}
		if d := fit.Details[*Details](result); d.Prior > .5 != want {
			t.Errorf("prior of standard deviation %v: weight %v among the networks, want it large: %v", stdDev, d.Prior, want)
		}
	}
}

// Where the time that is left would not do for a draw, the networks are trained for longer, and take the place of the
// first if the left out rows have more density by them.
func TestLonger(t *testing.T) {
	data := noisy(600, 8)
	method := Method{Seconds: 1000, plan: quick}
	method.plan.passed, method.plan.epochs, method.plan.warmUp = 1, 160, 1e8 // 20 epochs, and 160 at most
	first := method
	first.plan.epochs = 20
	var steps []int
	for _, m := range []Method{first, method} {
		result, err := fit.Fit(t.Context(), small(t, data), m, dataset.Parts{Train: data}, run.Settings{Seed: 2})
		if err != nil {
			t.Fatal(err)
		}
		d := fit.Details[*Details](result)
		if !math.IsNaN(d.Draws.Value) {
			t.Error("there are draws")
		}
		steps = append(steps, fit.Details[*train.Details](result).Steps)
	}
	if steps[1] != 8*steps[0] {
		t.Errorf("%d steps, and of the longer training %d: want 8 times as many", steps[0], steps[1])
	}
}

// Chains begin at the networks, and networks and draws have the weights that they are to have, also of a fold without
// draws.
func TestParticles(t *testing.T) {
	parts, method := oneFold(t)
	s := run.Settings{Seed: 1, Engine: computetest.Go(t)}
	result, err := fit.Fit(t.Context(), small(t, parts.Train), method, parts, s)
	if err != nil {
		t.Fatal(err)
	}
	p := result.Posterior
	weights := p.LogWeights().Weights()
	if len(weights) != 16 || math.Abs(weights[0]-.7/8) > 1e-6 || math.Abs(weights[11]-.3/16) > 1e-6 ||
		math.Abs(weights[15]-1./8) > 1e-6 {
		t.Fatalf("weights %v", weights)
	}
	var apart [4][4]float64 // squared distance of each chain's first draw from each network
	for k := range p.Bound().D {
		values, err := p.Coordinate(k)
		if err != nil {
			t.Fatal(err)
		}
		for chain := range apart {
			for network := range apart {
				apart[chain][network] += math.Pow(values[4+2*chain]-values[network], 2)
			}
		}
	}
	for chain := range apart {
		if floats.MinIdx(apart[chain][:]) != chain {
			t.Errorf("the first draw of chain %d is at squared distances of %.2f from the networks", chain, apart[chain])
		}
	}
}

// onAllRows has the draws of sampleAll alone, after those of a fold.
type onAllRows struct{ probe }

func (p onAllRows) Prepare(j *fit.Job) (fit.Method, error) {
	m, err := p.probe.Prepare(j)
	if err != nil {
		return nil, err
	}
	return onAllRows{m.(probe)}, nil
}

func (p onAllRows) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	details := Details{Folds: 1}
	one, err := p.fold(ctx, onFold(j, j.Parts, 0), j.Parts, time.Hour, &details)
	if err != nil {
		return nil, err
	}
	details.Weight = 1
	together, err := p.sampleAll(ctx, j, []*fold{one}, p.seconds()-p.elapsed(j), &details)
	if err != nil {
		return nil, err
	}
	return ending(ctx, p.Method, j, together, &details, one)
}

// The last chains are given all rows: of a line through 15 rows of the training and 60 of the validation part they have
// the exact standard deviation of the slope, which given the former alone is 2.2 times as large, within a fifth (400
// draws, of which some hundred are effective: four standard errors).
func TestAllRows(t *testing.T) {
	rows := noisy(75, 1)
	x, sum := rows.X.(*mat.Dense), 0.
	for i := range rows.Y {
		rows.Y[i] = x.At(i, 0) + 2*rows.Y[i]
	}
	parts, err := rows.Split(dataset.Fractions{Train: .2, Validation: .8}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Prior: bayes.Normal{StdDev: 10}}
	plan := quick
	plan.folds, plan.warmUp, plan.draws, plan.thin = 1, 300, 100, 10
	method := onAllRows{probe{Method{Seconds: 1e6, plan: plan}}}
	result, err := fit.Fit(t.Context(), model, method, parts, run.Settings{Seed: 1, Engine: computetest.CPU(t)})
	if err != nil {
		t.Fatal(err)
	}
	slopes, _, err := result.Posterior.Parameter("layer1/weights")
	if err != nil {
		t.Fatal(err)
	}
	scaled, err := result.Posterior.Origin().Features.Apply(x)
	if err != nil {
		t.Fatal(err)
	}
	values := mat.Col(nil, 0, scaled)
	mean := stat.Mean(values, nil)
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	want, got := .5/math.Sqrt(sum), stat.StdDev(slopes, nil)
	if !(math.Abs(got/want-1) < .2) {
		t.Errorf("the slope's standard deviation is %.4f, want %.4f", got, want)
	}
	t.Logf("standard deviation %.4f, want %.4f, of %d draws", got, want, len(slopes))
}

// Chains have a prior as wide as one and a half times the weights of the first fold's networks, to the nearest power of
// two and no narrower than He's start; a prior of the user's stays.
func TestPriorOfChains(t *testing.T) {
	parts, method := oneFold(t)
	s := run.Settings{Seed: 1, Engine: computetest.Go(t)}
	for _, given := range []bayes.Prior{bayes.Normal{ByWidth: true}, bayes.Normal{StdDev: .7}} {
		model := small(t, parts.Train)
		model.Prior = given
		result, err := fit.Fit(t.Context(), model, method, parts, s)
		if err != nil {
			t.Fatal(err)
		}
		p := result.Posterior
		prior := p.Model().Prior.(bayes.Normal)
		if !given.(bayes.Normal).ByWidth {
			if prior.StdDev != .7 || prior.PerLayer != nil {
				t.Errorf("a prior N(0, .7^2) became %+v", prior)
			}
			continue
		}
		for layer, inputs := range []float64{1: 1, 2: 8} {
			if layer == 0 {
				continue
			}
			values, _, err := p.Parameter(fmt.Sprintf("layer%d/weights", layer))
			if err != nil {
				t.Fatal(err)
			}
			first := values[:4*len(values)/p.Particles()] // of the networks
			scale := max(1.5*floats.Norm(first, 2)/math.Sqrt(float64(len(first))), math.Sqrt(2/inputs))
			got := prior.PerLayer[layer]
			if math.Abs(math.Log2(got/scale)) > .5+1e-9 || math.Exp2(math.Round(math.Log2(got))) != got {
				t.Errorf("layer %d has the prior scale %v, where %.3f was to be rounded to a power of two", layer, got, scale)
			}
		}
	}
}
