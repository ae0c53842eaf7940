package annealed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"
	"gobnn/pmcnet/annealed"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// few are settings of small problems, short their moves, which cost half of the default's.
var (
	short = mcmc.HMC{Steps: 5}
	few   = annealed.Annealed{SMC: smc.Tempered{Kernel: mcmc.HMC{Steps: 3}, Particles: 300}, Draws: 1000}
)

// On a conjugate regression both estimators of the evidence are unbiased for all that 30 seeds can tell, their
// standard errors are those of the runs, and the weighted draws have the exact means and covariances: the harness,
// with its false alarms in 1 of 1000 runs.
func TestAnnealedExact(t *testing.T) {
	line := check.Line()
	posed := problem(line)
	settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
		settings.Seed = seed
		r, err := sampled(t.Context(), posed, few, settings)
		if err != nil {
			return check.SequentialRun{}, err
		}
		said := estimates(r)
		weighted := said.Source == annealed.ByImportance && r.Evidence == said.ImportanceEvidence && r.KHat == said.KHat &&
			r.Phi.Shape().Dim(0) == 1000
		bridged := said.Source == annealed.ByBridge && r.Evidence == said.BridgeEvidence && said.KHat > .3
		if !weighted && !bridged || len(r.Warnings) > 0 {
			t.Errorf("seed %d: %+v, %q", seed, said, r.Warnings)
		}
		phi, err := compute.Float64s(r.Phi)
		if err != nil {
			return check.SequentialRun{}, err
		}
		out := check.SequentialRun{
			Phi: phi, LogWeights: r.Draws.LogWeights, LogEvidence: r.Evidence.Value, StdErr: r.Evidence.StdErr,
		}
		return out, nil
	}, check.SequentialOptions{Problem: &line, Runs: 30, StdDev: .05})
}

// On a conjugate regression the bridge from the mixture to the posterior gives the exact means and covariances, and an
// evidence that is unbiased, with the standard error that it states.
func TestBridgeExact(t *testing.T) {
	line := check.Line()
	posed := problem(line)
	settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	a := few
	a.Bridge, a.Components, a.Draws, a.SMC.Moves = annealed.BridgeAlways, 1, 200, 3
	check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
		settings.Seed = seed
		r, err := sampled(t.Context(), posed, a, settings)
		if err != nil {
			return check.SequentialRun{}, err
		}
		bridge := estimates(r).Bridge
		phi, err := compute.Float64s(bridge.Draws.Phi)
		if err != nil {
			return check.SequentialRun{}, err
		}
		e := estimates(r).BridgeEvidence
		out := check.SequentialRun{Phi: phi, LogWeights: bridge.Draws.LogWeights, LogEvidence: e.Value, StdErr: e.StdErr}
		return out, nil
	}, check.SequentialOptions{Problem: &line, Runs: 30, StdDev: .1})
}

// In 5 dimensions both estimators lie within their errors of the exact log evidence: over 4 seeds the sums of squared
// errors, in standard errors, are chi-squared with 4 degrees of freedom, above 23.5 in 1 of 10000 tests.
func TestAnnealedRegression(t *testing.T) {
	l := regression(5, 50, 1)
	_, _, want := l.Posterior()
	posed := problem(l)
	settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	byImportance, bySMC := 0., 0.
	for seed := range uint64(4) {
		settings.Seed = seed
		r, err := sampled(t.Context(), posed, few, settings)
		if err != nil {
			t.Fatal(err)
		}
		said := estimates(r)
		a, b := said.ImportanceEvidence, said.SMCEvidence
		byImportance += math.Pow((a.Value-want)/a.StdErr, 2)
		bySMC += math.Pow((b.Value-want)/b.StdErr, 2)
		t.Logf("importance %.4f +- %.4f, SMC %.3f +- %.3f; k-hat %.2f, ESS %.0f, %v",
			a.Value-want, a.StdErr, b.Value-want, b.StdErr, r.KHat, r.ESS, r.Elapsed)
		if !(a.StdErr < .03 && b.StdErr < .3) || r.KHat > .5 || r.ESS < 500 || rms(t, r, l) > .2 {
			t.Errorf("seed %d: importance %+v, SMC %+v, ESS %.0f, rms %.2f", seed, a, b, r.ESS, rms(t, r, l))
		}
	}
	if byImportance > 23.5 || bySMC > 23.5 {
		t.Errorf("over 4 seeds the squared errors sum to %.1f (importance) and %.1f (SMC) squared standard errors",
			byImportance, bySMC)
	}
}

