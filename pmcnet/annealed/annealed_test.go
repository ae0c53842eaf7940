package annealed

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
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// few are settings of small problems, short their moves, which cost half of the default's.
var (
	short = mcmc.HMC{Steps: 5}
	few   = Annealed{SMC: smc.Tempered{Kernel: mcmc.HMC{Steps: 3}, Particles: 300}, Draws: 1000}
)

func goSettings(t *testing.T) run.Settings {
	return run.Settings{Seed: 2, Engine: computetest.Go(t), DType: compute.Float64}
}

// On a conjugate regression the result's evidence and the bridge's, from the mixture to the posterior, are unbiased for
// all that 30 seeds can tell, their standard errors are those of the runs, and the draws have the exact means and
// covariances: the harness, with its false alarms in 1 of 1000 runs.
func TestAnnealedExact(t *testing.T) {
	line := check.Line()
	posed := fittest.Density(line)
	settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	sequential := func(t *testing.T, a Annealed, sd float64, of func(r *fit.Result, d *Details) bayes.Draws) {
		check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
			settings.Seed = seed
			draws := of(fittest.Sample[*Details](t, posed, a, settings))
			phi, err := compute.Float64s(draws.Phi)
			return check.SequentialRun{Phi: phi, LogWeights: draws.LogWeights, LogEvidence: draws.Evidence.Value,
				StdErr: draws.Evidence.StdErr}, err
		}, check.SequentialOptions{Problem: &line, Runs: 30, StdDev: sd})
	}
	t.Run("result", func(t *testing.T) {
		sequential(t, few, .05, func(r *fit.Result, d *Details) bayes.Draws {
			weighted := d.Source == ByImportance && r.Draws.Evidence == d.ImportanceEvidence &&
				r.Draws.Phi.Shape().Dim(0) == 1000
			bridged := d.Source == ByBridge && r.Draws.Evidence == d.BridgeEvidence && d.KHat > .3
			if !weighted && !bridged || len(r.Warnings) > 0 {
				t.Errorf("seed %d: %+v, %q", settings.Seed, d, r.Warnings)
			}
			return r.Draws
		})
	})
	t.Run("bridge", func(t *testing.T) {
		a := few
		a.Bridge, a.Components, a.Draws, a.SMC.Moves = BridgeAlways, 1, 200, 3
		sequential(t, a, .1, func(_ *fit.Result, d *Details) bayes.Draws {
			draws := d.bridged.Draws
			draws.Evidence = d.BridgeEvidence
			return draws
		})
	})
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
		Name: "wave", Task: dataset.Regression, X: x, Y: y, Features: []string{"x"}, Target: "y",
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
		Name: "curve", Task: dataset.Regression, X: x, Y: y, Features: []string{"x"}, Target: "y",
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
	a := Annealed{
		SMC: smc.Tempered{Kernel: mcmc.HMC{StepSize: .7, Steps: 10}, Particles: 600, Moves: 3}, Bridge: NoBridge,
	}
	r, d := fittest.Fit[*Details](t, model, a, curve(), goSettings(t))
	if e := r.Draws.Evidence; d.Source != ByImportance || math.Abs(e.Value-want) > 4*e.StdErr || !(e.StdErr < .1) {
		t.Errorf("evidence %+v, exact %.3f: %s", e, want, d.why)
	}
	if e := d.SMCEvidence; math.Abs(e.Value-want) < 3*e.StdErr {
		t.Errorf("the SMC's evidence is %+v, exact %.3f: no fault to be found", e, want)
	}
	fittest.Says(t, "warning", strings.Join(r.Warnings, ";"), "by SMC", "by importance sampling", "differ by")
}

