package study

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/optim"
	"gobnn/ohsmc"
	"gobnn/viz"

	"github.com/gomlx/gomlx/core/graph"
)

// crescent is the model of Zhao et al. 2024, section 4.1, as a network of one layer: f = phi_1/psi + (phi_0^2 + psi^2)/2, whatever the features. psi begins
// at 0.1.
type crescent struct{}

func init() { bayes.Register(crescent{}) }

// shifted is the parameter psi - 0.1: shared parameters begin at 0.
const shifted = "psi less 0.1"

func (c crescent) Layers(int, int) ([]nn.Layer, error) { return []nn.Layer{c}, nil }

func (crescent) Parameters() []nn.Parameter {
	var parameters []nn.Parameter
	for i, name := range []string{"phi0", "phi1", shifted} {
		parameters = append(parameters, nn.Parameter{Name: name, Layer: i + 1, Kind: nn.Biases, Shape: []int{1}, FanIn: 1, FanOut: 1})
	}
	return parameters
}

func (crescent) Apply(leaves nn.Leaves, h nn.Value) nn.Value {
	psi := graph.AddScalar(leaves[shifted].Node, .1)
	for psi.Rank() < 3 {
		psi = graph.ExpandAxes(psi, 0)
	}
	phi0, phi1 := leaves["phi0"].Node, leaves["phi1"].Node // [J/c, 1, c]
	f := graph.Add(graph.Div(phi1, psi), graph.MulScalar(graph.Add(graph.Square(phi0), graph.Square(psi)), .5))
	rows := h.Node.Shape().Dim(1)
	return nn.Value{Node: graph.BroadcastToDims(graph.ExpandAxes(f, 2), f.Shape().Dim(0), 1, rows, f.Shape().Dim(2)), PerParticle: true}
}

var crescentModel = bayes.Model{
	Network: crescent{}, Likelihood: bayes.Gaussian{StdDev: 1}, Prior: bayes.Normal{PerLayer: map[int]float64{1: math.Sqrt2, 2: 1}},
	Stochastic: bayes.Names("phi0", "phi1"),
}

// crescentSettings are the paper's: 100 observations, Adam at 0.1 0.96^(i/10), 200 epochs, batches of 10.
func crescentSettings(o Options, seed uint64) (dataset.Parts, ohsmc.Settings, error) {
	engine, err := compute.Open(compute.GoBackend) // two numbers a particle: compiling for XLA takes longer than computing
	if err != nil {
		return dataset.Parts{}, ohsmc.Settings{}, err
	}
	data, err := dataset.Crescent(100, 1, seed)
	epochs := o.Epochs
	if epochs == 0 {
		epochs = 200
	}
	return dataset.Parts{Train: data}, ohsmc.Settings{
		Particles: 1000, BatchSize: 10, Epochs: epochs, Seed: seed, Engine: engine, Unscaled: true,
		Optimiser: optim.Adam{Schedule: optim.Exponential(.1, .96, 10)},
	}, err
}

// crescentRun is a method whose psi is followed.
type crescentRun struct {
	name      string
	algorithm ohsmc.Algorithm
	batch     int // 0: the paper's
}

func crescentRuns() []crescentRun {
	exact := ohsmc.SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: 1}, Moves: 1, Precondition: true}
	walk := func(variance float64) ohsmc.OpenHorizon {
		return ohsmc.OpenHorizon{Kernel: mcmc.RandomWalk{Variance: variance}}
	}
	return []crescentRun{
		{"SMC", exact, 100},
		{"SGSMC", exact, 0},
		{"OHSMC", walk(.001), 0},
		{"OHSMC, variance 0.01", walk(.01), 0},
	}
}

// crescentData is what the studies of the crescent have in place of data sets.
const crescentData = "crescent"

