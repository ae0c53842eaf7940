package surrogate

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file finds a whitening, top to bottom: the Newton steps to the mode, and W by the curvature there. The Hessian
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

	logDensity float64 // of the target at c: -U(c)
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
// divides particles; none is kept.
//
// It is an error, which wraps errNoMode, if the gradient there is not small after three Newton steps. If the gradient
// has no derivative, as for a network with ReLU, there is no Hessian, which is an error too.
func (p *places) whiten(mode []float64) (*whitening, error) {
	if p.dim > mostDense {
		return nil, fmt.Errorf("surrogate: the problem has %d dimensions: whitened coordinates take at most %d, since they "+
			"have D x D numbers; take mcmc.NUTS, which needs none", p.dim, mostDense)
	}
	w := &whitening{mode: slices.Clone(mode)}
	away := 0.
	for range 4 {
		values, gradients, err := p.gradients(w.mode)
		if err != nil {
			return nil, err
		}
		gradient := gradients.RawRowView(0)
		w.logDensity = values[0]
		if !finite(w.logDensity) || !finite(floats.Sum(gradient)) {
			return nil, fmt.Errorf("%w: the log-density at the given place is %v, or its gradient is not finite", errNoMode,
				w.logDensity)
		}
		rough, err := p.roughness(w.mode, gradient)
		if err != nil {
			return nil, err
		}
		if rough > mostRough {
			return nil, fmt.Errorf("surrogate: the gradient of the log-density has no derivative at the mode: its differences "+
				"with two steps disagree by %.0f %%, so that there is no Hessian to whiten by, as for a network with ReLU; "+
				"take mcmc.NUTS", 100*rough)
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
		if away = floats.Norm(w.offset, 2); away <= nearEnough {
			return w, nil
		}
		if err := p.newton(w); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: at the given place the gradient is not small: the quadratic's minimum is %.3g standard "+
		"deviations away, after three Newton steps; search from elsewhere (Problem.Start), or take mcmc.NUTS, which needs "+
		"none", errNoMode, away)
}

// newton moves the mode to the minimum of the quadratic approximation. If the log-density is not higher there, it tries
// half the way, then a quarter, ten lengths in all, and else stays.
func (p *places) newton(w *whitening) error {
	for share := 1.0; share > 1e-3; share /= 2 {
		z := slices.Clone(w.offset)
		floats.Scale(-share, z)
		next := w.theta(z)
		values, err := p.logDensities(next)
		if err != nil {
			return err
		}
		if values[0] > w.logDensity {
			w.mode = next
			return nil
		}
	}
	return nil
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
	w.toZ, w.toTheta = rowByRow(&lower), rowByRow(&inverse)
	return nil
}

// rowByRow returns the numbers of a matrix, row by row.
func rowByRow(m mat.Matrix) []float64 {
	rows, columns := m.Dims()
	all := make([]float64, 0, rows*columns)
	for i := range rows {
		for k := range columns {
			all = append(all, m.At(i, k))
		}
	}
	return all
}
