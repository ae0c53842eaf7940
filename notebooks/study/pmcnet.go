package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/mnist"
	"gobnn/bayes/dataset/pictures"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"
	"gobnn/pmcnet/annealed"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/sampleuv"
)

// The experiments of Huang, Chouzenoux, Elvira and Pesquet 2023 (section 4): networks of one hidden layer on a
// control set, Ionosphere, Wine and Glass, networks of two on Protein and Naval. All tables and figures of one data
// set are made of the same repetitions.
//
// Where the paper is silent or its program departs from it:
//
//   - Splits are those of the authors' program where it has some (PMCnet), for Wine one of 6:2:2 by the repetition.
//     Features are standardised by the training part; their program standardises each part by its own statistics, with
//     which, and with class 0 as the positive one, its MLE rows are met exactly.
//   - The control network is drawn anew for each repetition, and the labels by its probabilities.
//   - The scale of the prior is searched by golden section on the validation part, where the paper has one, by the NLPD
//     of the predictive mean, and with PMCnet's tempered form: an accuracy has steps, and the printed algorithm's is
//     noise. It is one scale for all methods.
//   - SGLD's step anneals by (1 + t/100)^-0.55 from the package's default; the rates of dropout, the steps and the
//     epochs are the packages' defaults.
//   - Regressions have a Gaussian likelihood whose noise is learnt; the paper's is the mean squared error, without the
//     number of rows and a noise.

// pmcnetData is a data set of the paper.
type pmcnetData struct {
	name       string
	network    nn.Network
	likelihood bayes.Likelihood
	parts      func(repetition uint64) (dataset.Parts, error)
	scale      float64 // of the prior; 0: searched
	raw        bool    // features are not standardised
	iterations int     // T
	light      bool    // M = K = 20, and the paper's PMCnet-light instead of PMCnet
	curves     bool    // scores after each iteration are kept
	own, paper extent  // repetitions, and epochs of the others' training
	// Of pictures: how many rows there are of the three parts, by default and in the paper, and where they are from.
	reduced, whole pictureSize
	load           loader
	brought        bool // only where Options.Data names it, since the data are not part of the project
}

// sized is the data set with the pictures that are asked for; others stay as they are.
func (d pmcnetData) sized(o Options) pmcnetData {
	if d.load == nil {
		return d
	}
	size := d.reduced
	if o.Full {
		size = d.whole
	}
	d.reduced = size
	d.parts = func(repetition uint64) (dataset.Parts, error) { return size.parts(d.load, repetition) }
	return d
}

// shallow are the repetitions of the small networks, and the epochs of the others' training.
var shallow = extent{10, 200}

func controlData(rows int) pmcnetData {
	return pmcnetData{
		name: fmt.Sprintf("control %d", rows), network: nn.MLP{Hidden: []int{3}, Activation: nn.Tanh},
		likelihood: bayes.Bernoulli{}, scale: 2, raw: true, iterations: 20, curves: true,
		own: shallow, paper: shallow,
		parts: func(repetition uint64) (dataset.Parts, error) {
			return dataset.Parts{Train: drawControl(rows, repetition+1, 1), Test: drawControl(400, repetition+1, 2)}, nil
		},
	}
}

// read are the data sets that were read, by name: many rows of text take a second.
var read sync.Map

// load is dataset.Load, once for each data set, which nothing changes.
func load(name string) (*dataset.Dataset, error) {
	once, _ := read.LoadOrStore(name, sync.OnceValues(func() (*dataset.Dataset, error) { return dataset.Load(name) }))
	return once.(func() (*dataset.Dataset, error))()
}

// published is the authors' split of an embedded data set.
func published(name string) func(uint64) (dataset.Parts, error) {
	return func(uint64) (parts dataset.Parts, err error) {
		defer caught(&err)
		return must(load(name)).PublishedSplit(dataset.PMCnet, 0)
	}
}

// deepData is one of the regressions.
func deepData(name string) pmcnetData {
	return pmcnetData{
		name: name, network: nn.MLP{Hidden: []int{100, 100}, Activation: nn.ReLU}, likelihood: bayes.Gaussian{Learn: true},
		parts: published(name), scale: .1, iterations: 5, light: true, own: extent{5, 20}, paper: extent{5, 200},
	}
}

