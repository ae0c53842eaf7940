package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/fbnn"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// What surrogates buy that leave the answer exact: samplers of one posterior at equal evaluations of it. The data are
// those of an independent study (in JAX), to be had again from the seed of numpy's generator: y = f(x) + .3 eps, x ~
// N(0, I_10), f a tanh network whose weights are of the prior N(0, 1); of two hidden layers the second one's weights
// are multiplied by .3.

// surrogateCase is a network, its number of rows and its seed.
type surrogateCase struct {
	hidden     []int
	activation nn.Activation
	rows       int
	seed       uint64
}

const (
	surrogateInputs, surrogateTests = 10, 50
	surrogateNoise                  = .3
	surrogateSeed                   = 18
)

func (c surrogateCase) name() string {
	name := strconv.Itoa(surrogateInputs) + "-"
	for _, units := range c.hidden {
		name += strconv.Itoa(units) + "-"
	}
	name += "1"
	if c.activation == nn.ReLU {
		name += " ReLU"
	}
	name += fmt.Sprintf(", N = %d", c.rows)
	if c.seed != surrogateSeed {
		name += fmt.Sprintf(", seed %d", c.seed)
	}
	return name
}

// surrogateCases are the study's own.
func surrogateCases() []surrogateCase {
	return []surrogateCase{
		{[]int{10}, nn.Tanh, 10_000, surrogateSeed}, {[]int{10}, nn.Tanh, 100_000, surrogateSeed},
		{[]int{50, 10}, nn.Tanh, 10_000, surrogateSeed},
	}
}

func (c surrogateCase) model() bayes.Model {
	return bayes.Model{
		Network:    nn.MLP{Hidden: c.hidden, Activation: c.activation},
		Likelihood: bayes.Gaussian{StdDev: surrogateNoise}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}
}

// data are the rows, the test rows and the weights that made them, laid out as a network's here: of each layer the
// weights, [out, in], and the biases. In float32, as the reference's.
func (c surrogateCase) data() (rows *dataset.Dataset, test *mat.Dense, truth []float64) {
	r := newNumpyNormals(c.seed)
	type layer struct {
		weights, biases []float64
		in, out         int
	}
	var layers []layer
	in := surrogateInputs
	for k, out := range append(slices.Clone(c.hidden), 1) {
		l := layer{r.normals(in * out), r.normals(out), in, out}
		if k == 1 && len(c.hidden) > 1 {
			for i := range l.weights {
				l.weights[i] *= .3
			}
		}
		for o := range out {
			for i := range in {
				truth = append(truth, l.weights[i*out+o])
			}
		}
		truth, layers, in = append(truth, l.biases...), append(layers, l), out
	}
	single := func(x []float64) []float64 {
		for i, v := range x {
			x[i] = float64(float32(v))
		}
		return x
	}
	test = mat.NewDense(surrogateTests, surrogateInputs, single(r.normals(surrogateTests*surrogateInputs)))
	x := r.normals(c.rows * surrogateInputs)
	y := r.normals(c.rows)
	for n := range y {
		h := x[n*surrogateInputs : (n+1)*surrogateInputs]
		for k, l := range layers {
			next := slices.Clone(l.biases)
			for i, v := range h {
				for o := range next {
					next[o] += v * l.weights[i*l.out+o]
				}
			}
			for o, v := range next {
				switch {
				case k == len(layers)-1:
				case c.activation == nn.ReLU:
					next[o] = max(0, v)
				default:
					next[o] = math.Tanh(v)
				}
			}
			h = next
		}
		y[n] = h[0] + surrogateNoise*y[n]
	}
	rows = &dataset.Dataset{Name: c.name(), Task: bayes.Regression, X: mat.NewDense(c.rows, surrogateInputs, single(x)),
		Y: single(y), Target: "y"}
	for k := range surrogateInputs {
		rows.Features = append(rows.Features, fmt.Sprintf("x%d", k+1))
	}
	return rows, test, truth
}

// The samplers.
const (
	rawHMC        = "HMC, raw coordinates"
	rawNUTS       = "NUTS"
	whitenedSplit = "S0: whitened split HMC"
	onSurrogate   = "S1: on a surrogate"
	delayedCheap  = "S2: delayed acceptance"
	byCES         = "FBNN"
)

var surrogateMethods = []string{rawHMC, rawNUTS, whitenedSplit, onSurrogate, delayedCheap, byCES}