// wave is a few points of a sine, of standard deviation 1.
func wave() dataset.Parts {
	const n = 8
	x, y := mat.NewDense(n, 1, nil), make([]float64, n)
	for i := range n {
		v := -1.4 + .4*float64(i)
		x.Set(i, 0, v)
		y[i] = 1.3 * math.Sin(1.5*v)
	}
	data := &dataset.Dataset{
		Name: "wave", Task: bayes.Regression, X: x, Y: y, Features: []string{"x"}, Target: "y",
	}
	return dataset.Parts{Train: data}
}

const waveNoise = .5

func waveModel(activation nn.Activation) bayes.Model {
	return bayes.Model{
		Network: nn.MLP{Hidden: []int{2}, Activation: activation}, Likelihood: bayes.Gaussian{StdDev: waveNoise},
		Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}
}

// waveEvidence is log p(y) of a network 1-2-1 with prior N(0, 1): given the weights w and biases b into the units,
// those out of them are those of a linear model, so y ~ N(0, sigma^2 + F F') with F the units and 1; over w and b of
// both units, which may be exchanged, it is a sum over a grid of spacing h, which for integrands that are smooth and
// fall like Gaussians converges faster than any power of h.
func waveEvidence(data *dataset.Dataset, noise float64, f func(float64) float64, h float64) float64 {
	n := len(data.Y)
	type unit struct {
		f     []float64
		prior float64 // log density times h^2
	}
	var units []unit
	for w := -5.; w <= 5; w += h {
		for b := -5.; b <= 5; b += h {
			u := unit{prior: -(w*w+b*b)/2 - math.Log(2*math.Pi) + 2*math.Log(h)}
			for i := range n {
				u.f = append(u.f, f(w*data.X.At(i, 0)+b))
			}
			units = append(units, u)
		}
	}
	v := noise * noise
	ones := make([]float64, n)
	floats.AddConst(1, ones)
	yy, y1 := floats.Dot(data.Y, data.Y), floats.Sum(data.Y)
	var logs []float64
	var fy, f1 []float64
	for _, u := range units {
		fy, f1 = append(fy, floats.Dot(u.f, data.Y)), append(f1, floats.Sum(u.f))
	}
	ff := make([]float64, len(units))
	for i, u := range units {
		ff[i] = floats.Dot(u.f, u.f)
	}
	for i, a := range units {
		for j := range i + 1 {
			b := units[j]
			prior := a.prior + b.prior
			if prior < -40 {
				continue
			}
			if j < i {
				prior += math.Ln2
			}
			// |v + F F'| = v^(n-3) |v + F'F|, and y' (v + F F')^-1 y = (y'y - y'F (v + F'F)^-1 F'y) / v; v + F'F = L L'.
			m00, m10, m11 := v+ff[i], floats.Dot(a.f, b.f), v+ff[j]
			m20, m21, m22 := f1[i], f1[j], v+float64(n)
			l00 := math.Sqrt(m00)
			l10, l20 := m10/l00, m20/l00
			l11 := math.Sqrt(m11 - l10*l10)
			l21 := (m21 - l20*l10) / l11
			l22 := math.Sqrt(m22 - l20*l20 - l21*l21)
			z0 := fy[i] / l00
			z1 := (fy[j] - l10*z0) / l11
			z2 := (y1 - l20*z0 - l21*z1) / l22
			logDet := float64(n-3)*math.Log(v) + 2*math.Log(l00*l11*l22)
			square := (yy - z0*z0 - z1*z1 - z2*z2) / v
			logs = append(logs, prior-(float64(n)*math.Log(2*math.Pi)+logDet+square)/2)
		}
	}
	return floats.LogSumExp(logs)
}

// curve is a sine with more bends than wave, standardised.
func curve() dataset.Parts {
	const n = 12
	x, y := mat.NewDense(n, 1, nil), make([]float64, n)
	column := make([]float64, n)
	for i := range n {
		column[i] = -2 + 4*float64(i)/(n-1)
		y[i] = math.Sin(2 * column[i])
	}
	for _, v := range [][]float64{column, y} {
		floats.AddConst(-stat.Mean(v, nil), v)
		floats.Scale(1/stat.PopStdDev(v, nil), v)
	}
	x.SetCol(0, column)
	data := &dataset.Dataset{
		Name: "curve", Task: bayes.Regression, X: x, Y: y, Features: []string{"x"}, Target: "y",
	}
	return dataset.Parts{Train: data}
}