// crescentFig1 is psi along the iterations; the cells are where it ends.
func crescentFig1(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	var names []string
	for _, r := range crescentRuns() {
		names = append(names, r.name)
	}
	methods, err := o.only(names, crescentData)
	if err != nil {
		return nil, nil, err
	}
	trainer := ohsmc.NewTrainer(crescentModel)
	defer trainer.Close()
	var traces []viz.Trace
	var cells []Cell
	for _, r := range crescentRuns() {
		if !methods[r.name] {
			continue
		}
		var ends []Result
		for repetition := range max(1, o.Reps) {
			parts, settings, err := crescentSettings(o, uint64(repetition))
			if err != nil {
				return nil, cells, err
			}
			settings.Algorithm = r.algorithm
			if r.batch > 0 {
				settings.BatchSize = r.batch
			}
			if _, sequential := r.algorithm.(ohsmc.SMC); sequential {
				settings.Particles = 200 // each step goes through its rows one by one
			}
			var psi viz.Series
			settings.Observe = func(step int, now *bayes.Posterior) error {
				value, _, err := now.Parameter(shifted)
				if err == nil {
					psi.Step, psi.Value = append(psi.Step, float64(len(psi.Step)+1)), append(psi.Value, value[0]+.1)
				}
				return err
			}
			result, err := trainer.Train(ctx, parts, settings)
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return nil, cells, err
			}
			if repetition == 0 {
				traces = append(traces, viz.Trace{Name: r.name, Series: psi})
			}
			_, maximum := bestPsi(parts.Train.Y)
			last := psi.Value[len(psi.Value)-1]
			ends = append(ends, Result{Values: map[string]float64{"psi": last, "psi less the evidence's best": last - maximum}, Seconds: result.Elapsed.Seconds()})
			o.say("%s: repetition %d of %d, psi %.3f, %.1f s", r.name, repetition+1, max(1, o.Reps), last, result.Elapsed.Seconds())
		}
		cells = append(cells, Cells(Key{Study: "ohsmc.fig1", Data: crescentData, Method: r.name}, ends, nil)...)
	}
	fig, err := viz.Traces(traces, viz.TraceOptions{Frame: viz.Frame{Title: "Crescent: psi", XLabel: "epoch", YLabel: "psi"}, Truth: 1, TruthName: "truth"})
	return fig, cells, err
}

// bestPsi is the psi that maximises log p(y; psi), to 0.005, and the log evidence there but for a constant: phi_1 is integrated analytically, phi_0 by the
// trapezoidal rule.
func bestPsi(y []float64) (log, psi float64) {
	mean := 0.0
	for _, v := range y {
		mean += v / float64(len(y))
	}
	log = math.Inf(-1)
	for p := .05; p < 3; p += .005 {
		variance, sum := 1/float64(len(y))+1/(p*p), 0.0
		for i := -800; i <= 800; i++ {
			phi0 := float64(i) * .01
			d := mean - (phi0*phi0+p*p)/2
			sum += math.Exp(-phi0*phi0/4 - d*d/(2*variance))
		}
		if v := math.Log(sum) - math.Log(variance)/2; v > log {
			log, psi = v, p
		}
	}
	return log, psi
}

// logPosterior is log p(phi | y; psi) but for a constant.
func logPosterior(y []float64, psi float64) func(phi0, phi1 float64) float64 {
	return func(phi0, phi1 float64) float64 {
		log := -phi0*phi0/4 - phi1*phi1/2
		for _, v := range y {
			d := v - phi1/psi - (phi0*phi0+psi*psi)/2
			log -= d * d / 2
		}
		return log
	}
}

// scatter is particles of the crescent over the true posterior at psi.
func scatter(p *bayes.Posterior, y []float64, psi float64, title string) (*viz.Figure, error) {
	phi0, _, err := p.Parameter("phi0")
	if err != nil {
		return nil, err
	}
	phi1, _, err := p.Parameter("phi1")
	if err != nil {
		return nil, err
	}
	lattice, err := viz.NewLattice(-4, 4, 200, -3, 1.5, 200)
	if err != nil {
		return nil, err
	}
	return viz.ParticleScatter(phi0, phi1, viz.ParticleOptions{
		Frame:   viz.Frame{Title: title, XLabel: "phi_0", YLabel: "phi_1", Width: 420, Height: 380},
		Weights: p.LogWeights.Weights(), Density: lattice.Fill(logPosterior(y, psi)), LogDensity: true,
	})
}