// pmcnetSets returns all data sets.
func pmcnetSets() []pmcnetData {
	tanh := func(units int) nn.MLP { return nn.MLP{Hidden: []int{units}, Activation: nn.Tanh} }
	return []pmcnetData{
		controlData(50), controlData(400), controlData(1600),
		{name: "ionosphere", network: tanh(5), likelihood: bayes.Bernoulli{}, parts: published("ionosphere"), iterations: 50,
			own: shallow, paper: shallow},
		{name: "wine", network: tanh(3), likelihood: bayes.Categorical{}, iterations: 50, curves: true,
			own: shallow, paper: shallow,
			parts: func(repetition uint64) (dataset.Parts, error) {
				return dataset.MustLoad("wine").Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, repetition)
			}},
		{name: "glass", network: tanh(10), likelihood: bayes.Categorical{}, parts: published("glass"), iterations: 70,
			curves: true, own: shallow, paper: shallow},
		deepData("protein"), deepData("naval"),
		pictureData("MNIST-C", nn.LeNet5(28, 28, 1), once(changed(digits, rotated)),
			pictureSize{45_000, 15_000, 10_000, extent{}}),
		pictureData("SVHN-G", nn.LeNet5(32, 32, 1), once(changed(pictures.SVHN, grey)),
			pictureSize{54_942, 18_315, 26_032, extent{}}),
		pictureData("CIFAR10", nn.ResNet20{Height: 32, Width: 32}, once(changed(pictures.CIFAR10, grey)),
			pictureSize{45_000, 5000, 10_000, extent{}}),
	}
}

// pictureData is one of the sets of pictures. SVHN and CIFAR-10 are not part of the project.
func pictureData(
	name string, network nn.Network, load loader, whole pictureSize,
) pmcnetData {
	d := pmcnetData{name: name, network: network, likelihood: bayes.Categorical{}, scale: .1, iterations: 20, light: true,
		own: extent{1, 10}, paper: extent{5, 200}, load: load, whole: whole, brought: name != "MNIST-C",
		reduced: pictureSize{2000, 500, 1000, extent{}}}
	if name == "CIFAR10" { // a particle's pass takes a hundred times LeNet-5's
		d.reduced, d.iterations, d.own.epochs = pictureSize{300, 100, 300, extent{}}, 3, 3
	}
	return d
}

// rotated is MNIST as the corruption "rotate" of MNIST-C has it.
func rotated(d *dataset.Dataset, part uint64) (*dataset.Dataset, error) {
	return pictures.Rotated(d, mnist.Side, mnist.Side, .4, part)
}

func grey(d *dataset.Dataset, _ uint64) (*dataset.Dataset, error) { return pictures.Grey(d) }

// changed are a set's parts, changed each by its number from 1.
func changed(load loader, change func(d *dataset.Dataset, part uint64) (*dataset.Dataset, error)) loader {
	return func() (train, test *dataset.Dataset, err error) {
		defer caught(&err)
		train, test, err = load()
		failOn(err)
		return must(change(train, 1)), must(change(test, 2)), nil
	}
}

// Methods, as the paper calls them, and ours: the paper's algorithm with tempered weights and a start from the prior,
// and annealed importance sampling, the form for networks.
const (
	pmcPaper    = "PMCnet"
	pmcGradFree = "PMCnet-gradfree"
	pmcCovFree  = "PMCnet-covfree"
	pmcDM       = "DM-PMC"
	pmcLight    = "PMCnet-light"
	pmcTempered = "tempered PMCnet"
	pmcAnnealed = "annealed"
)

// pmcnetMethod is a method with its settings on a data set.
type pmcnetMethod struct {
	name      string
	algorithm fit.Method // of pmcnet, annealed or baseline
}

// methods returns all methods for a data set.
func (d pmcnetData) methods() []pmcnetMethod {
	paper := pmcnet.PMC{Iterations: d.iterations, Resampling: pmcnet.GlocalEvery(2)}
	tempered := pmcnet.PMC{Iterations: 20, Start: pmcnet.FromPrior, StdDev: .5, Weights: pmcnet.Tempered,
		Resampling: pmcnet.GlocalEvery(2)}
	if !d.isControl() {
		tempered.Covariance = pmcnet.DiagonalCovariance // 100 draws of each proposal, 54 to 176 dimensions
	}
	light := paper
	light.Ascent, light.Covariance = pmcnet.MiniBatchAscent, pmcnet.DiagonalCovariance
	if d.light {
		light.Proposals, light.Draws, light.Noise, light.BatchSize = 20, 20, .02, 500
	}
	gradientFree, covarianceFree, dm := paper, paper, paper
	gradientFree.Ascent, covarianceFree.Covariance = pmcnet.NoAscent, pmcnet.FixedCovariance
	dm.Ascent, dm.Covariance = pmcnet.NoAscent, pmcnet.FixedCovariance
	others := []pmcnetMethod{
		{"MLE", baseline.MLE{}}, {"MAP", baseline.MAP{}}, {"BBP", baseline.VI{}},
		{"SGLD", baseline.SGLD{Offset: 100, Decay: .55, StepSize: d.annealed()}}, {"MCDropout", baseline.Dropout{}},
		{"SAE", baseline.SAE{}},
	}
	switch {
	case d.light:
		return append(others, pmcnetMethod{pmcLight, light})
	case d.isControl():
		others = nil
	}
	for _, m := range []pmcnetMethod{{pmcPaper, paper}, {pmcGradFree, gradientFree}, {pmcDM, dm}} {
		a := m.algorithm.(pmcnet.PMC)
		a.Weights = pmcnet.Floored
		others = append(others, pmcnetMethod{flooredName(m.name), a})
	}
	return append(others, []pmcnetMethod{
		{pmcPaper, paper}, {pmcGradFree, gradientFree}, {pmcCovFree, covarianceFree},
		{pmcDM, dm}, {pmcLight, light}, {pmcTempered, tempered},
		{pmcAnnealed, annealed.Annealed{SMC: smc.Tempered{Particles: 1000}, Bridge: annealed.NoBridge}},
	}...)
}