// The second estimator finds what is wrong with the first: with three trajectories of long steps at each temperature
// the SMC is far from the evidence that quadrature gives, the weighted draws of the mixture that was fitted to its
// particles are not, and the difference is warned of with both numbers.
func TestAnnealedFindsBias(t *testing.T) {
	model := waveModel(nn.Tanh)
	model.Likelihood = bayes.Gaussian{StdDev: .3}
	want := waveEvidence(curve().Train, .3, math.Tanh, 1./6)
	a := annealed.Annealed{
		SMC: smc.Tempered{Kernel: mcmc.HMC{StepSize: .7, Steps: 10}, Particles: 600, Moves: 3}, Bridge: annealed.NoBridge,
	}
	r, err := fitted(t.Context(), model, a, curve(), goSettings(t))
	if err != nil {
		t.Fatal(err)
	}
	said := estimates(r)
	t.Logf("exact %.3f, importance %+v, SMC %+v, %s, %v", want, said.ImportanceEvidence, said.SMCEvidence, said.Why,
		r.Elapsed)
	if e := r.Evidence; said.Source != annealed.ByImportance || math.Abs(e.Value-want) > 4*e.StdErr || !(e.StdErr < .1) {
		t.Errorf("evidence %+v, exact %.3f: %s", e, want, said.Why)
	}
	if e := said.SMCEvidence; math.Abs(e.Value-want) < 3*e.StdErr {
		t.Errorf("the SMC's evidence is %+v, exact %.3f: no fault to be found", e, want)
	}
	says(t, "warning", errors.New(strings.Join(r.Warnings, ";")), "by SMC", "by importance sampling", "differ by")
}

// A network 1-2-1 has the evidence that quadrature gives, by importance sampling, by the bridge, and by SMC: |G| is 8
// with tanh and 2 with ReLU, so that the log evidence would be off by 2.1 or .7 if |G| were forgotten, and by 1.4 if
// ReLU's units had images with other signs. Beyond 4 standard errors, which are below .15, is 1 of 15000.
func TestAnnealedNetwork(t *testing.T) {
	for _, c := range []struct {
		activation nn.Activation
		f          func(float64) float64
		h, images  float64
		particles  int
		bridge     annealed.Bridging
	}{
		{nn.Tanh, math.Tanh, .5, 8, 600, annealed.BridgeAlways},
		{nn.ReLU, func(x float64) float64 { return max(x, 0) }, .25, 2, 800, annealed.NoBridge}, // of one: TestBridgeRegion
	} {
		want := waveEvidence(wave().Train, waveNoise, c.f, c.h)
		model := waveModel(c.activation)
		a := annealed.Annealed{
			SMC: smc.Tempered{Kernel: short, Particles: c.particles}, Components: 16, Bridge: c.bridge,
		}
		r, err := fitted(t.Context(), model, a, wave(), goSettings(t))
		if err != nil {
			t.Fatal(err)
		}
		said := estimates(r)
		t.Logf("%s: exact %.3f, importance %.3f +- %.3f, bridge %.3f +- %.3f, SMC %.3f +- %.3f; k-hat %.2f, ESS %.0f, "+
			"%v", c.activation, want, said.ImportanceEvidence.Value,
			said.ImportanceEvidence.StdErr, said.BridgeEvidence.Value, said.BridgeEvidence.StdErr, said.SMCEvidence.Value,
			said.SMCEvidence.StdErr, said.KHat, said.ESS, r.Elapsed)
		all := []bayes.Evidence{said.ImportanceEvidence, said.SMCEvidence}
		if a.Bridge == annealed.BridgeAlways {
			all = append(all, said.BridgeEvidence)
		}
		for _, e := range all {
			if !(math.Abs(e.Value-want) < 4*e.StdErr && e.StdErr < .15) {
				t.Errorf("%s: log evidence %.3f +- %.3f, exact %.3f", c.activation, e.Value, e.StdErr, want)
			}
		}
		if math.Abs(said.LogImages-math.Log(c.images)) > 1e-12 || said.Order != "" || said.Source == annealed.BySMC {
			t.Errorf("%s: %+v", c.activation, said)
		}
	}
}