const surrogatesNote = "not in the paper; the data of an independent study from its seed, whose numbers stand " +
	"where the paper's would; ESS of f at 50 test rows, the smaller of that of f and of (f - mean)^2, at most the " +
	"draws, for 24 000 full forwards (of two hidden layers 6000) of each sampler after its warm-up (-full: 100 000, " +
	"and a third case of 100 000 rows): a gradient counts 3, a part of the rows its share. S0 is the best of five " +
	"steps. S1 takes the rows m that the pilot chooses, or where it says no the best that it tried, or a tenth; " +
	"\"pays\" is 1 where it says yes. S2 makes one step on the same surrogate between two evaluations; FBNN is the " +
	"default of the package; there is no effective size where a chain has fewer than four draws. \"Pilot's share\" is " +
	"what the pilot costs of S0 with its steps at the defaults, 1000 draws of 4 chains after 1000 transitions. -rows " +
	"30000 -hidden 10 -seed 18: any other case"

// surrogateReported are the independent study's effective sizes of the median f in 1000 forwards, of 10-10-1.
var surrogateReported = map[string]map[string]float64{
	"10-10-1, N = 10000":  {rawHMC: 1.5, whitenedSplit: 98, onSurrogate: 161, delayedCheap: 65},
	"10-10-1, N = 100000": {whitenedSplit: 167, onSurrogate: 637, delayedCheap: 568},
}

// Metrics of the table.
const (
	essOfEvaluations = "ESS of the median f in 1000 forwards"
	essOfSeconds     = "ESS of the median f a second"
)

var surrogateMetrics = []string{essOfEvaluations, "ratio to S0", "ESS of the least f in 1000 forwards", essOfSeconds,
	"ratio to S0 in seconds", "acceptance", "forwards", "draws", "pays", "m/N", "s", "|z|^2/D", "set-up [s]",
	"pilot's share", "pilot's share of seconds"}

// surrogateVersion is part of the key of kept results: it changes when the code gives other numbers for the same
// settings.
const surrogateVersion = 4

// surrogatesAsked are the cases that the options ask for.
func surrogatesAsked(o Options) ([]surrogateCase, error) {
	if o.Epochs > 0 || o.Precisions {
		return nil, fmt.Errorf("fbnn.surrogates trains nothing and has no precisions: leave out -epochs and -precisions")
	}
	if len(o.Hidden) == 0 && o.Rows == 0 && o.Seed == 0 && o.Activation == "" {
		cases := surrogateCases()
		var known, few []string
		for _, c := range cases {
			known = append(known, c.name())
			if c.rows <= 10_000 || o.Full {
				few = append(few, c.name())
			}
		}
		if len(o.Data) == 0 {
			o.Data = few
		}
		names, err := o.Select(known)
		return slices.DeleteFunc(cases, func(c surrogateCase) bool { return !slices.Contains(names, c.name()) }), err
	}
	if len(o.Data) > 0 {
		return nil, fmt.Errorf("-data %v and -rows, -hidden or -seed: name the case by one of them", o.Data)
	}
	activation, err := activationNamed(o.Activation)
	if err != nil {
		return nil, err
	}
	c := surrogateCase{hidden: o.Hidden, activation: activation, rows: cmp.Or(o.Rows, 10_000),
		seed: cmp.Or(o.Seed, surrogateSeed)}
	if len(c.hidden) == 0 {
		c.hidden = []int{10}
	}
	if c.rows < 100 {
		return nil, fmt.Errorf("-rows %d: take at least 100, of which a surrogate has a part", c.rows)
	}
	return []surrogateCase{c}, nil
}

// runSurrogates is the table.
func runSurrogates(ctx context.Context, o Options) ([]Cell, error) {
	cases, err := surrogatesAsked(o)
	if err != nil {
		return nil, err
	}
	methods, err := o.SelectMethods(surrogateMethods)
	if err != nil {
		return nil, err
	}
	store, err := OpenStore(o)
	if err != nil {
		return nil, err
	}
	var cells []Cell
	for _, c := range cases {
		budget := 24_000
		switch {
		case o.Full:
			budget = 100_000
		case len(c.hidden) > 1:
			budget = 6000
		}
		run := &surrogateRun{surrogateCase: c, budget: budget, say: o.say}
		var rows []fbnnRow
		for _, m := range methods {
			key := Key{Study: "fbnn.surrogates", Data: c.name(), Method: m, Settings: map[string]any{
				"version": surrogateVersion, "model": c.model(), "rows": c.rows, "seed": c.seed, "budget": budget,
			}}
			if m == rawHMC || m == rawNUTS {
				key.Settings.(map[string]any)["warm-up"] = rawWarmUp
			}
			results, err := store.Repeat(ctx, key, max(1, o.Reps), func(ctx context.Context, repetition int) (Result, error) {
				return run.repetition(ctx, m, uint64(repetition))
			})
			reported := map[string]Reported{}
			if v, ok := surrogateReported[c.name()][m]; ok {
				reported[essOfEvaluations] = Reported{Value: v}
			}
			rows = append(rows, fbnnRow{m, Cells(key, results, reported)})
			if err != nil {
				return append(cells, cellsOf(rows, surrogateMetrics)...), err
			}
		}
		withRatio(rows, whitenedSplit, essOfEvaluations, "ratio to S0", nil)
		withRatio(rows, whitenedSplit, essOfSeconds, "ratio to S0 in seconds", nil)
		cells = append(cells, cellsOf(rows, surrogateMetrics)...)
	}
	return cells, nil
}

