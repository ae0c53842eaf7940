package bayes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// BoundModel is a Model bound to the numbers of features and outputs of its data: it holds the layout of the
// parameters, and its methods build the computation graph.
//
// The stochastic parameters of one particle are a flat vector phi of D numbers, those of all particles a tensor [J, D];
// the shared parameters are a vector psi of W numbers. Unpack cuts both into Params. The network is split at the first
// layer with a stochastic parameter: Prefix is evaluated once for all particles, Suffix for each particle.
//
// The methods that take or return graph nodes panic on errors, as GoMLX does.
type BoundModel struct {
	Model   Model
	Inputs  int // features
	Outputs int // targets, or classes; 1 for a binary classification
	Width   int // number of network outputs, which the likelihood takes as its input
	D       int // stochastic numbers per particle
	W       int // shared numbers
	Slots   []Slot
	Extras  dataset.Extras // columns of y in a batch, behind the targets (see WithExtras)

	prefix, suffix []nn.Layer
}

// Slot is one parameter's place in the layout.
type Slot struct {
	nn.Parameter
	Stochastic bool
	Offset     int  // in phi if Stochastic, else in psi
	InPrefix   bool // shared, and used only before the first stochastic layer
}

// Bind fits the model to data with the given number of features and outputs (targets, or classes; 1 for a binary
// classification). It checks every setting and, by building the network's graph once, that the network has as many
// outputs as the likelihood takes. The model's slices and maps are copied. Of an Extractor it is the model behind it.
//
// Fit tries a network, likelihood or prior from outside this library on a few numbers, too (package tryout): particles
// and rows must not influence each other, LogDensity must agree with Predictive, and a prior's draws with its density.
func (m Model) Bind(inputs, outputs int) (*BoundModel, error) {
	var err error
	if e, is := m.Network.(Extractor); is {
		if inputs, err = e.Features(inputs); err == nil {
			m, err = e.Behind(m)
		}
		if err != nil {
			return nil, err
		}
	}
	b, err := m.laidOut(inputs, outputs)
	if err != nil {
		return nil, err
	}
	return b, b.tryGraphs()
}

// laidOut is the first half of Bind: the model with the layout of its parameters. It builds no graph, and allocates
// nothing of the parameters' sizes, so that Load can compare the layout with its file before it believes the sizes.
func (m Model) laidOut(inputs, outputs int) (*BoundModel, error) {
	if m.Network == nil || m.Likelihood == nil {
		return nil, fmt.Errorf("bayes: a Model needs a Network (it has %v) and a Likelihood (it has %v)",
			m.Network, m.Likelihood)
	}
	if s := m.Scaling; s.KeepFeatures && s.NormalScores {
		return nil, errors.New("bayes: Scaling has KeepFeatures and NormalScores: the one leaves features as they are, the " +
			"other replaces the skewed ones; set one of them")
	}
	if m = m.clone(); m.Prior == nil {
		m.Prior = Normal{}
	}
	if err := m.Likelihood.Check(); err != nil {
		return nil, err
	}
	if err := m.Prior.Check(); err != nil {
		return nil, err
	}
	task, width := m.Likelihood.Task(), m.Likelihood.Outputs(outputs)
	classes := task == dataset.Classification && outputs >= 2 || task == dataset.BinaryClassification && outputs == 1
	if !classes && (task != dataset.Regression || outputs < 1) || width < 1 {
		cure := ""
		switch {
		case task == dataset.BinaryClassification && outputs == 2:
			cure = ": two classes are a binary classification if the data's Task is BinaryClassification; or take " +
				"bayes.Categorical"
		case task == dataset.Classification && outputs == 1:
			cure = ": for two classes set the data's Task to Classification, or take bayes.Bernoulli"
		}
		return nil, fmt.Errorf("bayes: likelihood %T is for %v, and not for data that needs %d outputs%s",
			m.Likelihood, task, outputs, cure)
	}
	layers, err := m.Network.Layers(inputs, width)
	if err != nil {
		return nil, err
	}
	b := &BoundModel{Model: m, Inputs: inputs, Outputs: outputs, Width: width}
	return b, b.layOut(layers)
}

