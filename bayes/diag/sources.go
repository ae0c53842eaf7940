package diag

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/internal/stats"
)

// named fills in the names of a model's stochastic parameters, such as "layer1/weights[2,0]".
func named(s Sample, bound *bayes.BoundModel) Sample {
	s.Names = make([]string, bound.D)
	for _, slot := range bound.Slots {
		if !slot.Stochastic {
			continue
		}
		for i := range slot.Size() {
			s.Names[slot.Offset+i] = slot.Name + index(i, slot.Shape)
		}
	}
	return s
}

// index is a place in a row-major tensor, such as "[2,0]".
func index(at int, shape []int) string {
	digits := make([]string, len(shape))
	for axis, size := range slices.Backward(shape) {
		digits[axis] = fmt.Sprint(at % size)
		at /= size
	}
	return "[" + strings.Join(digits, ",") + "]"
}

// OfPosterior is [OfSample] for a posterior whose particles are of Markov chains, Posterior.Chains of them. Parameters
// are named. Weights must be equal: for weighted particles see [PSIS].
func OfPosterior(p *bayes.Posterior) (Summary, error) {
	draws, err := drawsOf(p.LogWeights().Weights(), p.Chains())
	if err != nil {
		return Summary{}, err
	}
	s := named(Sample{Chains: p.Chains(), Draws: draws, Parameters: p.Bound().D}, p.Bound())
	c, err := newChains(s, p.Coordinate)
	if err != nil {
		return Summary{}, err
	}
	return c.summary()
}

// OfPrediction is [OfSample] in function space: its parameters are the predictions of each particle for each row. These
// are f(x_n) for regression, the probability of class 1 for two classes, and of each class for more, since logits are
// identified up to a constant only.
//
// The particles must come from Markov chains, as Prediction.Chains says, and have equal weights.
func OfPrediction(p bayes.Prediction) (Summary, error) {
	draws, err := drawsOf(p.Weights, p.Chains)
	if err != nil {
		return Summary{}, err
	}
	if err := p.Validate(); err != nil {
		return Summary{}, fmt.Errorf("diag: %w", err)
	}
	s := Sample{Chains: p.Chains, Draws: draws}
	var columns []string // names of a row's predictions
	if p.Task() == dataset.Regression {
		if s.Values, err = p.ParticleMeans(); err != nil {
			return Summary{}, fmt.Errorf("diag: %w", err)
		}
		columns = functions(len(s.Values) / p.Particles / p.Rows)
	} else {
		first := 0
		if p.Task() == dataset.BinaryClassification {
			first = 1 // the probability of class 0 is 1 minus that of class 1
		}
		for class := first; class < p.Classes(); class++ {
			columns = append(columns, fmt.Sprintf("class %d", class))
		}
		s.Values = probabilities(p, first)
	}
	s.Parameters = p.Rows * len(columns)
	for n := range p.Rows {
		for _, column := range columns {
			s.Names = append(s.Names, fmt.Sprintf("%s, row %d", column, n))
		}
	}
	return OfSample(s)
}

// functions returns the names of the network's functions, one for each target.
func functions(targets int) []string {
	if targets == 1 {
		return []string{"f"}
	}
	names := make([]string, targets)
	for k := range names {
		names[k] = fmt.Sprintf("f%d", k)
	}
	return names
}

// probabilities of the classes from the first on, [Particles, Rows, Classes - first].
func probabilities(p bayes.Prediction, first int) []float64 {
	var out []float64
	own := make([]float64, p.Classes())
	for j := range p.Particles {
		for n := range p.Rows {
			stats.Probabilities(p.Distribution(j, n, 0), own)
			out = append(out, own[first:]...)
		}
	}
	return out
}

// drawsOf is the number of draws of each chain.
func drawsOf(weights []float64, chains int) (int, error) {
	particles := len(weights)
	if chains == 0 {
		return 0, fmt.Errorf("diag: the %d particles come from no Markov chains: for weighted particles see "+
			"PSIS", particles)
	}
	if chains < 1 || particles%chains != 0 {
		return 0, fmt.Errorf("diag: %d particles do not come from %d chains of equal length", particles, chains)
	}
	for j, w := range weights {
		if !(math.Abs(w*float64(particles)-1) <= 1e-6) {
			return 0, fmt.Errorf("diag: particle %d has weight %v, not 1/%d: weighted particles are not a Markov chain; use "+
				"PSIS", j, w, particles)
		}
	}
	return particles / chains, nil
}
