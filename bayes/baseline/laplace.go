package baseline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// Laplace is the Laplace approximation (MacKay 1992; Daxberger, Kristiadi, Immer, Eschenhagen, Bauer and Hennig 2021).
// After MAP training it takes the Gaussian around the mode. Its precision is the curvature of the negative
// log-posterior there,
//
//	P = diag(1/s^2) + sum_n J_n' L_n J_n,
//
// where s has the Normal prior's standard deviations. J_n is the Jacobian of the network's output at row n with respect
// to the parameters, [C, D], and L_n the likelihood's Fisher information in the outputs: that of bayes.Categorical, or
// of a bayes.Informative. This is the generalised Gauss-Newton matrix, which has no negative eigenvalues. Shared
// parameters stay at the mode.
//
// KroneckerPrecision keeps a block of P for each Dense layer, as a Kronecker product of two small matrices.
//
// Particles are drawn from the Gaussian. The Gauss-Newton matrix is the exact curvature of the network linearised at
// the mode, so particles predict by the linearised network (Immer, Korzepa and Bauer 2021; for one output MacKay 1992):
// f(x; phi*) + J(x) (phi - phi*), bayes.Draws.LinearisedAt. By the network itself they would often predict worse than
// the mode (Lawrence 2001; Foong, Li, Hernandez-Lobato and Turner 2019): the Gaussian is wide in directions to which
// the network is insensitive near the mode, even if it is sensitive further out.
type Laplace struct {
	Training `json:"training,omitzero"`
	// Structure is the part of P that is kept: "full", "last layer" or KroneckerPrecision. Default "full" for at most
	// 1000 stochastic parameters, else "last layer", the full precision of the last layer's stochastic parameters; the
	// others then stay at the mode.
	Structure Structure `json:"structure"`
	Samples   int       `json:"samples"` // particles of the posterior; default 100
}

// Structure is the part of the precision that is kept.
type Structure string

// The structures.
const (
	fullPrecision      Structure = "full"
	lastLayerPrecision Structure = "last layer"
	// KroneckerPrecision is KFAC (Ritter et al. 2018): for each Dense layer the product of its inputs' second moments
	// with its outputs' curvature.
	KroneckerPrecision Structure = "kronecker"
)

// mostFull is the most parameters of a full precision, whose factorisation costs the cube of their number.
const mostFull = 4000

var _ fit.Method = Laplace{}

// Title implements fit.Method.
func (Laplace) Title() string { return "Laplace approximation (MacKay 1992)" }

// Prepare implements fit.Method.
func (m Laplace) Prepare(j *fit.Job) (_ fit.Method, err error) {
	if m.Training, err = preparedPoints(j, m.Training); err != nil {
		return nil, err
	}
	bound := j.Bound
	if _, ok := bound.Model.Prior.(bayes.Normal); !ok {
		return nil, fmt.Errorf("baseline: Laplace needs a prior with a curvature: bayes.Normal, not %T", bound.Model.Prior)
	}
	for _, slot := range bound.Slots {
		if slot.Stochastic && slot.Kind == nn.Noise {
			return nil, fmt.Errorf("baseline: Laplace is over parameters of the network, but %q is stochastic: make it "+
				"shared", slot.Name)
		}
	}
	if err := checkCurvature(bound.Model.Likelihood); err != nil {
		return nil, fmt.Errorf("baseline: Laplace: %w", err)
	}
	if bound.Extras.Censored || bound.Extras.Exposure {
		return nil, errors.New("baseline: Laplace: the data have Censored targets or Exposure, of which it does not know " +
			"the curvature: take baseline.SWAG or mcmc.Chains")
	}
	structure := fullPrecision
	if bound.D > 1000 {
		structure = lastLayerPrecision
	}
	if err := limits.Fill("baseline: Laplace",
		limits.Choice("Structure", &m.Structure, structure, fullPrecision, lastLayerPrecision, KroneckerPrecision),
		limits.Int("Samples", &m.Samples, 100).From(1),
	); err != nil {
		return nil, err
	}
	if m.Structure == KroneckerPrecision {
		if _, _, err := blocksOf(bound); err != nil {
			return nil, fmt.Errorf("baseline: Laplace.Structure is %q: %w; take %q, or %q of few parameters", m.Structure, err,
				lastLayerPrecision, fullPrecision)
		}
		return m, nil
	}
	free := m.free(bound)
	if len(free) == 0 {
		return nil, fmt.Errorf("baseline: Laplace.Structure is %q, but no parameter of that kind is stochastic: take "+
			"%q, or another partition:\n%s", m.Structure, fullPrecision, bound.Summary())
	}
	if n := len(free); n > mostFull {
		return nil, fmt.Errorf("baseline: Laplace.Structure is %q, but a full precision of %d parameters is too large "+
			"(at most %d): take baseline.KroneckerPrecision, or %q", m.Structure, n, mostFull, lastLayerPrecision)
	}
	return m, nil
}