// Where the mixture does not fit, k-hat says so, and no number of the importance sampling is called evidence. Then the
// particles and the evidence are the bridge's; without one they are the SMC's. Either way k-hat is in the result, and
// the reason is given, in the result and as a warning. The same holds where no mixture can be fitted at all.
func TestAnnealedWithoutFit(t *testing.T) {
	l := regression(30, 36, 1)
	_, _, want := l.Posterior()
	hard := problem(l)
	a := annealed.Annealed{Components: 1, SMC: smc.Tempered{Kernel: short, Particles: 120}, Draws: 1000}
	r, err := sampled(t.Context(), hard, a, goSettings(t))
	if err != nil {
		t.Fatal(err)
	}
	if said := estimates(r); said.Source != annealed.ByBridge || !(said.KHat > pmcnet.MaxKHat) || r.Evidence !=
		said.BridgeEvidence || r.Phi.Shape().Dim(0) != 120 || r.ESS < 119.9 || r.KHat != said.KHat {
		t.Errorf("%+v, ESS %v, k-hat %v", said, r.ESS, r.KHat)
	}
	says(t, "the bridge's warning", errors.New(strings.Join(r.Warnings, ";")), fmt.Sprintf("k-hat of the mixture's 1000 "+
		"draws is %.2f", r.KHat), "not at most 0.7", "does not fit", "the result is the bridge's particles and evidence")
	if e := r.Evidence; math.Abs(e.Value-want) > 4*e.StdErr || !(e.StdErr < .6) {
		t.Errorf("evidence %+v by the bridge, exact %.3f", e, want)
	}
	a.Bridge = annealed.NoBridge
	r, err = sampled(t.Context(), hard, a, goSettings(t))
	if err != nil {
		t.Fatal(err)
	}
	said := estimates(r)
	if said.Source != annealed.BySMC || !(said.KHat > pmcnet.MaxKHat) || said.ImportanceEvidence.Known() || r.Evidence !=
		said.SMCEvidence || r.Phi.Shape().Dim(0) != 120 || r.ESS < 119.9 || r.KHat != said.KHat {
		t.Errorf("%+v, ESS %v, k-hat %v", said, r.ESS, r.KHat)
	}
	if e := r.Evidence; math.Abs(e.Value-want) > 4*e.StdErr {
		t.Errorf("evidence %+v, exact %.3f", e, want)
	}
	for _, text := range []string{said.Why, strings.Join(r.Warnings, ";")} {
		says(t, "the mixture", errors.New(text), "k-hat", "does not fit")
	}
	says(t, "the warning", errors.New(strings.Join(r.Warnings, ";")), "the SMC's particles and evidence")

	a = annealed.Annealed{SMC: smc.Tempered{Particles: 4, Moves: 1}}
	if r, err = sampled(t.Context(), problem(regression(5, 20, 1)), a, goSettings(t)); err != nil {
		t.Fatal(err)
	}
	said = estimates(r)
	if said.Source == annealed.ByImportance || r.LogWeights.Len() != 4 || said.ImportanceEvidence.Known() {
		t.Errorf("%+v", said)
	}
	says(t, "4 particles", errors.New(estimates(r).Why), "no mixture", "4 particles in 5 dimensions")
}

// Settings that are out of bounds are refused by name, targets whose likelihood is not known apart with what to take
// instead.
func TestAnnealedBadInput(t *testing.T) {
	good := problem(check.Line())
	for _, c := range []struct {
		name string
		a    annealed.Annealed
		says []string
	}{
		{"components", annealed.Annealed{Components: 2001},
			[]string{"Annealed.Components", "2001", "SMC.Particles"}},
		{"draws", annealed.Annealed{Draws: 99}, []string{"Annealed.Draws", "99", "at least 100"}},
		{"draws beyond memory", annealed.Annealed{Draws: 1 << 45}, []string{"Annealed.Draws", "fewer", "in memory"}},
		{"particles beyond memory", annealed.Annealed{SMC: smc.Tempered{Particles: 1 << 45}},
			[]string{"Particles", "fewer", "in memory"}},
		{"bridge", annealed.Annealed{Bridge: "perhaps"}, []string{"Annealed.Bridge", "perhaps", "if needed", "always"}},
		{"particles", annealed.Annealed{SMC: smc.Tempered{Particles: -1}}, []string{"SMC", "Particles", "-1"}},
	} {
		_, err := sampled(t.Context(), good, c.a, goSettings(t))
		says(t, c.name, err, c.says...)
	}
	least := annealed.Annealed{Draws: 100, SMC: smc.Tempered{Particles: 50, Moves: 1}, Bridge: annealed.NoBridge}
	if _, err := sampled(t.Context(), good, least, goSettings(t)); err != nil {
		t.Errorf("the least number of draws: %v", err)
	}
	_, err := sampled(t.Context(), holed(0), annealed.Annealed{}, goSettings(t))
	says(t, "a density alone", err, "density.Func", "smc.Posterior", "pmcnet.PMC{}")
	good.Start = tensors.FromValue([][]float64{{1, 2, 3}})
	_, err = sampled(t.Context(), good, annealed.Annealed{}, goSettings(t))
	says(t, "start", err, "Problem.Start", "PMC{}")
}

