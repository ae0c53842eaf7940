package pmcnet_test

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/nn"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// few are settings of small problems.
var few = pmcnet.Annealed{Sampling: smc.Settings{Particles: 400}, Draws: 1000}

// On a conjugate regression both estimators of the evidence are unbiased for all that 60 seeds can tell, their standard
// errors are those of the runs, and the weighted draws have the exact means and covariances: the harness, with its false
// alarms in 1 of 1000 runs.
func TestAnnealedExact(t *testing.T) {
	line := check.Line()
	sampler := pmcnet.Sampler{Problem: problem(line)}
	defer sampler.Close()
	settings := pmcnet.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
		settings.Seed = seed
		r, err := sampler.Sample(t.Context(), few, settings)
		if err != nil {
			return check.SequentialRun{}, err
		}
		if !r.Annealed.Importance || r.Evidence != r.Annealed.ImportanceEvidence || r.KHat != r.Annealed.KHat ||
			len(r.Warnings) > 0 || r.Phi.Shape().Dim(0) != 1000 {
			t.Errorf("seed %d: %+v, %q", seed, r.Annealed, r.Warnings)
		}
		phi, err := compute.Float64s(r.Phi)
		if err != nil {
			return check.SequentialRun{}, err
		}
		out := check.SequentialRun{Phi: phi, LogEvidence: r.Evidence.Value, StdErr: r.Evidence.StdErr}
		for j := range r.LogWeights.Len() {
			out.LogWeights = append(out.LogWeights, r.LogWeights.At(j))
		}
		return out, nil
	}, check.SequentialOptions{Problem: &line, Runs: 60, StdDev: .05})
}

// In 5 dimensions both estimators lie within their errors of the exact log evidence: over 10 seeds the sums of squared
// errors, in standard errors, are chi-squared with 10 degrees of freedom, above 35.6 in 1 of 10000 tests.
func TestAnnealedRegression(t *testing.T) {
	l := regression(5, 50, 1)
	_, _, want := l.Posterior()
	sampler := pmcnet.Sampler{Problem: problem(l)}
	defer sampler.Close()
	settings := pmcnet.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	byImportance, bySMC := 0., 0.
	for seed := range uint64(10) {
		settings.Seed = seed
		r, err := sampler.Sample(t.Context(), few, settings)
		if err != nil {
			t.Fatal(err)
		}
		a, b := r.Annealed.ImportanceEvidence, r.Annealed.SMCEvidence
		byImportance += math.Pow((a.Value-want)/a.StdErr, 2)
		bySMC += math.Pow((b.Value-want)/b.StdErr, 2)
		t.Logf("importance %.4f +- %.4f, SMC %.3f +- %.3f; k-hat %.2f, ESS %.0f, %d components of DoF %.0f, %v",
			a.Value-want, a.StdErr, b.Value-want, b.StdErr, r.KHat, r.ESS, r.Annealed.Components, r.Annealed.DoF, r.Elapsed)
		if !(a.StdErr < .03 && b.StdErr < .2) || r.KHat > .5 || r.ESS < 500 || rms(t, r, l) > .2 {
			t.Errorf("seed %d: importance %+v, SMC %+v, ESS %.0f, rms %.2f", seed, a, b, r.ESS, rms(t, r, l))
		}
	}
	if byImportance > 35.6 || bySMC > 35.6 {
		t.Errorf("over 10 seeds the squared errors sum to %.1f (importance) and %.1f (SMC) squared standard errors",
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

// waveEvidence is log p(y) of a network 1-2-1 with prior N(0, 1): given the weights w and biases b into the units, those
// out of them are those of a linear model, so y ~ N(0, sigma^2 + F F') with F the units and 1; over w and b of both
// units, which may be exchanged, it is a sum over a grid of spacing h, which for integrands that are smooth and fall
// like Gaussians converges faster than any power of h.
func waveEvidence(f func(float64) float64, h float64) float64 {
	data := wave().Train
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
	v := waveNoise * waveNoise
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

// A network 1-2-1 has the evidence that quadrature gives, by importance sampling with the canonical order and without,
// and by SMC: |G| is 8 with tanh and 2 with ReLU, so that the log evidence would be off by 2.1 or .7 if |G| were
// forgotten, and by 1.4 if ReLU's units had images with other signs. Beyond 4 standard errors is 1 of 15000.
func TestAnnealedNetwork(t *testing.T) {
	for _, c := range []struct {
		activation nn.Activation
		f          func(float64) float64
		h, images  float64
	}{
		{nn.Tanh, math.Tanh, .5, 8},
		{nn.ReLU, func(x float64) float64 { return max(x, 0) }, .25, 2},
	} {
		want := waveEvidence(c.f, c.h)
		trainer := pmcnet.NewTrainer(waveModel(c.activation))
		defer trainer.Close()
		for _, unordered := range []bool{false, true} {
			a := pmcnet.Annealed{Sampling: smc.Settings{Particles: 1000}, Draws: 5000, Unordered: unordered}
			r, err := trainer.Fit(t.Context(), a, wave(), goSettings(t))
			if err != nil {
				t.Fatal(err)
			}
			said := r.Annealed
			t.Logf("%s: exact %.3f, importance %.3f +- %.3f, SMC %.3f +- %.3f; k-hat %.2f, ESS %.0f, %.2f outside, %d components "+
				"of DoF %.0f, %v", c.activation, want, said.ImportanceEvidence.Value, said.ImportanceEvidence.StdErr,
				said.SMCEvidence.Value, said.SMCEvidence.StdErr, said.KHat, said.ESS, said.Outside, said.Components, said.DoF,
				r.Elapsed)
			for _, e := range []bayes.Evidence{said.ImportanceEvidence, said.SMCEvidence} {
				if !(math.Abs(e.Value-want) < 4*e.StdErr && e.StdErr < .15) {
					t.Errorf("%s, unordered %v: log evidence %.3f +- %.3f, exact %.3f", c.activation, unordered, e.Value, e.StdErr,
						want)
				}
			}
			images := c.images
			if unordered {
				images = 1
			}
			if math.Abs(said.LogImages-math.Log(images)) > 1e-12 || (said.Outside == 0) != unordered || (said.Order == "") ==
				unordered || !said.Importance {
				t.Errorf("%s, unordered %v: %+v", c.activation, unordered, said)
			}
		}
	}
}
