package fit_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/ohsmc"

	"gonum.org/v1/gonum/mat"
)

// normed normalises the features, and what a dense layer makes of them, by mini-batches.
type normed struct{}

func init() { bayes.Register(normed{}) }

const hidden = 3

// Layers implements nn.Network.
func (normed) Layers(inputs, outputs int) ([]nn.Layer, error) {
	return []nn.Layer{
		nn.BatchNorm{Number: 1, Height: 1, Width: 1, Channels: inputs}, nn.Dense{Number: 2, In: inputs, Out: hidden},
		nn.BatchNorm{Number: 3, Height: 1, Width: 1, Channels: hidden}, nn.Tanh,
		nn.Dense{Number: 4, In: hidden, Out: outputs},
	}, nil
}

// normedModel has a distribution of the last layer, with data in their own units.
var normedModel = bayes.Model{
	Network: normed{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.Layers(4),
	Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
}

// parameter is a parameter of particle j, or one that all share.
func parameter(t *testing.T, p *bayes.Posterior, name string, j int) []float64 {
	t.Helper()
	values, own, err := p.Parameter(name)
	if err != nil {
		t.Fatal(err)
	}
	if !own {
		return values
	}
	size := len(values) / p.Particles()
	return values[j*size : (j+1)*size]
}

// Every method that trains moves the running statistics by each mini-batch, without the padding of the last one, as a
// loop in Go does; a posterior with these, saved and loaded too, predicts a row by itself as it does among others.
func TestBatchNormStatistics(t *testing.T) {
	const size, epochs, seed = 8, 3, 5
	still := train.Adam{Schedule: train.Constant(1e-30)} // the parameters stay where they begin
	points := train.Training{Epochs: epochs, BatchSize: size, Optimiser: still}
	training := particles.Training{Particles: 5, Epochs: epochs, BatchSize: size, Optimiser: still}
	few := mcmc.Chains{Kernel: mcmc.HMC{StepSize: .01, Steps: 2}, Chains: 2, Draws: 3, WarmUp: 3}
	data := plane(23) // whose last batch has a row of padding
	for _, m := range []fit.Method{
		baseline.MLE{Training: points}, baseline.MAP{Training: points}, baseline.Ensemble{Training: points, Members: 3},
		baseline.SAE{Training: points, Chains: 2, Members: 1}, baseline.Dropout{Training: points},
		baseline.VI{Training: points}, baseline.Laplace{Training: points},
		baseline.MAPHMC{Training: points, Chains: few},
		ohsmc.OpenHorizon{Training: training}, ohsmc.Guided{Training: training, Proposal: ohsmc.Langevin{}},
		ohsmc.SMC{Training: training, Moves: 1},
	} {
		t.Run(fmt.Sprintf("%T", m), func(t *testing.T) {
			s := run.Settings{Seed: seed, Engine: computetest.Go(t), DType: compute.Float64}
			result, err := fit.Fit(t.Context(), normedModel, m, dataset.Parts{Train: data}, s)
			if err != nil {
				t.Fatal(err)
			}
			p := result.Posterior
			batches, err := dataset.NewEpochBatches(data.Rows(), size, seed)
			if err != nil {
				t.Fatal(err)
			}
			members := 1
			if _, own, _ := p.Parameter("layer1/mean"); own {
				members = p.Particles()
			}
			for j := range members {
				weights, biases := parameter(t, p, "layer2/weights", j), parameter(t, p, "layer2/biases", j)
				first, second := newRunning(2), newRunning(hidden)
				for step := range epochs * batches.PerEpoch() {
					var x, h [][]float64
					batch := batches.At(step)
					for _, n := range batch.Rows[:batch.Count] {
						x = append(x, data.X.(*mat.Dense).RawRowView(int(n)))
					}
					for _, z := range first.normalise(x) {
						row := slices.Clone(biases)
						for o := range row {
							for i, v := range z {
								row[o] += weights[o*len(z)+i] * v
							}
						}
						h = append(h, row)
					}
					second.normalise(h)
				}
				for name, want := range map[string][]float64{
					"layer1/mean": first.mean, "layer1/variance": first.variance,
					"layer3/mean": second.mean, "layer3/variance": second.variance,
				} {
					computetest.Near(t, fmt.Sprintf("%s of %d", name, j), parameter(t, p, name, j), want, 1e-10)
				}
			}

			file := filepath.Join(t.TempDir(), "posterior")
			if err := p.Save(file); err != nil {
				t.Fatal(err)
			}
			loaded, err := bayes.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			all, err := p.Predict(t.Context(), data.X)
			if err != nil {
				t.Fatal(err)
			}
			again, err := loaded.On(s.Engine).Predict(t.Context(), data.X)
			if err != nil || !slices.Equal(again.Outputs, all.Outputs) {
				t.Errorf("what was saved predicts otherwise (%v)", err)
			}
			const row = 4
			one, err := p.Predict(t.Context(), mat.NewDense(1, 2, data.X.(*mat.Dense).RawRowView(row)))
			if err != nil {
				t.Fatal(err)
			}
			for j, got := range one.Outputs {
				if want := all.Outputs[j*data.Rows()+row]; math.IsNaN(got) || math.Abs(got-want) > 1e-12*math.Abs(want) {
					t.Errorf("a row by itself gives %v, and %v among others", got, want)
				}
			}
		})
	}
}

// running are the running statistics of a layer.
type running struct{ mean, variance []float64 }

func newRunning(channels int) running {
	return running{make([]float64, channels), slices.Repeat([]float64{1}, channels)}
}

// normalise moves the statistics by a mini-batch, which it normalises.
func (r running) normalise(x [][]float64) [][]float64 {
	n := float64(len(x))
	z := make([][]float64, len(x))
	for c := range r.mean {
		mean, variance := 0., 0.
		for _, row := range x {
			mean += row[c] / n
		}
		for _, row := range x {
			variance += (row[c] - mean) * (row[c] - mean) / n
		}
		for i, row := range x {
			z[i] = append(z[i], (row[c]-mean)/math.Sqrt(variance+1e-5))
		}
		r.mean[c] += .1 * (mean - r.mean[c])
		r.variance[c] += .1 * (variance*n/(n-1) - r.variance[c])
	}
	return z
}

// A training with running statistics goes on from a checkpoint to the same bits, and its best validation is one with
// the statistics of that step.
func TestBatchNormResumes(t *testing.T) {
	data := plane(40)
	parts, err := data.Split(dataset.Fractions{Train: .6, Validation: .4}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []fit.Method{
		baseline.MAP{Training: train.Training{Epochs: 6, BatchSize: 10}},
		baseline.Ensemble{Training: train.Training{Epochs: 6, BatchSize: 10}, Members: 2},
		ohsmc.OpenHorizon{Training: particles.Training{Particles: 8, Epochs: 6, BatchSize: 10}},
		ohsmc.SMC{Training: particles.Training{Particles: 8, Epochs: 3, BatchSize: 10}, Moves: 1},
	} {
		s := run.Settings{Seed: 2, Engine: computetest.Go(t)}
		whole, err := fit.Fit(t.Context(), normedModel, m, parts, s)
		if err != nil {
			t.Fatal(err)
		}
		s.Checkpoint = filepath.Join(t.TempDir(), "run")
		for now, err := range fit.Steps(t.Context(), normedModel, m, parts, s) {
			if err != nil {
				t.Fatal(err)
			}
			if now.Step == 4 {
				break
			}
		}
		resumed, err := fit.Fit(t.Context(), normedModel, m, parts, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, slot := range whole.Posterior.Bound().Slots {
			for j := range whole.Posterior.Particles() {
				a, b := parameter(t, whole.Posterior, slot.Name, j), parameter(t, resumed.Posterior, slot.Name, j)
				if !slices.Equal(a, b) {
					t.Errorf("%T: %s is %v, and %v of a run that was resumed", m, slot.Name, a, b)
				}
			}
		}
	}
}

// A mini-batch of one row, a normalisation behind the first stochastic layer, statistics that are to be sampled, and
// methods that cannot have any, are refused.
func TestBatchNormRefused(t *testing.T) {
	data := dataset.Parts{Train: plane(23)}
	s := run.Settings{Engine: computetest.Go(t)}
	points := train.Training{Epochs: 1, BatchSize: 8}
	ensemble, err := fit.Fit(t.Context(), normedModel, baseline.Ensemble{Training: points, Members: 2}, data, s)
	if err != nil {
		t.Fatal(err)
	}
	whole, behind := normedModel, normedModel
	whole.Stochastic = ensemble.Posterior.Model().Stochastic
	behind.Stochastic = bayes.Layers(2)
	one, eleven := points, points
	one.BatchSize, eleven.BatchSize = 1, 11
	for _, c := range []struct {
		name   string
		model  bayes.Model
		method fit.Method
		says   []string
	}{
		{"one row", normedModel, baseline.MAP{Training: one}, []string{"one row", "another BatchSize than 1"}},
		{"one row is left", normedModel, baseline.VI{Training: eleven}, []string{"one row", "another BatchSize than 11"}},
		{"one row is left, ohsmc", normedModel, ohsmc.OpenHorizon{Training: particles.Training{BatchSize: 11}},
			[]string{"one row", "another BatchSize than 11"}},
		{"behind", behind, baseline.MAP{Training: points}, []string{"layer 3", "nn.FilterResponse"}},
		{"of each particle", whole, ohsmc.OpenHorizon{}, []string{"normed", "leave them out of Model.Stochastic"}},
		{"an ensemble's", bayes.Model{}, fit.From{Trained: ensemble.Posterior, Method: mcmc.Chains{}},
			[]string{"normed", "baseline.MAP"}},
		{"SWAG", normedModel, baseline.SWAG{Training: points}, []string{"SWAG", "normed", "nn.FilterResponse"}},
	} {
		_, err := fit.Fit(t.Context(), c.model, c.method, data, s)
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v does not say %q", c.name, err, want)
			}
		}
	}
}
