package baseline

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
)

// A draw of dropout is the mean parameters lambda times 0 or exactly 1/(1-p) for a weight, the same for all weights of
// a unit, and as they are for a bias: so its mean is lambda, and a network starts with activations of the size that its
// initialisers mean. (Training does not show it: a family without the factor has the same draws, of other lambda.)
func TestDropoutKeepsTheMean(t *testing.T) {
	const rate, count = .3, 4000
	model := bayes.Model{Network: nn.MLP{Hidden: []int{3}}, Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}
	bound, err := model.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	lambda := make([]float64, bound.D)
	for i := range lambda {
		lambda[i] = 1 + .25*float64(i) // exact in float32
	}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		family := dropoutFamily{rate, bound, dtype}
		draws := computetest.Run(t, engine, func(g *graph.Graph, args []*graph.Node) []*graph.Node {
			return []*graph.Node{family.draw(graph.ConvertDType(args[0], dtype), random.New(g, 5), count)}
		}, lambda)[0]
		for _, slot := range bound.Slots {
			if slot.Kind == nn.Weights {
				out, in := slot.Shape[0], slot.Shape[1]
				for j := range count {
					v := draws[j*bound.D+slot.Offset:]
					for k := range out * in {
						if (v[k] == 0) != (v[k%in] == 0) {
							t.Fatalf("%s: draw %d drops unit %d for some of its weights", slot.Name, j, k%in)
						}
					}
				}
			}
			for i := slot.Offset; i < slot.Offset+slot.Size(); i++ {
				mean := 0.0
				for j := range count {
					v := draws[j*bound.D+i] / lambda[i]
					mean += v / count
					switch {
					case slot.Kind == nn.Weights && (v == 0 || math.Abs(v*(1-rate)-1) < 1e-6):
					case slot.Kind != nn.Weights && v == 1:
					default:
						t.Fatalf("%s: draw %d is %v times the mean", slot.Name, j, v)
					}
				}
				// The factor has variance p/(1-p); 4.5 standard errors are a false alarm of 7e-6.
				if z := (mean - 1) / math.Sqrt(rate/(1-rate)/count); math.Abs(z) > 4.5 {
					t.Errorf("%s: the mean of %d draws is %.4f times lambda (z = %.1f)", slot.Name, count, mean, z)
				}
			}
		}
	})
}
