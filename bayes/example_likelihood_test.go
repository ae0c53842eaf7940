package bayes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// logistic is a likelihood of one's own: y = f(x) + s e for each target, with e of the logistic distribution, whose
// tails are between the normal's and the Laplace's.
type logistic struct {
	Scale float64 `json:"scale"` // s, in standardised units
}

// A saved posterior names its likelihood: Load finds the type by it.
func init() { bayes.Register(logistic{}) }

func (l logistic) Task() dataset.Task            { return dataset.Regression }
func (l logistic) Outputs(targets int) int       { return targets } // one f for each
func (l logistic) Parameters(int) []nn.Parameter { return nil }     // s is given

func (l logistic) Check() error {
	if !(l.Scale > 0) || math.IsInf(l.Scale, 1) {
		return errors.New("logistic: Scale must be positive and finite")
	}
	return nil
}

// LogDensity is -|z| - 2 log(1 + exp(-|z|)) - log s with z = (y - f)/s, in which nothing overflows.
func (l logistic) LogDensity(_ nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	z := graph.DivScalar(graph.Sub(bayes.Targets(y), outputs.Full()), l.Scale) // [J/c, K, B, c]
	z = graph.Abs(z)
	density := graph.Sub(graph.Neg(z), graph.MulScalar(graph.Log1p(graph.Exp(graph.Neg(z))), 2))
	return bayes.SumTargets(graph.SubScalar(density, math.Log(l.Scale)))
}

// Predictive is what predictions, scores and figures are made of.
func (l logistic) Predictive(outputs, _ []float64, target int) bayes.Distribution {
	return about{distuv.Logistic{Mu: outputs[target], S: l.Scale}}
}

// about is the distribution about f. gonum's LogProb is another density's where s is not 1, which would be
// refused: LogProb is held to the slope of CDF.
type about struct{ distuv.Logistic }

func (a about) LogProb(y float64) float64 {
	z := math.Abs(y-a.Mu) / a.S
	return -z - 2*math.Log1p(math.Exp(-z)) - math.Log(a.S)
}

// A likelihood of one's own does what the library's do: it is trained with, predicts, is scored, saved and loaded.
func ExampleLikelihood() {
	ctx := context.Background()
	xs := mat.NewDense(40, 1, nil)
	data := &dataset.Dataset{Name: "line", Features: []string{"x"}, Target: "y", X: xs}
	for n := range 40 {
		x := float64(n)/20 - 1
		noise := distuv.Logistic{S: .2}.Quantile((float64(n*7%40) + .5) / 40) // without a random number
		xs.Set(n, 0, x)
		data.Y = append(data.Y, 2*x+1+noise)
	}
	model := bayes.Model{
		Network: nn.MLP{}, Likelihood: logistic{Scale: .2}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}
	method := mcmc.Chains{Kernel: mcmc.HMC{Jitter: .5}, Draws: 100, WarmUp: 150}
	result, err := fit.Fit(ctx, model, method, dataset.Parts{Train: data}, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}

	folder, err := os.MkdirTemp("", "posterior")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "line.safetensors")
	if err := result.Posterior.Save(file); err != nil {
		log.Fatal(err)
	}
	posterior, err := bayes.Load(file)
	if err != nil {
		log.Fatal(err)
	}
	prediction, err := posterior.Predict(ctx, data.X)
	if err != nil {
		log.Fatal(err)
	}
	nlpd, err := metric.NLPD(prediction, data.Y)
	if err != nil {
		log.Fatal(err)
	}
	at, err := posterior.Predict(ctx, mat.NewDense(1, 1, []float64{.5}))
	if err != nil {
		log.Fatal(err)
	}
	mean, err := at.Mean()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T: NLPD %.1f, mean at 0.5 %.1f\n", posterior.Bound().Model.Likelihood, nlpd.Value, mean[0])
	// Output:
	// bayes_test.logistic: NLPD 0.4, mean at 0.5 2.0
}
