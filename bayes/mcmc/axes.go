package mcmc

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Axis is a direction along which the coordinates, in units of their scales, have a standard deviation that is not 1.
type Axis struct {
	Direction []float64 `json:"direction"` // [D], of length 1, orthogonal to those of the other axes
	StdDev    float64   `json:"std_dev"`
}

// Scaled is L x of x, [J, D], in units of the scales and axes: a step in the units of phi. With scales s, axes U and
// standard deviations a along them it is L = diag(s) A with A = I + U^T diag(a - 1) U. Take ScaledGradient for a
// gradient.
func (t Tuning) Scaled(x *graph.Node) *graph.Node { return t.timesScale(t.timesAxes(x, false)) }

// ScaledGradient is L^T g of the gradients g, [J, D], with respect to phi: those with respect to x, where phi is
// Scaled(x). Without axes it is the same as Scaled.
func (t Tuning) ScaledGradient(g *graph.Node) *graph.Node { return t.timesAxes(t.timesScale(g), false) }

// unscaled is the inverse of Scaled.
func (t Tuning) unscaled(x *Node) *Node {
	if t.Scale != nil {
		x = Div(x, BroadcastToShape(ExpandAxes(ConvertDType(t.Scale, x.DType()), 0), x.Shape()))
	}
	return t.timesAxes(x, true)
}

func (t Tuning) timesScale(x *Node) *Node {
	if t.Scale == nil {
		return x
	}
	return Mul(x, BroadcastToShape(ExpandAxes(ConvertDType(t.Scale, x.DType()), 0), x.Shape()))
}

// timesAxes is A x, or A^-1 x.
func (t Tuning) timesAxes(x *Node, inverse bool) *Node {
	if t.Axes == nil {
		return x
	}
	axes, stretch := ConvertDType(t.Axes, x.DType()), ConvertDType(t.Stretch, x.DType())
	if inverse {
		stretch = Inverse(stretch)
	}
	along := Einsum("jd,kd->jk", x, axes)
	along = Mul(along, BroadcastToShape(ExpandAxes(AddScalar(stretch, -1), 0), along.Shape()))
	return Add(x, Einsum("jk,kd->jd", along, axes))
}

// axes is the number of axes that the moves use.
func (s setup) axes(dim int) int { return max(len(s.Tuned.Axes), min(s.Axes, dim)) }

// checkAxes is an error if Axes or Tuned.Axes cannot be.
func (c Chains) checkAxes(dim int) error {
	if err := checkTunedAxes(c.Tuned, dim); err != nil {
		return fmt.Errorf("mcmc: Chains.%w", err)
	}
	if c.Axes == 0 {
		return nil
	}
	if c.Kernel.Traits().Carries != CarriesGradient {
		return fmt.Errorf("mcmc: Chains.Axes is %d, but %T carries no gradient to find axes by: leave Axes at 0", c.Axes,
			c.Kernel)
	}
	if s := (setup{settings: c}); c.FixedScale || !s.tunes(c.Kernel) {
		return fmt.Errorf("mcmc: Chains.Axes is %d, but no warm-up chooses step size and scales: leave the kernel's "+
			"StepSize at 0, FixedScale false and WarmUp positive, or give Tuned.Axes", c.Axes)
	}
	return nil
}

// checkTunedAxes is an error if axes are not those of D coordinates.
func checkTunedAxes(t Tuned, dim int) error {
	if len(t.Axes) > dim {
		return fmt.Errorf("Tuned.Axes are %d: there are at most D, %d", len(t.Axes), dim)
	}
	for i, a := range t.Axes {
		if !(a.StdDev > 0) || math.IsInf(a.StdDev, 1) || len(a.Direction) != dim {
			return fmt.Errorf("Tuned.Axes[%d] has a standard deviation of %v and a direction of length %d: it must be "+
				"positive and finite, and D, %d", i, a.StdDev, len(a.Direction), dim)
		}
		for k, b := range t.Axes[:i+1] {
			want := 0.
			if k == i {
				want = 1
			}
			if got := floats.Dot(a.Direction, b.Direction); !(math.Abs(got-want) < 1e-6) {
				return fmt.Errorf("Tuned.Axes[%d] and [%d] have a product of directions of %v: it must be %v", k, i, got, want)
			}
		}
	}
	return nil
}

// setAxes puts the axes on the device. Those that are not found yet are zeros.
func (r *sampling) setAxes() {
	k, dim := r.moves.axes, r.problem.Dim
	directions, stretch := make([]float64, k*dim), slices.Repeat([]float64{1}, k)
	for i, a := range r.position.Tuned.Axes {
		copy(directions[i*dim:], a.Direction)
		stretch[i] = a.StdDev
	}
	r.state.Set(axesName, compute.Floats(r.dtype, directions, k, dim))
	r.state.Set(stretchName, compute.Floats(r.dtype, stretch, k))
}

