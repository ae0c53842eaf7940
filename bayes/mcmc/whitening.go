package mcmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gobnn/bayes/compute"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file is how a Whitening is found, top to bottom: its settings, the Newton steps to the mode, and W by the
// curvature there. The Hessian is evaluated in whitening_hessian.go; Kronecker factors are in kronecker.go, and the
// ways from theta to z and back in whitening_coordinates.go.

// Whitening are coordinates z in which a posterior looks like a standard normal near a mode c:
//
//	theta = c + W z,  W' H W = I
//
// with H the Hessian of the potential U = -log p at c. For H = L L' that is W = L^-T. SplitHMC moves in these
// coordinates. Its draws are exact for any mode and any W, which only decide how well it mixes.
type Whitening struct {
	Mode []float64 // c, [D]
	// LogDensity is the target's log-density at c, as it is computed: U(c) = -LogDensity.
	LogDensity float64
	// Structure is the structure of W.
	Structure Structure
	// ToZ is L of a Dense whitening and ToTheta its inverse, [D, D] row by row: z = d L and d = z ToTheta as rows, with
	// d = theta - c.
	ToZ, ToTheta []float64
	// Of a LowRank whitening, H is S^-1 (I + V diag(Roots^2 - 1) V') S^-1: S, [D], and V, [D, r] with orthonormal columns.
	Scale, Vectors, Roots []float64
	// Blocks are the layers of a Kronecker whitening: z of a layer is U' d V times the roots of the eigenvalues.
	Blocks []KroneckerEigen `json:",omitempty"`
	// Offset is the gradient of U at c in the coordinates z, [D]: 0 at a mode. Decrement is its length, which is the
	// distance in standard deviations from c to the minimum of the quadratic approximation.
	Offset    []float64
	Decrement float64
	// Negative is the number of eigenvalues of H that are not positive. A Dense whitening then takes the Gauss-Newton
	// matrix as H, which has no negative ones, if the problem has it; else the absolute values of these eigenvalues, at
	// least a millionth of the largest.
	Negative int
	// GaussNewton says that H is the Gauss-Newton matrix, J' J / s^2 plus the prior's Hessian, with J the first
	// derivatives of the network: because it was asked for, or the Hessian is not positive, or there is none, as for a
	// network with ReLU.
	GaussNewton bool
	Gradients   int           // of the log-density on all rows, evaluated for H
	Elapsed     time.Duration // spent on H
	Notes       []string      // what was done that a user should know

	rough bool // the gradient has no derivative at c
}

// Structure says in which form a Whitening has W, and so how much of the Hessian it knows.
type Structure string

// The structures.
const (
	Dense   Structure = "dense"               // the full Hessian: D gradients and a Cholesky factor
	LowRank Structure = "low rank + diagonal" // the eigenvectors with most information in the data, and a diagonal
	// Kronecker factors of each dense layer's block of the Gauss-Newton matrix: a pass over the rows for each output of
	// the network, and no second derivatives.
	Kronecker Structure = "Kronecker factors"
)

// WhiteningSettings are the settings of NewWhitening. The zero value works.
type WhiteningSettings struct {
	// Structure of W; default: Dense up to D = 1500, LowRank above. Dense costs D gradients, and products with D x D
	// numbers in each step. LowRank costs some 550 gradients, at rank 100, and products with D x 100 numbers. Kronecker,
	// for problems that have layers, costs a gradient for each output of the network, and for each coordinate products
	// with as many numbers as the widest layer is wide; it treats layers as independent, which they are not in a
	// posterior. Whitening.Gradients and Elapsed report the cost.
	Structure Structure
	// Rank of a LowRank; default 100, at most D/4.
	Rank int
	// Scale are the standard deviations that LowRank starts from, [D], such as the prior's; default: 1.
	Scale []float64
	// GaussNewton takes the Gauss-Newton matrix, for problems whose Part has it; default: if the gradient has no
	// derivative, or the Hessian of a Dense whitening is not positive.
	GaussNewton bool
	Engine      *compute.Engine // default compute.Default
}

// mostDense is the largest D of a dense whitening by default. A transition multiplies with W for each gradient, which
// for larger D costs more than the network. Below, a dense whitening pays for its cost: for a network 10-10-1, D = 121,
// given 10 000 rows, 600 draws of SplitHMC have a mean effective sample size of 364 in dense coordinates, 27 in those
// of a low rank (30) and 8 in those of Kronecker factors, which treat layers as independent and so are not chosen by
// default.
const mostDense = 1500

