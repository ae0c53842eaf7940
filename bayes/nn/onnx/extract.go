package onnx

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// evaluatedRows is how many rows the file evaluates at a time, where it leaves that open; up to fewRows one by one.
const evaluatedRows, fewRows = 64, 8

// fewestKept is the number of rows from which features are kept on disk.
const fewestKept = 100

// layout is how rows become the file's input.
type layout struct {
	rows     int      // at a time
	image    nn.Image // of pictures; zero: rows of numbers
	last     bool     // the channels are the last axis, as in the rows
	inputs   int      // numbers of a row
	width    int      // features
	stored   int      // numbers that are computed of a row, about
	mean, by []float64
}

// layOut finds the layout from the file's input and the options, and the number of features from the file's graph.
func (f *file) layOut(o Options) error {
	dims := f.input.Dimensions
	f.rows = evaluatedRows
	if len(dims) > 0 && dims[0] > 0 {
		f.rows = dims[0]
	}
	switch len(dims) {
	case 2:
		if f.inputs = dims[1]; o.Reversed || o.Image != (nn.Image{}) {
			return fmt.Errorf("its input %q takes rows of numbers: leave out Options.Image and Reversed, of pictures", f.name)
		}
	case 4:
		f.last = few(dims[3]) && !few(dims[1])
		f.image = nn.Image{Channels: dims[1], Height: dims[2], Width: dims[3]}
		if f.last {
			f.image = nn.Image{Height: dims[1], Width: dims[2], Channels: dims[3]}
		}
		given, names := []int{o.Image.Height, o.Image.Width, o.Image.Channels}, []string{"Height", "Width", "Channels"}
		for i, side := range []*int{&f.image.Height, &f.image.Width, &f.image.Channels} {
			if *side < 1 {
				*side = given[i]
			}
			if *side < 1 || given[i] > 0 && given[i] != *side {
				return fmt.Errorf("its input %q takes pictures of dimensions %v (-1: open), and Options.Image.%s is %d: set "+
					"there what is open, and nothing that differs", f.name, dims, names[i], given[i])
			}
		}
		f.inputs = f.image.Height * f.image.Width * f.image.Channels
	}
	if f.inputs < 1 {
		return fmt.Errorf("its input %q has dimensions %v: rows of numbers, [N, d], or pictures, [N, 3, h, w] or "+
			"[N, h, w, 3], are read", f.name, dims)
	}
	var err error
	if f.mean, err = f.each("Mean", o.Mean, 0); err == nil {
		f.by, err = f.each("StdDev", o.StdDev, 1)
	}
	if err != nil {
		return err
	}
	if !(slices.Min(f.by) > 0) {
		return fmt.Errorf("Options.StdDev is %v: all must be above 0", o.StdDev)
	}
	return f.try()
}

// fused are operations that XLA computes in the loop of what takes them, so that their numbers are not stored.
var fused = []graph.NodeType{graph.NodeTypeSlice, graph.NodeTypeBroadcastInDim, graph.NodeTypeMul, graph.NodeTypeAdd}

// few says whether an axis can be that of channels.
func few(dim int) bool { return dim == 1 || dim == 3 || dim == 4 }

// each is an option with a number for each channel.
func (f *file) each(name string, given []float64, otherwise float64) ([]float64, error) {
	channels := max(f.image.Channels, 1)
	switch len(given) {
	case 0:
		given = []float64{otherwise}
	case 1, channels:
	default:
		return nil, fmt.Errorf("the input has %d channels, and Options.%s has %d numbers: give one, or one for each",
			channels, name, len(given))
	}
	all := make([]float64, channels)
	for i := range all {
		all[i] = given[i%len(given)]
	}
	return all, nil
}

// try builds the graph once, without compiling it, which finds operators that the reader lacks, and the width.
func (f *file) try() error {
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		return err
	}
	failed := compute.Try(func() {
		g := graph.NewGraph(engine.Backend(), "onnx.Open")
		defer g.Finalize()
		var in []*graph.Node
		for _, w := range f.weights {
			in = append(in, graph.Parameter(g, w.Name, shapes.Make(compute.Float32, w.Shape...)))
		}
		x := graph.Parameter(g, "rows", shapes.Make(compute.Float32, f.rows, f.inputs))
		f.width = f.outputs(x, in, Options{}).Shape().Dim(1)
		for _, n := range g.Nodes() {
			if n.NumOutputs() == 1 && n.Rank() > 0 && n.Shape().Dim(0) == f.rows && !slices.Contains(fused, n.Type()) {
				f.stored += n.Shape().Size() / f.rows
			}
		}
	})
	if failed != nil {
		return fmt.Errorf("its graph up to the tensor %q cannot be built: %w: export it with other operators, or name an "+
			"earlier tensor (Options.Features)", f.features, failed)
	}
	return nil
}

