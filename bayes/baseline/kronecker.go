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
	"gonum.org/v1/gonum/mat"
)

// KFAC (Martens and Grosse 2015; for the Laplace approximation Ritter, Botev and Barber 2018) approximates each layer's
// block of the generalised Gauss-Newton matrix by a Kronecker product. The gradient of an output in the weights of a
// Dense layer z = W a is g a', with a the layer's input and g the output's gradient in z. So the layer's block, for the
// weights row by row, is
//
//	sum_n (sum_c g_nc g_nc') kron (a_n a_n')  ~  G kron A,  G = sum_n sum_c g_nc g_nc',  A = (1/N) sum_n a_n a_n',
//
// where g_nc are gradients of the factors of the likelihood's curvature (see factors), so that the sum over c is exact
// and no label is drawn. A bias is the weight of an input that is always 1. It is exact where all rows have the same a
// or the same curvature: for one linear layer and a Gaussian likelihood. Blocks of different layers are taken to be
// independent.
//
// With the eigenvectors U of G and V of A, eigenvalues u and v, the precision's eigenvalues are u_o v_i + 1/s^2: the
// prior is added exactly (as in Immer, Korzepa and Bauer 2021), not to each factor as damping, as in Ritter et al.

// kroneckerBlock is one Dense layer with stochastic parameters.
type kroneckerBlock struct {
	layer           int // its index among the network's layers, activations included
	out, in         int // of the stochastic matrix: in counts the weights' inputs, and one more for stochastic biases
	weights, biases int // offsets in phi; -1: shared
	precision       float64
}

// kroneckerBlocks are a model's layers and their blocks; every stochastic parameter must belong to a block.
func kroneckerBlocks(bound *bayes.BoundModel) (layers []nn.Layer, blocks []kroneckerBlock, err error) {
	if layers, err = bound.Model.Network.Layers(bound.Inputs, bound.Outputs); err != nil {
		return nil, nil, err
	}
	at, scales := 0, bound.Scales()
	for l, layer := range layers {
		b := kroneckerBlock{layer: l, weights: -1, biases: -1}
		dense, ok := layer.(nn.Dense)
		for range layer.Parameters() {
			slot := bound.Slots[at]
			at++
			if !slot.Stochastic {
				continue
			}
			if !ok {
				return nil, nil, fmt.Errorf("baseline: Laplace.Structure is %q, which knows nn.Dense, but %q is of a %T: "+
					"take baseline.DiagonalPrecision or baseline.FullPrecision", KroneckerPrecision, slot.Name, layer)
			}
			b.out, b.precision = dense.Out, 1/(scales[slot.Offset]*scales[slot.Offset])
			if slot.Kind == nn.Weights {
				b.weights, b.in = slot.Offset, b.in+dense.In
			} else {
				b.biases, b.in = slot.Offset, b.in+1
			}
		}
		if b.in == 0 {
			continue
		}
		if most := max(b.in, b.out); most > mostFull {
			return nil, nil, fmt.Errorf("baseline: Laplace.Structure is %q, but a factor of %d rows, of layer %d, is too "+
				"large (at most %d): take baseline.DiagonalPrecision", KroneckerPrecision, most, dense.Number, mostFull)
		}
		blocks = append(blocks, b)
	}
	return layers, blocks, nil
}

// kroneckerFactor is a block with its factors.
type kroneckerFactor struct {
	kroneckerBlock
	inputs, outputs *mat.SymDense // A, [in, in], and G, [out, out]
}

