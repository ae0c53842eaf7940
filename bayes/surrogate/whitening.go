package surrogate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file finds a Whitening, top to bottom: its settings, the Newton steps to the mode, and W by the curvature there.
// The Hessian is evaluated in whitening_hessian.go; the ways from theta to z and back are in whitening_coordinates.go.

// Whitening holds coordinates z in which a posterior looks like a standard normal near a mode c:
//
//	theta = c + W z,  W' H W = I
//
// with H the Hessian of the potential U = -log p at c. For H = L L' that is W = L^-T. SplitHMC moves in these
// coordinates. Its draws are exact for any mode and any W, which only decide how well it mixes.
type Whitening struct {
	Mode []float64 // c, [D]
	// ToZ is L and ToTheta its inverse, [D, D] row by row: z = d L and d = z ToTheta as rows, with d = theta - c.
	ToZ, ToTheta []float64

	logDensity float64 // of the target at c: -U(c)
	// offset is the gradient of U at c in the coordinates z, [D]: 0 at a mode. decrement is its length, which is the
	// distance in standard deviations from c to the minimum of the quadratic approximation.
	offset    []float64
	decrement float64
	// negative is the number of eigenvalues of the Hessian that are not positive. H is then the Gauss-Newton matrix,
	// which has no negative ones, if the problem has it; else these eigenvalues are replaced by their absolute values,
	// at least a millionth of the largest.
	negative int
	// gaussNewton says that H is the Gauss-Newton matrix, J' J / s^2 plus the prior's Hessian, with J the first
	// derivatives of the network: because the Hessian is not positive, or there is none, as for a network with ReLU.
	gaussNewton bool
	rough       bool          // the gradient has no derivative at c
	gradients   int           // of the log-density on all rows, evaluated for H
	elapsed     time.Duration // spent on H
	notes       []string      // what was done that a user should know: warnings of the Result
}

// mostDense is the largest D of a whitening: products with W take D^2 numbers for each gradient, and its factor D^3
// operations.
const mostDense = 5000

// mostDecrement is the largest distance of the quadratic's minimum from a mode, in standard deviations. A hundredth
// changes nothing of a sampler's acceptance; from half of one on the point is no mode. If the gradient has no
// derivative, modes lie where it jumps, so that it is not 0 in any direction: mostDecrement is then the bound in each
// direction, and sqrt(D) times that the bound on the whole.
const mostDecrement = .3

// whiten evaluates the Hessian of -log p at a mode, [D], by differences of gradients in float64, and computes the
// coordinates from it. The gradients are taken for many columns at once, in the parts into which the problem's target
// divides particles; none is kept.
//
// It is an error, which wraps ErrNoMode, if the gradient there is not small: if, after three Newton steps, another one
// would still be .3 standard deviations long or more. If the gradient has no derivative, as for a network with ReLU,
// the Gauss-Newton matrix replaces the Hessian, which Notes says; for problems that do not have it, as with a Laplace
// likelihood, this is an error.
func (p *places) whiten(mode []float64) (*Whitening, error) {
	began, before := time.Now(), p.Gradients
	d := p.dim
	switch {
	case len(mode) != d:
		return nil, fmt.Errorf("surrogate: the mode has %d coordinates: the problem's dimension is %d", len(mode), d)
	case d > mostDense:
		return nil, fmt.Errorf("surrogate: the problem has %d dimensions: a Whitening takes at most %d, since it has D x D "+
			"numbers; take mcmc.NUTS, which needs none", d, mostDense)
	}
	w := &Whitening{Mode: slices.Clone(mode)}
	for range 4 {
		values, gradient, err := p.gradients(w.Mode)
		if err != nil {
			return nil, err
		}
		w.logDensity = values[0]
		if !finite(w.logDensity) || !finite(floats.Sum(gradient)) {
			return nil, fmt.Errorf("%w: the log-density at the given place is %v, or its gradient is not finite", ErrNoMode,
				w.logDensity)
		}
		if err := w.curved(p, gradient); err != nil {
			return nil, err
		}
		floats.Scale(-1, gradient)
		w.offset = w.pull(gradient)
		w.decrement = floats.Norm(w.offset, 2)
		if w.decrement <= w.enough() {
			w.gradients, w.elapsed = p.Gradients-before, time.Since(began)
			w.note()
			return w, nil
		}
		if err := p.newton(w); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: at the given place the gradient is not small: the quadratic's minimum is %.3g standard "+
		"deviations away, after three Newton steps; search the mode longer (Settings.Iterations) or from elsewhere "+
		"(Problem.Start), or take mcmc.NUTS, which needs none", ErrNoMode, w.decrement)
}

// enough is the decrement at which the search of the mode ends: Newton steps by an H that is not the exact Hessian need
// not come closer.
func (w *Whitening) enough() float64 {
	switch {
	case w.rough:
		return mostDecrement * math.Sqrt(float64(len(w.Mode)))
	case w.gaussNewton:
		return mostDecrement
	}
	return mostDecrement / 10
}