// points are where chains were in a window of the warm-up, and the gradients there, [n, D] each, transition after
// transition.
type points struct{ phi, gradients []float64 }

// pointNumbers is the largest number of the numbers that points hold: some 8 MB each.
const pointNumbers = 1 << 20

// watched is the number of chains, the first ones, whose points are kept: such that a window has at least ten of each.
func (r *sampling) watched() int { return min(max(1, pointNumbers/(10*r.problem.Dim)), r.Chains) }

// watch takes the chains' present points into the window. begin and ends are those of the slow windows.
func (r *sampling) watch(begin int, ends []int) error {
	w := r.Warming
	if r.Axes == 0 {
		return r.state.Read(r.carrier.Phi(), w.Window.add)
	}
	for _, end := range ends {
		if w.Done <= end {
			width, numbers := end-begin, r.watched()*r.problem.Dim
			if every := (width*numbers + pointNumbers - 1) / pointNumbers; (w.Done-begin)%max(1, every) != 0 {
				return nil
			}
			break
		}
		begin = end
	}
	var now points
	for name, values := range map[string]*[]float64{
		r.carrier.Phi(): &now.phi, r.carrier.Gradient(): &now.gradients,
	} {
		if err := r.state.Read(name, func(t *tensors.Tensor) (err error) {
			*values, err = compute.Float64s(t)
			return err
		}); err != nil {
			return err
		}
		*values = (*values)[:r.watched()*r.problem.Dim]
		if slices.ContainsFunc(*values, func(x float64) bool { return !finite(x) }) {
			return nil
		}
	}
	w.Points.phi, w.Points.gradients = append(w.Points.phi, now.phi...), append(w.Points.gradients, now.gradients...)
	return nil
}

// The names of points in a checkpoint.
const pointsName, pointGradientsName = "window/phi", "window/gradients"

// keep puts points into a checkpoint's tensors.
func (p points) keep(kept map[string]*tensors.Tensor, dim int) {
	if n := len(p.phi) / dim; n > 0 {
		kept[pointsName] = tensors.FromFlatDataAndDimensions(p.phi, n, dim)
		kept[pointGradientsName] = tensors.FromFlatDataAndDimensions(p.gradients, n, dim)
	}
}

// adopt takes points from a checkpoint's tensors.
func (p *points) adopt(kept map[string]*tensors.Tensor, dim int) (err error) {
	first, ok := kept[pointsName]
	if !ok {
		return nil
	}
	for name, values := range map[string]*[]float64{pointsName: &p.phi, pointGradientsName: &p.gradients} {
		t, err := run.Tensor(kept, name, shapes.Make(compute.Float64, first.Shape().Dim(0), dim))
		if err != nil {
			return err
		}
		if *values, err = compute.Float64s(t); err != nil {
			return err
		}
	}
	return nil
}

// metric finds scales, [D], and at most k axes by points of the given number of chains; nil if they do not tell.
//
// It minimises the Fisher divergence between the target in these units and the standard normal (Seyboldt, Carlson and
// Carpenter 2026, arXiv 2603.18845): with X the points and G the gradients, each less its chain's mean, in units in
// which its covariance is C_X or C_G, the best mass matrix is the inverse of the M with M C_G M = C_X. Among diagonal
// ones it has the scales (var x / var g)^(1/4). For a Gaussian, where G = -X Sigma^-1, M is Sigma, however few points
// beyond D there are and wherever the chains began. Of a matrix of low rank the equation is solved in the space of the
// k leading directions of X, where the target is wide, and the k of G, where it is narrow.
func (p points) metric(chains, dim, k int) (scale []float64, axes []Axis) {
	n := len(p.phi) / dim
	if n < 2*chains {
		return nil, nil
	}
	x, g := centred(p.phi, chains, dim), centred(p.gradients, chains, dim)
	scale = make([]float64, dim)
	column := make([]float64, n)
	for d := range scale {
		varX, varG := stat.Variance(mat.Col(column, d, x), nil), stat.Variance(mat.Col(column, d, g), nil)
		if !(varX > 0 && varG > 0) {
			return nil, nil
		}
		if scale[d] = math.Pow(varX/varG, .25); !finite(scale[d]) {
			return nil, nil
		}
	}
	for i := range n {
		floats.Div(x.RawRowView(i), scale)
		floats.Mul(g.RawRowView(i), scale)
	}
	var basis [][]float64 // of the space
	if 2*k >= dim {
		for d := range dim {
			basis = append(basis, make([]float64, dim))
			basis[d][d] = 1
		}
	} else {
		basis = orthonormal(append(leading(x, k), leading(g, k)...))
	}
	b := rows(basis)
	covariance := func(of *mat.Dense) *mat.SymDense {
		var projected mat.Dense
		projected.Mul(of, b.T())
		c := mat.NewSymDense(len(basis), nil)
		c.SymOuterK(1/float64(n), projected.T())
		for d := range basis {
			c.SetSym(d, d, c.At(d, d)+metricRidge)
		}
		return c
	}
	cx, cg := covariance(x), covariance(g)
	root, inverse := powerOf(cg, .5), powerOf(cg, -.5)
	inner := powerOf(between(root, cx), .5)
	if inner == nil || inverse == nil {
		return nil, nil
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(between(inverse, inner), true) {
		return nil, nil
	}
	values, vectors := eigen.Values(nil), new(mat.Dense)
	eigen.VectorsTo(vectors)
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return -cmp.Compare(math.Abs(math.Log(values[i])), math.Abs(math.Log(values[j])))
	})
	for _, i := range order[:min(k, len(order))] {
		if !(values[i] > 0) || math.IsInf(values[i], 1) {
			return nil, nil
		}
		direction := mat.NewVecDense(dim, nil)
		direction.MulVec(b.T(), vectors.ColView(i))
		axes = append(axes, Axis{Direction: direction.RawVector().Data, StdDev: math.Sqrt(values[i])})
	}
	return scale, axes
}