// kroneckerFactors evaluates all of them, at phi, [D], and psi, [W].
func (j *Job) kroneckerFactors(ctx context.Context, phi, psi []float64) ([]kroneckerFactor, error) {
	layers, blocks, err := kroneckerBlocks(j.Bound)
	if err != nil {
		return nil, err
	}
	sums, err := j.sumOverRows(ctx, phi, psi, func(s compute.Nodes, rows, count *Node) *Node {
		return kroneckerSums(j.Bound, layers, blocks, s, rows, count)
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
	var factors []kroneckerFactor
	for _, b := range blocks {
		factors = append(factors, kroneckerFactor{b, take(b.in, 1/float64(j.Rows())), take(b.out, 1)})
	}
	return factors, nil
}

// kroneckerSums is, for each block, sum_n a a' and sum_n sum_c g g' over the first count of the rows, one after another
// in one vector.
//
// Each row's g is the gradient with respect to a zero that is added to its z, so that one pass gives all rows'
// gradients.
func kroneckerSums(
	bound *bayes.BoundModel, layers []nn.Layer, blocks []kroneckerBlock, s compute.Nodes, rows, count *Node,
) *Node {
	x := Gather(s["x"], ExpandAxes(rows, -1))
	real := realRows(rows, count, x)
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
		i := slices.IndexFunc(blocks, func(b kroneckerBlock) bool { return b.layer == l })
		if i < 0 {
			h = layer.Apply(leaves, h)
			continue
		}
		var inputs []*Node
		if blocks[i].weights >= 0 {
			inputs = append(inputs, h.Node)
		}
		if blocks[i].biases >= 0 {
			inputs = append(inputs, ExpandAxes(OnesLike(real), 0))
		}
		a := Concatenate(inputs, 0)
		sums = append(sums, Reshape(Einsum("ib,kb->ik", Mul(a, ExpandAxes(real, 0)), a), blocks[i].in*blocks[i].in))
		h = layer.Apply(leaves, h)
		shift := ZerosLike(h.Node)
		shifts = append(shifts, shift)
		h.Node = Add(h.Node, shift)
	}
	curvatures := make([]*Node, len(blocks))
	for _, factor := range factors(bound, Transpose(h.Node, 0, 1), leaves) {
		for i, g := range Gradient(ReduceAllSum(Mul(factor, real)), shifts...) { // [out, B]
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
	return Concatenate(all, 0)
}

// kroneckerSampler draws phi, [D], around a mode: for each block the mode plus U Y V', where Y has independent normals
// whose variances are the inverse eigenvalues of the precision.
func kroneckerSampler(factors []kroneckerFactor) (drawer, error) {
	type basis struct{ u, v mat.Dense }
	bases := make([]basis, len(factors))
	spreads := make([][]float64, len(factors)) // of Y, row by row
	for i, f := range factors {
		curvature, err := eigen(f.outputs, &bases[i].u)
		if err != nil {
			return nil, err
		}
		moments, err := eigen(f.inputs, &bases[i].v)
		if err != nil {
			return nil, err
		}
		for _, u := range curvature {
			for _, v := range moments {
				spreads[i] = append(spreads[i], 1/math.Sqrt(u*v+f.precision))
			}
		}
	}
	return func(mode []float64, rng *rand.Rand) []float64 {
		phi := slices.Clone(mode)
		for i, f := range factors {
			y := mat.NewDense(f.out, f.in, nil)
			for k, s := range spreads[i] {
				y.Set(k/f.in, k%f.in, s*rng.NormFloat64())
			}
			var left, change mat.Dense
			left.Mul(&bases[i].u, y)
			change.Mul(&left, bases[i].v.T())
			for o := range f.out {
				row := change.RawRowView(o)
				if f.biases >= 0 {
					phi[f.biases+o] += row[f.in-1]
					row = row[:f.in-1]
				}
				for k, d := range row {
					phi[f.weights+o*len(row)+k] += d
				}
			}
		}
		return phi
	}, nil
}

// eigen gives the eigenvalues of a positive semi-definite matrix, negative ones from rounding set to 0, and its
// eigenvectors.
func eigen(m *mat.SymDense, vectors *mat.Dense) ([]float64, error) {
	var e mat.EigenSym
	if !e.Factorize(m, true) {
		return nil, fmt.Errorf("baseline: a factor of Laplace's precision, of %d rows, has no eigenvalues in floating "+
			"point: it is not finite", m.SymmetricDim())
	}
	e.VectorsTo(vectors)
	values := e.Values(nil)
	for i, v := range values {
		values[i] = max(v, 0)
	}
	return values, nil
}