// surrogateRun samples one case; what all samplers need of it is made once.
type surrogateRun struct {
	surrogateCase
	budget int // full forwards
	say    func(format string, args ...any)

	rows    *dataset.Dataset
	test    *mat.Dense
	truth   []float64
	fitted  *fit.Data
	engine  *compute.Engine
	problem mcmc.Problem
	white   *mcmc.Whitening
	pilot   *mcmc.Pilot
	setUp   time.Duration
}

// The chains, and the transitions in which kernels in raw coordinates find their step.
const (
	surrogateChains = 4
	rawWarmUp       = 60
)

// prepare makes the data, the mode, its coordinates and the pilot.
func (r *surrogateRun) prepare(ctx context.Context) (err error) {
	if r.pilot != nil {
		return nil
	}
	r.rows, r.test, r.truth = r.data()
	if r.engine, err = r.engine.Or(); err != nil {
		return err
	}
	if r.fitted, err = fit.New("study", r.model(), dataset.Parts{Train: r.rows}); err != nil {
		return err
	}
	x, y, err := r.fitted.Tensors(compute.Float32, r.rows)
	if err != nil {
		return err
	}
	if r.problem, err = density.NewProblem(r.engine, r.fitted.Bound, x, y, nil, surrogateChains, 1); err != nil {
		return err
	}
	began := time.Now()
	mode, err := mcmc.FindMode(ctx, r.problem, mcmc.ModeSettings{Start: r.truth, Engine: r.engine})
	if err != nil {
		return err
	}
	if r.white, err = mcmc.NewWhitening(ctx, r.problem, mode, mcmc.WhiteningSettings{Engine: r.engine}); err != nil {
		return err
	}
	r.pilot, err = mcmc.NewPilot(ctx, r.problem, r.white, mcmc.PilotSettings{Engine: r.engine, Seed: 1})
	r.setUp = time.Since(began)
	if errors.Is(err, mcmc.ErrStuck) { // as with ReLU, whose units' scales are free: the samplers show it
		r.say("%s: surrogate off: %v", r.name(), err)
		r.pilot, err = &mcmc.Pilot{Target: mcmc.SplitHMC{StepSize: .1, Steps: 6}}, nil
	} else if err == nil {
		r.say("%s: %v", r.name(), r.pilot)
	}
	return err
}

// surrogateRows are the rows of the surrogate: the pilot's, or the best that it tried, or a tenth.
func (r *surrogateRun) surrogateRows() int {
	if r.pilot.Rows > 0 {
		return r.pilot.Rows
	}
	best := mcmc.PilotTrial{Rows: r.surrogateCase.rows / 10}
	for _, t := range r.pilot.Tried {
		if t.Gain > best.Gain {
			best = t
		}
	}
	return best.Rows
}

// repetition runs one sampler. One that stands still has no effective draws.
func (r *surrogateRun) repetition(ctx context.Context, method string, seed uint64) (Result, error) {
	if err := r.prepare(ctx); err != nil {
		return Result{}, err
	}
	out := Result{Values: map[string]float64{"set-up [s]": r.setUp.Seconds()}}
	if r.pilot.States > 0 {
		out.Values["|z|^2/D"] = r.pilot.Spread
		out.Values["pilot's share"] = r.pilot.Cost.Forwards() / float64(3*r.byDefault())
	}
	out.Values["pays"] = 0
	if r.pilot.Rows > 0 {
		out.Values["pays"] = 1
	}
	err := r.sample(ctx, method, seed, out.Values)
	if errors.Is(err, mcmc.ErrStuck) {
		r.say("%s, %s: %v", r.name(), method, err)
		out.Values["acceptance"], out.Values[essOfEvaluations], out.Values[essOfSeconds] = 0, 0, 0
		return out, nil
	}
	return out, ended(ctx, err)
}

