package study

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/smc"
	"gobnn/ohsmc"
	"gobnn/pmcnet"
	"gobnn/pmcnet/annealed"
	"gobnn/viz"
)

// What a second buys: NLPD and coverage on Gal's splits of four regressions, for a network of one hidden layer whose
// noise is learnt, all weights stochastic, by PMCnet's default, tempered SMC, NUTS, OHSMC and deep ensembles of 1 to 50
// members. Each is fitted twice, and the second fit, for which all is compiled, is timed. A method is on the front
// where no other is at once faster and better.

// frontVersion is part of the key of kept results: it changes when the code gives other numbers for the same settings.
const frontVersion = 2

var frontSets = []string{"yacht", "energy", "concrete", "boston"}

const frontUnits = 10

// frontModel has the last layer of particles only where a method asks: OHSMC trains the others.
func frontModel(stochastic bayes.Partition) bayes.Model {
	return bayes.Model{Network: nn.MLP{Hidden: []int{frontUnits}, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{Learn: true}, Prior: bayes.Normal{StdDev: 1}, Stochastic: stochastic}
}

// frontMethod is a method with its settings.
type frontMethod struct {
	name      string
	algorithm any // a pmcnet.Algorithm, a baseline.Method or an ohsmc.Algorithm
	epochs    int
}

// frontMethods are all of them, trained for so many epochs where they are trained; full has as many moves and particles
// of SMC as is the default. PMCnet makes no bridge: it is a check of the evidence, which nothing here needs.
func frontMethods(epochs int, full bool) []frontMethod {
	sampling := smc.Settings{Particles: 200, MostMoves: 5}
	if full {
		sampling = smc.Settings{Particles: 2000}
	}
	all := []frontMethod{
		{"pmcnet", annealed.Annealed{Sampling: sampling, Bridge: annealed.NoBridge}, 0},
		{"tempered SMC", baseline.SMC{Sampling: sampling}, 0},
		{"NUTS", baseline.HMC{Kernel: mcmc.NUTS{MaxDepth: 7}, Sampling: mcmc.Settings{Chains: 4, Draws: 50, WarmUp: 75}},
			0},
		{"OHSMC", ohsmc.OpenHorizon{Kernel: mcmc.RandomWalk{Variance: .003}}, epochs},
		{"ensemble of 1", baseline.MAP{}, epochs},
	}
	for _, n := range []int{2, 5, 10, 20, 50} {
		all = append(all, frontMethod{fmt.Sprintf("ensemble of %d", n), baseline.Ensemble{Members: n}, epochs})
	}
	return all
}

func frontNames() (names []string) {
	for _, m := range frontMethods(1, false) {
		names = append(names, m.name)
	}
	return names
}

// frontTrainers keep compiled programs of one method.
type frontTrainers struct {
	pmcnetTrainers
	partial *ohsmc.Trainer
}

// fit is one fit of a method: Gal's splits have no validation part, so a tenth of the training part is it for those
// that are trained.
func (t frontTrainers) fit(
	ctx context.Context, m frontMethod, parts dataset.Parts, seed uint64,
) (posterior *bayes.Posterior, seconds float64, err error) {
	begun := time.Now()
	apart, err := parts.Train.Split(dataset.Fractions{Train: .9, Validation: .1}, seed)
	if err != nil {
		return nil, 0, err
	}
	batch := min(50, apart.Train.Rows())
	switch a := m.algorithm.(type) {
	case pmcnet.Algorithm:
		result, err := t.own.Fit(ctx, a, dataset.Parts{Train: parts.Train}, pmcnet.Settings{Seed: seed})
		if err := ended(ctx, err); err != nil {
			return nil, 0, err
		}
		posterior = result.Posterior
	case baseline.Method:
		data := apart
		if m.epochs == 0 { // nothing is trained
			data = dataset.Parts{Train: parts.Train}
		}
		result, err := t.rivals.Fit(ctx, a, data, baseline.Settings{Seed: seed, Epochs: m.epochs, BatchSize: batch})
		if err := ended(ctx, err); err != nil {
			return nil, 0, err
		}
		posterior = result.Posterior
	case ohsmc.Algorithm:
		result, err := t.partial.Fit(ctx, a, apart, ohsmc.Settings{Seed: seed, Epochs: m.epochs, BatchSize: batch,
			Particles: 500, ValidateEvery: (apart.Train.Rows() + batch - 1) / batch})
		if err := ended(ctx, err); err != nil {
			return nil, 0, err
		}
		posterior = result.Posterior
	default:
		return nil, 0, fmt.Errorf("study: %T is no method of pmcnet.calibration", a)
	}
	return posterior, time.Since(begun).Seconds(), nil
}

// frontOf is a repetition: Gal's split of that number.
func frontOf(
	ctx context.Context, t frontTrainers, m frontMethod, data *dataset.Dataset, split int, warm *bool,
) (Result, error) {
	parts, err := data.PublishedSplit(dataset.Gal, split)
	if err != nil {
		return Result{}, err
	}
	if !*warm {
		if _, _, err := t.fit(ctx, m, parts, uint64(split)); err != nil {
			return Result{}, err
		}
		*warm = true
	}
	posterior, seconds, err := t.fit(ctx, m, parts, uint64(split))
	if err != nil {
		return Result{}, err
	}
	p, err := posterior.Predict(ctx, parts.Test.X)
	if err != nil {
		return Result{}, err
	}
	out := Result{Values: map[string]float64{"seconds of a fit": seconds}}
	for name, score := range map[string]func(bayes.Prediction, []float64) (metric.Estimate, error){
		"NLPD": metric.NLPD, "RMSE": metric.RMSE,
		"coverage of 90 %": func(p bayes.Prediction, y []float64) (metric.Estimate, error) {
			return metric.Coverage(p, y, .9)
		},
	} {
		e, err := score(p, parts.Test.Y)
		if err != nil {
			return Result{}, err
		}
		out.Values[name] = e.Value
	}
	out.Series, err = calibrationOf(p, parts.Test.Y)
	return out, err
}

// frontFigure is a panel for each data set: NLPD against the seconds of a fit, in logs, a point with a bar of two
// standard errors for each method; the ensembles are one line.
func frontFigure(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	sets, methods, store, err := o.open(frontSets, frontNames())
	if err != nil {
		return nil, nil, err
	}
	e := o.extent(extent{2, 200}, extent{20, 200})
	var panels []*viz.Figure
	var cells []Cell
	for _, name := range frontSets {
		if !slices.Contains(sets, name) {
			continue
		}
		var points []frontPoint
		for _, m := range frontMethods(e.epochs, o.Full) {
			if !slices.Contains(methods, m.name) {
				continue
			}
			results, key, err := frontRepeat(ctx, store, m, name, e.reps)
			some := Cells(key, results, nil)
			cells = append(cells, some...)
			if err != nil {
				return nil, cells, err
			}
			points = append(points, newFrontPoint(m.name, some))
		}
		cells = append(cells, onFront(name, points)...)
		fig, err := viz.Traces(frontTraces(points), viz.TraceOptions{Outlines: true, LogX: true, Frame: viz.Frame{
			Title: shown(name), XLabel: "time of a fit [s]", YLabel: "test NLPD [nats per row]", Width: 410, Height: 400}})
		if err != nil {
			return nil, cells, err
		}
		panels = append(panels, fig)
	}
	fig, err := viz.Grid(viz.GridOptions{Columns: min(2, len(panels)), SharedX: true}, panels...)
	return fig, cells, err
}

func frontRepeat(ctx context.Context, store *Store, m frontMethod, name string, reps int) ([]Result, Key, error) {
	data, err := dataset.Load(name)
	if err != nil {
		return nil, Key{}, err
	}
	stochastic := bayes.All()
	if _, ok := m.algorithm.(ohsmc.Algorithm); ok {
		stochastic = bayes.Layers(1)
	}
	model := frontModel(stochastic)
	t := frontTrainers{newPMCnetTrainers(model), ohsmc.NewTrainer(model)}
	defer t.close()
	defer t.partial.Close()
	key := Key{Study: "pmcnet.calibration", Data: name, Method: m.name, Settings: map[string]any{"version": frontVersion,
		"model": model, "data": data.Hash(), "method": keptMethod(m.algorithm), "settings": keptSettings(m.algorithm),
		"epochs": m.epochs}}
	warm := false
	results, err := store.Repeat(ctx, key, reps, func(ctx context.Context, split int) (Result, error) {
		return frontOf(ctx, t, m, data, split, &warm)
	})
	return results, key, err
}

// frontPoint is where a method stands.
type frontPoint struct {
	name              string
	seconds, nlpd, se float64
}

func newFrontPoint(name string, cells []Cell) frontPoint {
	p := frontPoint{name: name}
	for _, c := range cells {
		switch c.Metric {
		case "NLPD":
			if p.nlpd = c.Ours; !math.IsNaN(c.SE) {
				p.se = c.SE
			}
		case "seconds of a fit":
			p.seconds = c.Ours
		}
	}
	return p
}

// onFront says of each method whether none is at once faster and better (1) or some is (0).
func onFront(data string, points []frontPoint) (cells []Cell) {
	for _, p := range points {
		c := Cell{Study: "pmcnet.calibration", Data: data, Method: p.name, Metric: "on the front", Ours: 1, SE: math.NaN(),
			Reps: 1}
		for _, q := range points {
			if q.seconds < p.seconds && q.nlpd < p.nlpd {
				c.Ours = 0
			}
		}
		cells = append(cells, c)
	}
	return cells
}

// frontTraces are a trace for each method, and one for all ensembles together.
func frontTraces(points []frontPoint) (traces []viz.Trace) {
	ensembles := viz.Trace{Name: "ensembles of 1 to 50"}
	for _, p := range points {
		t := &ensembles
		switch p.name {
		case "pmcnet", "tempered SMC", "NUTS", "OHSMC":
			traces = append(traces, viz.Trace{Name: p.name})
			t = &traces[len(traces)-1]
		}
		t.Step, t.Value, t.Error = append(t.Step, p.seconds), append(t.Value, p.nlpd), append(t.Error, 2*p.se)
	}
	if ensembles.Step != nil {
		traces = append(traces, ensembles)
	}
	return traces
}