// mostDecrement is the largest distance of the quadratic's minimum from a mode, in standard deviations. A hundredth
// changes nothing of a sampler's acceptance; from half of one on the point is no mode. If the gradient has no
// derivative, modes lie where it jumps, so that it is not 0 in any direction: mostDecrement is then the bound in each
// direction, and sqrt(D) times that the bound on the whole.
const mostDecrement = .3

// NewWhitening evaluates the Hessian of -log p at a mode, [D], by differences of gradients in float64, and computes the
// coordinates from it. The gradients are taken for many columns at once, in the parts into which the problem's target
// divides particles; none is kept.
//
// It is an error, which wraps ErrNoMode, if the gradient there is not small: if, after three Newton steps, another one
// would still be .3 standard deviations long or more. If the gradient has no derivative, as for a network with ReLU,
// the Gauss-Newton matrix replaces the Hessian, which Notes says; for problems that do not have it, as with a Laplace
// likelihood, this is an error.
func NewWhitening(ctx context.Context, problem Problem, mode []float64, s WhiteningSettings) (*Whitening, error) {
	p, err := newPlaces(ctx, s.Engine, problem)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.whiten(mode, s)
}

func (p *places) whiten(mode []float64, s WhiteningSettings) (*Whitening, error) {
	began, before := time.Now(), p.Gradients
	d := p.dim
	if s.Structure == "" {
		s.Structure = Dense
		if d > mostDense {
			s.Structure = LowRank
		}
	}
	s.Rank = min(cmp.Or(s.Rank, 100), max(1, d/4))
	switch {
	case len(mode) != d:
		return nil, fmt.Errorf("mcmc: the mode has %d coordinates: the problem's dimension is %d", len(mode), d)
	case !slices.Contains([]Structure{Dense, LowRank, Kronecker}, s.Structure):
		return nil, fmt.Errorf("mcmc: WhiteningSettings.Structure is %q: it must be %q, %q or %q", s.Structure, Dense,
			LowRank, Kronecker)
	case s.Rank < 1:
		return nil, fmt.Errorf("mcmc: WhiteningSettings.Rank is %d: it must be at least 1 (0: the default, 100)", s.Rank)
	case len(s.Scale) != 0 && len(s.Scale) != d:
		return nil, fmt.Errorf("mcmc: WhiteningSettings.Scale has %d numbers: the problem's dimension is %d", len(s.Scale), d)
	}
	w := &Whitening{Mode: slices.Clone(mode), Structure: s.Structure}
	for range 4 {
		values, gradient, err := p.gradients(w.Mode)
		if err != nil {
			return nil, err
		}
		w.LogDensity = values[0]
		if !finite(w.LogDensity) || !finite(floats.Sum(gradient)) {
			return nil, fmt.Errorf("%w: the log-density at the given place is %v, or its gradient is not finite", ErrNoMode,
				w.LogDensity)
		}
		if err := w.curved(p, gradient, s); err != nil {
			return nil, err
		}
		floats.Scale(-1, gradient)
		w.Offset = w.pull(gradient)
		w.Decrement = floats.Norm(w.Offset, 2)
		if w.Decrement <= w.enough() {
			w.Gradients, w.Elapsed = p.Gradients-before, time.Since(began)
			w.note()
			return w, nil
		}
		if err := p.newton(w); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: at the given place the gradient is not small: the quadratic's minimum is %.3g standard "+
		"deviations away, after three Newton steps; search the mode longer (ModeSettings.Iterations) or from elsewhere "+
		"(Start), or take mcmc.NUTS, which needs none", ErrNoMode, w.Decrement)
}

// enough is the decrement at which the search of the mode ends: Newton steps by an H that is not the exact Hessian need
// not come closer.
func (w *Whitening) enough() float64 {
	switch {
	case w.rough:
		return mostDecrement * math.Sqrt(float64(len(w.Mode)))
	case w.Structure == LowRank || w.GaussNewton:
		return mostDecrement
	}
	return mostDecrement / 10
}