func (r *surrogateRun) sample(ctx context.Context, method string, seed uint64, values map[string]float64) error {
	settings := mcmc.Settings{Chains: surrogateChains, WarmUp: 50, Seed: seed, Engine: r.engine}
	switch method {
	case rawHMC:
		const steps = 30
		settings.WarmUp, settings.FixedScale, settings.Draws = rawWarmUp, true, r.budget/(3*steps*surrogateChains)
		return r.chains(ctx, r.atMode(), mcmc.HMC{Steps: steps, Jitter: .2}, settings, values)
	case rawNUTS:
		settings.WarmUp = rawWarmUp
		return r.chains(ctx, r.atMode(), mcmc.NUTS{MaxDepth: 7}, settings, values)
	case whitenedSplit:
		return r.best(ctx, settings, values)
	case byCES:
		return r.emulated(ctx, seed, values)
	}
	m := r.surrogateRows()
	share := float64(m) / float64(r.surrogateCase.rows)
	part, err := r.problem.Part(m, r.white.Mode)
	if err != nil {
		return err
	}
	on, err := r.white.WithSurrogate(ctx, r.engine, r.problem, part, surrogateChains, compute.Float32, seed)
	if err != nil {
		return err
	}
	values["m/N"] = share
	for _, t := range r.pilot.Tried {
		if t.Rows == m {
			values["s"] = t.SD
		}
	}
	var kernel mcmc.Kernel = mcmc.SplitHMC{StepSize: .75 / 1.1, Steps: 2, Jitter: .1, OnSurrogate: true, Share: share}
	cost := 1 + 6*share
	if method == delayedCheap {
		kernel = mcmc.DelayedAcceptance{Share: share, Inner: mcmc.SplitHMC{StepSize: 1.2, Steps: 1, Whitening: r.white}}
		cost = 1 + 4*share
	}
	settings.Draws = int(float64(r.budget) / cost / surrogateChains)
	return r.chains(ctx, on, kernel, settings, values)
}

// byDefault is how many gradients S0 takes with the pilot's steps at the default numbers of chains, draws and
// transitions before them.
func (r *surrogateRun) byDefault() int { return (1000 + 1000) * surrogateChains * r.pilot.Target.Steps }

// atMode is the posterior with chains that begin at its mode.
func (r *surrogateRun) atMode() mcmc.Problem {
	problem := r.problem
	var start []float64
	for range surrogateChains {
		start = append(start, r.white.Mode...)
	}
	problem.Start = compute.Floats(compute.Float32, start, surrogateChains, len(r.white.Mode))
	return problem
}

// best is whitened split HMC of the best of five steps, which short runs tell.
func (r *surrogateRun) best(ctx context.Context, settings mcmc.Settings, values map[string]float64) error {
	on, err := r.white.On(r.problem, surrogateChains, compute.Float32, settings.Seed)
	if err != nil {
		return err
	}
	var kernel mcmc.SplitHMC
	most := -1.
	for _, k := range []mcmc.SplitHMC{{StepSize: math.Pi / 2, Steps: 1}, {StepSize: 1.2, Steps: 1},
		{StepSize: .75, Steps: 2}, {StepSize: .5, Steps: 3}, r.pilot.Target} {
		k.Whitening = nil
		settings.Draws = max(50, r.budget/5/(3*k.Steps*surrogateChains))
		trial := map[string]float64{}
		if err := r.chains(ctx, on, k, settings, trial); err != nil && !errors.Is(err, mcmc.ErrStuck) {
			return err
		}
		if v := trial[essOfEvaluations]; v > most {
			most, kernel = v, k
		}
	}
	r.say("%s, %s: steps of %.3g, %d a trajectory", r.name(), whitenedSplit, kernel.StepSize, kernel.Steps)
	settings.Draws = r.budget / (3 * kernel.Steps * surrogateChains)
	if err := r.chains(ctx, on, kernel, settings, values); err != nil || r.pilot.States == 0 {
		return err
	}
	aGradient := values["seconds"] * 3 / values["forwards"]
	values["pilot's share of seconds"] = r.pilot.Elapsed.Seconds() / (aGradient * float64(r.byDefault()))
	return nil
}

