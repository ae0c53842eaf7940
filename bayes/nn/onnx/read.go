package onnx

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/onnx-gomlx/onnx"
	"github.com/gomlx/onnx-gomlx/onnx/parser"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The versions of ONNX's operators that are read. Before the first, Clip, Slice and Pad had attributes in place of
// inputs, which the reader leaves out without a word.
const oldest, newest = 11, 23

// mostBytes is the size of the largest file: what a protocol buffer can have.
const mostBytes = 2 << 30

// fewNumbers is the size up to which floats can be settings of operators, such as the scales of a Resize, which are
// constants of the graph; more are weights, and so are those that weigh lists.
const fewNumbers = 100

// mostPlaces is the size of the largest kernel that convolution takes apart.
const mostPlaces = 49

// weigh are operators whose tensors are weights whatever their size.
var weigh = []string{"Add", "BatchNormalization", "Conv", "Gemm", "MatMul", "Mul"}

// file is a network that was read, up to its features.
type file struct {
	sum      string // the file's SHA-256
	model    onnx.Model
	input    shapes.Shape // of rows; -1: open
	name     string       // of the input
	features string       // of the tensor that has the features
	weights  []weight     // in the order of the file
	own      *product     // that the file has behind the features; nil: none
	layout
	program *program
}

// weight is a tensor of the file that is an input of the program; of the Parameter it has name, shape and values.
type weight struct {
	nn.Parameter
	fixed bool // is not learnt: a mean or variance of a batch normalisation
}

// product is a layer: features times weights, [in, out], plus biases, [out].
type product struct{ weights, biases weight }

