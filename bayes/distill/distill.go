// Package distill makes a posterior smaller, for a service that must answer soon: of ten thousand particles it keeps
// the few that predict alike.
package distill

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Error is the largest distance, over the rows, of a distilled posterior's predictions from the whole posterior's.
type Error struct {
	// Mean and StdDev are the differences of the predictive means and standard deviations, in predictive standard
	// deviations of the whole posterior; of a classification they are the difference of a class's probability,
	// and 0.
	Mean, StdDev float64
}

// worst is the larger.
func (e Error) worst() float64 { return max(e.Mean, e.StdDev) }

// Posterior returns a posterior of few particles whose predictions for the rows x, [N, d], such as those of the
// training part, differ from p's by at most within, such as .05, and how far they differ. It adds to the particles, one
// at a time, that which brings the means over the particles of each row's first two moments (of a classification its
// probabilities) nearest to p's: herding (Welling 2009). One that is added twice has twice the weight. The result is p
// itself where no fewer particles do.
func Posterior(ctx context.Context, p *bayes.Posterior, x mat.Matrix, within float64) (*bayes.Posterior, Error, error) {
	if p == nil {
		return nil, Error{}, errors.New("distill: the posterior is nil: check the error of the function that made it")
	}
	if !(within > 0 && within < 1) {
		return nil, Error{}, fmt.Errorf("distill: the largest difference is %v: take a small number between 0 and 1, such "+
			"as .05", within)
	}
	prediction, err := p.Predict(ctx, x)
	if err != nil {
		return nil, Error{}, fmt.Errorf("distill: %w", err)
	}
	features, err := featuresOf(prediction)
	if err != nil {
		return nil, Error{}, fmt.Errorf("distill: %w", err)
	}
	count, off := herd(features, prediction.Weights, within)
	if count == nil {
		return p, Error{}, nil
	}
	small, err := chosen(p, count)
	if err != nil {
		return nil, Error{}, fmt.Errorf("distill: %w", err)
	}
	return small, off, nil
}

// moments are what particles are chosen by: [particles, width] numbers, whose weighted mean is to be kept.
type moments struct {
	of       *mat.Dense
	classify bool
}

// featuresOf are each particle's probabilities, or of each row and target the first two moments about p's mean, in p's
// standard deviations, so that their weighted means are 0 and 1.
func featuresOf(p bayes.Prediction) (moments, error) {
	if p.Task() != dataset.Regression {
		m := moments{of: mat.NewDense(p.Particles, p.Rows*p.Classes(), nil), classify: true}
		for j := range p.Particles {
			one, err := p.Particle(j)
			if err != nil {
				return m, err
			}
			probabilities, err := one.Probabilities()
			if err != nil {
				return m, err
			}
			row := m.of.RawRowView(j)[:0]
			for _, q := range probabilities {
				row = append(row, q...)
			}
		}
		return m, nil
	}
	mean, err := p.Mean()
	if err != nil {
		return moments{}, err
	}
	stdDev, err := p.StdDev()
	if err != nil {
		return moments{}, err
	}
	m := moments{of: mat.NewDense(p.Particles, 2*len(mean), nil)}
	for j := range p.Particles {
		row := m.of.RawRowView(j)
		for i := range mean {
			target := i % p.Columns()
			d := p.Distribution(j, i/p.Columns(), target)
			shift, scale := p.Scale(target)
			a := (shift + scale*d.Mean() - mean[i]) / stdDev[i]
			row[2*i], row[2*i+1] = a, a*a+d.Variance()*(scale/stdDev[i])*(scale/stdDev[i])
			if math.IsNaN(row[2*i+1]) || math.IsInf(row[2*i+1], 0) {
				return m, fmt.Errorf("the predictive variance of row %d is not finite, so that its moments cannot be kept: the "+
					"noise has no variance there", i/p.Columns())
			}
		}
	}
	return m, nil
}

// herd returns how often each particle is taken; nil if no fewer than all particles are within.
func herd(m moments, weights []float64, within float64) (count []int, off Error) {
	particles, width := m.of.Dims()
	goal := make([]float64, width)
	norm := make([]float64, particles) // of each particle's features, squared
	for j := range particles {
		row := m.of.RawRowView(j)
		floats.AddScaled(goal, weights[j], row)
		norm[j] = floats.Dot(row, row)
	}
	count = make([]int, particles)
	sum, mean := make([]float64, width), make([]float64, width)
	distinct, missing := 0, make([]float64, width)
	along := mat.NewVecDense(particles, nil)
	for taken := 1; distinct < particles && taken < 4*particles; taken++ {
		// The nearest of (sum + row)/taken to the goal has the least |row|^2 - 2 row . (taken goal - sum).
		for i := range missing {
			missing[i] = float64(taken)*goal[i] - sum[i]
		}
		along.MulVec(m.of, mat.NewVecDense(width, missing))
		best, least := -1, math.Inf(1)
		for j := range particles {
			if distance := norm[j] - 2*along.AtVec(j); weights[j] > 0 && distance < least {
				best, least = j, distance
			}
		}
		if best < 0 {
			return nil, off
		}
		if count[best] == 0 {
			distinct++
		}
		count[best]++
		floats.Add(sum, m.of.RawRowView(best))
		floats.ScaleTo(mean, 1/float64(taken), sum)
		if off = m.off(mean, goal); off.worst() <= within && distinct < particles {
			return count, off
		}
	}
	return nil, off
}

// off is how far the means of the features are from the whole posterior's.
func (m moments) off(mean, goal []float64) (off Error) {
	for i := range mean {
		if m.classify {
			off.Mean = max(off.Mean, math.Abs(mean[i]-goal[i]))
			continue
		}
		if i%2 == 0 {
			off.Mean = max(off.Mean, math.Abs(mean[i]))
			continue
		}
		variance := mean[i] - mean[i-1]*mean[i-1]
		off.StdDev = max(off.StdDev, math.Abs(math.Sqrt(max(0, variance))-1))
	}
	return off
}

// chosen is the posterior of the particles that were taken. Those of p without weight are not among the predicted ones.
func chosen(p *bayes.Posterior, count []int) (*bayes.Posterior, error) {
	draws, err := p.Draws()
	if err != nil {
		return nil, err
	}
	phi, err := compute.Float64s(draws.Phi)
	if err != nil {
		return nil, err
	}
	dim := p.Bound().D
	var some, logWeights []float64
	alive := 0
	for j, weight := range p.LogWeights().Weights() {
		if weight == 0 {
			continue
		}
		if n := count[alive]; n > 0 {
			some = append(some, phi[j*dim:(j+1)*dim]...)
			logWeights = append(logWeights, math.Log(float64(n)))
		}
		alive++
	}
	origin := p.Origin()
	if origin.Provenance.Approximation != "" {
		origin.Provenance.Approximation += ", "
	}
	origin.Provenance.Approximation += fmt.Sprintf("distilled from %d particles", alive)
	draws.Phi = compute.Floats(draws.Phi.DType(), some, len(logWeights), dim)
	draws.LogWeights, draws.Chains = logWeights, 0
	return bayes.NewPosterior(p.Bound(), draws, origin)
}
