package baseline

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// KFAC (Martens and Grosse 2015; for the Laplace approximation Ritter, Botev and Barber 2018) approximates each layer's
// block of the generalised Gauss-Newton matrix by a Kronecker product. The gradient of an output in the weights of a
// Dense layer z = W a is g a', with a the layer's input and g the output's gradient in z. So the layer's block, for the
// weights row by row, is
//
//	sum_n (sum_c g_nc g_nc') kron (a_n a_n')  ~  G kron A,  G = sum_n sum_c g_nc g_nc',  A = (1/N) sum_n a_n a_n',
//
// where g_nc are gradients of the factors of the likelihood's curvature (see factorsOf), so that the sum over c is
// exact and no label is drawn. A bias is the weight of an input that is always 1. The product is exact where all rows
// have the same a or the same curvature, such as for one linear layer and a Gaussian likelihood. Blocks of different
// layers are taken to be independent.
//
// With the eigenvectors U of G and V of A, eigenvalues u and v, the precision's eigenvalues are u_o v_i + 1/s^2: the
// prior is added exactly (as in Immer, Korzepa and Bauer 2021), not to each factor as damping, as in Ritter et al.

// block is a Dense layer whose parameters are stochastic, and its block of the precision, G kron A + p I. The
// parameters form a matrix with a row for each output and a column for each input; the last column holds the biases.
type block struct {
	layer     int // its index among the network's layers, activations included
	out, in   int // of the matrix
	from      int // coordinate in phi of the weights, row by row; the biases follow
	precision float64
	// A, [in, in], are the inputs' second moments, and G, [out, out], the outputs' curvature.
	inputs, outputs *mat.SymDense
}

// mostRows is the most rows of a factor, whose eigenvectors cost the cube of their number.
const mostRows = 4000

// blocksOf returns a model's layers and their blocks, without factors. Every stochastic parameter must belong to a
// block: it is an error if one is not of a Dense layer, if its layer's others are shared, or if the layer is too wide.
func blocksOf(bound *bayes.BoundModel) (layers []nn.Layer, blocks []block, err error) {
	if layers, err = bound.Model.Network.Layers(bound.Inputs, bound.Width); err != nil {
		return nil, nil, err
	}
	stochastic := func(s bayes.Slot) bool { return s.Stochastic }
	at, scales := 0, bound.Scales()
	for l, layer := range layers {
		slots := bound.Slots[at : at+len(layer.Parameters())]
		at += len(slots)
		first := slices.IndexFunc(slots, stochastic)
		if first < 0 {
			continue
		}
		dense, ok := layer.(nn.Dense)
		if !ok || slices.ContainsFunc(slots, func(s bayes.Slot) bool { return !s.Stochastic }) {
			return nil, nil, fmt.Errorf("Laplace.Structure is Kronecker, whose factors are of a whole nn.Dense, but %q is of a "+
				"%T, or the others of its layer are shared: make it shared", slots[first].Name, layer)
		}
		scale := scales[slots[0].Offset]
		b := block{layer: l, out: dense.Out, in: dense.In + 1, from: slots[0].Offset, precision: 1 / (scale * scale)}
		if most := max(b.in, b.out); most > mostRows {
			return nil, nil, fmt.Errorf("a Kronecker factor of %d rows, of layer %d, is too large (at most %d)", most,
				dense.Number, mostRows)
		}
		blocks = append(blocks, b)
	}
	if i := slices.IndexFunc(bound.Slots[at:], stochastic); i >= 0 { // of the likelihood and the prior
		return nil, nil, fmt.Errorf("Laplace.Structure is Kronecker, whose factors are of layers, but %q is of none: make "+
			"it shared", bound.Slots[at+i].Name)
	}
	return layers, blocks, nil
}

// kronecker evaluates the blocks of all layers, at phi, [D], and psi, [W].
func (r curvedRows) kronecker(ctx context.Context, phi, psi []float64) ([]block, error) {
	layers, blocks, err := blocksOf(r.bound)
	if err != nil {
		return nil, err
	}
	sums, err := r.sum(ctx, phi, psi, func(s compute.Nodes, rows, count *Node) *Node {
		return kroneckerSums(r.bound, layers, blocks, s, rows, count)
	})
	if err != nil {
		return nil, err
	}
	take := func(n int, scale float64) *mat.SymDense {
		m := mat.NewSymDense(n, slices.Clone(sums[:n*n]))
		sums = sums[n*n:]
		m.ScaleSym(scale, m)
		return m
	}
	counted := sums[len(sums)-1]
	for i, b := range blocks {
		blocks[i].inputs, blocks[i].outputs = take(b.in, 1/counted), take(b.out, 1)
	}
	return blocks, nil
}