// chains samples, for Draws, or where there are none for the budget, and judges the draws.
func (r *surrogateRun) chains(
	ctx context.Context, problem mcmc.Problem, kernel mcmc.Kernel, settings mcmc.Settings, values map[string]float64,
) error {
	var result *mcmc.Result
	var err error
	if settings.Draws > 0 {
		result, err = mcmc.Sample(ctx, problem, kernel, settings)
	} else {
		result, err = sampleMoves(ctx, problem, kernel, settings, r.budget/(3*settings.Chains))
	}
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	accepted := 0.
	for _, c := range result.Stats {
		accepted += c.Acceptance / float64(len(result.Stats))
	}
	values["acceptance"] = accepted
	posterior, err := r.fitted.Posterior(bayes.Draws{Phi: result.Draws.Tensor(), Chains: settings.Chains,
		LogWeights: bayes.EqualLogWeights(settings.Chains * result.Draws.PerChain)},
		bayes.Provenance{Algorithm: "study", Status: string(result.Status), Seed: settings.Seed}, r.engine)
	if err != nil {
		return err
	}
	return r.judge(ctx, posterior, result.Evaluations, result.Sampling, values)
}

// sampleMoves samples for so many moves after the warm-up, of kernels that choose how many a transition takes.
func sampleMoves(
	ctx context.Context, problem mcmc.Problem, kernel mcmc.Kernel, settings mcmc.Settings, moves int,
) (*mcmc.Result, error) {
	settings.Draws = moves // more than there can be
	made := 0
	for at, err := range mcmc.Steps(ctx, problem, kernel, settings) {
		if err != nil {
			return nil, err
		}
		if at.Stage != "warm-up" {
			made++
		}
		if made == moves {
			return at.Result(), nil
		}
	}
	return nil, fmt.Errorf("study: %T ended after %d of %d moves", kernel, made, moves)
}

// emulated is package fbnn's default.
func (r *surrogateRun) emulated(ctx context.Context, seed uint64, values map[string]float64) error {
	began := time.Now()
	result, err := fbnn.Fit(ctx, r.model(), fbnn.CES{Chains: surrogateChains, Draws: r.budget / surrogateChains},
		dataset.Parts{Train: r.rows}, fbnn.Settings{Seed: seed})
	if err := ended(ctx, err); err != nil {
		return err
	}
	for _, w := range result.Warnings {
		r.say("%s, %s: %s", r.name(), byCES, w)
	}
	values["acceptance"] = result.SecondStage
	return r.judge(ctx, result.Posterior, result.Evaluations, time.Since(began), values)
}

// fewestJudged are the draws of a chain that an effective size needs: it is cut into halves.
const fewestJudged = 4

// judge adds effective sizes of f at the test rows, for what they took, unless there are too few draws.
func (r *surrogateRun) judge(
	ctx context.Context, posterior *bayes.Posterior, spent mcmc.Evaluations, elapsed time.Duration,
	values map[string]float64,
) error {
	p, err := posterior.Predict(ctx, r.test)
	if err != nil {
		return err
	}
	forwards := spent.Forwards()
	values["forwards"], values["draws"], values["seconds"] = forwards, float64(p.Particles), elapsed.Seconds()
	sizes, err := functionESS(p)
	if err != nil {
		return err
	}
	if sizes == nil {
		r.say("%s: %d draws of %d chains for %.0f forwards: too few for an effective size, which is left out", r.name(),
			p.Particles, p.Chains, forwards)
		return nil
	}
	median := stat.Quantile(.5, stat.LinInterp, sizes, nil)
	values[essOfEvaluations] = 1000 * median / forwards
	values["ESS of the least f in 1000 forwards"] = 1000 * sizes[0] / forwards
	values[essOfSeconds] = median / elapsed.Seconds()
	return nil
}

// functionESS are, for each row in ascending order, the smaller ESS of q = f and of (q - mean)^2, at most the number of
// draws; nil if the chains have too few draws.
func functionESS(p bayes.Prediction) ([]float64, error) {
	if p.Particles/p.Chains < fewestJudged {
		return nil, nil
	}
	var sizes []float64
	for row := range p.Rows {
		q := make([]float64, p.Particles)
		for j := range q {
			q[j] = p.Outputs[(j*p.Rows+row)*p.Width]
		}
		if constant(q, 0, 1) {
			sizes = append(sizes, 0)
			continue
		}
		mean := stat.Mean(q, nil)
		values := make([]float64, 0, 2*len(q))
		for _, v := range q {
			values = append(values, v, (v-mean)*(v-mean))
		}
		c, err := diag.New(diag.Sample{Values: values, Chains: p.Chains, Draws: len(q) / p.Chains, Parameters: 2})
		if err != nil {
			return nil, err
		}
		least := float64(len(q))
		for k := range 2 {
			v, err := c.ESS(k, diag.Mean)
			if err != nil {
				return nil, err
			}
			least = min(least, v)
		}
		sizes = append(sizes, least)
	}
	slices.Sort(sizes)
	return sizes, nil
}
