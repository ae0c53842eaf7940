package mcmc

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// KroneckerFactor is the curvature of one dense layer of a network by KFAC (Martens and Grosse 2015; Ritter, Botev and
// Barber 2018). The layer's parameters form a matrix with a row for each output and a column for each input; the last
// column holds the biases. Their block of the curvature is G kron A + p I.
type KroneckerFactor struct {
	Out, In         int // of the matrix; In is the number of the weights' inputs plus one for the biases
	Weights, Biases int // first coordinates in theta, the weights row by row; -1: not in theta
	Precision       float64
	// A, [In, In], are the inputs' second moments, and G, [Out, Out], the outputs' curvature.
	Inputs, Outputs *mat.SymDense
}

// KroneckerEigen are a factor's eigenvectors, of G and of A, and the eigenvalues u_o v_i + p of its block, [Out, In]
// row by row.
type KroneckerEigen struct {
	KroneckerFactor
	Left, Right *mat.Dense
	Values      []float64
}

// Eigen decomposes the factor; eigenvalues of G and A that rounding has made negative are 0.
func (f KroneckerFactor) Eigen() (KroneckerEigen, error) {
	e := KroneckerEigen{KroneckerFactor: f, Left: new(mat.Dense), Right: new(mat.Dense)}
	of := func(m *mat.SymDense, vectors *mat.Dense) ([]float64, error) {
		var eigen mat.EigenSym
		if countFinite(m.RawSymmetric().Data) < len(m.RawSymmetric().Data) || !eigen.Factorize(m, true) {
			return nil, fmt.Errorf("a Kronecker factor of %d rows has no eigenvalues in floating point: it is not finite",
				m.SymmetricDim())
		}
		eigen.VectorsTo(vectors)
		return eigen.Values(nil), nil
	}
	outputs, err := of(f.Outputs, e.Left)
	if err != nil {
		return e, err
	}
	inputs, err := of(f.Inputs, e.Right)
	if err != nil {
		return e, err
	}
	for _, u := range outputs {
		for _, v := range inputs {
			e.Values = append(e.Values, math.Max(u, 0)*math.Max(v, 0)+f.Precision)
		}
	}
	return e, nil
}

// Rotate is U Y V', and Unrotate U' X V, of matrices [Out, In].
func (e KroneckerEigen) Rotate(y *mat.Dense) *mat.Dense {
	var out mat.Dense
	out.Product(e.Left, y, e.Right.T())
	return &out
}

// Unrotate is U' X V, the inverse of Rotate.
func (e KroneckerEigen) Unrotate(x *mat.Dense) *mat.Dense {
	var out mat.Dense
	out.Product(e.Left.T(), x, e.Right)
	return &out
}

// inputs is In without the biases' column.
func (f KroneckerFactor) inputs() int {
	if f.Biases >= 0 {
		return f.In - 1
	}
	return f.In
}

// at is the coordinate of an entry of the matrix.
func (f KroneckerFactor) at(out, in int) int {
	if in < f.inputs() {
		return f.Weights + out*f.inputs() + in
	}
	return f.Biases + out
}

// AddTo adds a matrix to the layer's coordinates of x, [D].
func (f KroneckerFactor) AddTo(x []float64, m *mat.Dense) {
	for o := range f.Out {
		for i := range f.In {
			x[f.at(o, i)] += m.At(o, i)
		}
	}
}

// matrix are the layer's coordinates of x, [D].
func (f KroneckerFactor) matrix(x []float64) *mat.Dense {
	m := mat.NewDense(f.Out, f.In, nil)
	for o := range f.Out {
		for i := range f.In {
			m.Set(o, i, x[f.at(o, i)])
		}
	}
	return m
}

// kronecker sets W by the factors of the problem's layers.
func (w *Whitening) kronecker(p *places) error {
	if p.problem.Kronecker == nil {
		return fmt.Errorf("mcmc: WhiteningSettings.Structure is %q, but the problem has no layers to have factors of "+
			"(Problem.Kronecker): take %q or %q", Kronecker, Dense, LowRank)
	}
	factors, gradients, err := p.problem.Kronecker(p.ctx, w.Mode)
	p.Gradients += gradients
	if err != nil {
		return fmt.Errorf("mcmc: WhiteningSettings.Structure is %q: %w; take %q or %q", Kronecker, err, Dense, LowRank)
	}
	covered := make([]float64, len(w.Mode))
	w.Blocks = nil
	for _, f := range factors {
		e, err := f.Eigen()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoMode, err)
		}
		if slices.Min(e.Values) <= 0 {
			return errors.New("mcmc: a block of Kronecker factors is not positive: its prior must have a precision above 0")
		}
		ones := mat.NewDense(f.Out, f.In, nil)
		ones.Apply(func(int, int, float64) float64 { return 1 }, ones)
		f.AddTo(covered, ones)
		w.Blocks = append(w.Blocks, e)
	}
	for k, n := range covered {
		if n != 1 {
			return fmt.Errorf("mcmc: coordinate %d is in %v of the %d layers that have Kronecker factors: it must be in one; "+
				"take %q or %q", k, n, len(factors), Dense, LowRank)
		}
	}
	w.GaussNewton, w.Negative = true, 0
	return nil
}