// free lists the coordinates of phi that the Gaussian covers.
func (m Laplace) free(bound *bayes.BoundModel) []int {
	last := 0
	for _, slot := range bound.Slots {
		last = max(last, slot.Layer)
	}
	var free []int
	for _, slot := range bound.Slots {
		if slot.Stochastic && (m.Structure != lastLayerPrecision || slot.Layer == last) {
			for i := range slot.Size() {
				free = append(free, slot.Offset+i)
			}
		}
	}
	return free
}

// Run implements fit.Method.
func (m Laplace) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	mode, err := modeOf(ctx, j, m.Training)
	if err != nil {
		return nil, err
	}
	of, err := rowsOf(j)
	if err != nil {
		return nil, err
	}
	draw, err := m.drawer(ctx, of, mode.phi, mode.psi)
	if err != nil {
		return nil, fmt.Errorf("baseline: Laplace: %w", err)
	}
	rng := rand.New(rand.NewPCG(j.Seed, 0x4c61706c))
	var phi []float64
	for range m.Samples {
		phi = append(phi, draw(mode.phi, rng)...)
	}
	result := mode.trained.Result(mode.status)
	result.Draws, result.Approximation = drawsOf(j, phi, mode.psi), "a Gaussian at the mode"
	if !j.Bound.IsLinear() { // which is its own linearisation, without a Jacobian
		result.Draws.LinearisedAt = compute.Floats(j.DType, mode.phi, j.Bound.D)
	}
	if j.Parts.Validation != nil { // it has ended the training, and judges the intervals (see fit)
		return result, nil
	}
	off, err := decrement(ctx, of, mode, func() []float64 { return draw(mode.phi, rng) })
	if err != nil {
		return nil, err
	}
	free := len(m.free(j.Bound))
	result.Doubts.If(off > mostDecrement*math.Sqrt(float64(free)), "no mode", "where the training ended the gradient is "+
		"not small: the maximum of the posterior's quadratic expansion is %.2g standard deviations away (over %d "+
		"parameters), so that predictions can be off by as many; train longer (Epochs), with a falling rate (Optimiser) or "+
		"on larger batches (BatchSize)", off, free)
	return result, nil
}

// mostDecrement is the largest distance of the quadratic's maximum from the mode without a warning, in standard
// deviations a parameter.
const mostDecrement = .3

// decrement is Newton's, sqrt(g' P^-1 g) with the gradient g of the log-posterior at the mode. It is the distance, in
// standard deviations of the Gaussian, from its centre to the maximum of the quadratic that fits the posterior there. A
// linearised prediction is off by at most this many of its own standard deviations (by Cauchy and Schwarz). It is
// computed as the standard deviation of g' (phi - mode) over 400 draws, to some 4 % whatever the structure.
func decrement(ctx context.Context, of curvedRows, mode *mode, draw func() []float64) (float64, error) {
	gradient, err := of.gradient(ctx, mode.phi, mode.psi)
	if err != nil {
		return 0, fmt.Errorf("baseline: Laplace: the gradient at the mode: %w", err)
	}
	for i, s := range of.bound.Scales() {
		gradient[i] -= mode.phi[i] / (s * s)
	}
	const draws = 400
	square := 0.0
	for range draws {
		slope := 0.0
		for i, v := range draw() {
			slope += gradient[i] * (v - mode.phi[i])
		}
		square += slope * slope / draws
	}
	return math.Sqrt(square), nil
}