// curved sets W by the curvature at the mode; gradient is the gradient of log p there.
func (w *Whitening) curved(p *places, gradient []float64, s WhiteningSettings) error {
	if s.Structure == Kronecker { // of first derivatives
		return w.kronecker(p)
	}
	rough, err := p.roughness(w.Mode, gradient)
	if err != nil {
		return err
	}
	w.Notes, w.rough, w.GaussNewton = nil, rough > mostRough, false
	of, at := p, w.Mode
	if w.rough || s.GaussNewton {
		if w.rough {
			at = beside(at)
		}
		linearised, err := p.linearised(at)
		if err != nil {
			return err
		}
		switch {
		case linearised != nil:
			defer func() { p.Gradients += linearised.Gradients; linearised.Close() }()
			of, gradient = linearised, nil
		case w.rough:
			return fmt.Errorf("mcmc: the gradient of the log-density has no derivative at the mode: its differences with two "+
				"steps disagree by %.0f %%, so that there is no Hessian to whiten by, and the problem has none of Gauss and "+
				"Newton either (as with a Laplace likelihood); take mcmc.NUTS, or give SplitHMC a Whitening of a smooth "+
				"likelihood", 100*rough)
		default:
			return errors.New("mcmc: WhiteningSettings.GaussNewton is set, but the problem has no such Hessian: its Part " +
				"must give rows whose targets are the mode's own predictions, as target.Problem does for bayes.Gaussian of a " +
				"known noise; leave it out")
		}
		if w.rough {
			w.Notes = append(w.Notes, fmt.Sprintf("the gradient has no derivative at the mode (its differences with two "+
				"steps disagree by %.0f %%): the Hessian of Gauss and Newton is taken, of first derivatives alone", 100*rough))
		}
	}
	if s.Structure == Dense {
		err = w.dense(of, at, gradient)
	} else {
		err = w.lowRank(of, at, gradient, s)
	}
	w.GaussNewton = w.GaussNewton || of != p
	return err
}

// newton moves the mode to the minimum of the quadratic approximation. If the log-density is not higher there, it tries
// half the way, then a quarter, ten lengths in all, and else stays.
func (p *places) newton(w *Whitening) error {
	for share := 1.0; share > 1e-3; share /= 2 {
		z := slices.Clone(w.Offset)
		floats.Scale(-share, z)
		next := w.theta(z)
		values, err := p.logDensities(next)
		if err != nil {
			return err
		}
		if values[0] > w.LogDensity {
			w.Mode = next
			return nil
		}
	}
	return nil
}

// note records in Notes what a user should know.
func (w *Whitening) note() {
	if w.Negative > 0 {
		instead := "these directions are scaled by the absolute value"
		if w.GaussNewton {
			instead = "the Hessian of Gauss and Newton is taken, which has none"
		}
		w.Notes = append(w.Notes, fmt.Sprintf("the Hessian at the mode has %d of %d eigenvalues that are not positive: it "+
			"is a saddle or flat there; %s", w.Negative, len(w.Mode), instead))
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
	w.Negative, w.GaussNewton = 0, false
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
			w.Negative++
		}
	}
	positive, err := p.gaussNewton(c)
	if err != nil {
		return fmt.Errorf("mcmc: the Hessian of Gauss and Newton: %w", err)
	}
	if positive != nil {
		if w.GaussNewton, err = w.factor(positive); w.GaussNewton || err != nil {
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
			return false, fmt.Errorf("mcmc: the Hessian at the mode: %w", err)
		}
	}
	w.ToZ, w.ToTheta = rowByRow(&lower), rowByRow(&inverse)
	return true, nil
}

// eigenOf are the eigenvalues of a Hessian, in ascending order, and its eigenvectors, the columns of q.
func eigenOf(hessian *mat.SymDense) (values []float64, q *mat.Dense, err error) {
	var eigen mat.EigenSym
	if !eigen.Factorize(hessian, true) {
		return nil, nil, errors.New("mcmc: the Hessian at the mode has no eigenvalues in floating point")
	}
	q = new(mat.Dense)
	eigen.VectorsTo(q)
	return eigen.Values(nil), q, nil
}

