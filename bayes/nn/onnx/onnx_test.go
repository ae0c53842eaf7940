package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/bayes/train"
	"gobnn/ohsmc"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// wanted are rows of data and what onnxruntime makes of them, by testdata/files.py.
type wanted struct {
	Rows         [][]float64 `json:"rows"`
	Features     [][]float64 `json:"features"`
	Standardised [][]float64 `json:"standardised"`
	Reversed     [][]float64 `json:"reversed"`
	P            [][]float64 `json:"p"` // the file's own probabilities
}

func want(t *testing.T, name string) (w wanted) {
	t.Helper()
	var all map[string]wanted
	text, err := os.ReadFile("testdata/want.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all[name]
}

func open(t *testing.T, name string, o Options) Network {
	t.Helper()
	n, err := Open(filepath.Join("testdata", name+".onnx"), o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func matrix(rows [][]float64) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, row := range rows {
		m.SetRow(i, row)
	}
	return m
}

// Features, and what the file's own last layer makes of them, are those of onnxruntime: of scikit-learn's perceptron,
// of pictures in any order of channels, and of bytes.
func TestFeaturesAreThoseOfOnnxruntime(t *testing.T) {
	small := nn.Image{Height: 8, Width: 8}
	for _, c := range []struct {
		name    string
		options Options
		want    func(w wanted) [][]float64
	}{
		{"digits", Options{}, func(w wanted) [][]float64 { return w.Features }},
		{"pictures", Options{Image: small}, func(w wanted) [][]float64 { return w.Features }},
		{"pictures", Options{Image: small, Mean: []float64{.5, .4, .3}, StdDev: []float64{.2, .3, .4}},
			func(w wanted) [][]float64 { return w.Standardised }},
		{"pictures", Options{Image: small, Reversed: true}, func(w wanted) [][]float64 { return w.Reversed }},
		{"bytes", Options{}, func(w wanted) [][]float64 { return w.Features }},
		{"channels", Options{}, func(w wanted) [][]float64 { return w.Features }},
	} {
		w := want(t, c.name)
		n := open(t, c.name, c.options)
		got, err := n.Extract(t.Context(), matrix(w.Rows), nil)
		if err != nil {
			t.Errorf("%s %+v: %v", c.name, c.options, err)
			continue
		}
		if is := matrix(c.want(w)); !mat.EqualApprox(got, is, 1e-5) {
			t.Errorf("%s %+v: features\n%.4f, want\n%.4f", c.name, c.options, mat.Formatted(got), mat.Formatted(is))
		}
		if w.P == nil || len(c.options.Mean) > 0 || c.options.Reversed {
			continue
		}
		for i, row := range w.P {
			sum, p := 0., make([]float64, len(row))
			for k := range row {
				z := float64(n.own.biases.Values[k])
				for j := range n.width {
					z += got.At(i, j) * float64(n.own.weights.Values[j*len(row)+k])
				}
				p[k] = math.Exp(z)
				sum += p[k]
			}
			for k := range row {
				if math.Abs(p[k]/sum-row[k]) > 1e-5 {
					t.Errorf("%s: the own last layer gives row %d, class %d the probability %v, want %v", c.name, i, k, p[k]/sum,
						row[k])
				}
			}
		}
	}
}

// Of the five convolutions of channels.onnx those with a border or a step between pixels alone stay.
func TestConvolutionsAreTakenApart(t *testing.T) {
	n := open(t, "channels", Options{})
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	g := graph.NewGraph(engine.Backend(), t.Name())
	defer g.Finalize()
	var weights []*graph.Node
	for _, w := range n.weights {
		weights = append(weights, graph.Parameter(g, w.Name, shapes.Make(compute.Float32, w.Shape...)))
	}
	n.outputs(graph.Parameter(g, "rows", shapes.Make(compute.Float32, 2, n.inputs)), weights, Options{})
	left := 0
	for _, node := range g.Nodes() {
		if node.Type() == graph.NodeTypeConvGeneral {
			left++
		}
	}
	if left != 2 {
		t.Errorf("%d convolutions are left, want 2", left)
	}
}

// altered writes a file of testdata anew, after a change.
func altered(t *testing.T, name string, change func(m message)) (path string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".onnx"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := unmarshal(content)
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	if content, err = proto.Marshal(m.Interface()); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), name+".onnx")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is not read is refused, with its name and a cure.
func TestOpenRefuses(t *testing.T) {
	tensor := func(m message, i int) message { return m.of("graph").all("initializer")[i] }
	small := Options{Image: nn.Image{Height: 8, Width: 8}}
	whole, err := os.ReadFile("testdata/digits.onnx")
	if err != nil {
		t.Fatal(err)
	}
	written := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	huge := written("huge", nil)
	if err := os.Truncate(huge, mostBytes); err != nil {
		t.Fatal(err)
	}
	for says, c := range map[string]struct {
		path string
		o    Options
	}{
		"no such file": {"testdata/none.onnx", Options{}},
		"cut off":      {written("short", whole[:len(whole)/2]), Options{}},
		"no nodes":     {written("empty", nil), Options{}},
		"2 GiB":        {huge, Options{}},
		"opset 9, and those from 11": {altered(t, "digits", func(m message) {
			for _, set := range m.all("opset_import") {
				set.put("version", int64(9))
			}
		}), Options{}},
		`unimplemented ONNX op "Mystery"`: {altered(t, "digits", func(m message) {
			m.of("graph").all("node")[3].put("op_type", "Mystery")
		}), Options{}},
		"dimensions [-1 3 -1 -1] (-1: open), and Options.Image.Height is 0: set there": {"testdata/pictures.onnx",
			Options{}},
		"dimensions [-1 3 -1 -1] (-1: open), and Options.Image.Channels is 1": {"testdata/pictures.onnx",
			Options{Image: nn.Image{Height: 8, Width: 8, Channels: 1}}},
		"takes rows of numbers": {"testdata/digits.onnx", Options{Reversed: true}},
		"the input has 3 channels, and Options.Mean has 2 numbers": {"testdata/pictures.onnx",
			Options{Image: small.Image, Mean: []float64{1, 2}}},
		"Options.StdDev is [0]": {"testdata/digits.onnx", Options{StdDev: []float64{0}}},
		`no tensor "mid"`:       {"testdata/digits.onnx", Options{Features: "mid"}},
		"inputs [\"X\" \"more\"]": {altered(t, "digits", func(m message) {
			m.of("graph").append("input").put("name", "more")
		}), Options{}},
		"several last products": {altered(t, "digits", func(m message) {
			m.of("graph").append("output").put("name", "add_result")
		}), Options{}},
		"no product with weights of its own": {altered(t, "pictures", func(m message) {
			for _, n := range m.of("graph").all("node") {
				if n.text("op_type") == "Gemm" {
					alpha := n.append("attribute")
					alpha.put("name", "alpha")
					alpha.put("f", float32(2))
				}
			}
		}), small},
		"stands in another file": {altered(t, "digits", func(m message) {
			tensor(m, 0).put("data_location", protoreflect.EnumNumber(external))
		}), Options{}},
		"numbers of 16 bits": {altered(t, "digits", func(m message) {
			tensor(m, 0).put("data_type", int32(float16Type))
		}), Options{}},
		"has 1024 numbers, not": {altered(t, "digits", func(m message) {
			for _, one := range m.of("graph").all("initializer") {
				if len(one.ints("dims")) == 2 && one.ints("dims")[0] == 64 {
					one.list("dims").Set(0, protoreflect.ValueOf(int64(1)<<40))
				}
			}
		}), Options{}},
	} {
		if _, err := Open(c.path, c.o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q, got %v", says, err)
		}
	}
	n := open(t, "digits", Options{})
	if _, err := n.Extract(t.Context(), mat.NewDense(2, 7, nil), nil); err == nil ||
		!strings.Contains(err.Error(), "7 numbers, and the file takes 64") {
		t.Errorf("rows of another size: %v", err)
	}
	if _, err := (bayes.Model{Network: Network{}, Likelihood: bayes.Categorical{}}).Bind(2, 2); err == nil ||
		!strings.Contains(err.Error(), "onnx.Open") {
		t.Errorf("a network that was not opened: %v", err)
	}
}

// A file from somebody else is read or refused, whatever its nodes lack, and crashes nothing.
func TestForeignNodes(t *testing.T) {
	numbers := func(n message, change func(a message)) {
		for _, a := range n.all("attribute") {
			change(a)
		}
	}
	dims := func(graph, n message, change func(dims protoreflect.List)) {
		for _, tensor := range graph.all("initializer") {
			if slices.Contains(n.texts("input"), tensor.text("name")) && len(tensor.ints("dims")) > 0 {
				change(tensor.list("dims"))
			}
		}
	}
	first := func(list protoreflect.List, v any) {
		if list.Len() > 0 {
			list.Set(0, protoreflect.ValueOf(v))
		}
	}
	refused := 0
	for name, o := range map[string]Options{"digits": {}, "pictures": {Image: nn.Image{Height: 8, Width: 8}}, "bytes": {},
		"channels": {}} {
		for _, change := range []func(graph, n message){
			func(_, n message) { n.Clear(n.field("input")) },
			func(_, n message) { n.list("input").Truncate(min(1, len(n.texts("input")))) },
			func(_, n message) { first(n.list("input"), n.texts("output")[0]) }, // a circle
			func(_, n message) { first(n.list("input"), "nowhere") },
			func(_, n message) { n.Clear(n.field("output")) },
			func(_, n message) { n.Clear(n.field("attribute")) },
			func(_, n message) {
				numbers(n, func(a message) { first(a.list("ints"), int64(-1)); a.put("i", int64(-1)) })
			},
			func(_, n message) {
				numbers(n, func(a message) { first(a.list("ints"), int64(1)<<40); a.put("i", int64(0)) })
			},
			func(_, n message) {
				numbers(n, func(a message) { a.list("ints").Truncate(min(1, a.list("ints").Len())) })
			},
			func(graph, n message) { dims(graph, n, func(d protoreflect.List) { first(d, int64(0)) }) },
			func(graph, n message) { dims(graph, n, func(d protoreflect.List) { first(d, int64(-5)) }) },
			func(graph, n message) { dims(graph, n, func(d protoreflect.List) { d.Truncate(1) }) },
		} {
			for i, nodes := 0, 1; i < nodes; i++ {
				path := altered(t, name, func(m message) {
					nodes = len(m.of("graph").all("node"))
					change(m.of("graph"), m.of("graph").all("node")[i])
				})
				if _, err := Open(path, o); err != nil {
					refused++
				}
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d files were refused: the changes do nothing", refused)
	}
}

// The posterior of a linear last layer with Gaussian noise is the conjugate one: predictive means, and the evidence,
// within four standard errors. A posterior that is saved is the same once its file is opened, and not before.
func TestLastLayer(t *testing.T) {
	if testing.Short() {
		t.Skip("fits")
	}
	n := open(t, "digits", Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := mat.NewDense(80, 64, nil), make([]float64, 80)
	for i := range x.RawMatrix().Data {
		x.RawMatrix().Data[i] = rng.Float64()
	}
	const noise = .5
	features, err := n.Extract(t.Context(), x, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range y {
		y[i] = features.At(i, 0) - .3*features.At(i, 3) + noise*rng.NormFloat64()
	}
	data := &dataset.Dataset{Name: "digits", X: x, Y: y, Target: "y"}
	for k := range 64 {
		data.Features = append(data.Features, fmt.Sprint("pixel ", k))
	}
	model := bayes.Model{Network: n, Likelihood: bayes.Gaussian{StdDev: noise}, Stochastic: bayes.Layers(2),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true}}
	observed := 0
	r, err := fit.Fit(t.Context(), model, smc.Tempered{Particles: 400}, dataset.Parts{Train: data}, run.Settings{Seed: 1,
		Observe: func(_ int, now *bayes.Posterior) error {
			if observed++; observed > 1 {
				return nil // each has to be compiled
			}
			_, err := now.Predict(t.Context(), x)
			return err
		}})
	if err != nil {
		t.Fatal(err)
	}
	if observed == 0 {
		t.Error("Observe saw no posterior")
	}
	prediction, err := r.Posterior.Predict(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	// Exactly: with Z the features and a 1, the weights are N(S Z' y / noise^2, S), S = (I + Z' Z / noise^2)^-1.
	z := mat.NewDense(80, 17, nil)
	z.Augment(features, mat.NewDense(80, 1, slices.Repeat([]float64{1}, 80)))
	var precision mat.SymDense
	precision.SymOuterK(1/(noise*noise), z.T())
	for k := range 17 {
		precision.SetSym(k, k, precision.At(k, k)+1)
	}
	var root mat.Cholesky
	root.Factorize(&precision)
	var right, weights mat.VecDense
	right.MulVec(z.T(), mat.NewVecDense(80, y))
	right.ScaleVec(1/(noise*noise), &right)
	if err := root.SolveVecTo(&weights, &right); err != nil {
		t.Fatal(err)
	}
	var mean mat.VecDense
	mean.MulVec(z, &weights)
	got, err := prediction.Mean()
	if err != nil {
		t.Fatal(err)
	}
	spread, err := prediction.EpistemicStdDev()
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		stdErr := spread[i] / math.Sqrt(r.Posterior.LogWeights().EffectiveSampleSize()/4)
		if math.Abs(got[i]-mean.AtVec(i)) > 4*stdErr {
			t.Errorf("row %d: mean %.4f ± %.4f, exactly %.4f", i, got[i], stdErr, mean.AtVec(i))
		}
	}
	var residual mat.VecDense
	residual.SubVec(mat.NewVecDense(80, y), &mean)
	exact := -.5 * (mat.Dot(mat.NewVecDense(80, y), &residual)/(noise*noise) + root.LogDet() +
		80*math.Log(2*math.Pi*noise*noise))
	if e := r.Posterior.Evidence(); math.Abs(e.Value-exact) > 4*e.StdErr {
		t.Errorf("log evidence %v, exactly %.3f", e, exact)
	}
	path := filepath.Join(t.TempDir(), "posterior")
	if err := r.Posterior.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := bayes.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := again.Predict(t.Context(), x); err != nil || !slices.Equal(p.Outputs, prediction.Outputs) {
		t.Errorf("a posterior that was read predicts something else: %v", err)
	}
	from := 0
	for part, err := range again.PredictBatches(t.Context(), x, 32) {
		if err != nil {
			t.Fatal(err)
		}
		for j := range part.Particles {
			for i := range part.Rows {
				if one, whole := part.Outputs[j*part.Rows+i], prediction.Outputs[j*80+from+i]; math.Abs(one-whole) > 1e-5 {
					t.Fatalf("row %d by parts: %v, and %v as a whole", from+i, one, whole)
				}
			}
		}
		from += part.Rows
	}
	if like := again.Like(); from != 80 || len(like.Features) != 64 || like.X != nil {
		t.Errorf("%d rows by parts, of a table like %v", from, like)
	}
	if _, err := again.Predict(t.Context(), mat.NewDense(2, 16, nil)); err == nil || !strings.Contains(err.Error(), "64") {
		t.Errorf("features in place of rows: %v", err)
	}
	further, err := fit.Fit(t.Context(), bayes.Model{}, fit.From{Trained: again,
		Method: mcmc.Chains{Chains: 2, Draws: 20, WarmUp: 20}}, dataset.Parts{Train: data}, run.Settings{Seed: 1})
	if err != nil || further.Posterior.Extractor() == nil || further.Posterior.Provenance().DataHash != data.Hash() {
		t.Errorf("chains from a posterior of rows: %v", err)
	}
	if _, err := fit.Fit(t.Context(), model, smc.Tempered{}, dataset.Parts{}, run.Settings{}); err == nil ||
		!strings.Contains(err.Error(), "Parts.Train") {
		t.Errorf("rows that are not in memory: %v", err)
	}
	model.Network = open(t, "digits", Options{Mean: []float64{.5}})
	elsewhere, err := fit.Fit(t.Context(), model, smc.Tempered{Particles: 400}, dataset.Parts{Train: data},
		run.Settings{Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bayes.Join(r.Posterior, elsewhere.Posterior); err == nil ||
		!strings.Contains(err.Error(), "its model is another") {
		t.Errorf("posteriors behind two networks are joined: %v", err)
	}
	// Load takes the file that was opened, wherever it lies and whatever for, no other, and none that has changed since.
	moved, theirs := filepath.Join(t.TempDir(), "moved.onnx"), altered(t, "digits", func(m message) {
		m.put("producer_name", "somebody else")
	})
	for _, c := range []struct {
		opened, then string
		says         string
	}{
		{"testdata/digits.onnx", "testdata/digits.onnx", ""}, {theirs, theirs, n.sum},
		{"testdata/digits.onnx", theirs, "another file now"},
	} {
		opened.Clear()
		for _, from := range []string{c.opened, c.then} {
			content, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(moved, content, 0o644)
			}
			if err == nil && from == c.opened {
				_, err = Open(moved, Options{Mean: []float64{.5}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		again, err := bayes.Load(path)
		if c.says != "" {
			if !errors.Is(err, ErrNotOpened) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, then %s: %v, want %q", c.opened, c.then, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if p, err := again.Predict(t.Context(), x); err != nil || !slices.Equal(p.Outputs, prediction.Outputs) {
			t.Errorf("a file that was moved predicts something else: %v", err)
		}
	}
}

// Features of many rows are kept on disk, for these rows and options alone.
func TestFeaturesAreKept(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GOBNN_CACHE", dir)
	x := mat.NewDense(fewestKept, 64, nil)
	n, other := open(t, "digits", Options{}), open(t, "digits", Options{Mean: []float64{1}})
	kept := func(n Network) (features *mat.Dense, files int) {
		features, err := n.Extract(t.Context(), x, nil)
		if err != nil {
			t.Fatal(err)
		}
		all, err := filepath.Glob(filepath.Join(dir, "features", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return features, len(all)
	}
	first, one := kept(n)
	again, same := kept(n)
	_, two := kept(other)
	x.Set(0, 0, 1)
	changed, three := kept(n)
	if one != 1 || same != 1 || two != 2 || three != 3 || !mat.Equal(first, again) || mat.Equal(first, changed) {
		t.Errorf("%d, %d, %d and %d files; the same features again: %v, of other rows: %v", one, same, two, three,
			mat.Equal(first, again), mat.Equal(first, changed))
	}
}

// A file that is trained along begins as it is, and what it learns is psi: no other network has the same features.
func TestLearnt(t *testing.T) {
	if testing.Short() {
		t.Skip("fits")
	}
	w := want(t, "pictures")
	n := open(t, "pictures", Options{Image: nn.Image{Height: 8, Width: 8}})
	rng := rand.New(rand.NewPCG(1, 2))
	rows := 24
	x, y := mat.NewDense(rows, 192, nil), make([]float64, rows)
	for i := range rows {
		x.SetRow(i, w.Rows[i%3])
		x.Set(i, 0, rng.Float64())
		y[i] = float64(i % 3)
	}
	data := &dataset.Dataset{Name: "pictures", X: x, Y: y, Task: dataset.Classification, Classes: []string{"a", "b", "c"},
		Target: "class"}
	for k := range 192 {
		data.Features = append(data.Features, fmt.Sprint("pixel ", k))
	}
	model := bayes.Model{Network: Learnt{n}, Likelihood: bayes.Categorical{}, Stochastic: bayes.Layers(2),
		Scaling: bayes.Scaling{KeepFeatures: true}}
	bound, err := model.Bind(192, 3)
	if err != nil {
		t.Fatal(err)
	}
	fixed := 0
	for _, one := range n.weights {
		if one.fixed {
			fixed++
		}
	}
	if fixed != 2 || bound.D != 3*7 || bound.W != 6*27+6*54+12+12+54+12 {
		t.Errorf("%d weights are fixed, %d numbers are stochastic and %d shared", fixed, bound.D, bound.W)
	}
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 20, BatchSize: 12, Epochs: 10,
		Optimiser: train.Adam{Schedule: train.Constant(.01)}}}
	r, err := fit.Fit(t.Context(), model, method, dataset.Parts{Train: data}, run.Settings{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Posterior.Predict(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	labels, err := p.Labels()
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i, label := range labels {
		if float64(label) != y[i] {
			wrong++
		}
	}
	values, stochastic, err := r.Posterior.Parameter("layer1/w1")
	if err != nil || stochastic || wrong > 0 {
		t.Errorf("%d of %d rows are wrong; %v", wrong, rows, err)
	}
	moved := 0.
	for _, one := range n.weights {
		if one.Name == "w1" {
			for i, v := range one.Values {
				moved = max(moved, math.Abs(values[i]-float64(v)))
			}
		}
	}
	if moved == 0 || moved > .5 {
		t.Errorf("the first weights have moved by %v", moved)
	}
}

// A prior around the file's own last layer is where it has its density's maximum, and its draws are around it; for
// standardised features, and other outputs, it is refused.
func TestAround(t *testing.T) {
	if testing.Short() {
		t.Skip("fits")
	}
	w, n := want(t, "digits"), open(t, "digits", Options{})
	model := bayes.Model{Network: n, Likelihood: bayes.Categorical{}, Stochastic: bayes.Layers(2),
		Prior: Around{Network: n, StdDev: 1e-4}}
	x := matrix(w.Rows)
	data := &dataset.Dataset{Name: "digits", X: x, Y: []float64{0, 1, 2}, Task: dataset.Classification, Target: "digit"}
	for k := range 64 {
		data.Features = append(data.Features, fmt.Sprint("pixel ", k))
	}
	for k := range 10 {
		data.Classes = append(data.Classes, fmt.Sprint(k))
	}
	more := matrix(w.Rows)
	for range 9 {
		more = stacked(more, x)
	}
	data.X, data.Y = more, nil
	for i := range 30 {
		data.Y = append(data.Y, float64(i%10))
	}
	parts := dataset.Parts{Train: data}
	if _, err := fit.Fit(t.Context(), model, baseline.MAP{}, parts, run.Settings{}); err == nil ||
		!strings.Contains(err.Error(), "KeepFeatures") {
		t.Errorf("standardised features: %v", err)
	}
	model.Scaling.KeepFeatures = true
	three := *data
	three.Classes = data.Classes[:3]
	three.Y = slices.Repeat([]float64{0, 1, 2}, 10)
	if _, err := fit.Fit(t.Context(), model, smc.Tempered{Particles: 20}, dataset.Parts{Train: &three},
		run.Settings{}); err == nil || !strings.Contains(err.Error(), "(features, outputs)") {
		t.Errorf("three outputs: %v", err)
	}
	r, err := fit.Fit(t.Context(), model, smc.Tempered{Particles: 20}, parts, run.Settings{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Posterior.Predict(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Probabilities()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range w.P {
		for k := range row {
			if math.Abs(got[i][k]-row[k]) > 1e-3 {
				t.Errorf("row %d, class %d: %.4f, and the file says %.4f", i, k, got[i][k], row[k])
			}
		}
	}
}

// stacked has the rows of b below those of a.
func stacked(a, b *mat.Dense) *mat.Dense {
	var all mat.Dense
	all.Stack(a, b)
	return &all
}
