//go:build long

package annealed_test

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/pmcnet/annealed"

	"gonum.org/v1/gonum/stat"
)

// Four devices share the particles of Annealed's SMC and bridge, and its draws and evidence are those of one device but
// for rounding.
func TestDevicesLong(t *testing.T) {
	settings := run.Settings{Seed: 1, Engine: computetest.Several(t), DType: compute.Float64}
	a := few
	a.Bridge = annealed.BridgeAlways
	var evidence []float64
	for _, settings.Devices = range []int{1, 4} {
		r, err := fitted(t.Context(), waveModel(nn.Tanh), a, wave(), settings)
		if err != nil {
			t.Fatal(err)
		}
		said := estimates(r)
		t.Logf("%d devices: SMC %+v, bridge %+v, %v", settings.Devices, said.SMCEvidence, said.BridgeEvidence, r.Elapsed)
		evidence = append(evidence, said.SMCEvidence.Value, said.BridgeEvidence.Value)
	}
	computetest.Near(t, "evidence", evidence[2:], evidence[:2], 1e-6)
}

// coverage says whether estimates have the errors that they state: their standard deviation about what is right, which
// NaN means to be their mean, is within so many per cent of the root mean square of the stated errors, and nearly as
// many as 95 % lie within 1.96 of their own. Of 100 runs the former has a standard deviation of 7 %, and the latter are
// fewer than 88 in 1 of 300 tests if errors are normal.
func coverage(t *testing.T, name string, all []bayes.Evidence, right, percent float64) {
	t.Helper()
	var values []float64
	stated, squares, within := 0., 0., 0
	for _, e := range all {
		values = append(values, e.Value)
		stated += e.StdErr * e.StdErr / float64(len(all))
	}
	if math.IsNaN(right) {
		right = stat.Mean(values, nil)
	}
	for _, e := range all {
		off := e.Value - right
		if squares += off * off / float64(len(all)); math.Abs(off) < 1.96*e.StdErr {
			within++
		}
	}
	ratio := math.Sqrt(squares / stated)
	text := fmt.Sprintf("%s: mean %.4f, right %.4f; standard deviation %.4f, stated %.4f; %d of %d within 1.96 errors",
		name, stat.Mean(values, nil), right, math.Sqrt(squares), math.Sqrt(stated), within, len(all))
	t.Log(text)
	if math.Abs(ratio-1) > percent/100 || float64(within) < .88*float64(len(all)) {
		t.Error(text)
	}
}

// Over 100 seeds the standard errors that the estimators state of the log evidence are those of the runs, of all three:
// .0104 stated and .0106 of the weighted draws, .019 and .020 of the bridge, .21 and .17 of the SMC, with 95, 95 and 96
// runs within 1.96 of their errors.
func TestCoverageLong(t *testing.T) {
	l := regression(5, 50, 1)
	_, _, want := l.Posterior()
	posed := problem(l)
	settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	a := few
	a.Bridge = annealed.BridgeAlways
	var byImportance, byBridge, bySMC []bayes.Evidence
	for seed := range uint64(100) {
		settings.Seed = seed
		r, err := sampled(t.Context(), posed, a, settings)
		if err != nil {
			t.Fatal(err)
		}
		said := estimates(r)
		byImportance, byBridge = append(byImportance, said.ImportanceEvidence), append(byBridge, said.BridgeEvidence)
		bySMC = append(bySMC, said.SMCEvidence)
	}
	coverage(t, "importance sampling", byImportance, want, 25)
	coverage(t, "bridge", byBridge, want, 25)
	coverage(t, "SMC", bySMC, want, 25)
}

// Over 100 seeds the standard errors that SMC, the bridge and the result itself state of the log evidence are those
// of the runs, about their mean, on half of boston with two tanh units: .0903 where .0894 is stated by the SMC, .0462
// and .0474 by the bridge, with 94 and 93 runs within 1.96 of their errors. The result was the weighted draws in four
// runs, as long as a k-hat of .42 to .50 was taken for one below .5: then it was .063 where .049 was stated, and 89.
// The SMC's mean is .054 below the bridge's, which is half of its error. It takes 15 to 25 minutes on two processors:
//
//	go test ./pmcnet/annealed -tags long -run TestEvidenceCoverageLong -timeout 2h -v
func TestEvidenceCoverageLong(t *testing.T) {
	computetest.XLA(t, "takes minutes on the Go backend")
	parts, err := dataset.Boston().PublishedSplit(dataset.Javid, 6)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{
		Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: 1},
		Stochastic: bayes.All(),
	}
	var results, byBridge, bySMC []bayes.Evidence
	for seed := range uint64(100) {
		a := annealed.Annealed{Bridge: annealed.BridgeAlways}
		r, err := fitted(t.Context(), model, a, parts, run.Settings{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		said := estimates(r)
		results = append(results, r.Evidence)
		byBridge, bySMC = append(byBridge, said.BridgeEvidence), append(bySMC, said.SMCEvidence)
		t.Logf("seed %d: %s, SMC %+v, bridge %+v", seed, said.Source, said.SMCEvidence, said.BridgeEvidence)
	}
	coverage(t, "SMC", bySMC, math.NaN(), 25)
	coverage(t, "bridge", byBridge, math.NaN(), 25)
	coverage(t, "result", results, math.NaN(), 25)
}
