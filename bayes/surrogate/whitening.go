package surrogate

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file finds a whitening at a mode: W by the curvature there. The Hessian
// is evaluated in whitening_hessian.go; the ways from theta to z and back are in whitening_coordinates.go.

// whitening holds coordinates z in which a posterior looks like a standard normal near a mode c:
//
//	theta = c + W z,  W' H W = I
//
// with H the Hessian of the potential U = -log p at c. For H = L L' that is W = L^-T. splitHMC moves in these
// coordinates. Its draws are exact for any mode and any W, which only decide how well it mixes.
type whitening struct {
	mode []float64 // c, [D]
	// toZ is L and toTheta its inverse, [D, D] row by row: z = d L and d = z toTheta as rows, with d = theta - c.
	toZ, toTheta []float64

	// offset is the gradient of U at c in the coordinates z, [D]: 0 at a mode. Its length is the distance in standard
	// deviations from c to the minimum of the quadratic approximation.
	offset []float64
}

// mostDense is the largest D of a whitening: products with W take D^2 numbers for each gradient, and its factor D^3
// operations.
const mostDense = 5000

// nearEnough is the largest distance of the quadratic's minimum from a mode, in standard deviations.
const nearEnough = .03

// whiten evaluates the Hessian of -log p at a mode, [D], by differences of gradients in float64, and computes the
// coordinates from it. The gradients are taken for many columns at once, in the parts into which the problem's target
// divides particles; none is kept. It is an error, which wraps errNoMode, if the gradient there is not small.
func (p *places) whiten(mode []float64) (*whitening, error) {
	if p.dim > mostDense {
		return nil, fmt.Errorf("surrogate: the problem has %d dimensions: whitened coordinates take at most %d, since they "+
			"have D x D numbers; take mcmc.NUTS, which needs none", p.dim, mostDense)
	}
	w := &whitening{mode: slices.Clone(mode)}
	values, gradients, err := p.gradients(w.mode)
	if err != nil {
		return nil, err
	}
	gradient := gradients.RawRowView(0)
	if !finite(values[0]) || !finite(floats.Sum(gradient)) {
		return nil, fmt.Errorf("%w: the log-density at the given place is %v, or its gradient is not finite", errNoMode,
			values[0])
	}
	hessian, err := p.hessian(w.mode, gradient)
	if err != nil {
		return nil, err
	}
	if err := w.factor(hessian); err != nil {
		return nil, err
	}
	floats.Scale(-1, gradient)
	w.offset = w.pull(gradient)
	if away := floats.Norm(w.offset, 2); away > nearEnough {
		return nil, fmt.Errorf("%w: where the search ended the gradient is not small: the quadratic's minimum is %.3g "+
			"standard deviations away; search from elsewhere (Problem.Start), or take mcmc.NUTS, which needs none", errNoMode,
			away)
	}
	return w, nil
}

// factor sets W by a Cholesky factor of the Hessian H. A Hessian that is not positive definite has none.
func (w *whitening) factor(hessian *mat.SymDense) error {
	var cholesky mat.Cholesky
	if !cholesky.Factorize(hessian) {
		return fmt.Errorf("%w: the Hessian is not positive definite at the given place, which is a saddle, or the density "+
			"is flat there; search from elsewhere (Problem.Start), or take mcmc.NUTS, which needs none", errNoMode)
	}
	var lower, inverse mat.TriDense
	cholesky.LTo(&lower)
	var ill mat.Condition
	if err := inverse.InverseTri(&lower); err != nil && !errors.As(err, &ill) {
		return fmt.Errorf("surrogate: the Hessian at the mode: %w", err)
	}
	w.toZ, w.toTheta = mat.DenseCopyOf(&lower).RawMatrix().Data, mat.DenseCopyOf(&inverse).RawMatrix().Data
	return nil
}