// tryGraphs is the second half of Bind, which builds the model's graphs.
func (b *BoundModel) tryGraphs() error {
	engine, err := compute.Open(compute.GoBackend) // every build of the program has it
	if err != nil {
		return err
	}
	err = b.checkWidth(engine)
	if err != nil && b.HasPrefix() { // one of its layers may read a parameter of the other part
		b.prefix, b.suffix = nil, slices.Concat(b.prefix, b.suffix)
		for i := range b.Slots {
			b.Slots[i].InPrefix = false
		}
		err = b.checkWidth(engine)
	}
	if err != nil {
		return err
	}
	return b.checkPerLayer()
}

// checkPerLayer returns an error if the prior sets a scale for a layer that the network does not have, or for layer 0,
// the likelihood's noise, where that is not stochastic. The prior may name a layer whose parameters are shared, so that
// one prior serves several partitions.
func (b *BoundModel) checkPerLayer() error {
	p, ok := b.Model.Prior.(Normal)
	if !ok {
		return nil
	}
	known, last := map[int]bool{}, 0
	for _, slot := range b.Slots {
		if slot.Layer > 0 || slot.Stochastic {
			known[slot.Layer], last = true, max(last, slot.Layer)
		}
	}
	for _, layer := range slices.Sorted(maps.Keys(p.PerLayer)) {
		if !known[layer] {
			return fmt.Errorf("bayes: Normal.PerLayer has the scale %v for layer %d, which has no parameter with a prior: "+
				"layers count from 1 to %d, and 0 is the likelihood's noise where that is stochastic", p.PerLayer[layer], layer,
				last)
		}
	}
	return nil
}

// checkWidth builds the graph of network and likelihood once, without compiling it. It returns an error if that fails,
// or if the network does not have as many outputs as the likelihood takes.
func (b *BoundModel) checkWidth(engine *compute.Engine) (err error) {
	const particles, rows = 2, 3
	building := fmt.Sprintf("%T", b.Model.Network)
	failed := compute.Try(func() {
		g := graph.NewGraph(engine.Backend(), "bayes.Bind")
		defer g.Finalize()
		input := func(name string, dims ...int) *graph.Node {
			return graph.Parameter(g, name, shapes.Make(compute.Float32, dims...))
		}
		phi := nn.Block(input("phi", particles, b.D), 1)
		var psi *graph.Node
		if b.W > 0 {
			psi = input("psi", b.W)
		}
		before := b.Unpack(nil, psi, func(s Slot) bool { return s.InPrefix })
		after := b.Unpack(phi, psi, func(s Slot) bool { return !s.InPrefix })
		outputs := b.Suffix(after, b.Prefix(before, input("x", rows, b.Inputs)))
		want := []int{b.Width, rows}
		if outputs.PerParticle {
			want = []int{particles, b.Width, rows, 1}
		}
		if have := outputs.Node.Shape().Dimensions; !slices.Equal(have, want) {
			err = fmt.Errorf("bayes: likelihood %T takes %d numbers from the network for data of %d outputs, but %T gives "+
				"outputs of shape %v, not %v: its Layers(inputs, outputs) must return layers that give that many outputs",
				b.Model.Likelihood, b.Width, b.Outputs, b.Model.Network, have, want)
			return
		}
		y := input("y", rows)
		if b.Targets() > 1 {
			y = input("targets", rows, b.Targets())
		}
		building = fmt.Sprintf("%T.LogDensity, given outputs %v and y [%d %d],", b.Model.Likelihood, want,
			b.Targets(), rows)
		have := b.LogDensity(after, outputs, y).Shape().Dimensions
		if !slices.Equal(have, []int{particles, rows, 1}) && !slices.Equal(have, []int{1, rows, 1}) {
			err = fmt.Errorf("bayes: %T.LogDensity gives shape %v for %d particles and %d rows, not [%d, %d, 1]",
				b.Model.Likelihood, have, particles, rows, particles, rows)
		}
	})
	if failed != nil {
		return fmt.Errorf("bayes: the graph of %s cannot be built: %w", building, failed)
	}
	return err
}

// Targets is the number of targets K of a regression; 1 for classification.
func (b *BoundModel) Targets() int {
	if b.Model.Likelihood.Task() == dataset.Regression {
		return b.Outputs
	}
	return 1
}

// classes is the number of classes of a classification, 0 for regression.
func (b *BoundModel) classes() int {
	switch b.Model.Likelihood.Task() {
	case dataset.BinaryClassification:
		return 2
	case dataset.Classification:
		return b.Outputs
	}
	return 0
}