// curved sets W by the curvature at the mode; gradient is the gradient of log p there.
func (w *Whitening) curved(p *places, gradient []float64) error {
	rough, err := p.roughness(w.Mode, gradient)
	if err != nil {
		return err
	}
	w.notes, w.rough, w.gaussNewton = nil, rough > mostRough, false
	of, at := p, w.Mode
	if w.rough {
		at = beside(at)
		linearised, err := p.linearised(at)
		if err != nil {
			return err
		}
		if linearised == nil {
			return fmt.Errorf("surrogate: the gradient of the log-density has no derivative at the mode: its differences "+
				"with two steps disagree by %.0f %%, so that there is no Hessian to whiten by, and the problem has none of "+
				"Gauss and Newton either (as with a Laplace likelihood); take mcmc.NUTS", 100*rough)
		}
		defer func() { p.Gradients += linearised.Gradients; linearised.Close() }()
		of, gradient = linearised, nil
		w.notes = append(w.notes, fmt.Sprintf("the gradient has no derivative at the mode (its differences with two steps "+
			"disagree by %.0f %%): the Hessian of Gauss and Newton is taken, of first derivatives alone", 100*rough))
	}
	err = w.dense(of, at, gradient)
	w.gaussNewton = w.gaussNewton || of != p
	return err
}

// newton moves the mode to the minimum of the quadratic approximation. If the log-density is not higher there, it tries
// half the way, then a quarter, ten lengths in all, and else stays.
func (p *places) newton(w *Whitening) error {
	for share := 1.0; share > 1e-3; share /= 2 {
		z := slices.Clone(w.offset)
		floats.Scale(-share, z)
		next := w.theta(z)
		values, err := p.logDensities(next)
		if err != nil {
			return err
		}
		if values[0] > w.logDensity {
			w.Mode = next
			return nil
		}
	}
	return nil
}

// note records in Notes what a user should know.
func (w *Whitening) note() {
	if w.negative > 0 {
		instead := "these directions are scaled by the absolute value"
		if w.gaussNewton {
			instead = "the Hessian of Gauss and Newton is taken, which has none"
		}
		w.notes = append(w.notes, fmt.Sprintf("the Hessian at the mode has %d of %d eigenvalues that are not positive: it "+
			"is a saddle or flat there; %s", w.negative, len(w.Mode), instead))
	}
}

// dense sets W by the full Hessian. If this is not positive, it takes the Gauss-Newton matrix or, if there is none, the
// absolute values of the Hessian's eigenvalues.
func (w *Whitening) dense(p *places, c, gradient []float64) error {
	d := p.dim
	hessian, err := p.hessian(c, gradient)
	if err != nil {
		return err
	}
	w.negative, w.gaussNewton = 0, false
	if ok, err := w.factor(hessian); ok || err != nil {
		return err
	}
	values, q, err := eigenOf(hessian)
	if err != nil {
		return err
	}
	floor := 1e-6 * math.Max(math.Abs(values[0]), math.Abs(values[d-1]))
	if floor == 0 {
		return fmt.Errorf("%w: the Hessian is 0: the density is flat", ErrNoMode)
	}
	forth, back := mat.NewDense(d, d, nil), mat.NewDense(d, d, nil) // L = Q sqrt(Lambda), and its inverse
	for _, v := range values {
		if v <= 0 {
			w.negative++
		}
	}
	positive, err := p.gaussNewton(c)
	if err != nil {
		return fmt.Errorf("surrogate: the Hessian of Gauss and Newton: %w", err)
	}
	if positive != nil {
		if w.gaussNewton, err = w.factor(positive); w.gaussNewton || err != nil {
			return err
		}
	}
	for k, v := range values {
		root := math.Sqrt(math.Max(math.Abs(v), floor))
		for i := range d {
			forth.Set(i, k, q.At(i, k)*root)
			back.Set(k, i, q.At(i, k)/root)
		}
	}
	w.ToZ, w.ToTheta = rowByRow(forth), rowByRow(back)
	return nil
}

// factor sets W by a Cholesky factor of H, if there is one.
func (w *Whitening) factor(hessian *mat.SymDense) (ok bool, err error) {
	var cholesky mat.Cholesky
	if !cholesky.Factorize(hessian) {
		return false, nil
	}
	var lower, inverse mat.TriDense
	cholesky.LTo(&lower)
	if err := inverse.InverseTri(&lower); err != nil {
		var ill mat.Condition
		if !errors.As(err, &ill) {
			return false, fmt.Errorf("surrogate: the Hessian at the mode: %w", err)
		}
	}
	w.ToZ, w.ToTheta = rowByRow(&lower), rowByRow(&inverse)
	return true, nil
}

// eigenOf returns the eigenvalues of a Hessian, in ascending order, and its eigenvectors, the columns of q.
func eigenOf(hessian *mat.SymDense) (values []float64, q *mat.Dense, err error) {
	var eigen mat.EigenSym
	if !eigen.Factorize(hessian, true) {
		return nil, nil, errors.New("surrogate: the Hessian at the mode has no eigenvalues in floating point")
	}
	q = new(mat.Dense)
	eigen.VectorsTo(q)
	return eigen.Values(nil), q, nil
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
