package bayes_test

import (
	"fmt"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// The proposed model is for the data's task, and draws from its prior have outputs of about the size of a standardised
// target's, whatever the number of features. Pictures are refused.
func TestModelFor(t *testing.T) {
	const rows, draws = 40, 50
	for task, want := range map[dataset.Task]bayes.Likelihood{
		dataset.Regression: bayes.HeteroscedasticT{}, dataset.BinaryClassification: bayes.Bernoulli{},
		dataset.Classification: bayes.Categorical{},
	} {
		if task == dataset.Regression {
			d := dataset.Dataset{Features: []string{"x"}, Target: "y", X: mat.NewDense(1, 1, nil), Y: []float64{1}}
			counts, times := d, d
			counts.Exposure, times.Censored = []float64{2}, []bool{true}
			for of, want := range map[*dataset.Dataset]bayes.Likelihood{
				&counts: bayes.NegativeBinomial{}, &times: bayes.Heteroscedastic{},
			} {
				if m, err := bayes.ModelFor(of); err != nil || m.Likelihood != want {
					t.Errorf("%+v: likelihood %T, %v", of.Extras(), m.Likelihood, err)
				}
			}
		}
		for _, inputs := range []int{2, 80} {
			data := &dataset.Dataset{Name: "some", Task: task, Target: "y", Y: make([]float64, rows)}
			if task != dataset.Regression {
				data.Classes = []string{"a", "b"}
			}
			for j := range inputs {
				data.Features = append(data.Features, fmt.Sprint("x", j))
			}
			x := mat.NewDense(rows, inputs, wave(rows*inputs, 1.7))
			scaled, err := dataset.FitScaler(x).Apply(x)
			if err != nil {
				t.Fatal(err)
			}
			data.X = scaled
			m, err := bayes.ModelFor(data)
			if err != nil || m.Likelihood != want {
				t.Fatalf("%v: likelihood %T, %v", task, m.Likelihood, err)
			}
			m.Stochastic = bayes.All()
			for _, own := range m.Likelihood.Parameters(1) {
				m.Stochastic = m.Stochastic.And(bayes.Names(own.Name))
			}
			bound := computetest.Must(m.Bind(inputs, data.Outputs()))
			phi := computetest.Run(t, computetest.Go(t), func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
				return []*graph.Node{bound.SamplePrior(random.New(g, 5), compute.Float64, draws)}
			})[0]
			posterior := computetest.Must(bayes.NewPosterior(bound, bayes.Draws{
				Phi: compute.Floats(compute.Float64, phi, draws, bound.D), LogWeights: bayes.EqualLogWeights(draws),
			}, bayes.Origin{Engine: computetest.Go(t)}))
			outputs := predict(t, posterior, scaled).Outputs
			if s := stat.StdDev(outputs, nil); s < .7 || s > 3 {
				t.Errorf("%v, %d features: outputs have standard deviation %.2f", task, inputs, s)
			}
		}
	}
	pictures := &dataset.Dataset{Name: "pictures", Features: []string{"p"}, Target: "y", Y: []float64{1, 2},
		X: dataset.NewPixels([]byte{1, 2}, 1)}
	if _, err := bayes.ModelFor(pictures); err == nil || !strings.Contains(err.Error(), "nn.CNN") {
		t.Errorf("pictures: %v", err)
	}
}