// WithExtras is the model for rows that have more than features and targets. The columns of dataset.Dataset.Extra stand
// behind the K targets in a batch's y, which is then [B, K + columns]. It is an error if the likelihood does not take
// them.
func (b *BoundModel) WithExtras(e dataset.Extras) (*BoundModel, error) {
	l := b.Model.Likelihood
	if e.Exposure && !takesExposure(l) {
		return nil, fmt.Errorf("bayes: the data have Exposure, and the likelihood %T has no mean that it could multiply: "+
			"take bayes.Poisson or bayes.NegativeBinomial, for counts", l)
	}
	if _, ok := l.(Survivor); e.Censored && !ok {
		return nil, fmt.Errorf("bayes: the data have Censored targets, and the likelihood %T does not know P(target > y): "+
			"take bayes.Gaussian or bayes.Heteroscedastic (of the target's logarithm, if it is a time)", l)
	}
	other := *b
	other.Extras = e
	return &other, nil
}

// ProgramKey is what a program that evaluates the model depends on, for compute.KeyOf.
func (b *BoundModel) ProgramKey() []any { return []any{b.Model, b.Inputs, b.Outputs, b.Extras} }

// LogDensity is the likelihood's log p(y_b | outputs) per particle and row, times the row's weight, in the blocks of
// nn.Block. y is [B], or [B, K] for K targets, with the columns of Extras behind them.
func (b *BoundModel) LogDensity(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	density := b.LogDensityAlone(params, outputs, y)
	if weights := b.RowWeights(y); weights != nil {
		density = graph.Mul(density, graph.ExpandAxes(weights, 0, -1))
	}
	return density
}

// LogDensityAlone is LogDensity without the row's weight.
func (b *BoundModel) LogDensityAlone(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	if y.Rank() == 1 {
		y = graph.ExpandAxes(y, 0)
	} else {
		y = graph.Transpose(y, 0, 1)
	}
	at := b.Targets()
	if have, want := y.Shape().Dim(0), at+b.Extras.Columns(); have != want {
		panic(fmt.Errorf("bayes: y has %d columns, not %d: %d targets and Extras %+v", have, want, at, b.Extras))
	}
	targets := y
	if b.Extras.Columns() > 0 {
		targets = graph.Slice(y, graph.AxisRange(0, at))
	}
	var censored *graph.Node // [1, B, 1]
	if b.Extras.Censored {
		censored = graph.ExpandAxes(graph.Slice(y, graph.AxisElem(at)), -1)
		at++
	}
	if b.Extras.Exposure {
		logExposure := graph.Slice(y, graph.AxisElem(at)) // [1, B]
		if outputs.PerParticle {
			logExposure = graph.ExpandAxes(logExposure, 0, -1)
		}
		outputs.Node = graph.Add(outputs.Node, logExposure)
	}
	density := b.Model.Likelihood.LogDensity(params, outputs, targets)
	if censored != nil {
		above := b.Model.Likelihood.(Survivor).LogSurvival(params, outputs, targets)
		is := graph.GreaterThan(censored, graph.ScalarZero(y.Graph(), y.DType()))
		density = graph.Where(graph.BroadcastToDims(is, density.Shape().Dimensions...), above, density)
	}
	return density
}

// RowWeights are the rows' weights, [B]; nil if the rows of y have none.
func (b *BoundModel) RowWeights(y *graph.Node) *graph.Node {
	if !b.Extras.Weights {
		return nil
	}
	return graph.Reshape(graph.Slice(y, graph.AxisRange(), graph.AxisElem(-1)), y.Shape().Dim(0))
}

// mostParameters is the number of tensors that a network may have. The time of building its graph grows with the square
// of their number: with so many, as of 2000 dense layers, it takes a second or two.
const mostParameters = 4000

