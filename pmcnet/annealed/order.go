package annealed

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// order is a canonical order of the hidden units of a multilayer perceptron. Exchanging two hidden units of a layer,
// with all their weights, does not change the network's function. Nor does it change the prior if the exchanged weights
// are independent and identically distributed. If the activation is odd and the prior symmetric, the same holds for
// changing the signs of all weights into and out of a unit. So a posterior consists of |G| images of its part in a
// region R, with |G| the product over layers of n! (times 2^n for an odd activation), and each particle has exactly one
// image in R. In R the units of each layer are sorted by key'u, descending, and sign'u >= 0, where u are the unit's
// weights: of a unit and its mirror image, R contains the one with that sign.
// The choice of the directions sign and key changes no result, but only how well R separates the images: they are taken
// from the particles (learn). Layers are ordered from the inputs on, so that the weights into a layer come from units
// already in order.
type order struct {
	layers    []orderedLayer
	logImages float64 // log |G|
}

// orderedLayer is a hidden layer of n units.
type orderedLayer struct {
	n, inputs, outputs int
	in, bias, out      int       // offsets in phi of the weights into the units, [n, inputs], biases, [n], and the weights
	last               bool      // out of them, [outputs, n]; and whether these lead to the outputs
	mirrored           bool      // the activation is odd
	sign, key          []float64 // directions in the space of a unit's weights
}

// newOrder is the order of a bound model, all of whose parameters are stochastic. There is none, without layers, unless
// the network and the prior are known to be the same for exchanged units.
func newOrder(bound *bayes.BoundModel) (o order) {
	if bound == nil {
		return o
	}
	network, ok := bound.Model.Network.(nn.MLP)
	switch bound.Model.Prior.(type) {
	case bayes.Normal, bayes.LearntPrecision:
	default:
		ok = false
	}
	if !ok {
		return o
	}
	at := map[string]bayes.Slot{}
	for _, slot := range bound.Slots {
		at[slot.Name] = slot
	}
	for l, n := range network.Hidden {
		into, bias := at[fmt.Sprintf("layer%d/weights", l+1)], at[fmt.Sprintf("layer%d/biases", l+1)]
		out := at[fmt.Sprintf("layer%d/weights", l+2)]
		layer := orderedLayer{
			n: n, inputs: into.Shape[1], outputs: out.Shape[0], in: into.Offset, bias: bias.Offset, out: out.Offset,
			last: l == len(network.Hidden)-1, mirrored: network.Activation == nn.Tanh,
		}
		o.layers = append(o.layers, layer)
		permutations, _ := math.Lgamma(float64(n) + 1)
		if o.logImages += permutations; layer.mirrored {
			o.logImages += float64(n) * math.Ln2
		}
	}
	return o
}

// learn computes the directions sign and key from particles, the rows of x, [J, D], and puts these into order. The sign
// is along the direction of the units' largest second moment, along which few units lie near 0; the key is along the
// direction of their largest variance once the signs are right.
func (o order) learn(x *mat.Dense) {
	rows, _ := x.Dims()
	for l := range o.layers {
		layer := &o.layers[l]
		layer.sign, layer.key = nil, nil
		units := mat.NewDense(rows*layer.n, layer.width(), nil)
		for j := range rows {
			for i := range layer.n {
				layer.unit(x.RawRowView(j), i, units.RawRowView(j*layer.n+i))
			}
		}
		if layer.mirrored {
			layer.sign = leading(units, false)
			for k := range rows * layer.n {
				if u := units.RawRowView(k); floats.Dot(layer.sign, u) < 0 {
					floats.Scale(-1, u)
				}
			}
		}
		layer.key = leading(units, true)
		for j := range rows {
			layer.apply(x.RawRowView(j))
		}
	}
}