// metricRidge is added to the variances of points and gradients in every direction, in units of the scales, such that
// directions of which few points tell nothing stay as they are.
const metricRidge = 1e-5

// centred are the rows of x, [n, D] flat, less the mean of their chain; row i is of chain i modulo chains.
func centred(x []float64, chains, dim int) *mat.Dense {
	m := mat.NewDense(len(x)/dim, dim, slices.Clone(x))
	n, _ := m.Dims()
	for chain := range chains {
		mean, count := make([]float64, dim), 0.
		for i := chain; i < n; i += chains {
			floats.Add(mean, m.RawRowView(i))
			count++
		}
		for i := chain; i < n; i += chains {
			floats.AddScaled(m.RawRowView(i), -1/count, mean)
		}
	}
	return m
}

// leading are about the k leading right singular vectors of x, by subspace iteration.
func leading(x *mat.Dense, k int) [][]float64 {
	_, dim := x.Dims()
	rng := rand.New(rand.NewPCG(1, 2))
	basis := make([][]float64, k)
	for i := range basis {
		for range dim {
			basis[i] = append(basis[i], rng.NormFloat64())
		}
	}
	for range 8 {
		var along, next mat.Dense
		along.Mul(rows(basis), x.T())
		next.Mul(&along, x)
		for i := range basis {
			basis[i] = next.RawRowView(i)
		}
		basis = orthonormal(basis)
	}
	return basis
}

// orthonormal is a basis of the space of vectors, by Gram and Schmidt's method, twice against rounding.
func orthonormal(vectors [][]float64) (basis [][]float64) {
	for _, v := range vectors {
		size := floats.Norm(v, 2)
		for range 2 {
			for _, b := range basis {
				floats.AddScaled(v, -floats.Dot(b, v), b)
			}
		}
		if rest := floats.Norm(v, 2); rest > 1e-6*size {
			floats.Scale(1/rest, v)
			basis = append(basis, v)
		}
	}
	return basis
}

// rows is a matrix of rows.
func rows(of [][]float64) *mat.Dense {
	m := mat.NewDense(len(of), len(of[0]), nil)
	for i, r := range of {
		m.SetRow(i, r)
	}
	return m
}

// powerOf is a power of a positive definite matrix; nil if it is not one.
func powerOf(a *mat.SymDense, power float64) *mat.SymDense {
	var eigen mat.EigenSym
	if a == nil || !eigen.Factorize(a, true) {
		return nil
	}
	var vectors, scaled, out mat.Dense
	eigen.VectorsTo(&vectors)
	values := eigen.Values(nil)
	for i, v := range values {
		if values[i] = math.Pow(v, power); !(v > 0) || !finite(values[i]) {
			return nil
		}
	}
	scaled.Mul(&vectors, mat.NewDiagDense(len(values), values))
	out.Mul(&scaled, vectors.T())
	return symmetric(&out)
}

// between is a b a; nil if a is.
func between(a, b *mat.SymDense) *mat.SymDense {
	if a == nil {
		return nil
	}
	var left, out mat.Dense
	left.Mul(a, b)
	out.Mul(&left, a)
	return symmetric(&out)
}

// symmetric is the mean of a matrix and its transpose.
func symmetric(a *mat.Dense) *mat.SymDense {
	n, _ := a.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, (a.At(i, j)+a.At(j, i))/2)
		}
	}
	return s
}