// kroneckerSums is, for each block, sum_n a a' and sum_n sum_c g g' over the first count of the rows, one after another
// in one vector, and last how many rows count, by their weights.
//
// Each row's g is the gradient with respect to a zero that is added to its z, so that one pass gives all rows'
// gradients.
func kroneckerSums(
	bound *bayes.BoundModel, layers []nn.Layer, blocks []block, s compute.Nodes, rows, count *Node,
) *Node {
	x := bayes.Numbers(Gather(s["x"], ExpandAxes(rows, -1)), s["y"].DType())
	counted := countedRows(bound, s, rows, count)
	leaves := nn.Params{}
	for _, slot := range bound.Slots {
		from := s["psi"]
		if slot.Stochastic {
			from = Reshape(s["phi"], bound.D)
		}
		values := Slice(from, AxisRange(slot.Offset, slot.Offset+slot.Size()))
		leaves[slot.Name] = nn.Value{Node: Reshape(values, slot.Shape...)}
	}
	h := nn.Value{Node: Transpose(x, 0, 1)} // [width, B]
	var sums, shifts []*Node                // of inputs; zeros, [out, B]
	for l, layer := range layers {
		inputs := h.Node
		h = layer.Apply(leaves, h)
		if i := len(shifts); i < len(blocks) && blocks[i].layer == l {
			a := Concatenate([]*Node{inputs, ExpandAxes(OnesLike(counted), 0)}, 0)
			sums = append(sums, Reshape(Einsum("ib,kb->ik", Mul(a, ExpandAxes(counted, 0)), a), blocks[i].in*blocks[i].in))
			shifts = append(shifts, ZerosLike(h.Node))
			h.Node = Add(h.Node, shifts[i])
		}
	}
	curvatures := make([]*Node, len(blocks))
	for _, factor := range factorsOf(bound, Transpose(h.Node, 0, 1), leaves) {
		for i, g := range Gradient(ReduceAllSum(Mul(factor, Sqrt(counted))), shifts...) { // [out, B]
			term := Reshape(Einsum("ob,pb->op", g, g), blocks[i].out*blocks[i].out)
			if curvatures[i] != nil {
				term = Add(curvatures[i], term)
			}
			curvatures[i] = term
		}
	}
	var all []*Node
	for i := range blocks {
		all = append(all, sums[i], curvatures[i])
	}
	return Concatenate(append(all, Reshape(ReduceAllSum(counted), 1)), 0)
}

// eigen returns the eigenvectors of G and of A, and the eigenvalues u_o v_i + p of the block, [out, in] row by row;
// eigenvalues of G and A that rounding has made negative are 0.
func (b block) eigen() (left, right *mat.Dense, values []float64, err error) {
	factorise := func(m *mat.SymDense) (*mat.Dense, []float64, error) {
		var of mat.EigenSym
		infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
		if slices.ContainsFunc(m.RawSymmetric().Data, infinite) || !of.Factorize(m, true) {
			return nil, nil, fmt.Errorf("a Kronecker factor of %d rows has no eigenvalues in floating point: it is not "+
				"finite", m.SymmetricDim())
		}
		var vectors mat.Dense
		of.VectorsTo(&vectors)
		return &vectors, of.Values(nil), nil
	}
	left, outputs, err := factorise(b.outputs)
	if err != nil {
		return nil, nil, nil, err
	}
	right, inputs, err := factorise(b.inputs)
	for _, u := range outputs {
		for _, v := range inputs {
			values = append(values, math.Max(u, 0)*math.Max(v, 0)+b.precision)
		}
	}
	return left, right, values, err
}

// kroneckerSampler draws phi, [D], around a mode: for each block the mode plus U Y V', where Y has independent normals
// whose variances are the inverse eigenvalues of the precision.
func kroneckerSampler(blocks []block) (drawer, error) {
	var add []func(phi []float64, rng *rand.Rand)
	for _, b := range blocks {
		left, right, values, err := b.eigen()
		if err != nil {
			return nil, err
		}
		add = append(add, func(phi []float64, rng *rand.Rand) {
			y := mat.NewDense(b.out, b.in, nil)
			for k, value := range values {
				y.Set(k/b.in, k%b.in, rng.NormFloat64()/math.Sqrt(value))
			}
			var rotated mat.Dense
			rotated.Product(left, y, right.T())
			weights := b.in - 1 // of an output
			for o := range b.out {
				floats.Add(phi[b.from+o*weights:][:weights], rotated.RawRowView(o)[:weights])
				phi[b.from+b.out*weights+o] += rotated.At(o, weights)
			}
		})
	}
	return func(mode []float64, rng *rand.Rand) []float64 {
		phi := slices.Clone(mode)
		for _, draw := range add {
			draw(phi, rng)
		}
		return phi
	}, nil
}
