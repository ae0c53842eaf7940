package study

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
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

// crescentSettings returns the paper's settings: 100 observations, Adam at 0.1 0.96^(i/10), 200 epochs, batches of 10.
func crescentSettings(o Options, seed uint64) (dataset.Parts, crescentRun) {
	return dataset.Parts{Train: must(dataset.Crescent(crescentRows, 1, seed))}, crescentRun{particles.Training{
		Particles: 1000, BatchSize: 10, Epochs: cmp.Or(o.Epochs, 200),
		Optimiser: train.Adam{Schedule: train.Exponential(.1, .96, 10)},
	}, run.Settings{Seed: seed}}
}

// crescentRun has the settings of a training on the crescent.
type crescentRun struct {
	particles.Training
	run.Settings
}

// fit runs an algorithm of package ohsmc, or a baseline with the same settings.
func (s crescentRun) fit(ctx context.Context, algorithm fit.Method, parts dataset.Parts) (*fit.Result, error) {
	rival := baseline.Training{Epochs: s.Epochs, BatchSize: s.BatchSize, Optimiser: s.Optimiser}
	return fit.Fit(ctx, crescentModel, withSettings(algorithm, s.Training, rival), parts, s.Settings)
}

// crescentVI is the paper's: q starts at N(0, I), 100 draws a step.
var crescentVI = baseline.VI{Draws: 100, ZeroMean: true, InitialStdDev: 1, Samples: 1000}

// crescentSMC is Algorithm 1 if the batch is all rows, else Algorithm 2, with the paper's 10 moves before each datum.
// The paper's random walk has a variance of 0.001, which hardly moves the particles; this one is scaled by their
// standard deviations.
var crescentSMC = ohsmc.SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: 1}, Moves: 10, Precondition: true}

// crescentWalk is OHSMC with a random walk; the paper's variance is 0.001.
func crescentWalk(variance float64) ohsmc.OpenHorizon {
	return ohsmc.OpenHorizon{Kernel: mcmc.RandomWalk{Variance: variance}}
}

// The crescent's data in its studies.
const (
	crescentData = "crescent"
	crescentRows = 100
)

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

// keepParticles keeps a posterior's particles and psi, as series whose names end so.
func keepParticles(p *bayes.Posterior, out Result, ending string) error {
	for _, name := range []string{"phi0", "phi1", shifted} {
		values, _, err := p.Parameter(name)
		if err != nil {
			return err
		}
		out.Series[name+ending] = values
	}
	out.Series["weights"+ending] = p.LogWeights().Weights()
	return nil
}

// keptPsi is psi of particles that are kept.
func keptPsi(r Result, ending string) float64 { return r.Series[shifted+ending][0] + .1 }

// scatter draws particles that are kept over the true posterior at psi.
func scatter(r Result, ending string, psi float64, title string) (*viz.Figure, error) {
	data := must(dataset.Crescent(crescentRows, 1, 0))
	lattice := must(viz.NewLattice(-4, 4, 200, -3.5, 1.5, 200))
	return viz.ParticleScatter(r.Series["phi0"+ending], r.Series["phi1"+ending], viz.ParticleOptions{
		Frame:   viz.Frame{Title: title, XLabel: "φ₀", YLabel: "φ₁", Width: 415, Height: 300},
		Weights: r.Series["weights"+ending], LogDensity: lattice.Fill(logPosterior(data.Y, psi)),
	})
}

// crescentGrid has two columns: in three the crescent at a small psi is as thin as its outlines.
var crescentGrid = viz.GridOptions{Columns: 2, SharedX: true, SharedY: true}

// crescentVersion is part of the key of kept results: it changes when the code gives other numbers for the same
// settings.
const crescentVersion = 1

// crescentTraces is figure 1, which shows several repetitions.
const crescentTraces = "ohsmc.fig1"

