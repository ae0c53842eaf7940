package auto

import (
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
)

// wider is how much wider the prior of a layer is than its trained weights are.
const wider = 1.5

// chainsModel is the model with all parameters stochastic, and the prior of the chains. Where the model's is a
// bayes.Normal by width, as bayes.ModelFor proposes, it is widened: a layer's standard deviation follows the weights of
// trained networks, their root mean square times 1.5, and is at least what it was. It is rounded to a power of two, so
// that fits of the same shape share a compiled program. The proposed prior is too narrow for functions that turn often,
// and N(0, 1) too wide for few rows.
func chainsModel(j *fit.Job, networks *bayes.Posterior) (*bayes.Model, error) {
	whole, err := j.Whole()
	if err != nil {
		return nil, err
	}
	model := whole.Bound.Model
	given, ok := model.Prior.(bayes.Normal)
	if !ok || !given.ByWidth {
		return &model, nil
	}
	draws, err := networks.Draws()
	if err != nil {
		return nil, err
	}
	values, err := compute.Float64s(draws.Phi)
	if err != nil {
		return nil, err
	}
	prior := bayes.Normal{StdDev: given.StdDev, PerLayer: map[int]float64{}}
	for _, slot := range whole.Bound.Slots {
		if slot.Kind != nn.Weights {
			continue
		}
		sum := 0.
		for member := range networks.Particles() {
			from := member*whole.Bound.D + slot.Offset
			for _, w := range values[from : from+slot.Size()] {
				sum += w * w
			}
		}
		variance := sum / float64(networks.Particles()*slot.Size())
		scale := max(wider*math.Sqrt(variance), given.Scale(slot.Parameter))
		prior.PerLayer[slot.Layer] = math.Exp2(math.Round(math.Log2(scale)))
		j.Choose(fmt.Sprintf("prior's standard deviation in layer %d", slot.Layer), prior.PerLayer[slot.Layer])
	}
	model.Prior = prior
	return &model, nil
}