// outputs is the graph of the features, [B, F], of rows of the data, [B, inputs].
func (f *file) outputs(x *graph.Node, weights []*graph.Node, o Options) *graph.Node {
	g, rows := x.Graph(), x.Shape().Dim(0)
	if f.image.Channels > 0 {
		x = graph.Reshape(x, rows, f.image.Height, f.image.Width, f.image.Channels)
		if o.Reversed {
			x = graph.Reverse(x, 3)
		}
	}
	row := func(values []float64) *graph.Node {
		return graph.ConvertDType(graph.Const(g, values), x.DType())
	}
	like := func(n *graph.Node) *graph.Node {
		return graph.BroadcastToDims(graph.ExpandLeftToRank(n, x.Rank()), x.Shape().Dimensions...)
	}
	x = graph.Div(graph.Sub(x, like(row(f.mean))), like(row(f.by)))
	if f.image.Channels > 0 && !f.last {
		x = graph.Transpose(graph.Transpose(x, 2, 3), 1, 2)
	}
	return f.build(graph.ConvertDType(x, f.input.DType), weights)
}

// check is an error where rows have another number of inputs.
func (f *file) check(inputs int) error {
	if inputs == f.inputs {
		return nil
	}
	if f.image.Channels > 0 {
		return fmt.Errorf("onnx: rows have %d numbers, and the file takes pictures of %d x %d pixels with %d channels, %d "+
			"numbers", inputs, f.image.Height, f.image.Width, f.image.Channels, f.inputs)
	}
	return fmt.Errorf("onnx: rows have %d numbers, and the file takes %d", inputs, f.inputs)
}

// program evaluates the file on an engine.
type program struct {
	mu      sync.Mutex
	engine  *compute.Engine
	exec    *graph.Exec
	weights []*tensors.Tensor
}

// Extract implements bayes.Extractor. Features of many rows are kept on disk, by the hash of file, options and rows.
func (n Network) Extract(ctx context.Context, x mat.Matrix, progress func(done int)) (*mat.Dense, error) {
	total, inputs := x.Dims()
	if _, err := n.Features(inputs); err != nil {
		return nil, err
	}
	path, err := n.kept(x)
	if err != nil {
		return nil, err
	}
	if path != "" {
		if kept, err := tensorfile.Read(path); err == nil {
			values, err := compute.Float64s(kept.Tensors["features"])
			return mat.NewDense(total, n.width, values), err
		}
	}
	all := mat.NewDense(total, n.width, nil)
	rows := n.rows
	if total <= fewRows && n.input.Dimensions[0] < 1 {
		rows = 1
	}
	block := make([]float32, rows*inputs)
	for from := 0; from < total; from += rows {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("onnx: features stopped at row %d of %d: %w", from, total, err)
		}
		count := min(rows, total-from)
		clear(block)
		for i := range count {
			for k := range inputs {
				block[i*inputs+k] = float32(x.At(from+i, k))
			}
		}
		values, err := n.evaluate(block)
		if err != nil {
			return nil, fmt.Errorf("onnx: features of rows %d to %d: %w", from, from+count-1, err)
		}
		copy(all.RawMatrix().Data[from*n.width:], values[:count*n.width])
		if progress != nil {
			progress(from + count)
		}
	}
	if path != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		err = tensorfile.Write(path, tensorfile.File{Tensors: map[string]*tensors.Tensor{
			"features": compute.Floats(compute.Float32, all.RawMatrix().Data, total, n.width)}})
	}
	return all, err
}

// evaluate is the features of a block of rows, [B, F].
func (n Network) evaluate(block []float32) ([]float64, error) {
	p := n.file.program
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exec == nil {
		var err error
		if p.engine, err = compute.Default(); err != nil {
			return nil, err
		}
		for _, w := range n.weights {
			p.weights = append(p.weights, tensors.FromFlatDataAndDimensions(w.Values, w.Shape...))
		}
		p.exec, err = graph.NewExec(p.engine.Backend(), func(in []*graph.Node) *graph.Node {
			return n.outputs(in[0], in[1:], n.options)
		})
		if err != nil {
			return nil, err
		}
	}
	args := []any{tensors.FromFlatDataAndDimensions(block, len(block)/n.inputs, n.inputs)}
	for _, w := range p.weights {
		args = append(args, w)
	}
	results, err := p.exec.Call(args...)
	if err != nil {
		return nil, err
	}
	defer results[0].FinalizeAll() //nolint:errcheck // freeing a tensor that was read
	return compute.Float64s(results[0])
}

// kept is the file that keeps features of these rows; empty for few rows.
func (n Network) kept(rows mat.Matrix) (string, error) {
	total, inputs := rows.Dims()
	if total < fewestKept {
		return "", nil
	}
	dir, err := compute.CacheDir()
	if err != nil {
		return "", err
	}
	n.options.Hidden = nil // is behind them
	text, err := n.MarshalJSON()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %d %d\n", text, total, inputs)
	row := make([]float64, inputs)
	for i := range total {
		if err := binary.Write(sum, binary.LittleEndian, mat.Row(row, i, rows)); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "features", hex.EncodeToString(sum.Sum(nil)[:16])+".safetensors"), nil
}
