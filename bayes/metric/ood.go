package metric

import (
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/internal/stats"

	"gonum.org/v1/gonum/floats"
)

// This file scores the rows of a classification by how little the model knows them. Each score is one number for each
// row, [Rows], and larger for rows that are more likely from outside the training part's distribution. Detect measures
// how well a score finds such rows.

// Energy is the weighted mean over particles of the free energy of their logits, -sum_j w_j log sum_c exp f_jc(x),
// [Rows], for bayes.Categorical (Liu, Wang, Owens and Li 2020, Energy-based out-of-distribution detection, section 2;
// at their temperature 1). The paper of guided OHSMC uses it (section 4.2.4) and does not say how it averages over
// particles; this is the mean of each particle's own energy.
//
// A number added to all logits of a row changes its energy and no probability: nothing but the prior and the weights'
// start fixes this number. Other likelihoods, such as bayes.Bernoulli with its single output, have no logit for each
// class, and are an error: take Entropy for them.
func Energy(p bayes.Prediction) ([]float64, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("metric: %w", err)
	}
	if _, ok := p.Likelihood.(bayes.Categorical); !ok {
		return nil, fmt.Errorf("metric: Energy is for bayes.Categorical, whose outputs are a logit for each class, but "+
			"the likelihood is %T: take Entropy, MutualInformation or LeastConfidence", p.Likelihood)
	}
	energy := make([]float64, p.Rows)
	e := newEnsemble(p)
	for i, j := range e.alive {
		for n := range energy {
			at := (j*p.Rows + n) * p.Width
			energy[n] -= e.weights[i] * floats.LogSumExp(p.Outputs[at:at+p.Width])
		}
	}
	return energy, nil
}

// Entropy is the entropy of the averaged class probabilities, -sum_c p_c log p_c with p = sum_j w_j p(c | f_j(x)), in
// nats, [Rows], for classification: all the uncertainty about a row's class.
func Entropy(p bayes.Prediction) ([]float64, error) {
	return ofProbabilities(p, func(probabilities []float64) float64 {
		largest, others := splitLargest(probabilities)
		entropy := 0.
		for c, v := range probabilities {
			if c != largest && v > 0 {
				entropy -= v * math.Log(v)
			}
		}
		return entropy - (1-others)*math.Log1p(-others) // exact for the largest near 1 too
	})
}

// LeastConfidence is 1 - max_c p_c of the averaged class probabilities, [Rows], for classification: 1 less the maximum
// probability (the baseline of Hendrycks and Gimpel 2017).
func LeastConfidence(p bayes.Prediction) ([]float64, error) {
	return ofProbabilities(p, func(probabilities []float64) float64 {
		_, others := splitLargest(probabilities)
		return others
	})
}

func ofProbabilities(p bayes.Prediction, score func([]float64) float64) ([]float64, error) {
	probabilities, err := p.Probabilities()
	if err != nil {
		return nil, fmt.Errorf("metric: %w", err)
	}
	scores := make([]float64, p.Rows)
	for n, row := range probabilities {
		scores[n] = score(row)
	}
	return scores, nil
}

// splitLargest is the class of largest probability, and the sum of all others: 1 less the largest, without the rounding
// that makes all confident rows equal.
func splitLargest(probabilities []float64) (largest int, others float64) {
	largest = floats.MaxIdx(probabilities)
	for c, v := range probabilities {
		if c != largest {
			others += v
		}
	}
	return largest, others
}

// MutualInformation is the mutual information of a row's class and the particle, in nats, [Rows], for classification:
// the entropy of the averaged class probabilities less the weighted mean of the particles' own entropies. It is the
// part of the uncertainty that more data would remove: 0 if all particles agree (BALD; Houlsby, Huszar, Ghahramani and
// Lengyel 2011).
func MutualInformation(p bayes.Prediction) ([]float64, error) {
	probabilities, err := p.Probabilities()
	if err != nil {
		return nil, fmt.Errorf("metric: %w", err)
	}
	// The difference of entropies is the mean divergence of the particles' probabilities p from the averaged ones q, sum_j
	// w_j sum_c q_c g(p_jc/q_c) with g(x) = x log x - x + 1. Its terms are not negative, so that nothing cancels.
	information, own := make([]float64, p.Rows), make([]float64, p.Classes())
	e := newEnsemble(p)
	for i, j := range e.alive {
		for n, averaged := range probabilities {
			stats.Probabilities(p.Distribution(j, n, 0), own)
			for c, q := range averaged {
				if q > 0 {
					information[n] += e.weights[i] * q * divergence(own[c]/q)
				}
			}
		}
	}
	return information, nil
}

// divergence is x log x - x + 1 for x >= 0, which is about (x-1)^2 / 2 near 1.
func divergence(x float64) float64 {
	if x == 0 {
		return 1
	}
	d := x - 1
	if math.Abs(d) > .5 {
		return x*math.Log(x) - d
	}
	return max(x*math.Log1p(d)-d, 0)
}