// lowRank sets W by the eigenvectors of S H S with the largest eigenvalues, found by subspace iteration (Halko,
// Martinsson and Tropp 2011, algorithm 4.4) with ten vectors more than the rank. In the other directions S H S is
// replaced by its mean over them.
func (w *Whitening) lowRank(p *places, c, gradient []float64, s WhiteningSettings) error {
	d := p.dim
	w.Scale = slices.Clone(s.Scale)
	if len(w.Scale) == 0 {
		w.Scale = slices.Repeat([]float64{1}, d)
	}
	scaled := func(v []float64) []float64 { // rows times S
		out := slices.Clone(v)
		for i := range out {
			out[i] *= w.Scale[i%d]
		}
		return out
	}
	times := func(v []float64) ([]float64, error) { // S H S v, for rows v
		h, err := p.hessianTimes(c, gradient, scaled(v), 1)
		if err != nil {
			return nil, err
		}
		return scaled(h), nil
	}
	n := min(s.Rank+10, d)
	values, q, v, err := leading(times, n, d)
	if err != nil {
		return err
	}
	// In all other directions H is taken as a multiple of S^-2.
	rest, err := meanOutside(times, v, n, d)
	if err != nil {
		return err
	}
	if rest <= 0 {
		w.Notes = append(w.Notes, "outside the directions of the low rank the Hessian's mean curvature is not positive: "+
			"it is taken as the scales have it")
		rest = 1
	}
	w.Negative, w.Vectors, w.Roots = 0, nil, nil
	for i := range w.Scale { // the diagonal absorbs the mean of the rest
		w.Scale[i] /= math.Sqrt(rest)
	}
	for _, value := range values {
		if value <= 0 {
			w.Negative++
		}
	}
	rank := min(s.Rank, n)
	columns := mat.NewDense(d, rank, nil)
	for r := range rank {
		k := n - 1 - r
		w.Roots = append(w.Roots, math.Sqrt(math.Max(math.Abs(values[k]), 1e-6*math.Abs(values[n-1]))/rest))
		for j := range n {
			for i := range d {
				columns.Set(i, r, columns.At(i, r)+q.At(j, k)*v[j*d+i])
			}
		}
	}
	w.Vectors = rowByRow(columns)
	return nil
}

// leading are the n eigenvalues, ascending, of the span that three steps of subspace iteration reach: of a symmetric
// matrix, [D, D], these are close to the largest. times gives its products with rows, [n, D] flat. The eigenvectors are
// the rows of q' v, with q, [n, n], and v, [n, D] flat, whose rows are orthonormal.
func leading(
	times func(v []float64) ([]float64, error), n, d int,
) (values []float64, q *mat.Dense, v []float64, err error) {
	v = make([]float64, n*d)
	for i := range v {
		v[i] = math.Sin(float64(1+i)*float64(1+i)*.7548776662 + float64(i))
	}
	for range 3 {
		orthonormal(v, n, d)
		if v, err = times(v); err != nil {
			return nil, nil, nil, err
		}
	}
	orthonormal(v, n, d)
	product, err := times(v)
	if err != nil {
		return nil, nil, nil, err
	}
	small := mat.NewSymDense(n, nil) // the matrix within the span of v, symmetric but for rounding
	for i := range n {
		for k := range i + 1 {
			a := floats.Dot(v[i*d:(i+1)*d], product[k*d:(k+1)*d])
			b := floats.Dot(v[k*d:(k+1)*d], product[i*d:(i+1)*d])
			small.SetSym(i, k, (a+b)/2)
		}
	}
	values, q, err = eigenOf(small)
	return values, q, v, err
}

// meanOutside is the mean of u' A u over unit vectors u, [D], that are orthogonal to the n orthonormal rows of v, for a
// symmetric matrix A, [D, D], whose products with rows are times. It is estimated from eight vectors u, and 1 if the
// rows of v leave no direction.
func meanOutside(times func(v []float64) ([]float64, error), v []float64, n, d int) (float64, error) {
	if n >= d {
		return 1, nil
	}
	const probes = 8
	u := make([]float64, probes*d)
	for i := range u {
		u[i] = math.Sin(float64(3+i)*float64(1+i)*.5698402910 + 1)
	}
	for i := range probes {
		row := u[i*d : (i+1)*d]
		project(row, v, n)
		floats.Scale(1/floats.Norm(row, 2), row)
	}
	product, err := times(u)
	if err != nil {
		return 0, err
	}
	return floats.Dot(u, product) / probes, nil
}

// orthonormal makes n rows of length d orthonormal, by Gram and Schmidt.
func orthonormal(v []float64, n, d int) {
	for i := range n {
		row := v[i*d : (i+1)*d]
		project(row, v, i)
		if norm := floats.Norm(row, 2); norm > 0 {
			floats.Scale(1/norm, row)
		}
	}
}

// project makes a row, [D], orthogonal to the first n rows of v, which are orthonormal. It does so twice, since the
// first time leaves the rounding errors of what was large.
func project(row, v []float64, n int) {
	d := len(row)
	for range 2 {
		for k := range n {
			other := v[k*d : (k+1)*d]
			floats.AddScaled(row, -floats.Dot(row, other), other)
		}
	}
}

// rowByRow are the numbers of a matrix.
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