// Several devices are for Annealed, whose SMC is given them, and PMC refuses them; TestDevicesLong runs on four.
func TestDevices(t *testing.T) {
	l, settings := problem(check.Line()), goSettings(t)
	settings.Devices = 2 // more than the Go backend has
	_, err := sampled(t.Context(), l, few, settings)
	says(t, "the SMC's", err, "Settings.Devices is 2", "moved 300")
	_, err = sampled(t.Context(), l, pmcnet.PMC{}, settings)
	says(t, "PMC", err, "pmcnet: Settings.Devices is 2", "pmcnet.PMC runs on one device")
	settings.Devices = -1
	_, err = sampled(t.Context(), l, few, settings)
	says(t, "none", err, "Settings.Devices is -1", "at least 1")
}

// A ladder that stalls, here at a likelihood that is all cliffs, or one whose noise is far too small, ends the run with
// an error that says so and where, and with what there is: the particles at that power, without an evidence.
func TestAnnealedStalls(t *testing.T) {
	has := func(r *found, err error) {
		t.Helper()
		if err == nil || r == nil {
			t.Fatalf("%+v, %v", r, err)
		}
		says(t, "the error", err, "the ladder stalls", "at power", "Threshold")
		said := estimates(r)
		if r.Status != run.Stopped || r.Phi.Shape().Dim(0) != 300 || r.LogWeights.Len() != 300 || r.Evidence.Known() ||
			said.Source != annealed.BySMC || said.SMCEvidence.Known() || said.ImportanceEvidence.Known() ||
			said.BridgeEvidence.Known() || !math.IsNaN(r.KHat) || r.Elapsed <= 0 {
			t.Errorf("%+v, %+v", r, estimates(r))
		}
		says(t, "the warning", errors.New(strings.Join(r.Warnings, ";")), "at power", "no evidence")
	}
	cliffs := density.Problem{
		Dim: 1,
		Initial: func(rng random.Stream, dtype compute.DType, n int) *graph.Node {
			return rng.Normal(dtype, n, 1)
		},
		Target: func(compute.Nodes, []*graph.Node) density.Target {
			return smc.Posterior{
				Prior: func(phi *graph.Node) *graph.Node {
					square := graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5)
					return graph.AddScalar(square, -math.Log(2*math.Pi)/2)
				},
				Likelihood: func(phi *graph.Node) *graph.Node {
					steep := graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), 1e4)
					return graph.MulScalar(graph.Sub(steep, graph.StopGradient(graph.Round(steep))), 1e30)
				},
			}
		},
	}
	settings := goSettings(t)
	settings.DType = compute.Float64
	has(sampled(t.Context(), cliffs, few, settings))

	model, parts, _ := line(t)
	model.Likelihood = bayes.Gaussian{StdDev: 1e-13}
	r, err := fitted(t.Context(), model, few, parts, settings)
	has(r, err)
	if p := r.Posterior; p == nil || p.Particles() != 300 || p.Evidence().Known() || p.Provenance().Status != "stopped" {
		t.Errorf("posterior %+v", p)
	}
}

// From a mixture that is much further from the posterior than the prior is, no bridge is made unless it is asked for,
// and the result says why: 60 particles do not show a mixture how a posterior of 121 weights lies, near to the
// prior as it is.
func TestNoBridgeFromFarAway(t *testing.T) {
	model, parts, _ := line(t)
	model.Network, model.Likelihood = nn.MLP{Hidden: []int{30}, Activation: nn.Tanh}, bayes.Gaussian{StdDev: 1}
	a := few
	a.SMC.Particles, a.SMC.Moves, a.Draws, a.Components = 60, 1, 200, 1
	r, err := fitted(t.Context(), model, a, parts, goSettings(t))
	if err != nil {
		t.Fatal(err)
	}
	said := estimates(r)
	if said.Bridge != nil || said.Source != annealed.BySMC || r.Evidence != said.SMCEvidence {
		t.Errorf("the result is by %s, %+v", said.Source, said)
	}
	says(t, "why", errors.New(said.Why), "there is no bridge", "further from the posterior than the prior", "BridgeAlways")
	if !slices.Contains(r.Warnings, said.Why) {
		t.Errorf("no warning says so: %q", r.Warnings)
	}
	a.Bridge = annealed.BridgeAlways // which goes a long way: it is enough that it begins
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	settings, begun := goSettings(t), false
	settings.Progress = func(p run.Progress) {
		if strings.Contains(p.Stage, "bridge") {
			begun = true
			cancel()
		}
	}
	if r, err = fitted(ctx, model, a, parts, settings); err != nil || !begun {
		t.Errorf("asked for, the bridge: %v, %+v", err, r)
	}
}