// read reads a file, and cuts it behind the features.
func read(path string, o Options) (f *file, err error) {
	defer func() {
		if fault := recover(); fault != nil { // such as a node without the inputs of its operator
			err = fmt.Errorf("its nodes do not fit their operators (%v): check it by onnx.checker.check_model", fault)
		}
	}()
	if info, err := os.Stat(path); err == nil && info.Size() >= mostBytes {
		return nil, errors.New("it has 2 GiB or more, which is more than one ONNX file can have: export a smaller network")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := unmarshal(content)
	if err != nil {
		return nil, fmt.Errorf("it is no ONNX file, or is cut off: %w", err)
	}
	sum := sha256.Sum256(content)
	f = &file{sum: hex.EncodeToString(sum[:]), features: o.Features, program: &program{}}
	r := &rewriting{graph: m.of("graph"), tensors: map[string]message{}, makes: map[string]message{}}
	if err := r.check(m); err != nil {
		return nil, err
	}
	if err := r.collect(); err != nil {
		return nil, err
	}
	if err := r.cut(f, o); err != nil {
		return nil, err
	}
	f.features = r.rewrite(f.features)
	if f.weights, err = r.inputs(); err != nil {
		return nil, err
	}
	if content, err = proto.Marshal(m.Interface()); err != nil {
		return nil, err
	}
	if f.model, err = parser.Parse(content); err != nil {
		return nil, err
	}
	f.model.DisableFusion()
	names, dims := f.model.Inputs()
	f.name, f.input = names[0], dims[0]
	return f, f.layOut(o)
}

// rewriting is the work on a file's graph.
type rewriting struct {
	graph   message
	tensors map[string]message // by name: initialisers and constants
	makes   map[string]message // the node that gives an output
	kernels []string           // tensors of convolutions that are put in terms of others
}

// check is an error where the file as a whole cannot be read.
func (r *rewriting) check(m message) error {
	nodes := r.graph.all("node")
	if len(nodes) == 0 {
		return errors.New("it has no nodes: it is no ONNX file, or is cut off")
	}
	for _, set := range m.all("opset_import") {
		version := set.get("version").Int()
		if domain := set.text("domain"); (domain == "" || domain == "ai.onnx") && (version < oldest || version > newest) {
			return fmt.Errorf("its operators are of opset %d, and those from %d to %d are read: export it again, or convert it "+
				"by onnx.version_converter.convert_version(model, %d)", version, oldest, newest, 17)
		}
	}
	if n := len(r.graph.all("sparse_initializer")) + len(m.all("functions")); n > 0 {
		return fmt.Errorf("it has %d sparse tensors or functions of its own, which are not read: export it without these", n)
	}
	return nil
}

// collect finds tensors and nodes by their names.
func (r *rewriting) collect() error {
	for _, t := range r.graph.all("initializer") {
		r.tensors[t.text("name")] = t
	}
	before := map[string]bool{} // what nodes so far take
	for _, n := range r.graph.all("node") {
		for _, in := range n.texts("input") {
			before[in] = true
		}
		for _, out := range n.texts("output") {
			if r.makes[out] = n; before[out] {
				return fmt.Errorf("its tensor %q is taken before it is made: nodes have to stand in order", out)
			}
		}
		if a, is := n.attribute("value"); is && n.text("op_type") == "Constant" {
			t := a.of("t")
			t.put("name", n.texts("output")[0])
			r.tensors[t.text("name")] = t
		}
	}
	// An initialiser may be named among the inputs, too, as its default.
	r.graph.keep("input", func(in message) bool { _, is := r.tensors[in.text("name")]; return !is })
	for _, name := range slices.Sorted(maps.Keys(r.tensors)) {
		switch t := r.tensors[name]; {
		case t.get("data_location").Enum() == external:
			return fmt.Errorf("its tensor %q stands in another file: save it as one, by onnx.save(model, path, "+
				"save_as_external_data=False)", name)
		case t.get("data_type").Int() == float16Type:
			return fmt.Errorf("its tensor %q has numbers of 16 bits: export it in float32", name)
		}
	}
	return nil
}

// needed are the nodes that an output depends on, in the order of the file.
func (r *rewriting) needed(output string) (nodes []message) {
	seen := map[string]bool{}
	for queue := []string{output}; len(queue) > 0; queue = queue[1:] {
		n, is := r.makes[queue[0]]
		if !is || seen[queue[0]] {
			continue
		}
		for _, out := range n.texts("output") {
			seen[out] = true
		}
		queue = append(queue, n.texts("input")...)
		for _, a := range n.all("attribute") { // a branch reads what is outside of it
			for _, inner := range a.of("g").all("node") {
				queue = append(queue, inner.texts("input")...)
			}
		}
	}
	for _, n := range r.graph.all("node") {
		if slices.ContainsFunc(n.texts("output"), func(out string) bool { return seen[out] }) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// cut leaves of the graph what the features depend on.
func (r *rewriting) cut(f *file, o Options) error {
	if inputs := r.graph.names("input"); len(inputs) != 1 {
		return fmt.Errorf("it has the inputs %q, and a row of data is one: export it with one input", inputs)
	}
	outputs := r.graph.names("output")
	found := map[string]bool{}
	for _, out := range outputs {
		nodes := r.needed(out)
		for i, n := range slices.Backward(nodes) {
			p, err := r.product(n, nodes[i+1:])
			if err != nil {
				return err
			}
			if in := n.texts("input"); p != nil && (f.features == "" || o.Features == "" || f.features == in[0]) {
				f.features, f.own, found[in[0]] = in[0], p, true
				break
			}
		}
	}
	if len(found) > 1 {
		return fmt.Errorf("its outputs %q are of several last products: name the tensor that has the features "+
			"(Options.Features), such as one of %q", outputs, slices.Sorted(maps.Keys(found)))
	}
	if f.features == "" {
		return fmt.Errorf("no product with weights of its own stands before its output: name the tensor that has the "+
			"features (Options.Features), such as %q", outputs[0])
	}
	if _, is := r.makes[f.features]; !is {
		var names []string
		for _, n := range r.graph.all("node") {
			if n.text("op_type") != "Constant" {
				names = append(names, n.texts("output")...)
			}
		}
		return fmt.Errorf("it has no tensor %q (Options.Features): its last ones are %q", f.features,
			names[max(0, len(names)-10):])
	}
	needed := map[string]bool{}
	for _, n := range r.needed(f.features) {
		needed[n.texts("output")[0]] = true
	}
	r.graph.keep("node", func(n message) bool { return needed[n.texts("output")[0]] })
	r.graph.keep("output", func(message) bool { return false })
	return nil
}

// product is a node as a layer; nil: it is none. The biases are those that a node behind it adds.
func (r *rewriting) product(n message, behind []message) (*product, error) {
	kind, in := n.text("op_type"), n.texts("input")
	if kind != "MatMul" && kind != "Gemm" || len(in) < 2 {
		return nil, nil
	}
	t, is := r.tensors[in[1]]
	if !is || len(t.ints("dims")) != 2 || n.float("alpha", 1) != 1 || n.float("beta", 1) != 1 {
		return nil, nil // a Gemm that scales its weights is another layer than they are
	}
	w, err := weightOf(t)
	if err != nil {
		return nil, err
	}
	if n.whole("transB", 0)[0] == 1 {
		w = w.transposed()
	}
	p := &product{weights: w}
	p.biases.Values = make([]float32, w.Shape[1])
	b := ""
	if kind == "Gemm" && len(in) > 2 {
		b = in[2]
	} else if len(behind) > 0 && behind[0].text("op_type") == "Add" {
		for _, name := range behind[0].texts("input") {
			if name != n.texts("output")[0] {
				b = name
			}
		}
	}
	if t, is := r.tensors[b]; is && t.size() == w.Shape[1] {
		p.biases, err = weightOf(t)
	}
	return p, err
}

// transposed is a matrix's transpose.
func (w weight) transposed() weight {
	rows, columns := w.Shape[0], w.Shape[1]
	values := w.Values
	w.Shape, w.Values = []int{columns, rows}, make([]float32, len(values))
	for i := range values {
		w.Values[i%columns*rows+i/columns] = values[i]
	}
	return w
}

// rewrite puts operators that the reader lacks in terms of others. It returns the name that the features then have.
func (r *rewriting) rewrite(features string) string {
	nodes := r.graph.all("node")
	r.graph.Clear(r.graph.field("node"))
	same := map[string]string{} // names of what an Identity, which GoMLX cannot differentiate, gives again
	for _, n := range nodes {
		for i, name := range n.texts("input") {
			n.list("input").Set(i, protoreflect.ValueOf(cmp.Or(same[name], name)))
		}
		in, out := n.texts("input"), n.texts("output")[0]
		switch n.text("op_type") {
		case "Identity", "Dropout": // which drops nothing in a prediction
			same[out] = in[0]
		case "HardSigmoid": // max(0, min(1, alpha x + beta))
			r.node("Mul", out+"/times", in[0], r.number(out+"/alpha", n.float("alpha", .2)))
			r.node("Add", out+"/plus", out+"/times", r.number(out+"/beta", n.float("beta", .5)))
			r.node("Clip", out, out+"/plus", r.number(out+"/least", 0), r.number(out+"/most", 1))
		case "GlobalMaxPool": // over all axes but those of rows and channels, whose number nothing here knows
			r.node("Reshape", out+"/flat", in[0], r.whole(out+"/shape", 0, 0, -1))
			r.node("ReduceMax", out+"/most", out+"/flat", r.whole(out+"/axis", 2))
			r.node("GlobalAveragePool", out+"/mean", in[0])
			r.node("Shape", out+"/like", out+"/mean")
			r.node("Reshape", out, out+"/most", out+"/like")
		case "Conv":
			if !r.convolution(n) {
				r.graph.add("node", n)
			}
		default:
			r.graph.add("node", n)
		}
	}
	return cmp.Or(same[features], features)
}

// convolution puts a convolution in terms of what is faster; false: it stays. One of single pixels is a product of
// matrices, on GoMLX's Go backend in a fifth of the time. One of each channel by itself is a sum over the places of its
// kernel, of the pictures shifted by as much times the place's weights: XLA does that in one loop on a processor, in a
// 25th of the time or less.
func (r *rewriting) convolution(n message) bool {
	in, out := n.texts("input"), n.texts("output")[0]
	kernel := r.tensors[in[1]]
	if a, is := n.attribute("auto_pad"); is && string(a.get("s").Bytes()) != "NOTSET" || kernel.Message == nil {
		return false
	}
	dims, groups, pads := kernel.ints("dims"), n.whole("group", 1)[0], n.whole("pads", 0, 0, 0, 0)
	strides, dilations := n.whole("strides", 1, 1), n.whole("dilations", 1, 1)
	if len(dims) != 4 || dims[2] > mostPlaces || dims[2]*dims[3] > mostPlaces {
		return false
	}
	var terms []message // are added up
	r.kernels = append(r.kernels, in[1:]...)
	switch {
	case groups == 1 && dims[2]*dims[3]*slices.Max(strides) == 1 && slices.Max(pads) == 0:
		r.node("Reshape", out+"/kernel", in[1], r.whole(out+"/shape", dims[:2]...))
		terms = append(terms, r.node("Einsum", out+"/product", in[0], out+"/kernel"))
		terms[0].attach("equation", stringAttribute).put("s", []byte("nchw,oc->nohw"))
	case groups == dims[0] && dims[1] == 1:
		r.node("Reshape", out+"/kernel", in[1], r.whole(out+"/shape", 1, -1, dims[2], dims[3]))
		// One more at the end: what ends before it is counted from there.
		r.node("Pad", out+"/padded", in[0], r.whole(out+"/pads", 0, 0, pads[0], pads[1], 0, 0, pads[2]+1, pads[3]+1))
		axes, steps := r.whole(out+"/axes", 2, 3), r.whole(out+"/steps", strides...)
		for place := range dims[2] * dims[3] {
			name, i, j := fmt.Sprintf("%s/%d", out, place), place/dims[3], place%dims[3]
			r.node("Slice", name+"/shifted", out+"/padded", r.whole(name+"/from", i*dilations[0], j*dilations[1]),
				r.whole(name+"/to", (i+1-dims[2])*dilations[0]-1, (j+1-dims[3])*dilations[1]-1), axes, steps)
			r.node("Slice", name+"/weight", out+"/kernel", r.whole(name+"/at", i, j), r.whole(name+"/next", i+1, j+1), axes)
			terms = append(terms, r.node("Mul", name, name+"/shifted", name+"/weight"))
		}
	default:
		return false
	}
	if len(in) > 2 {
		terms = append(terms, r.node("Reshape", out+"/biases", in[2], r.whole(out+"/channels", 1, -1, 1, 1)))
	}
	sum := terms[0]
	for _, term := range terms[1:] {
		sum = r.node("Add", term.texts("output")[0]+"/sum", sum.texts("output")[0], term.texts("output")[0])
	}
	sum.list("output").Set(0, protoreflect.ValueOf(out))
	return true
}

// node appends a node.
func (r *rewriting) node(kind, output string, inputs ...string) message {
	n := r.graph.append("node")
	n.put("op_type", kind)
	n.put("name", output)
	n.add("output", output)
	for _, in := range inputs {
		n.add("input", in)
	}
	return n
}

// constant appends a node that gives a tensor.
func (r *rewriting) constant(name string) (tensor message) {
	return r.node("Constant", name).attach("value", tensorAttribute).mutable("t")
}

// number appends a constant number, and whole a vector of whole numbers; both return their names.
func (r *rewriting) number(name string, value float64) string {
	t := r.constant(name)
	t.put("data_type", int32(float32Type))
	t.add("float_data", float32(value))
	return name
}

func (r *rewriting) whole(name string, values ...int) string {
	t := r.constant(name)
	t.put("data_type", int32(int64Type))
	t.add("dims", int64(len(values)))
	for _, v := range values {
		t.add("int64_data", int64(v))
	}
	return name
}

// inputs makes inputs of the graph of all weights, and constants of the other tensors.
func (r *rewriting) inputs() (weights []weight, err error) {
	used, weighs, statistics := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range r.graph.all("node") {
		for i, in := range n.texts("input") {
			t, is := r.tensors[in]
			if !is {
				continue
			}
			kind, number := n.text("op_type"), t.get("data_type").Int()
			used[in] = true
			weighs[in] = weighs[in] || (number == float32Type || number == float64Type) &&
				(t.size() > fewNumbers || t.size() > 1 && (slices.Contains(weigh, kind) || slices.Contains(r.kernels, in)))
			statistics[in] = statistics[in] || kind == "BatchNormalization" && i > 2
		}
	}
	r.graph.keep("node", func(n message) bool { return n.text("op_type") != "Constant" || !weighs[n.texts("output")[0]] })
	r.graph.keep("initializer", func(message) bool { return false })
	for _, name := range slices.Sorted(maps.Keys(r.tensors)) {
		t := r.tensors[name]
		if !used[name] {
			continue
		}
		if !weighs[name] {
			if _, is := r.makes[name]; !is {
				proto.Merge(r.constant(name).Interface(), t.Interface())
			}
			continue
		}
		w, err := weightOf(t)
		if err != nil {
			return nil, err
		}
		w.fixed = statistics[name]
		weights = append(weights, w)
		r.input(w)
	}
	return weights, nil
}

// input appends an input of the graph.
func (r *rewriting) input(w weight) {
	info := r.graph.append("input")
	info.put("name", w.Name)
	tensor := info.mutable("type").mutable("tensor_type")
	tensor.put("elem_type", int32(float32Type))
	for _, d := range w.Shape {
		tensor.mutable("shape").append("dim").put("dim_value", int64(d))
	}
}

// build is the graph of the features, [B, F], of rows, [B, ...], and the weights in their order.
func (f *file) build(rows *graph.Node, weights []*graph.Node) (features *graph.Node) {
	inputs := map[string]*graph.Node{f.name: rows}
	for i, w := range f.weights {
		inputs[w.Name] = weights[i]
	}
	features = f.model.CallGraph(nil, rows.Graph(), inputs, f.features)[0]
	return graph.Reshape(graph.ConvertDType(features, compute.Float32), rows.Shape().Dim(0), -1)
}