func (d pmcnetData) isControl() bool { return d.raw }

// annealed returns the StepSize of SGLD for which the annealed step at t = 0 is the package's default.
func (d pmcnetData) annealed() float64 {
	rows := d.reduced.train
	if d.load == nil {
		parts, err := d.parts(0)
		if err != nil {
			return 0 // the default; the caller that reads the data gets the error
		}
		rows = parts.Train.Rows()
	}
	return .02 / float64(rows) * math.Pow(100, .55)
}

func (d pmcnetData) model(scale float64) bayes.Model {
	return bayes.Model{Network: d.network, Likelihood: d.likelihood, Prior: bayes.Normal{StdDev: scale},
		Stochastic: bayes.All(), Scaling: bayes.Scaling{KeepFeatures: d.raw}}
}

// pmcnetVersion is part of the key of kept results: it changes when the code gives other numbers for the same settings.
const pmcnetVersion = 1

// pmcnetTrials returns the trials of some data sets and methods.
func pmcnetTrials(sets, methods []string) func(o Options) ([]*trial, error) {
	return func(o Options) (all []*trial, err error) {
		for _, d := range pmcnetSets() {
			if !slices.Contains(sets, d.name) {
				continue
			}
			d := d.sized(o)
			e := o.extent(d.own, d.paper)
			scales := make([]float64, e.reps)
			for _, m := range d.methods() {
				if !slices.Contains(methods, m.name) {
					continue
				}
				run := func(ctx context.Context, repetition int) (out Result, err error) {
					if scales[repetition] == 0 {
						scales[repetition] = d.priorScale(ctx, o, repetition)
					}
					r := pmcnetRun{pmcnetData: d, seed: uint64(repetition), epochs: e.epochs, say: o.say}
					return r.repetition(ctx, m, scales[repetition])
				}
				all = append(all, &trial{Key: d.key(m, e.epochs), reps: e.reps, run: run, extraSet: d.brought,
					paper: reportedIn("pmcnet", d.name)[m.name]})
			}
		}
		return all, nil
	}
}

func (d pmcnetData) key(m pmcnetMethod, epochs int) Key {
	settings := map[string]any{
		"version": pmcnetVersion, "model": d.model(1), "scale": d.scale, "method": fmt.Sprintf("%T", m.algorithm),
		"settings": m.algorithm, "epochs": epochs, "raw": d.raw,
	}
	if d.load != nil {
		settings["rows"] = []int{d.reduced.train, d.reduced.validation, d.reduced.test}
	}
	return Key{Study: "pmcnet", Data: d.name, Method: m.name, Settings: settings}
}

// The interval in which the scale of the prior is searched, and the number of fits.
const (
	scaleFrom, scaleTo = .05, 5
	scaleFits          = 7
)

// priorScale is the standard deviation of the prior: the data set's own, or that with the best NLPD on the validation
// part. The test part plays no role.
func (d pmcnetData) priorScale(ctx context.Context, o Options, repetition int) float64 {
	if d.scale > 0 {
		return d.scale
	}
	store := must(OpenStore(o))
	all := d.methods()
	m := all[slices.IndexFunc(all, func(m pmcnetMethod) bool { return m.name == pmcTempered })]
	key := d.key(m, 0)
	key.Method = "scale of the prior"
	found := must(store.once(ctx, key, repetition, repetition+1, func(ctx context.Context, _ int) (Result, error) {
		r := pmcnetRun{pmcnetData: d, seed: uint64(repetition), say: o.say}
		r.curves = false
		best := goldenSection(math.Log(scaleFrom), math.Log(scaleTo), scaleFits, func(log float64) float64 {
			f, parts, err := r.fit(ctx, m, math.Exp(log), nil)
			failOn(err)
			return must(metric.Of(ctx, f.posterior, parts.Validation))[0].Value
		})
		return Result{Values: map[string]float64{"scale": math.Exp(best.X), "NLPD": best.Value}}, nil
	}))
	return found.Values["scale"]
}