// A network 1-2-1 has the evidence that quadrature gives, by importance sampling, by the bridge, and by SMC: |G| is 8
// with tanh and 2 with ReLU, so that the log evidence would be off by 2.1 or .7 if |G| were forgotten, and by 1.4 if
// ReLU's units had images with other signs. Beyond 4 standard errors, which are below .15, is 1 of 15000.
func TestAnnealedNetwork(t *testing.T) {
	for _, c := range []struct {
		activation nn.Activation
		f          func(float64) float64
		h          float64
		particles  int
		bridge     Bridging
	}{
		{nn.Tanh, math.Tanh, .5, 600, BridgeAlways},
		{nn.ReLU, func(x float64) float64 { return max(x, 0) }, .25, 800, NoBridge}, // of one: TestBridgeRegion
	} {
		want := waveEvidence(wave().Train, waveNoise, c.f, c.h)
		a := Annealed{SMC: smc.Tempered{Kernel: short, Particles: c.particles}, Components: 16, Bridge: c.bridge}
		_, d := fittest.Fit[*Details](t, waveModel(c.activation), a, wave(), goSettings(t))
		all := []bayes.Evidence{d.ImportanceEvidence, d.SMCEvidence}
		if a.Bridge == BridgeAlways {
			all = append(all, d.BridgeEvidence)
		}
		for _, e := range all {
			if !(math.Abs(e.Value-want) < 4*e.StdErr && e.StdErr < .15) {
				t.Errorf("%s: log evidence %.3f +- %.3f, exact %.3f", c.activation, e.Value, e.StdErr, want)
			}
		}
		if d.Source == BySMC {
			t.Errorf("%s: %+v", c.activation, d)
		}
	}
}

// Where the mixture does not fit, k-hat shows it, and no number of the importance sampling is called evidence. Then the
// particles and the evidence are the bridge's; without one they are the SMC's. Either way k-hat is in the result, and
// the reason is given as a warning. The same holds where no mixture can be fitted at all.
func TestAnnealedWithoutFit(t *testing.T) {
	l := fittest.Regression(30, 36, 1)
	_, _, want := l.Posterior()
	hard := fittest.Density(l)
	a := Annealed{Components: 1, SMC: smc.Tempered{Kernel: short, Particles: 120}, Draws: 1000}
	for bridge, source := range map[Bridging]Estimator{bridgeIfNeeded: ByBridge, NoBridge: BySMC} {
		a.Bridge = bridge
		r, d := fittest.Sample[*Details](t, hard, a, goSettings(t))
		e := map[Estimator]bayes.Evidence{ByBridge: d.BridgeEvidence, BySMC: d.SMCEvidence}[source]
		of := r.Draws.Diagnostics
		if d.Source != source || !(d.KHat > pmcnet.MaxKHat) || d.ImportanceEvidence.Known() || r.Draws.Evidence != e ||
			r.Draws.Phi.Shape().Dim(0) != 120 || of[fit.ESSCurve] < 119.9 || of[pmcnet.KHat] != d.KHat {
			t.Errorf("%+v, %v", d, of)
		}
		if math.Abs(e.Value-want) > 4*e.StdErr || !(e.StdErr < .6) && source == ByBridge {
			t.Errorf("evidence %+v by %s, exact %.3f", e, source, want)
		}
		fittest.Says(t, "the warning", strings.Join(r.Warnings, ";"), fmt.Sprintf("k-hat of the mixture's 1000 draws is %.2f",
			d.KHat), "not at most 0.7", "does not fit", results[source])
	}
	a = Annealed{SMC: smc.Tempered{Particles: 4, Moves: 1}}
	r, d := fittest.Sample[*Details](t, fittest.Density(fittest.Regression(5, 20, 1)), a, goSettings(t))
	if d.Source == ByImportance || len(r.Draws.LogWeights) != 4 || d.ImportanceEvidence.Known() {
		t.Errorf("%+v", d)
	}
	fittest.Says(t, "4 particles", strings.Join(r.Warnings, ";"), "no mixture", "4 particles in 5 dimensions")
}

// Settings that are out of bounds are refused by name, targets whose likelihood is not known apart with what to take
// instead.
func TestAnnealedBadInput(t *testing.T) {
	good := fittest.Density(check.Line())
	for _, c := range []struct {
		a    Annealed
		says []string
	}{
		{Annealed{Components: 2001}, []string{"Annealed.Components", "2001", "SMC.Particles"}},
		{Annealed{Draws: 99}, []string{"Annealed.Draws", "99", "at least 100"}},
		{Annealed{Draws: 1 << 45}, []string{"Annealed.Draws", "fewer", "in memory"}},
		{Annealed{Bridge: "perhaps"}, []string{"Annealed.Bridge", "perhaps", "if needed", "always"}},
		{Annealed{SMC: smc.Tempered{Particles: -1}}, []string{"SMC", "Particles", "-1"}},
	} {
		_, err := fit.Sample(t.Context(), good, c.a, goSettings(t))
		fittest.Refused(t, c.says[0], err, c.says...)
	}
	apart := good
	apart.Target = func(compute.Nodes, []*graph.Node) density.Target {
		return density.Func(func(phi *graph.Node) *graph.Node { return graph.ReduceSum(graph.Neg(graph.Square(phi)), 1) })
	}
	_, err := fit.Sample(t.Context(), apart, Annealed{}, goSettings(t))
	fittest.Refused(t, "a density alone", err, "density.Func", "smc.Posterior", "pmcnet.PMC{}")
	good.Start = tensors.FromValue([][]float64{{1, 2, 3}})
	_, err = fit.Sample(t.Context(), good, Annealed{}, goSettings(t))
	fittest.Refused(t, "start", err, "Problem.Start", "PMC{}")
}

