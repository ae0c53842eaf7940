package surrogate

import (
	"context"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
)

// subset is a target estimated from m of the N rows of the data, for surrogates: T(theta) = log p(theta) + N/m log
// p(y_S | theta) for a fixed subset S of the rows. Of T a surrogate uses only what is left beyond the second order of
// its Taylor series about the mode.
type subset struct {
	rows, of int // m, N
	data     map[string]*tensors.Tensor
	target   func(data compute.Nodes) density.Target // T
}

// share is m/N, the cost of an evaluation of T relative to one of the target.
func (p subset) share() float64 { return float64(p.rows) / float64(p.of) }

// alone is T as a problem of D dimensions.
func (p subset) alone(d int) posterior {
	return posterior{Problem: density.Problem{
		Dim: d, Data: p.data, Target: func(data compute.Nodes, _ []*graph.Node) density.Target { return p.target(data) },
	}}
}

// control is the control variate of a part: the numbers of its surrogate. The surrogate is the target's own Taylor
// series to second order about the mode c, which the whitening has from all rows, plus the remainder of T, from a part
// of the rows. It is a control variate of second order (with z, W and H as in whitening, U = -log p, and T as in
// subset):
//
//	log p~(theta) = -|z|^2/2 - b.z + T(theta) - g.z + z' K z / 2
//
// with b = W' grad U(c), g = W' grad T(c) and K = -W' (grad^2 T)(c) W. So with d = theta - c the gradient is grad
// phi~(z) = b - W' [grad T(theta) - grad T(c) - (grad^2 T)(c) d]. For a Gaussian prior, the bracket is N/m times the
// sum over S of [grad log p_i (theta) - grad log p_i (c) - (grad^2 log p_i)(c) d], with p_i the likelihood of row i. If
// S is all rows, with their own y, the surrogate is the target itself, up to a constant. K takes D gradients of T, and
// g one, in float64.
type control struct {
	w                 *whitening
	part              subset
	linear, curvature []float64 // g + b, [D], and K, [D, D]
}

// partPrefix begins the names of a part's data, and surrogatePrefix those of the control variate's numbers.
const (
	partPrefix      = "part/"
	surrogatePrefix = "surrogate/"
)

// expand evaluates a part about the mode.
func (w *whitening) expand(ctx context.Context, engine *compute.Engine, part subset) (*control, error) {
	d := len(w.mode)
	p, err := newPlaces(ctx, engine, part.alone(d))
	if err != nil {
		return nil, err
	}
	defer p.Close()
	gradient, rows, err := p.about(w.mode, nil, w.toTheta) // row k is -(grad^2 T)(c) W e_k
	if err != nil {
		return nil, fmt.Errorf("the surrogate of %d rows: %w", part.rows, err)
	}
	c := &control{w: w, part: part, linear: w.pull(gradient), curvature: make([]float64, 0, d*d)}
	floats.Add(c.linear, w.offset)
	for k := range d {
		c.curvature = append(c.curvature, w.pull(rows[k*d:(k+1)*d])...)
	}
	for i := range d {
		for k := range i {
			mean := (c.curvature[i*d+k] + c.curvature[k*d+i]) / 2
			c.curvature[i*d+k], c.curvature[k*d+i] = mean, mean
		}
	}
	return c, nil
}

// data returns the surrogate's numbers, and the part's data, by their names.
func (c *control) data(dtype compute.DType) map[string]*tensors.Tensor {
	d := len(c.w.mode)
	data := map[string]*tensors.Tensor{
		surrogatePrefix + "linear":    compute.Floats(dtype, c.linear, 1, d),
		surrogatePrefix + "curvature": compute.Floats(dtype, c.curvature, d, d),
	}
	for name, t := range c.part.data {
		data[partPrefix+name] = t
	}
	return data
}

// target is the surrogate in a graph, given its data by their names.
func (c *control) target(at graphWhitening, data compute.Nodes) density.Target {
	own := compute.Nodes{}
	for name := range c.part.data {
		own[name] = data[partPrefix+name]
	}
	return controlled{
		Target: c.part.target(own), at: at, linear: data[surrogatePrefix+"linear"],
		curvature: data[surrogatePrefix+"curvature"],
	}
}

// on is a problem with the whitening and this surrogate.
func (c *control) on(problem density.Problem, dtype compute.DType) density.Problem {
	return c.w.on(problem, dtype, c.data(dtype), c.target)
}

// controlled is the surrogate in a graph: the part's target T with the control variate.
type controlled struct {
	density.Target
	at                graphWhitening
	linear, curvature *Node
}

// quadratic returns the quadratic that is added to T, [J], and its gradient with respect to z, [J, D].
func (t controlled) quadratic(phi *Node) (value, gradient *Node) {
	z := t.at.z(phi)
	kz := Dot(z, t.curvature).Product()
	linear := wide(t.linear, z)
	// z' (K z - z)/2 - (g + b).z
	value = compute.RowSums(Mul(z, Sub(MulScalar(Sub(kz, z), .5), linear)))
	return value, Sub(Sub(kz, z), linear)
}

// Holds is the part's target, which may be a user's own.
func (t controlled) Holds() any { return t.Target }

// LogDensity implements density.Target.
func (t controlled) LogDensity(phi *graph.Node) *graph.Node {
	value, _ := t.quadratic(phi)
	return Add(t.Target.LogDensity(phi), value)
}

// Gradient implements density.Target.
func (t controlled) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	value, inZ := t.quadratic(phi)
	logDensity, gradient = t.Target.Gradient(phi)
	inTheta := Einsum("jk,dk->jd", inZ, t.at.toZ) // W^-T of it
	return Add(logDensity, value), Add(gradient, inTheta)
}
