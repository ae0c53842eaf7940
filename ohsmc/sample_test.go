package ohsmc

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// With psi, the bias, fixed at what SMC found, the weights' posterior is Gaussian: chains have its means and variances,
// within 4.5 Monte Carlo standard errors as their effective sample sizes give them (each a false alarm of 7e-6; seeds
// are fixed). Trajectories of one length may be half a period long, so that chains keep their distance from the mean,
// which is then warned of: hence the jitter.
func TestSampleAtFixedPsi(t *testing.T) {
	const sd, draws = .8, 250
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.Weights(1),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true}}
	data := linear(40)
	for i := range data.Y {
		data.Y[i] -= 3
	}
	engine := computetest.Go(t) // package mcmc has the kernels on every engine
	trained, err := Fit(t.Context(), model, SMC{Moves: 2}, dataset.Parts{Train: data}, Settings{
		Particles: 200, BatchSize: 8, Epochs: 4, DType: compute.Float64, Engine: engine,
	})
	if err != nil {
		t.Fatal(err)
	}
	psi, _, err := trained.Posterior.Parameter("layer1/biases")
	if err != nil {
		t.Fatal(err)
	}
	precision, right := mat.NewSymDense(2, []float64{1, 0, 0, 1}), mat.NewVecDense(2, nil)
	for n, y := range data.Y {
		row := mat.NewVecDense(2, data.X.(*mat.Dense).RawRowView(n))
		precision.SymRankOne(precision, 1/(sd*sd), row)
		right.AddScaledVec(right, (y-psi[0])/(sd*sd), row)
	}
	var covariance mat.Dense
	var mean mat.VecDense
	if err := covariance.Inverse(precision); err != nil {
		t.Fatal(err)
	}
	mean.MulVec(&covariance, right)

	method := fit.From{Trained: trained.Posterior,
		Method: mcmc.Chains{Kernel: mcmc.HMC{Steps: 5, Jitter: .4}, Chains: 8, Draws: draws, WarmUp: 150}}
	result, err := fit.Fit(t.Context(), bayes.Model{}, method, dataset.Parts{Train: data},
		run.Settings{DType: compute.Float64, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	chains, err := diag.NewForPosterior(result.Posterior)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 2 {
		var all []float64
		for _, chain := range fit.Details[*mcmc.Details](result).Draws.Coordinate(k) {
			all = append(all, chain...)
		}
		m, s := stat.MeanStdDev(all, nil)
		meanErr, err := chains.MCSE(k, diag.Mean)
		if err != nil {
			t.Fatal(err)
		}
		sdErr, err := chains.MCSE(k, diag.SD)
		if err != nil {
			t.Fatal(err)
		}
		wantS := math.Sqrt(covariance.At(k, k))
		if z := (m - mean.AtVec(k)) / meanErr; math.Abs(z) > 4.5 || meanErr > .05*wantS {
			t.Errorf("mean of weight %d is %.4f +- %.4f, want %.4f", k, m, meanErr, mean.AtVec(k))
		}
		if z := (s - wantS) / sdErr; math.Abs(z) > 4.5 || sdErr > .05*wantS {
			t.Errorf("standard deviation of weight %d is %.4f +- %.4f, want %.4f", k, s, sdErr, wantS)
		}
	}
	if len(result.Warnings) > 0 {
		t.Errorf("warnings %q", result.Warnings)
	}
	posterior := result.Posterior
	from := posterior.Provenance()
	if !strings.Contains(from.Algorithm, "Markov chains") || from.Before == nil ||
		posterior.Particles() != 8*draws || posterior.Chains() != 8 {
		t.Errorf("provenance %+v of %d particles of %d chains", from, posterior.Particles(), posterior.Chains())
	}
}

// Chains that hardly move from the particles where they began disagree on predictions, and the result says so.
func TestSampleWarnsOfChainsApart(t *testing.T) {
	data, engine := linear(20), computetest.Go(t)
	trained, err := Fit(t.Context(), bayesianLine(1), nil, dataset.Parts{Train: data},
		Settings{Particles: 10, BatchSize: 10, Epochs: 1, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	chains := mcmc.Chains{Kernel: mcmc.HMC{Steps: 1, StepSize: 1e-4}, Draws: 20, WarmUp: mcmc.NoWarmUp}
	r, err := fit.Fit(t.Context(), bayes.Model{}, fit.From{Trained: trained.Posterior, Method: chains},
		dataset.Parts{Train: data}, run.Settings{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(r.Warnings, " "), "the 4 chains disagree on predictions") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestSampleErrors(t *testing.T) {
	trained, err := Fit(t.Context(), bayesianLine(1), nil, dataset.Parts{Train: linear(20)},
		Settings{Particles: 10, BatchSize: 10, Epochs: 1, Engine: computetest.Go(t)})
	if err != nil {
		t.Fatal(err)
	}
	wide := linear(5)
	wide.X = mat.NewDense(5, 3, nil)
	wide.Features = []string{"a", "b", "c"}
	for _, c := range []struct {
		data   *dataset.Dataset
		kernel mcmc.Kernel
		says   string
	}{
		{nil, mcmc.HMC{}, "no training part"},
		{wide, mcmc.HMC{}, "has 3"},
		{linear(20), mcmc.HMC{StepSize: -1}, "-1"},
	} {
		method := fit.From{Trained: trained.Posterior, Method: mcmc.Chains{Kernel: c.kernel}}
		if _, err := fit.Fit(t.Context(), bayes.Model{}, method, dataset.Parts{Train: c.data},
			run.Settings{}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, %T: %v", c.data, c.kernel, err)
		}
	}
}