// A run that is cancelled on the bridge has the SMC's particles; from its checkpoints, of which the bridge has one of
// its own, it goes on to the bits of one that was not.
func TestBridgeResume(t *testing.T) {
	model, parts, _ := line(t)
	a, settings := few, goSettings(t)
	a.Bridge, a.SMC.Threshold = annealed.BridgeAlways, .9
	whole, err := fitted(t.Context(), model, a, parts, settings)
	if err != nil {
		t.Fatal(err)
	}
	settings.Checkpoint = filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := settings
	s.Progress = func(p run.Progress) {
		if strings.Contains(p.Stage, "bridge") {
			cancel()
		}
	}
	r, err := fitted(ctx, model, a, parts, s)
	if err != nil || r.Status != run.Cancelled || r.Evidence.Known() || r.Posterior.Particles() != 300 {
		t.Fatalf("cancelled on the bridge: %v, %+v", err, r)
	}
	if _, err := os.Stat(settings.Checkpoint + ".bridge"); err != nil {
		t.Errorf("the bridge has kept nothing: %v", err)
	}
	for range 2 {
		if r, err = fitted(t.Context(), model, a, parts, settings); err != nil {
			t.Fatal(err)
		}
		if estimates(r).BridgeEvidence != estimates(whole).BridgeEvidence ||
			!slices.Equal(numbers(t, r.Posterior), numbers(t, whole.Posterior)) {
			t.Errorf("the resumed run ends at %+v, an uninterrupted one at %+v", estimates(r).BridgeEvidence,
				estimates(whole).BridgeEvidence)
		}
		if of := estimates(r).Bridge.Elapsed; r.Elapsed < of || of < estimates(r).SMC.Elapsed {
			t.Errorf("the run took %v with its earlier sessions, to the end of the bridge %v, of the SMC %v", r.Elapsed, of,
				estimates(r).SMC.Elapsed)
		}
	}
}

// late is a context whose deadline passes when it is told.
type late struct {
	context.Context
	passed bool
}

func (l *late) Err() error {
	if l.passed {
		return context.DeadlineExceeded
	}
	return l.Context.Err()
}

// A deadline that passes on the bridge leaves the first SMC's particles, as a cancelled context does.
func TestBridgeDeadline(t *testing.T) {
	ctx, settings, a := &late{Context: t.Context()}, goSettings(t), few
	a.Bridge = annealed.BridgeAlways
	settings.Progress = func(p run.Progress) { ctx.passed = strings.Contains(p.Stage, "bridge") }
	r, err := sampled(ctx, problem(regression(2, 10, 1)), a, settings)
	if err != nil || r.Status != run.Cancelled || r.Evidence.Known() || r.LogWeights.Len() != 300 {
		t.Errorf("a deadline on the bridge: %v, %+v", err, r)
	}
}

// A file of another run, or a damaged one, in the place of the bridge's checkpoint is an error, as in that of the first
// SMC, and no reason to leave the bridge out.
func TestBridgeFile(t *testing.T) {
	a, settings := few, goSettings(t)
	a.Bridge = annealed.BridgeAlways
	settings.Checkpoint = filepath.Join(t.TempDir(), "run")
	posed := problem(regression(2, 10, 1))
	if _, err := sampled(t.Context(), posed, a, settings); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(settings.Checkpoint + ".smc"); err != nil {
		t.Fatal(err)
	}
	settings.Seed++
	_, err := sampled(t.Context(), posed, a, settings)
	if says(t, "of another seed", err, "run.bridge", "Replace"); !errors.Is(err, run.ErrOtherRun) {
		t.Errorf("of another seed: %v", err)
	}
	if err := os.WriteFile(settings.Checkpoint+".bridge", []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = sampled(t.Context(), posed, a, settings)
	says(t, "damaged", err, "run.bridge")
	settings.Replace = true
	if r, err := sampled(t.Context(), posed, a, settings); err != nil || estimates(r).Bridge == nil {
		t.Errorf("replaced: %v", err)
	}
}
