package baseline

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
)

// Dropout is Monte Carlo dropout (Gal and Ghahramani 2016). Each unit before a layer is set to 0 with probability p =
// Rate, and the others are divided by 1 - p, in training and in prediction alike. A mask on the units before a layer is
// the same as a factor on the columns of its weights, W diag(z) / (1 - p). So a draw of masks is a particle. Dropout is
// variational inference where q is the distribution of such draws, and its parameters are the mean weights. Each step
// evaluates Masks particles.
//
// Masks are put before every layer whose weights are stochastic, the first layer's input included; biases and shared
// parameters are points. The objective is the mean over masks of the log-posterior. For a Normal prior of standard
// deviation s that is the weight decay w^2 / (2 s^2 (1 - p)) of the paper's equation 7, with the entropy of q taken as
// a constant, as there. All rows of a batch have the same mask; the usual implementation draws one for each row, which
// estimates the same objective with another variance.
type Dropout struct {
	Training `json:"training,omitzero"`
	Rate     float64 `json:"rate"`    // p, above 0 and below 1; default 0.1
	Masks    int     `json:"masks"`   // of each step; default 10
	Samples  int     `json:"samples"` // particles of the posterior, and of each validation; default 100
}

var _ fit.Method = Dropout{}

// Title implements fit.Method.
func (Dropout) Title() string { return "Monte Carlo dropout (Gal and Ghahramani 2016)" }

// Prepare implements fit.Method.
func (m Dropout) Prepare(j *fit.Job) (_ fit.Method, err error) {
	// As for a maximum: masks are no density, and their entropy does not count.
	if m.Training, err = preparedPoints(j, m.Training); err != nil {
		return nil, err
	}
	if err := limits.Fill("baseline: Dropout",
		limits.Float("Rate", &m.Rate, 0.1).Inside(0, 1),
		limits.Int("Masks", &m.Masks, 10).From(1),
		limits.Int("Samples", &m.Samples, 100).From(1),
	); err != nil {
		return nil, err
	}
	some := false
	for _, slot := range j.Bound.Slots {
		if slot.Stochastic && slot.Kind == nn.Weights {
			some = true
			if len(slot.Shape) != 2 {
				return nil, fmt.Errorf("baseline: Dropout masks the units before a dense layer, but %q has shape %v: make "+
					"it shared", slot.Name, slot.Shape)
			}
		}
	}
	if !some {
		return nil, fmt.Errorf("baseline: Dropout masks the units before layers with stochastic weights, of which the "+
			"model has none:\n%s", j.Bound.Summary())
	}
	return m, nil
}

// Run implements fit.Method.
func (m Dropout) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return fitFamily(ctx, j, m.Training, dropoutFamily{m.Rate, j.Bound, j.DType}, m.Masks, m.Samples)
}

// dropoutFamily is the variational family: lambda are the mean parameters, [D].
type dropoutFamily struct {
	rate  float64
	bound *bayes.BoundModel
	dtype compute.DType
}

func (f dropoutFamily) name() string { return fmt.Sprintf("dropout of %v", f.rate) }
func (f dropoutFamily) width() int   { return f.bound.D }

func (f dropoutFamily) initial(rng random.Stream) *Node {
	return initialStochastic(f.bound, rng, f.dtype)
}

func (f dropoutFamily) draw(lambda *Node, rng random.Stream, count int) *Node {
	return Mul(ExpandAxes(lambda, 0), f.factors(rng, count))
}

// factors returns the masks' factors of the parameters, [count, D]: 0 or 1/(1 - p) for weights, the same for all
// weights of a unit, and 1 for biases.
func (f dropoutFamily) factors(rng random.Stream, count int) *Node {
	var parts []*Node
	for _, slot := range f.bound.Slots {
		if !slot.Stochastic {
			continue
		}
		one := ConstAsDType(rng.Graph(), f.dtype, 1.0)
		if slot.Kind != nn.Weights {
			parts = append(parts, BroadcastToDims(one, count, slot.Size()))
			continue
		}
		out, in := slot.Shape[0], slot.Shape[1]
		u := rng.Named(slot.Name).Uniform(f.dtype, count, in)
		kept := GreaterThan(u, ConstAs(u, f.rate))
		factor := Where(kept, ConstAs(u, 1/(1-f.rate)), ConstAs(u, 0.0))
		parts = append(parts, Reshape(BroadcastToDims(ExpandAxes(factor, 1), count, out, in), count, out*in))
	}
	return Concatenate(parts, 1)
}

func (f dropoutFamily) negativeKL(_, phi *Node) *Node { return ReduceAllMean(f.bound.LogPrior(phi)) }