// crescentFig2 is samples over the true density at psi = 1, a panel for each method.
func crescentFig2(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	rivals := []baseline.Method{leapfrog, baseline.VI{}, baseline.SWAG{Rank: 20}}
	names := []string{"SGSMC-HMC", "OHSMC"}
	for _, m := range rivals {
		names = append(names, m.Name())
	}
	methods, err := o.only(names, crescentData)
	if err != nil {
		return nil, nil, err
	}
	parts, settings, err := crescentSettings(o, 0)
	if err != nil {
		return nil, nil, err
	}
	var panels []*viz.Figure
	show := func(name string, p *bayes.Posterior) error {
		psi, _, err := p.Parameter(shifted)
		if err != nil {
			return err
		}
		fig, err := scatter(p, parts.Train.Y, 1, fmt.Sprintf("%s, psi %.2f", name, psi[0]+.1))
		panels = append(panels, fig)
		o.say("%s: psi %.3f", name, psi[0]+.1)
		return err
	}
	for _, r := range crescentRuns()[1:3] {
		name := map[string]string{"SGSMC": "SGSMC-HMC"}[r.name]
		if name == "" {
			name = r.name
		}
		if !methods[name] {
			continue
		}
		settings.Algorithm = r.algorithm
		result, err := ohsmc.Train(ctx, crescentModel, parts, settings)
		if err != nil {
			return nil, nil, err
		}
		posterior := result.Posterior
		if name != r.name && ctx.Err() == nil {
			posterior, _, err = ohsmc.Sample(ctx, posterior, parts.Train, leapfrog.Kernel, mcmc.Settings{Chains: 4, Draws: 100, WarmUp: 50, Engine: settings.Engine})
		}
		if err == nil {
			err = show(name, posterior)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for _, m := range rivals {
		if !methods[m.Name()] {
			continue
		}
		result, err := baseline.Fit(ctx, crescentModel, m, parts, baseline.Settings{
			Epochs: settings.Epochs, BatchSize: settings.BatchSize, Optimiser: settings.Optimiser, Engine: settings.Engine, Unscaled: true,
		})
		if err == nil {
			err = show(m.Name(), result.Posterior)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	fig, err := viz.Grid((len(panels)+2)/3, min(3, len(panels)), panels...)
	return fig, nil, err
}

// crescentFig5 is OHSMC's particles and psi at six epochs, over the true posterior at that psi.
func crescentFig5(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	if _, err := o.only([]string{"OHSMC"}, crescentData); err != nil {
		return nil, nil, err
	}
	parts, settings, err := crescentSettings(o, 0)
	if err != nil {
		return nil, nil, err
	}
	perEpoch := (parts.Train.Rows() + settings.BatchSize - 1) / settings.BatchSize
	at := map[int]bool{}
	for _, share := range []float64{0, .02, .05, .1, .3, 1} {
		at[max(1, int(share*float64(settings.Epochs)))*perEpoch] = true
	}
	var panels []*viz.Figure
	settings.Algorithm = crescentRuns()[2].algorithm
	settings.Observe = func(step int, now *bayes.Posterior) error {
		if !at[step] {
			return nil
		}
		value, _, err := now.Parameter(shifted)
		if err != nil {
			return err
		}
		psi := value[0] + .1
		fig, err := scatter(now, parts.Train.Y, psi, fmt.Sprintf("epoch %d, psi %.2f", step/perEpoch, psi))
		panels = append(panels, fig)
		return err
	}
	if _, err := ohsmc.Train(ctx, crescentModel, parts, settings); err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	fig, err := viz.Grid((len(panels)+2)/3, min(3, len(panels)), panels...)
	return fig, nil, err
}