// A ladder that stalls, here at a likelihood whose noise is far too small, ends the run with an error that says so and
// where.
func TestAnnealedStalls(t *testing.T) {
	model, parts, _ := fittest.Harness()
	model.Likelihood = bayes.Gaussian{StdDev: 1e-13}
	_, err := fit.Fit(t.Context(), model, few, parts, goSettings(t))
	fittest.Refused(t, "the error", err, "the ladder stalls", "at power", "Threshold")
}

// onBridge calls a function once there is a bridge.
func onBridge(f func()) func(run.Progress) {
	return func(p run.Progress) {
		if strings.Contains(p.Stage, "bridge") {
			f()
		}
	}
}

// A run that is cancelled on the bridge says so; from its checkpoints, of which the bridge has one of its own, it goes
// on to the bits of one that was not. A file of another run, or a damaged one, in the place of the
// bridge's is an error, as in that of the first SMC, and no reason to leave the bridge out.
func TestBridgeResume(t *testing.T) {
	model, parts, _ := fittest.Harness()
	a, settings := few, goSettings(t)
	a.Bridge, a.SMC.Threshold = BridgeAlways, .9
	whole, of := fittest.Fit[*Details](t, model, a, parts, settings)
	settings.Checkpoint = filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := settings
	s.Progress = onBridge(cancel)
	_, err := fit.Fit(ctx, model, a, parts, s)
	if fittest.Refused(t, "cancelled", err, "the bridge"); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled on the bridge: %v", err)
	}
	r, d := fittest.Fit[*Details](t, model, a, parts, settings)
	if d.BridgeEvidence != of.BridgeEvidence ||
		!slices.Equal(fittest.Numbers(t, r.Posterior), fittest.Numbers(t, whole.Posterior)) {
		t.Errorf("the resumed run ends at %+v, an uninterrupted one at %+v", d.BridgeEvidence, of.BridgeEvidence)
	}
	if r.Elapsed < d.bridged.Elapsed || d.bridged.Elapsed < d.tempered.Elapsed {
		t.Errorf("the run took %v with its earlier sessions, to the end of the bridge %v, of the SMC %v", r.Elapsed,
			d.bridged.Elapsed, d.tempered.Elapsed)
	}
	if err := os.Remove(settings.Checkpoint + ".smc"); err != nil {
		t.Fatal(err)
	}
	settings.Seed++
	_, err = fit.Fit(t.Context(), model, a, parts, settings)
	if fittest.Refused(t, "of another seed", err, "run.bridge", "Replace"); !errors.Is(err, run.ErrOtherRun) {
		t.Errorf("of another seed: %v", err)
	}
	if err := os.WriteFile(settings.Checkpoint+".bridge", []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = fit.Fit(t.Context(), model, a, parts, settings)
	fittest.Refused(t, "damaged", err, "run.bridge")
}

// Where a network has so many units that hardly a draw of the mixture is in canonical order, the particles stay as they
// are, and the evidence is that of the SMC within the errors of both.
func TestAnnealedManyUnits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	model := waveModel(nn.Tanh)
	model.Network = nn.MLP{Hidden: []int{16}, Activation: nn.Tanh}
	model.Prior = bayes.Normal{StdDev: .3}
	settings := goSettings(t)
	a := Annealed{SMC: smc.Tempered{Kernel: short, Particles: 400}, Draws: 1000}
	_, d := fittest.Fit[*Details](t, model, a, wave(), settings)
	e, b := d.SMCEvidence, d.BridgeEvidence
	if !b.Known() || math.Abs(e.Value-b.Value) > 4*math.Hypot(e.StdErr, b.StdErr) || !(b.StdErr < .3) {
		t.Errorf("SMC %+v, bridge %+v: %s", e, b, d.why)
	}
}
