package study

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/optim"
	"gobnn/ohsmc"
	"gobnn/viz"

	"github.com/gomlx/gomlx/core/graph"
)

// crescent is the model of Zhao et al. 2024, section 4.1, as a network of one layer: f = phi_1/psi + (phi_0^2 +
// psi^2)/2, whatever the features. psi begins at 0.1.
type crescent struct{}

func init() { bayes.Register(crescent{}) }

// shifted is the parameter psi - 0.1: shared parameters begin at 0.
const shifted = "psi less 0.1"

func (c crescent) Layers(int, int) ([]nn.Layer, error) { return []nn.Layer{c}, nil }

func (crescent) Parameters() []nn.Parameter {
	var parameters []nn.Parameter
	for i, name := range []string{"phi0", "phi1", shifted} {
		parameters = append(parameters, nn.Parameter{Name: name, Layer: i + 1, Kind: nn.Biases, Shape: []int{1}, FanIn: 1,
			FanOut: 1})
	}
	return parameters
}

func (crescent) Apply(params nn.Params, h nn.Value) nn.Value {
	psi := graph.AddScalar(params[shifted].Node, .1)
	for psi.Rank() < 3 {
		psi = graph.ExpandAxes(psi, 0)
	}
	phi0, phi1 := params["phi0"].Node, params["phi1"].Node // [J/c, 1, c]
	f := graph.Add(graph.Div(phi1, psi), graph.MulScalar(graph.Add(graph.Square(phi0), graph.Square(psi)), .5))
	rows := h.Node.Shape().Dim(1)
	return nn.Value{Node: graph.BroadcastToDims(graph.ExpandAxes(f, 2), f.Shape().Dim(0), 1, rows, f.Shape().Dim(2)),
		PerParticle: true}
}

var crescentModel = bayes.Model{
	Network: crescent{}, Likelihood: bayes.Gaussian{StdDev: 1},
	Prior:      bayes.Normal{PerLayer: map[int]float64{1: math.Sqrt2, 2: 1}},
	Stochastic: bayes.Names("phi0", "phi1"), Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
}

// crescentSettings are the paper's: 100 observations, Adam at 0.1 0.96^(i/10), 200 epochs, batches of 10.
func crescentSettings(o Options, seed uint64) (dataset.Parts, ohsmc.Settings, error) {
	data, err := dataset.Crescent(100, 1, seed)
	epochs := o.Epochs
	if epochs == 0 {
		epochs = 200
	}
	return dataset.Parts{Train: data}, ohsmc.Settings{
		Particles: 1000, BatchSize: 10, Epochs: epochs, Seed: seed,
		Optimiser: optim.Adam{Schedule: optim.Exponential(.1, .96, 10)},
	}, err
}

// crescentVI is the paper's: q starts at N(0, I), 100 draws a step.
var crescentVI = baseline.VI{Draws: 100, ZeroMean: true, InitialStdDev: 1, Samples: 1000}

// crescentRival are the same settings for a baseline.
func crescentRival(s ohsmc.Settings) baseline.Settings {
	return baseline.Settings{Epochs: s.Epochs, BatchSize: s.BatchSize, Seed: s.Seed, Optimiser: s.Optimiser}
}

// crescentSMC is Algorithm 1 if the batch is all rows, else Algorithm 2, with the paper's 10 moves before each datum.
// The paper's random walk has a variance of 0.001, which hardly moves the particles; this one is scaled by their
// standard deviations.
var crescentSMC = ohsmc.SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: 1}, Moves: 10, Precondition: true}

// crescentWalk is OHSMC with a random walk; the paper's variance is 0.001.
func crescentWalk(variance float64) ohsmc.OpenHorizon {
	return ohsmc.OpenHorizon{Kernel: mcmc.RandomWalk{Variance: variance}}
}

// crescentData is the name of the crescent's data in its studies.
const crescentData = "crescent"

// bestPsi is the psi that maximises log p(y; psi), to 0.005, and the log evidence there up to a constant: phi_1 is
// integrated analytically, phi_0 by the trapezoidal rule.
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

// logPosterior is log p(phi | y; psi) up to a constant.
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

// scatter draws particles of the crescent over the true posterior at psi.
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
		Frame:   viz.Frame{Title: title, XLabel: "φ₀", YLabel: "φ₁", Width: 415, Height: 300},
		Weights: p.LogWeights().Weights(), Density: lattice.Fill(logPosterior(y, psi)), LogDensity: true,
	})
}

// crescentGrid has two columns: in three the crescent at a small psi is as thin as its outlines.
var crescentGrid = viz.GridOptions{Columns: 2, SharedX: true, SharedY: true}

// crescentFig2 draws samples over the true density at psi = 1, a panel for each method.
func crescentFig2(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	samplers := []struct {
		name      string
		algorithm ohsmc.Algorithm
	}{{"OHSMC", crescentWalk(.001)}, {"SGSMC-HMC", crescentSMC}}
	rivals := []struct {
		name   string
		method baseline.Method
	}{{"MAP-HMC", leapfrog}, {"VB", crescentVI}, {"SWAG", baseline.SWAG{Collect: 100, Rank: 20}}}
	var names []string
	for _, s := range samplers {
		names = append(names, s.name)
	}
	for _, r := range rivals {
		names = append(names, r.name)
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
		fig, err := scatter(p, parts.Train.Y, 1, fmt.Sprintf("%s, ψ = %.2f", name, psi[0]+.1))
		panels = append(panels, fig)
		o.say("%s: psi %.3f", name, psi[0]+.1)
		return err
	}
	for _, s := range samplers {
		if !methods[s.name] {
			continue
		}
		result, err := ohsmc.Fit(ctx, crescentModel, s.algorithm, parts, settings)
		if err != nil {
			return nil, nil, err
		}
		posterior := result.Posterior
		if s.name == "SGSMC-HMC" && ctx.Err() == nil {
			chains := mcmc.Settings{Chains: 4, Draws: 100, WarmUp: 50}
			if result, err = ohsmc.Sample(ctx, posterior, leapfrog.Kernel, parts.Train, chains); err == nil {
				posterior = result.Posterior
			}
		}
		if err == nil {
			err = show(s.name, posterior)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for _, r := range rivals {
		if !methods[r.name] {
			continue
		}
		result, err := baseline.Fit(ctx, crescentModel, r.method, parts, crescentRival(settings))
		if err == nil {
			err = show(r.name, result.Posterior)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	fig, err := viz.Grid(crescentGrid, panels...)
	return fig, nil, err
}

// crescentFig5 draws OHSMC's particles at six epochs, over the true posterior at the psi of each.
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
	settings.Observe = func(step int, now *bayes.Posterior) error {
		if !at[step] {
			return nil
		}
		value, _, err := now.Parameter(shifted)
		if err != nil {
			return err
		}
		psi := value[0] + .1
		fig, err := scatter(now, parts.Train.Y, psi, fmt.Sprintf("epoch %d, ψ = %.2f", step/perEpoch, psi))
		panels = append(panels, fig)
		return err
	}
	if _, err := ohsmc.Fit(ctx, crescentModel, crescentWalk(.001), parts, settings); err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	fig, err := viz.Grid(crescentGrid, panels...)
	return fig, nil, err
}
