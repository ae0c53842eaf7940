package baseline

import (
	"context"
	"fmt"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
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

// block is one Dense layer with stochastic parameters.
type block struct {
	layer int // its index among the network's layers, activations included
	kroneckerFactor
}

// mostRows is the most rows of a factor, whose eigenvectors cost the cube of their number.
const mostRows = 4000

// blocksOf returns a model's layers and their blocks. Every stochastic parameter must belong to a block: it is an error
// if one is not of a Dense layer, or of too wide a one.
func blocksOf(bound *bayes.BoundModel) (layers []nn.Layer, blocks []block, err error) {
	if layers, err = bound.Model.Network.Layers(bound.Inputs, bound.Width); err != nil {
		return nil, nil, err
	}
	at, scales := 0, bound.Scales()
	for l, layer := range layers {
		b := block{layer: l, kroneckerFactor: kroneckerFactor{Weights: -1, Biases: -1}}
		dense, ok := layer.(nn.Dense)
		for range layer.Parameters() {
			slot := bound.Slots[at]
			at++
			if !slot.Stochastic {
				continue
			}
			if !ok {
				return nil, nil, fmt.Errorf("Laplace.Structure is Kronecker, whose factors are of nn.Dense, but %q is of a %T: "+
					"make it shared", slot.Name, layer)
			}
			b.Out, b.Precision = dense.Out, 1/(scales[slot.Offset]*scales[slot.Offset])
			if slot.Kind == nn.Weights {
				b.Weights, b.In = slot.Offset, b.In+dense.In
			} else {
				b.Biases, b.In = slot.Offset, b.In+1
			}
		}
		if b.In == 0 {
			continue
		}
		if most := max(b.In, b.Out); most > mostRows {
			return nil, nil, fmt.Errorf("a Kronecker factor of %d rows, of layer %d, is too large (at most %d)", most,
				dense.Number, mostRows)
		}
		blocks = append(blocks, b)
	}
	for _, slot := range bound.Slots[at:] { // of the likelihood and the prior
		if slot.Stochastic {
			return nil, nil, fmt.Errorf("Laplace.Structure is Kronecker, whose factors are of layers, but %q is of none: make "+
				"it shared", slot.Name)
		}
	}
	return layers, blocks, nil
}

// kronecker evaluates the factors of all layers, at phi, [D], and psi, [W].
func (r curvedRows) kronecker(ctx context.Context, phi, psi []float64) (factors []kroneckerFactor, err error) {
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
	for _, b := range blocks {
		f := b.kroneckerFactor
		f.Inputs, f.Outputs = take(b.In, 1/counted), take(b.Out, 1)
		factors = append(factors, f)
	}
	return factors, nil
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
		i := slices.IndexFunc(blocks, func(b block) bool { return b.layer == l })
		if i < 0 {
			h = layer.Apply(leaves, h)
			continue
		}
		var inputs []*Node
		if blocks[i].Weights >= 0 {
			inputs = append(inputs, h.Node)
		}
		if blocks[i].Biases >= 0 {
			inputs = append(inputs, ExpandAxes(OnesLike(counted), 0))
		}
		a := Concatenate(inputs, 0)
		sums = append(sums, Reshape(Einsum("ib,kb->ik", Mul(a, ExpandAxes(counted, 0)), a), blocks[i].In*blocks[i].In))
		h = layer.Apply(leaves, h)
		shift := ZerosLike(h.Node)
		shifts = append(shifts, shift)
		h.Node = Add(h.Node, shift)
	}
	curvatures := make([]*Node, len(blocks))
	for _, factor := range factorsOf(bound, Transpose(h.Node, 0, 1), leaves) {
		for i, g := range Gradient(ReduceAllSum(Mul(factor, Sqrt(counted))), shifts...) { // [out, B]
			term := Reshape(Einsum("ob,pb->op", g, g), blocks[i].Out*blocks[i].Out)
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