// leading is the direction of the largest second moment of the rows of x, about their mean if centred.
func leading(x *mat.Dense, centred bool) []float64 {
	rows, d := x.Dims()
	mean := make([]float64, d)
	if centred {
		for k := range rows {
			floats.AddScaled(mean, 1/float64(rows), x.RawRowView(k))
		}
	}
	moment, row := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
	for k := range rows {
		floats.SubTo(row.RawVector().Data, x.RawRowView(k), mean)
		moment.SymRankOne(moment, 1/float64(rows), row)
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(moment, true) { // the numbers are not finite: any direction will do
		first := make([]float64, d)
		first[0] = 1
		return first
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	return mat.Col(nil, d-1, &vectors)
}

// width is the number of coordinates that identify a unit: the weights into it, its bias and, for the last hidden
// layer, the weights out of it. Weights into a next hidden layer are left out, since its units are not in order yet.
func (l orderedLayer) width() int {
	if l.last {
		return l.inputs + 1 + l.outputs
	}
	return l.inputs + 1
}

// unit copies these coordinates of unit i of phi, [D], to u.
func (l orderedLayer) unit(phi []float64, i int, u []float64) {
	copy(u, phi[l.in+i*l.inputs:l.in+(i+1)*l.inputs])
	u[l.inputs] = phi[l.bias+i]
	if l.last {
		for k := range l.outputs {
			u[l.inputs+1+k] = phi[l.out+k*l.n+i]
		}
	}
}

// places returns the units' signs, 1 or -1, and their keys after multiplication by these signs.
func (l orderedLayer) places(phi []float64) (signs, keys []float64) {
	signs, keys = make([]float64, l.n), make([]float64, l.n)
	u := make([]float64, l.width())
	for i := range l.n {
		l.unit(phi, i, u)
		if signs[i] = 1; l.mirrored && floats.Dot(l.sign, u) < 0 {
			signs[i] = -1
		}
		keys[i] = signs[i] * floats.Dot(l.key, u)
	}
	return signs, keys
}

// apply puts the layer's units into order, in place.
func (l orderedLayer) apply(phi []float64) {
	signs, keys := l.places(phi)
	from := make([]int, l.n)
	for i := range from {
		from[i] = i
	}
	slices.SortStableFunc(from, func(a, b int) int { return cmp.Compare(keys[b], keys[a]) })
	before := slices.Clone(phi)
	for i, k := range from {
		for c := range l.inputs {
			phi[l.in+i*l.inputs+c] = signs[k] * before[l.in+k*l.inputs+c]
		}
		phi[l.bias+i] = signs[k] * before[l.bias+k]
		for c := range l.outputs {
			phi[l.out+c*l.n+i] = signs[k] * before[l.out+c*l.n+k]
		}
	}
}

// data returns the directions of sign and key, by their names in a graph.
func (o order) data(dtype compute.DType) map[string]*tensors.Tensor {
	data := map[string]*tensors.Tensor{}
	for l, layer := range o.layers {
		if layer.mirrored {
			data[signName(l)] = compute.Floats(dtype, layer.sign, layer.width())
		}
		data[keyName(l)] = compute.Floats(dtype, layer.key, layer.width())
	}
	return data
}

func signName(layer int) string { return fmt.Sprintf("order/%d/sign", layer) }
func keyName(layer int) string  { return fmt.Sprintf("order/%d/key", layer) }

// canonical puts particles, [J, D], into canonical order, in a graph. It permutes coordinates and changes signs; both
// are constant in a neighbourhood, so gradients pass through it.
func (o order) canonical(data compute.Nodes, phi *Node) *Node {
	for l, layer := range o.layers {
		phi = layer.canonical(data[signName(l)], data[keyName(l)], phi)
	}
	return phi
}

func (l orderedLayer) canonical(sign, key, phi *Node) *Node {
	j, n := phi.Shape().Dim(0), l.n
	part := func(from, size int) *Node { return Slice(phi, AxisRange(), AxisRange(from, from+size)) }
	units := Concatenate([]*Node{ // all that belongs to a unit, [J, n, inputs + 1 + outputs]
		Reshape(part(l.in, n*l.inputs), j, n, l.inputs), Reshape(part(l.bias, n), j, n, 1),
		Transpose(Reshape(part(l.out, l.outputs*n), j, l.outputs, n), 1, 2),
	}, 2)
	identity := StopGradient(Slice(units, AxisRange(), AxisRange(), AxisRange(0, l.width())))
	along := func(direction *Node) *Node { return Einsum("jnw,w->jn", identity, direction) }
	keys := along(key)
	signs := OnesLike(keys)
	if l.mirrored {
		signs = Where(LessThan(along(sign), ZerosLike(keys)), Neg(signs), signs)
		keys = Mul(keys, signs)
	}
	// Unit i comes before unit k if its key is larger or, for equal keys, its number is smaller. A unit's place is the
	// number of units that come before it.
	of := func(axis int) *Node { return Iota(phi.Graph(), shapes.Make(dtypes.Int32, j, n, n), axis) }
	pairs := func(x *Node, axis int) *Node { return BroadcastToDims(ExpandAxes(x, axis), j, n, n) } // x of the other axis
	before := Or(GreaterThan(pairs(keys, 1), pairs(keys, 2)),
		And(Equal(pairs(keys, 1), pairs(keys, 2)), LessThan(of(2), of(1))))
	place := ReduceSum(ConvertDType(before, dtypes.Int32), 2)
	// Row i of the signed permutation has, in the column of the unit that comes to place i, that unit's sign.
	moves := Where(Equal(pairs(place, 1), of(1)), pairs(signs, 1), ZerosLike(pairs(signs, 1)))
	units = Einsum("jab,jbw->jaw", moves, units)

	columns := func(from, to int) *Node { return Slice(units, AxisRange(), AxisRange(), AxisRange(from, to)) }
	all := []*Node{ // which lie side by side
		Reshape(columns(0, l.inputs), j, n*l.inputs), Reshape(columns(l.inputs, l.inputs+1), j, n),
		Reshape(Transpose(columns(l.inputs+1, l.inputs+1+l.outputs), 1, 2), j, l.outputs*n),
	}
	if l.in > 0 {
		all = append([]*Node{part(0, l.in)}, all...)
	}
	if end, d := l.out+l.outputs*n, phi.Shape().Dim(1); end < d {
		all = append(all, part(end, d-end))
	}
	return Concatenate(all, 1)
}

// apply puts a particle, [D], into canonical order, in place. The network's function stays the same.
func (o order) apply(phi []float64) {
	for _, layer := range o.layers {
		layer.apply(phi)
	}
}

// inside says whether a particle, [D], is in canonical order.
func (o order) inside(phi []float64) bool {
	for _, layer := range o.layers {
		signs, keys := layer.places(phi)
		for i := range keys {
			if signs[i] < 0 || i > 0 && keys[i] > keys[i-1] {
				return false
			}
		}
	}
	return true
}