// drawer draws phi, [D], from a Gaussian around a mode.
type drawer func(mode []float64, rng *rand.Rand) []float64

// drawer evaluates the curvature at a mode.
func (m Laplace) drawer(ctx context.Context, of curvedRows, phi, psi []float64) (drawer, error) {
	if m.Structure == KroneckerPrecision {
		blocks, err := of.kronecker(ctx, phi, psi)
		if err != nil {
			return nil, err
		}
		return kroneckerSampler(blocks)
	}
	precision, err := m.precision(ctx, of, phi, psi)
	if err != nil {
		return nil, err
	}
	return m.sampler(of.bound, precision)
}

// precision is P over the free coordinates, F of them: [F, F] row by row.
func (m Laplace) precision(ctx context.Context, of curvedRows, phi, psi []float64) ([]float64, error) {
	free, scales := m.free(of.bound), of.bound.Scales()
	precision, err := of.sum(ctx, phi, psi, func(s compute.Nodes, rows, count *Node) *Node {
		return curvature(of.bound, s, rows, count, free)
	})
	if err != nil {
		return nil, err
	}
	step := len(free) + 1 // from a diagonal element to the next
	for i, k := range free {
		precision[i*step] += 1 / (scales[k] * scales[k])
	}
	return precision, nil
}

// rowsOf returns the training part's rows, for the curvature and the gradient at the mode.
func rowsOf(j *fit.Job) (curvedRows, error) {
	x, y, err := j.Tensors(j.DType, j.Parts.Train)
	if err != nil {
		return curvedRows{}, err
	}
	return curvedRows{engine: j.Engine, bound: j.Bound, x: x, y: y}, nil
}

// curvature is sum_n J_n' L_n J_n of the free coordinates over the first count of the rows: [F F].
func curvature(bound *bayes.BoundModel, s compute.Nodes, rows, count *Node, free []int) *Node {
	x := bayes.Numbers(Gather(s["x"], ExpandAxes(rows, -1)), s["y"].DType())
	outputs, copies, params := bound.PerExample(Reshape(s["phi"], bound.D), s["psi"], x)
	counted := Sqrt(countedRows(bound, s, rows, count)) // of gradients that are squared
	var total *Node
	for _, factor := range factorsOf(bound, outputs, params) {
		gradient := Gradient(ReduceAllSum(Mul(factor, counted)), copies)[0] // [B, D]
		if len(free) < bound.D {
			own := AxisRange(free[0], free[len(free)-1]+1) // a layer's coordinates are neighbours
			gradient = Slice(gradient, AxisRange(), own)
		}
		term := Reshape(Einsum("bi,bk->ik", gradient, gradient), len(free)*len(free))
		if total == nil {
			total = term
		} else {
			total = Add(total, term)
		}
	}
	return total
}

// sampler draws phi, [D], around a mode: the mode plus P^(-1/2) z.
func (m Laplace) sampler(bound *bayes.BoundModel, precision []float64) (drawer, error) {
	free := m.free(bound)
	var factor mat.Cholesky
	if !factor.Factorize(mat.NewSymDense(len(free), precision)) {
		return nil, fmt.Errorf("the precision of the Gaussian over %d parameters is not positive "+
			"definite in floating point: take Settings.DType Float64, or baseline.KroneckerPrecision", len(free))
	}
	var upper mat.TriDense
	factor.UTo(&upper)
	return func(mode []float64, rng *rand.Rand) []float64 {
		z := make([]float64, len(free))
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		for i := len(z) - 1; i >= 0; i-- { // P = U'U: solve U x = z
			for k := i + 1; k < len(z); k++ {
				z[i] -= upper.At(i, k) * z[k]
			}
			z[i] /= upper.At(i, i)
		}
		phi := slices.Clone(mode)
		for i, k := range free {
			phi[k] += z[i]
		}
		return phi
	}, nil
}
