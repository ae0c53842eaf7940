//go:build digests

package fit_test

import (
	"crypto/sha256"
	"encoding/binary"
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
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/fbnn"
	"gobnn/ohsmc"
	"gobnn/pmcnet"

	"github.com/gomlx/gomlx/core/tensors"
)

// TestDigests holds the result of every method to the bit, while the rooms around the steps are rebuilt: its draws,
// shared parameters, weights, evidence and curves, on a linear model and on a small network, on both backends. The
// digests of a machine are written, by UPDATE=1, into the folder that DIGESTS names; on another processor XLA may round
// otherwise.
//
//	DIGESTS=/somewhere go test -tags digests -run TestDigests ./bayes/fit
func TestDigests(t *testing.T) {
	folder := os.Getenv("DIGESTS")
	if folder == "" {
		t.Fatal("DIGESTS is not set: it names the folder of the digests")
	}
	engines := map[string]*compute.Engine{"go": computetest.Go(t), "xla": computetest.XLA(t, "both are held")}
	parts, err := plane(90).Split(dataset.Fractions{Train: .5, Validation: .2, Test: .3}, 1)
	if err != nil {
		t.Fatal(err)
	}
	networks := map[string]bayes.Model{
		"line": {
			Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All(),
			Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
		},
		"net": {Network: nn.MLP{Hidden: []int{3}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: sd}},
		"partial": {
			Network: nn.MLP{Hidden: []int{3}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: sd},
			Stochastic: bayes.Layers(1),
		},
	}
	for backend, engine := range engines {
		for network, model := range networks {
			for _, m := range append(every(), others()...) {
				if network == "partial" && !strings.HasPrefix(m.name, "ohsmc") && m.name != "baseline: VI" ||
					network == "net" && (strings.HasPrefix(m.name, "ohsmc") || strings.Contains(m.name, "mine")) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", backend, network, m.name), func(t *testing.T) {
					model := model
					if network == "net" {
						model.Stochastic = bayes.Partition{}
						if strings.HasPrefix(m.name, "mcmc") || strings.HasPrefix(m.name, "smc") {
							model.Stochastic = bayes.All()
						}
					} else if from, _, _ := strings.Cut(m.name, ": "); network == "line" && (from == "baseline" || from == "pbnn") {
						model.Stochastic = bayes.Partition{}
					}
					result, err := m.fit(t.Context(), model, parts, run.Settings{Seed: 3, Engine: engine})
					if err != nil && result == nil {
						compare(t, folder, "error "+firstLine(err))
						return
					}
					compare(t, folder, digest(t, result))
				})
			}
		}
	}
}

// others are further settings of methods.
func others() []method {
	short := particles.Training{Particles: 50, BatchSize: 9, Epochs: 2}
	return []method{
		{name: "pmcnet: PMCnet-light", Method: pmcnet.PMC{
			Ascent: pmcnet.MiniBatchAscent, Proposals: 10, Draws: 20, Iterations: 5,
		}},
		{name: "pmcnet: DM-PMC", Method: pmcnet.PMC{
			Ascent: pmcnet.NoAscent, Covariance: pmcnet.FixedCovariance, Proposals: 10, Draws: 20, Iterations: 5,
		}},
		{name: "pmcnet: gradient-free", Method: pmcnet.PMC{
			Ascent: pmcnet.NoAscent, Proposals: 10, Draws: 20, Iterations: 5, Start: pmcnet.FromPrior,
		}},
		{name: "fbnn: likelihood", Method: fbnn.CES{
			Emulates: fbnn.LogLikelihood, Regressor: fbnn.RandomNetwork{}, Pairs: 60, PairsWarmUp: 50, Draws: 100,
		}},
		{name: "ohsmc: default", Method: ohsmc.OpenHorizon{Training: short}},
		{name: "ohsmc: guided default", Method: ohsmc.Guided{Training: short}},
		{name: "ohsmc: SMC default", Method: ohsmc.SMC{Training: short}},
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// digest identifies what a run has found.
func digest(t *testing.T, r *fit.Result) string {
	t.Helper()
	hash := sha256.New()
	numbers := func(values []float64) {
		for _, v := range values {
			if math.IsNaN(v) {
				v = math.Inf(-1)
			}
			hash.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
		}
	}
	draws, err := r.Posterior.Draws()
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []*tensors.Tensor{draws.Phi, draws.Psi} {
		if of != nil {
			values, err := compute.Float64s(of)
			if err != nil {
				t.Fatal(err)
			}
			numbers(values)
		}
	}
	numbers(draws.LogWeights)
	numbers([]float64{draws.Evidence.Value, draws.Evidence.StdErr, float64(draws.Chains)})
	found := fmt.Sprintf("%x", hash.Sum(nil)[:8])
	hash.Reset()
	curves := slices.Clone(r.Curves)
	slices.SortFunc(curves, func(a, b fit.Curve) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range curves {
		hash.Write([]byte(c.Name))
		numbers(c.Values)
	}
	return fmt.Sprintf("%s curves %x %s", found, hash.Sum(nil)[:8], r.Status)
}

// compare holds what was found to the digest that is kept; UPDATE=1 keeps it.
func compare(t *testing.T, folder, found string) {
	t.Helper()
	file := filepath.Join(folder, strings.NewReplacer("/", "_", " ", "-", ",", "", ":", "").Replace(t.Name()))
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(found), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != found {
		t.Errorf("found %s, kept %s", found, kept)
	}
}