// pmcnetRun is one repetition of a data set.
type pmcnetRun struct {
	pmcnetData
	seed   uint64
	epochs int
	say    func(format string, args ...any)
}

// pmcnetFit is a fitted posterior, with k-hat, the effective sample size and the evidence where there are some.
type pmcnetFit struct {
	posterior *bayes.Posterior
	values    map[string]float64
	seconds   float64
}

// fit runs a method once; after each iteration of a PMC it calls observe, if set.
func (r pmcnetRun) fit(
	ctx context.Context, m pmcnetMethod, scale float64, observe func(step int, now *bayes.Posterior) error,
) (*pmcnetFit, dataset.Parts, error) {
	parts := must(r.parts(r.seed))
	given := dataset.Parts{Train: parts.Train, Validation: parts.Validation}
	method := withSettings(m.algorithm, baseline.Training{Epochs: r.epochs, BatchSize: r.batch(parts.Train.Rows())})
	model := r.model(scale)
	if _, masks := m.algorithm.(baseline.Dropout); masks {
		model.Stochastic = denseLayers(model, parts.Train)
	}
	begun := time.Now()
	result, err := fit.Fit(ctx, model, method, given, run.Settings{Seed: r.seed, Observe: observe})
	if err := ended(ctx, err); err != nil {
		return nil, parts, err // perhaps it diverged
	}
	f := &pmcnetFit{posterior: result.Posterior, values: map[string]float64{}}
	switch a := m.algorithm.(type) {
	case pmcnet.PMC, annealed.Annealed:
		said := f.posterior.Diagnostics()
		f.values["ESS"], f.values["k-hat"] = said[fit.ESSCurve], said[pmcnet.KHat]
		if p, ok := a.(pmcnet.PMC); ok && p.Weights == pmcnet.Floored {
			f.values["ESS of the weights"] = f.posterior.LogWeights().EffectiveSampleSize()
		}
	}
	f.seconds = time.Since(begun).Seconds()
	for _, w := range result.Warnings {
		r.say("%s, %s, repetition %d: %s", r.name, m.name, r.seed+1, w)
	}
	return f, parts, nil
}

// denseLayers are the network's dense layers, which are those that dropout can mask.
func denseLayers(model bayes.Model, data *dataset.Dataset) bayes.Partition {
	bound := must(model.Bind(data.Dims(), data.Outputs()))
	var dense []int
	for _, slot := range bound.Slots {
		if slot.Kind == nn.Weights && len(slot.Shape) == 2 {
			dense = append(dense, slot.Layer)
		}
	}
	return bayes.Layers(dense...)
}

// ended is the error of a fit; a cancelled one is no repetition.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("cancelled: %w", context.Cause(ctx))
	}
	return err
}

func (r pmcnetRun) batch(rows int) int {
	if r.light {
		return min(500, rows)
	}
	return min(50, rows)
}

// ROC curves are kept at these rates of false positives; regressions' squared errors at these quantiles.
const pmcnetPoints = 101

// repetition fits a method and scores it on the test part, by Algorithm 2: each score is of single draws, mean and
// standard deviation over R = 100 of them. "of the mean" are scores of the weighted predictive mean, and NLPD is.
func (r pmcnetRun) repetition(ctx context.Context, m pmcnetMethod, scale float64) (Result, error) {
	out := Result{Series: map[string][]float64{}}
	var observe func(int, *bayes.Posterior) error
	if _, ok := m.algorithm.(pmcnet.PMC); ok && r.curves {
		parts := must(r.parts(r.seed))
		observe = func(_ int, now *bayes.Posterior) error {
			p, err := now.Predict(ctx, parts.Test.X)
			if err != nil {
				return err
			}
			scores, err := metric.ScoreDraws(p, parts.Test.Y, 0)
			for _, s := range scores {
				if s.Name == "AUC" || s.Name == "accuracy" {
					out.Series[s.Name+" by iteration"] = append(out.Series[s.Name+" by iteration"], s.Mean())
				}
			}
			return err
		}
	}
	f, parts, err := r.fit(ctx, m, scale, observe)
	if errors.Is(err, baseline.ErrDiverged) || errors.Is(err, bayes.ErrZeroWeights) {
		r.say("%s, %s: %v", r.name, m.name, err)
		return diverged(), nil
	}
	failOn(err)
	out.Values = f.values
	out.Values["prior scale"] = scale
	p := must(f.posterior.Predict(ctx, parts.Test.X))
	if r.load != nil { // seconds of training and of a prediction that is compiled
		begun := time.Now()
		must(f.posterior.Predict(ctx, parts.Test.X))
		out.Values["training [s]"] = f.seconds
		out.Values["prediction of a row [ms]"] = 1000 * time.Since(begun).Seconds() / float64(parts.Test.Rows())
	}
	scorePMCnet(p, parts.Test, out)
	return out, nil
}