// byBlocks maps x, [D], block by block.
func (w *Whitening) byBlocks(x []float64, of func(e KroneckerEigen, m *mat.Dense) *mat.Dense) []float64 {
	out := make([]float64, len(x))
	for _, e := range w.Blocks {
		e.AddTo(out, of(e, e.matrix(x)))
	}
	return out
}

// scaled multiplies y, [Out, In], by powers of the eigenvalues.
func (e KroneckerEigen) scaled(y *mat.Dense, power float64) *mat.Dense {
	y.Apply(func(o, i int, v float64) float64 { return v * math.Pow(e.Values[o*e.In+i], power) }, y)
	return y
}

// The names of a block's tensors among a whitening's.
func blockName(block int, of string) string { return fmt.Sprintf("block %d/%s", block, of) }

// blockTensors adds the blocks' numbers to a whitening's tensors.
func (w *Whitening) blockTensors(all map[string]*tensors.Tensor, dtype compute.DType) {
	for b, e := range w.Blocks {
		roots := make([]float64, len(e.Values))
		for k, v := range e.Values {
			roots[k] = math.Sqrt(v)
		}
		all[whiteningPrefix+blockName(b, "left")] = compute.Floats(dtype, rowByRow(e.Left), e.Out, e.Out)
		all[whiteningPrefix+blockName(b, "right")] = compute.Floats(dtype, rowByRow(e.Right), e.In, e.In)
		all[whiteningPrefix+blockName(b, "roots")] = compute.Floats(dtype, roots, 1, e.Out, e.In)
	}
}

// whiteningBlock is a block in a graph.
type whiteningBlock struct {
	KroneckerFactor
	left, right, roots *Node
}

// rotated is U Y V' of each row's matrix, [J, Out, In], and unrotated U' X V.
func (b whiteningBlock) rotated(y *Node) *Node {
	return Einsum("jpi,ki->jpk", Einsum("joi,po->jpi", y, b.left), b.right)
}

func (b whiteningBlock) unrotated(x *Node) *Node {
	return Einsum("jpi,ik->jpk", Einsum("joi,op->jpi", x, b.left), b.right)
}

// wideRoots are the square roots of the eigenvalues for each of like's rows.
func (b whiteningBlock) wideRoots(like *Node) *Node { return BroadcastToShape(b.roots, like.Shape()) }

// eachBlock maps x, [J, D], block by block.
func (w whitening) eachBlock(x *Node, of func(b whiteningBlock, m *Node) *Node) *Node {
	type piece struct {
		from int
		node *Node // [J, n]
	}
	var pieces []piece
	rows := x.Shape().Dim(0)
	for _, b := range w.blocks {
		take := func(from, n int, dims ...int) *Node {
			return Reshape(Slice(x, AxisRange(), AxisRange(from, from+n)), append([]int{rows}, dims...)...)
		}
		var columns []*Node
		in := b.inputs()
		if in > 0 {
			columns = append(columns, take(b.Weights, b.Out*in, b.Out, in))
		}
		if b.Biases >= 0 {
			columns = append(columns, take(b.Biases, b.Out, b.Out, 1))
		}
		m := of(b, Concatenate(columns, 2))
		if in > 0 {
			weights := Reshape(Slice(m, AxisRange(), AxisRange(), AxisRange(0, in)), rows, b.Out*in)
			pieces = append(pieces, piece{b.Weights, weights})
		}
		if b.Biases >= 0 {
			biases := Reshape(Slice(m, AxisRange(), AxisRange(), AxisRange(in, in+1)), rows, b.Out)
			pieces = append(pieces, piece{b.Biases, biases})
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int { return a.from - b.from })
	var all []*Node
	for _, p := range pieces {
		all = append(all, p.node)
	}
	return Concatenate(all, 1)
}