// layOut gives every parameter its slot and splits the layers.
func (b *BoundModel) layOut(layers []nn.Layer) error {
	var parameters []nn.Parameter
	for _, layer := range layers {
		if parameters = append(parameters, layer.Parameters()...); len(parameters) > mostParameters {
			return fmt.Errorf("bayes: %T has more than %d tensors of parameters, which takes too long to build and to compile: "+
				"a dense layer has two; take fewer layers", b.Model.Network, mostParameters)
		}
	}
	parameters = append(parameters, b.Model.Likelihood.Parameters(b.Outputs)...)
	named := map[string]bool{}
	for _, p := range parameters {
		if err := p.Check(); err != nil {
			return fmt.Errorf("bayes: %T or %T declares a parameter that is not complete: %w", b.Model.Network,
				b.Model.Likelihood, err)
		}
		if named[p.Name] {
			return fmt.Errorf("bayes: two layers, or the likelihood, declare a parameter %q: names must be unique; layers that "+
				"share a parameter let one declare it, and all read it by its name", p.Name)
		}
		if p.Name == weightsTensor || p.Name == linearisedTensor {
			return fmt.Errorf("bayes: a layer, or the likelihood, declares a parameter %q: the file of a posterior holds "+
				"something else of this name; choose another, such as %q", p.Name, "layer1/"+p.Name)
		}
		named[p.Name] = true
	}
	stochastic, err := b.Model.Stochastic.stochastic(parameters)
	if err != nil {
		return err
	}
	firstStochastic := len(parameters)
	b.Slots = make([]Slot, 0, len(parameters))
	for i, p := range parameters {
		slot := Slot{Parameter: p, Stochastic: stochastic[i]}
		if stochastic[i] {
			firstStochastic = min(firstStochastic, i)
			slot.Offset = b.D
			b.D += p.Size()
		} else {
			slot.Offset = b.W
			b.W += p.Size()
		}
		b.Slots = append(b.Slots, slot)
	}

	before, split := 0, 0 // parameters of the layers before the first stochastic one, and these layers
	for split < len(layers) && before+len(layers[split].Parameters()) <= firstStochastic {
		before += len(layers[split].Parameters())
		split++
	}
	b.prefix, b.suffix = layers[:split], layers[split:]
	for i := range before {
		b.Slots[i].InPrefix = true
	}
	return nil
}

// of is the slot's columns of phi, [J, size] of [J, D].
func (s Slot) of(phi *graph.Node) *graph.Node {
	return graph.Slice(phi, graph.AxisRange(), graph.AxisRange(s.Offset, s.Offset+s.Size()))
}

// stochasticSlots returns the slots of phi.
func (b *BoundModel) stochasticSlots() []Slot {
	return slices.DeleteFunc(slices.Clone(b.Slots), func(s Slot) bool { return !s.Stochastic })
}

// Unpack cuts phi, [J/c, D, c] as nn.Block lays it out, and psi, [W], into the tensors of the parameters that keep
// accepts (nil: all).
func (b *BoundModel) Unpack(phi, psi *graph.Node, keep func(Slot) bool) nn.Params {
	params := nn.Params{}
	for _, slot := range b.Slots {
		if keep != nil && !keep(slot) {
			continue
		}
		if slot.Stochastic {
			shape := append(append([]int{phi.Shape().Dim(0)}, slot.Shape...), phi.Shape().Dim(2))
			params[slot.Name] = nn.Value{Node: graph.Reshape(slot.of(phi), shape...), PerParticle: true}
		} else {
			params[slot.Name] = nn.Value{Node: graph.Reshape(
				graph.Slice(psi, graph.AxisRange(slot.Offset, slot.Offset+slot.Size())), slot.Shape...)}
		}
	}
	return params
}

// Numbers are features, [B, d], as numbers of the given type: bytes of pictures (dataset.Pixels) become numbers from 0
// to 1, floats stay as they are.
func Numbers(x *graph.Node, dtype compute.DType) *graph.Node {
	if x.DType().IsFloat() {
		return x
	}
	x = graph.ConvertDType(x, dtype)
	return graph.Div(x, graph.Scalar(x.Graph(), dtype, 255)) // DivScalar would multiply by 1/255, rounded
}

// Prefix evaluates the layers before the first stochastic one: x, [B, d], to [width, B].
func (b *BoundModel) Prefix(params nn.Params, x *graph.Node) nn.Value {
	return apply(b.prefix, params, nn.Value{Node: graph.Transpose(x, 0, 1)})
}

// Suffix evaluates the other layers, from the result of Prefix to the network's outputs.
func (b *BoundModel) Suffix(params nn.Params, h nn.Value) nn.Value { return apply(b.suffix, params, h) }