// crescentTrial is a method of a figure of the crescent. Figures 2 and 5 show figure 1's second repetition: in the
// first OHSMC is stuck.
func crescentTrial(
	o Options, figure, method string, run func(ctx context.Context, parts dataset.Parts, s crescentRun) (Result, error),
) *trial {
	settings, first := map[string]any{"version": crescentVersion, "epochs": o.Epochs}, 0
	if figure != crescentTraces {
		first = 1
		settings["first"] = first
	}
	key := Key{Study: figure, Data: crescentData, Method: method, Settings: settings}
	return &trial{Key: key, reps: 1, run: func(ctx context.Context, repetition int) (Result, error) {
		parts, settings := crescentSettings(o, uint64(first+repetition))
		out, err := run(ctx, parts, settings)
		return out, ended(ctx, err)
	}}
}

// crescentMethods returns the trials of figure 2, which has samples over the true density at psi = 1.
func crescentMethods(o Options) ([]*trial, error) {
	sampled := func(algorithm fit.Method, chains bool) func(context.Context, dataset.Parts, crescentRun) (Result,
		error) {
		return func(ctx context.Context, parts dataset.Parts, s crescentRun) (Result, error) {
			out := Result{Series: map[string][]float64{}}
			result, err := s.fit(ctx, algorithm, parts)
			if err == nil && chains && ctx.Err() == nil {
				exact := fit.From{Trained: result.Posterior, Method: leapfrog}
				result, err = fit.Fit(ctx, bayes.Model{}, exact, dataset.Parts{Train: parts.Train}, run.Settings{})
			}
			if err != nil {
				return out, err
			}
			return out, keepParticles(result.Posterior, out, "")
		}
	}
	const figure = "ohsmc.fig2"
	return []*trial{
		crescentTrial(o, figure, "OHSMC", sampled(crescentWalk(.001), false)),
		crescentTrial(o, figure, "SGSMC-HMC", sampled(crescentSMC, true)),
		crescentTrial(o, figure, "MAP-HMC", sampled(baseline.MAPHMC{Chains: leapfrog}, false)),
		crescentTrial(o, figure, "VB", sampled(crescentVI, false)),
		crescentTrial(o, figure, "SWAG", sampled(baseline.SWAG{Collect: 100, Rank: 20}, false)),
		crescentTrial(o, figure, "OHSMC (variance 0.01)", sampled(crescentWalk(.01), false)),
	}, nil
}

func crescentFig2(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	return inPanels(done, crescentGrid, func(t *trial) (*viz.Figure, error) {
		return scatter(t.results[0], "", 1, fmt.Sprintf("%s, ψ = %.2f", t.Method, keptPsi(t.results[0], "")))
	})
}

// The epochs of figure 5's panels, as shares of all.
var crescentShares = []float64{0, .02, .05, .1, .3, 1}

// crescentFlow is the trial of figure 5: OHSMC's particles at six epochs.
func crescentFlow(o Options) ([]*trial, error) {
	run := func(ctx context.Context, parts dataset.Parts, s crescentRun) (Result, error) {
		out := Result{Series: map[string][]float64{}}
		perEpoch := (parts.Train.Rows() + s.BatchSize - 1) / s.BatchSize
		s.Observe = func(step int, now *bayes.Posterior) error {
			for i, share := range crescentShares {
				epoch := max(1, int(share*float64(s.Epochs)))
				if step != epoch*perEpoch {
					continue
				}
				ending := fmt.Sprintf(" %d", i)
				out.Series["epoch"+ending] = []float64{float64(epoch)}
				if err := keepParticles(now, out, ending); err != nil {
					return err
				}
			}
			return nil
		}
		_, err := s.fit(ctx, crescentWalk(.001), parts)
		return out, err
	}
	return []*trial{crescentTrial(o, "ohsmc.fig5", "OHSMC", run)}, nil
}

// crescentFig5 draws the particles over the true posterior at the psi of each epoch.
func crescentFig5(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	var all panels
	r := done[0].results[0]
	for i := range crescentShares {
		ending := fmt.Sprintf(" %d", i)
		psi := keptPsi(r, ending)
		all.add(scatter(r, ending, psi, fmt.Sprintf("epoch %.0f, ψ = %.2f", r.Series["epoch"+ending][0], psi)))
	}
	return all.grid(crescentGrid)
}