// scorePMCnet adds the scores of a prediction of the test part.
func scorePMCnet(p bayes.Prediction, test *dataset.Dataset, out Result) {
	scores := must(metric.ScoreDraws(p, test.Y, 0))
	for _, s := range scores {
		if s.Name == "NLPD" {
			continue
		}
		out.Values[s.Name], out.Values[s.Name+" std"] = s.Mean(), s.StdDev()
	}
	nlpd := must(metric.NLPD(p, test.Y))
	out.Values["NLPD"] = nlpd.Value
	if p.Task() == dataset.Regression {
		scoreRegression(p, test, out)
		return
	}
	accuracy := must(metric.Accuracy(p, test.Y))
	out.Values["accuracy of the mean"] = accuracy.Value
	labels := must(p.Labels())
	classes := p.Classes()
	confusion := make([]float64, classes*classes)
	for n, predicted := range labels {
		confusion[int(test.Y[n])*classes+predicted]++
	}
	out.Series["confusion"] = confusion
	if classes > 2 {
		return
	}
	curve := must(metric.ROCOf(p, test.Y))
	out.Values["AUC of the mean"] = curve.AUC()
	envelope := must(metric.ROCEnvelope(p, test.Y, pmcnetPoints))
	out.Series["ROC"] = envelope.Mean
	for _, b := range envelope.Bands {
		name := fmt.Sprintf("ROC %g %%", 100*b.Level)
		out.Series[name+" low"], out.Series[name+" high"] = b.Low, b.High
	}
	sampledOutputs(p, out)
}

// sampledOutputs keeps the probabilities of class 1 by R draws for the rows whose mean is nearest to .1, .4, .6 and .9
// (figure 5).
func sampledOutputs(p bayes.Prediction, out Result) {
	mean := must(p.Probabilities())
	rng := rand.New(rand.NewPCG(1, 5))
	by := sampleuv.NewWeighted(p.Weights, rng)
	var draws [][][]float64
	for range 100 {
		j, _ := by.Take()
		by.Reweight(j, p.Weights[j])
		one := must(p.Particle(j))
		each := must(one.Probabilities())
		draws = append(draws, each)
	}
	for k, near := range outputMeans {
		off := make([]float64, len(mean))
		for n := range mean {
			off[n] = math.Abs(mean[n][1] - near)
		}
		row := floats.MinIdx(off)
		name := fmt.Sprintf("outputs %d", k)
		for _, d := range draws {
			out.Series[name] = append(out.Series[name], d[row][1])
		}
	}
}

// scoreRegression adds the squared error of the mean, and the quantiles of the rows' squared errors.
func scoreRegression(p bayes.Prediction, test *dataset.Dataset, out Result) {
	mean := must(p.Mean())
	errors := make([]float64, len(mean))
	for n, m := range mean {
		errors[n] = (m - test.Y[n]) * (m - test.Y[n])
	}
	out.Values["MSE of the mean"] = floats.Sum(errors) / float64(len(errors))
	slices.Sort(errors)
	for k := range pmcnetPoints {
		out.Series["squared errors"] = append(out.Series["squared errors"], errors[k*(len(errors)-1)/(pmcnetPoints-1)])
	}
}

// timed is a repetition of table 11: the seconds of a fit for which all is compiled, and the milliseconds that a row's
// prediction takes.
func (r pmcnetRun) timed(ctx context.Context, m pmcnetMethod, scale float64) (Result, error) {
	_, _, err := r.fit(ctx, m, scale, nil) // compiles
	failOn(err)
	last, parts, err := r.fit(ctx, m, scale, nil)
	failOn(err)
	var seconds float64
	for range 2 {
		begun := time.Now()
		must(last.posterior.Predict(ctx, parts.Test.X))
		seconds = time.Since(begun).Seconds()
	}
	return Result{Values: map[string]float64{"training [s]": last.seconds,
		"prediction of a row [ms]": 1000 * seconds / float64(parts.Test.Rows())}}, nil
}