// PerExample evaluates the network at one phi, [D], on every row of x, [B, d], with a copy of phi for each row. It
// returns the outputs, [B, C], and the copies, [B, D]. Since a row depends on its own copy only, the gradient of a sum
// over rows with respect to the copies holds the gradient of each row; the gradients of the C outputs make up each
// row's Jacobian with respect to phi.
func (b *BoundModel) PerExample(phi, psi, x *graph.Node) (outputs, copies *graph.Node, params nn.Params) {
	rows := x.Shape().Dim(0)
	copies = graph.BroadcastToDims(graph.ExpandAxes(phi, 0), rows, b.D)
	params = b.Unpack(nn.Block(copies, 1), psi, nil)
	input := b.Prefix(params, x) // [width, B]: the parameters before the first stochastic layer are shared
	if !input.PerParticle {
		width := input.Node.Shape().Dim(0)
		input = nn.Value{Node: graph.Reshape(graph.Transpose(input.Node, 0, 1), rows, width, 1, 1), PerParticle: true}
	}
	out := b.Suffix(params, input)
	return graph.Reshape(out.Node, rows, b.Width), copies, params
}

func apply(layers []nn.Layer, params nn.Params, h nn.Value) nn.Value {
	for _, layer := range layers {
		h = layer.Apply(params, h)
	}
	return h
}

// HasPrefix says whether any layer comes before the first stochastic one.
func (b *BoundModel) HasPrefix() bool { return len(b.prefix) > 0 }

// SuffixWidth is the sum of the widths of the suffix's layers (see nn.Sized): the number of activations per particle
// and row.
func (b *BoundModel) SuffixWidth() int { return b.Width + b.widthOf(b.suffix) }

// IsLinear says that the network's outputs are linear in phi: all stochastic parameters are of the last layer, a Dense.
func (b *BoundModel) IsLinear() bool {
	if len(b.suffix) != 1 {
		return false
	}
	_, dense := b.suffix[0].(nn.Dense)
	return dense
}

// PrefixWidth is the sum of the widths of the prefix's layers: the number of activations per row.
func (b *BoundModel) PrefixWidth() int { return b.widthOf(b.prefix) }

func (b *BoundModel) widthOf(layers []nn.Layer) (width int) {
	stochastic := map[string]bool{}
	for _, slot := range b.stochasticSlots() {
		stochastic[slot.Name] = true
	}
	for _, layer := range layers {
		width += nn.StoredBy(layer, slices.ContainsFunc(layer.Parameters(),
			func(p nn.Parameter) bool { return stochastic[p.Name] }))
	}
	return width
}

// Scales returns the prior's scales of phi's coordinates, [D].
func (b *BoundModel) Scales() []float64 { return Scales(b.Model.Prior, b.stochasticSlots()) }

// LogPrior is log p(phi), [J].
func (b *BoundModel) LogPrior(phi *graph.Node) *graph.Node {
	return b.Model.Prior.LogDensity(phi, b.stochasticSlots())
}

// SamplePrior draws phi, [J, D], from the prior.
func (b *BoundModel) SamplePrior(rng random.Stream, dtype compute.DType, particles int) *graph.Node {
	return b.Model.Prior.Sample(rng, dtype, particles, b.stochasticSlots())
}

// InitShared draws psi, [W], from the parameters' initialisers; nil if nothing is shared.
func (b *BoundModel) InitShared(rng random.Stream, dtype compute.DType, g *graph.Graph) *graph.Node {
	var parts []*graph.Node
	for _, slot := range b.Slots {
		if !slot.Stochastic {
			parts = append(parts, slot.Initialise(rng.Named(slot.Name), dtype, g))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return graph.Concatenate(parts, 0)
}

// Summary prints the partition: each parameter's name, shape, whether it is stochastic, its prior's scale, and its
// count.
func (b *BoundModel) Summary() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "parameter\tshape\t\tcount\tprior")
	for _, slot := range b.Slots {
		role, prior := "shared", ""
		if slot.Stochastic {
			role, prior = "stochastic", fmt.Sprintf("%s(%.4g)", typeName(b.Model.Prior), b.Model.Prior.Scale(slot.Parameter))
		}
		fmt.Fprintf(table, "%s\t%v\t%s\t%d\t%s\n", slot.Name, slot.Shape, role, slot.Size(), prior)
	}
	fmt.Fprintf(table, "total\t\tstochastic\t%d\tper particle\n", b.D)
	fmt.Fprintf(table, "\t\tshared\t%d\t\n", b.W)
	table.Flush() //nolint:errcheck // a strings.Builder does not fail
	return out.String()
}
