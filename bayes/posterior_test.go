package bayes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

const features = 3

// predicted are models of each task, with shared, stochastic and learnt noise, and with and without shared parameters.
var predicted = []struct {
	name    string
	model   bayes.Model
	outputs int
}{
	{"regression, noise shared", bayes.Model{Network: mlp, Likelihood: bayes.Gaussian{StdDev: .5, Learn: true},
		Stochastic: bayes.Layers(2)}, 1},
	{"regression, noise per particle", bayes.Model{Network: mlp, Likelihood: bayes.Gaussian{Learn: true},
		Stochastic: bayes.Names("noise/log_scale")}, 1},
	{"binary, all stochastic", bayes.Model{Network: mlp, Likelihood: bayes.Bernoulli{}, Stochastic: bayes.All()}, 1},
	{"classes", bayes.Model{Network: mlp, Likelihood: bayes.Categorical{},
		Stochastic: bayes.Names("layer2/biases", "layer3/biases")}, 3},
	{"ordered classes, cuts per particle", bayes.Model{Network: mlp, Likelihood: bayes.Ordinal{},
		Stochastic: bayes.Layers(3).And(bayes.Names("noise/cuts"))}, 4},
}

// wave is n different numbers, the same at each call.
func wave(n int, frequency float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Sin(frequency*float64(i+1)) * 1.3
	}
	return v
}

// newPosterior has particles whose parameters are all different, unequal weights, the last one 0, and scalers that
// change everything. It predicts with the Go backend, which compiles nothing, but where a test says On.
func newPosterior(t *testing.T, model bayes.Model, outputs, particles int, dtype compute.DType) *bayes.Posterior {
	t.Helper()
	bound := computetest.Must(model.Bind(features, outputs))
	draws := bayes.Draws{Phi: compute.Floats(dtype, wave(particles*bound.D, 1.7), particles, bound.D),
		LogWeights: wave(particles, 5)}
	draws.LogWeights[particles-1] = math.Inf(-1)
	if bound.W > 0 {
		draws.Psi = compute.Floats(dtype, wave(bound.W, 2.3), bound.W)
	}
	origin := bayes.Origin{
		Engine:       computetest.Go(t),
		Features:     dataset.Scaler{Mean: []float64{1, -2, .5}, StdDev: []float64{2, .5, 3}},
		FeatureNames: []string{"depth", "speed", "load"},
		TargetNames:  []string{"drag", "lift", "yaw"}[:bound.Targets()],
	}
	if model.Likelihood.Task() == dataset.Regression && !bayes.IsCounted(model.Likelihood) {
		for k := range bound.Targets() {
			origin.Target.Mean, origin.Target.StdDev = append(origin.Target.Mean, 40+float64(k)), append(origin.Target.StdDev, 8)
		}
	}
	return remade(t, bound, draws, origin)
}

// remade is NewPosterior of what must fit.
func remade(t *testing.T, bound *bayes.BoundModel, draws bayes.Draws, origin bayes.Origin) *bayes.Posterior {
	t.Helper()
	p := computetest.Must(bayes.NewPosterior(bound, draws, origin))
	return p
}

func predict(t *testing.T, p *bayes.Posterior, x mat.Matrix) bayes.Prediction {
	t.Helper()
	prediction := computetest.Must(p.Predict(context.Background(), x))
	computetest.NoError(t, prediction.Validate())
	return prediction
}

func TestNewPosteriorErrors(t *testing.T) {
	bound := computetest.Must(predicted[0].model.Bind(features, 1))
	phi := func(dims ...int) *tensors.Tensor {
		return compute.Floats(compute.Float64, make([]float64, dims[0]*dims[1]), dims...)
	}
	psi := func(n int) *tensors.Tensor { return compute.Floats(compute.Float64, make([]float64, n), n) }
	d, w := bound.D, bound.W
	with := func(t *tensors.Tensor, at int, v float64) *tensors.Tensor {
		t.MutableFlatData(func(flat any) { flat.([]float64)[at] = v }) //nolint:errcheck // it is on the host
		return t
	}
	slot := func(stochastic bool) string {
		i := slices.IndexFunc(bound.Slots, func(s bayes.Slot) bool { return s.Stochastic == stochastic && s.Offset == 0 })
		return bound.Slots[i].Name
	}
	if _, err := bayes.NewPosterior(bound, bayes.Draws{Phi: phi(2, d), Psi: psi(w), LogWeights: []float64{0, 0}},
		bayes.Origin{}); err != nil {
		t.Fatal(err)
	}
	unused := with(phi(2, d), 0, math.NaN()) // of a particle that weighs nothing
	if _, err := bayes.NewPosterior(bound, bayes.Draws{Phi: unused, Psi: psi(w),
		LogWeights: []float64{math.Inf(-1), 0}}, bayes.Origin{}); err != nil {
		t.Errorf("NaN in a particle without a weight: %v", err)
	}
	two := []float64{0, 0}
	for _, c := range []struct {
		name  string
		draws bayes.Draws
		says  []string
	}{
		{"no particles", bayes.Draws{Psi: psi(w), LogWeights: two}, []string{"Phi"}},
		{"D too small", bayes.Draws{Phi: phi(2, d-1), Psi: psi(w), LogWeights: two},
			[]string{fmt.Sprint([]int{2, d - 1}), fmt.Sprint(d)}},
		{"three log-weights for two particles", bayes.Draws{Phi: phi(2, d), Psi: psi(w), LogWeights: []float64{0, 0, 0}},
			[]string{fmt.Sprint([]int{2, d}), "3 log-weights"}},
		{"flat phi", bayes.Draws{Phi: psi(2 * d), Psi: psi(w), LogWeights: two}, []string{fmt.Sprint([]int{2 * d})}},
		{"no psi", bayes.Draws{Phi: phi(2, d), LogWeights: two}, []string{fmt.Sprintf("%d shared numbers", w)}},
		{"psi too long", bayes.Draws{Phi: phi(2, d), Psi: psi(w + 1), LogWeights: two},
			[]string{fmt.Sprintf("%d shared numbers", w), fmt.Sprint(w + 1)}},
		{"an infinite parameter", bayes.Draws{Phi: with(phi(2, d), d, math.Inf(1)), Psi: psi(w), LogWeights: two},
			[]string{fmt.Sprintf("parameter %q is +Inf in particle 1", slot(true))}},
		{"NaN among the shared", bayes.Draws{Phi: phi(2, d), Psi: with(psi(w), 0, math.NaN()), LogWeights: two},
			[]string{fmt.Sprintf("parameter %q is NaN", slot(false))}},
		{"no weights", bayes.Draws{Phi: phi(2, d), Psi: psi(w)}, []string{bayes.ErrZeroWeights.Error()}},
		{"weights all zero", bayes.Draws{Phi: phi(2, d), Psi: psi(w), LogWeights: []float64{math.Inf(-1), math.NaN()}},
			[]string{bayes.ErrZeroWeights.Error(), "1 are NaN"}},
		{"chains of unequal length", bayes.Draws{Phi: phi(2, d), Psi: psi(w), LogWeights: two, Chains: 3},
			[]string{"Chains is 3", "2 particles"}},
		{"two types", bayes.Draws{Phi: phi(2, d), Psi: compute.Floats(compute.Float32, make([]float64, w), w),
			LogWeights: two}, []string{"Float32", "Float64"}},
		{"integers", bayes.Draws{Phi: tensors.FromFlatDataAndDimensions(make([]int32, 2*d), 2, d),
			Psi: tensors.FromFlatDataAndDimensions(make([]int32, w), w), LogWeights: two}, []string{"Int32"}},
	} {
		_, err := bayes.NewPosterior(bound, c.draws, bayes.Origin{})
		computetest.WantError(t, c.name, err, c.says...)
	}
}

// Counts are never standardised: a scaler of theirs would shift predictions, and give no count a density.
func TestNewPosteriorOfScaledCounts(t *testing.T) {
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Poisson{}, Stochastic: bayes.All()}.Bind(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	draws := bayes.Draws{Phi: compute.Floats(compute.Float32, wave(bound.D, 1.7), 1, bound.D), LogWeights: []float64{0}}
	for _, c := range []struct {
		target dataset.Scaler
		want   string // "": no error
	}{
		{dataset.Scaler{}, ""}, {dataset.NoScaler(2), ""},
		{dataset.Scaler{Mean: []float64{0, 3}, StdDev: []float64{1, 1}}, "Origin.Target standardises target 1 by mean 3"},
		{dataset.Scaler{Mean: []float64{0, 0}, StdDev: []float64{2, 1}}, "standard deviation 2, but bayes.Poisson"},
	} {
		_, err := bayes.NewPosterior(bound, draws, bayes.Origin{Target: c.target})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.target, err, c.want)
		}
	}
}

func TestParameter(t *testing.T) {
	p := newPosterior(t, predicted[0].model, 1, 3, compute.Float64) // layer 2: 12 weights and 3 biases of 15 numbers
	phi, psi := wave(3*15, 1.7), wave(p.Bound().W, 2.3)
	values, stochastic, err := p.Parameter("layer2/biases")
	if want := []float64{phi[12], phi[13], phi[14], phi[27], phi[28], phi[29], phi[42], phi[43], phi[44]}; err != nil ||
		!stochastic || !slices.Equal(values, want) {
		t.Errorf("layer2/biases: %v, %v, %v, want %v", values, stochastic, err, want)
	}
	values, stochastic, err = p.Parameter("layer1/biases") // behind 12 weights
	if want := psi[12:16]; err != nil || stochastic || !slices.Equal(values, want) {
		t.Errorf("layer1/biases: %v, %v, %v, want %v", values, stochastic, err, want)
	}
	values, err = p.Coordinate(13)
	if want := []float64{phi[13], phi[28], phi[43]}; err != nil || !slices.Equal(values, want) {
		t.Errorf("coordinate 13: %v, %v, want %v", values, err, want)
	}
	for _, k := range []int{-1, 15} {
		if _, err := p.Coordinate(k); err == nil || !strings.Contains(err.Error(), "15 stochastic numbers") {
			t.Errorf("coordinate %d: error %v", k, err)
		}
	}
	if _, _, err := p.Parameter("layer9/biases"); err == nil || !strings.Contains(err.Error(), `"layer9/biases"`) ||
		!strings.Contains(err.Error(), "layer3/biases") {
		t.Errorf("layer9/biases: error %v", err)
	}
}

// What was saved and loaded is the same: every field, and what the particles predict to the bit; their weights are
// normalised anew, so to rounding.
func TestSaveLoad(t *testing.T) {
	x := mat.NewDense(5, features, wave(5*features, .37))
	pure := computetest.Must(compute.Open(compute.GoBackend))
	for _, m := range predicted {
		for _, dtype := range []compute.DType{compute.Float32, compute.Float64} {
			p := newPosterior(t, m.model, m.outputs, 7, dtype)
			draws := computetest.Must(p.Draws())
			draws.Chains, draws.Evidence = 7, bayes.Evidence{Value: -12.25, StdErr: math.NaN()}
			draws.Diagnostics = map[string]float64{"k-hat": math.Inf(1), "ESS": 3.5}
			origin := p.Origin()
			origin.Engine = nil             // is not saved
			for i := range origin.Classes { // none for regression
				origin.Classes[i] = string(rune('a' + i))
			}
			origin.Provenance = bayes.Provenance{
				Algorithm: "by hand", Status: "done", Seed: math.MaxUint64, Settings: json.RawMessage(`{"step":0.1}`),
				Data: "waves", DataHash: "abc", Rows: 5, Warnings: []string{"too narrow"},
				Created: time.Date(2025, 1, 2, 3, 4, 5, 6, time.UTC), Versions: map[string]string{"go": "1.26"},
				Before: &bayes.Provenance{Algorithm: "before", Versions: map[string]string{},
					Created: time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)},
			}
			p = remade(t, p.Bound(), draws, origin)
			path := filepath.Join(t.TempDir(), "x.safetensors")
			computetest.NoError(t, p.Save(path))
			q := computetest.Must(bayes.Load(path))
			for what, pair := range map[string][2]any{
				"model": {q.Model().Stochastic, p.Model().Stochastic}, "summary": {q.Bound().Summary(), p.Bound().Summary()},
				"origin": {q.Origin(), origin}, "chains": {q.Chains(), 7}, "evidence": {q.Evidence().Value, -12.25},
				"an unknown standard error": {math.IsNaN(q.Evidence().StdErr), true},
				"diagnostics":               {q.Diagnostics(), draws.Diagnostics},
			} {
				if !reflect.DeepEqual(pair[0], pair[1]) {
					t.Errorf("%s, %s: %s is %+v, was %+v", m.name, dtype, what, pair[0], pair[1])
				}
			}
			for _, slot := range p.Bound().Slots {
				a, _, errA := p.Parameter(slot.Name)
				b, _, errB := q.Parameter(slot.Name)
				if errA != nil || errB != nil || !slices.Equal(a, b) {
					t.Errorf("%s, %s: %s is %v (%v), was %v (%v)", m.name, dtype, slot.Name, b, errB, a, errA)
				}
			}
			was, is := predict(t, p.On(pure), x), predict(t, q.On(pure), x) // which compiles at once
			if !reflect.DeepEqual(is, was) {
				t.Errorf("%s, %s: predictions are\n%+v, were\n%+v", m.name, dtype, is, was)
			}
		}
	}
}

// Features and target are standardised, or kept, each by itself; the target of a classification is always kept.
func TestScaling(t *testing.T) {
	data := &dataset.Dataset{X: mat.NewDense(2, 1, []float64{1, 5}), Y: []float64{10, 30}}
	classes := &dataset.Dataset{X: data.X, Y: []float64{0, 1}, Task: dataset.BinaryClassification}
	for _, c := range []struct {
		data             *dataset.Dataset
		scaling          bayes.Scaling
		features, target [2]float64 // mean and standard deviation
	}{
		{data, bayes.Scaling{}, [2]float64{3, 2}, [2]float64{20, 10}},
		{data, bayes.Scaling{KeepFeatures: true}, [2]float64{0, 1}, [2]float64{20, 10}},
		{data, bayes.Scaling{KeepTarget: true}, [2]float64{3, 2}, [2]float64{0, 1}},
		{classes, bayes.Scaling{}, [2]float64{3, 2}, [2]float64{0, 1}},
	} {
		model := bayes.Model{Likelihood: bayes.Gaussian{}, Scaling: c.scaling}
		features, target := model.Scalers(c.data)
		if got := [2]float64{features.Mean[0], features.StdDev[0]}; got != c.features {
			t.Errorf("%+v: features %v, want %v", c.scaling, got, c.features)
		}
		if got := [2]float64{target.Mean[0], target.StdDev[0]}; got != c.target {
			t.Errorf("%+v: target %v, want %v", c.scaling, got, c.target)
		}
	}
}

// What the caller does to the slices and maps that it gave or got changes no posterior.
func TestPosteriorDoesNotChange(t *testing.T) {
	p := newPosterior(t, predicted[0].model, 1, 3, compute.Float32)
	draws := computetest.Must(p.Draws())
	draws.Diagnostics = map[string]float64{"k-hat": .5}
	origin := p.Origin()
	origin.Provenance.Before = &bayes.Provenance{Settings: json.RawMessage(`{"a":1}`)}
	q := remade(t, p.Bound(), draws, origin)
	for _, o := range []bayes.Origin{origin, q.Origin()} {
		o.Features.Mean[0], o.FeatureNames[0], o.TargetNames[0] = 99, "changed", "changed"
		o.Provenance.Before.Settings[2], o.Provenance.Versions["go"] = 'z', "0"
	}
	draws.Diagnostics["k-hat"], q.Diagnostics()["k-hat"] = 9, 9
	q.Origin().Features.StdDev[0] = 99
	now := q.Origin()
	if now.Features.Mean[0] != 1 || now.Features.StdDev[0] != 2 || now.FeatureNames[0] != "depth" ||
		now.TargetNames[0] != "drag" ||
		string(now.Provenance.Before.Settings) != `{"a":1}` || now.Provenance.Versions["go"] == "0" ||
		q.Diagnostics()["k-hat"] != .5 {
		t.Errorf("it changed: %+v, %v", now, q.Diagnostics())
	}
}

// Saved and loaded many times, the weights stay what they are to rounding: nothing adds up.
func TestWeightsDoNotDrift(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}.Bind(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, particles := range []int{2, 3, 10, 1000} {
		logWeights := wave(particles, 7)
		floats.Scale(9, logWeights)
		logWeights[0] = -2000 // its weight is 0, its log-weight is not -Inf
		first, err := bayes.NewPosterior(bound, bayes.Draws{Phi: compute.Floats(compute.Float32, make([]float64, 2*particles),
			particles, 2), LogWeights: logWeights}, bayes.Origin{})
		if err != nil {
			t.Fatal(err)
		}
		p := first
		for range 20 {
			computetest.NoError(t, p.Save(path))
			if p, err = bayes.Load(path); err != nil {
				t.Fatal(err)
			}
		}
		for j := range particles {
			if a, b := first.LogWeights()[j], p.LogWeights()[j]; math.Abs(a-b) > 1e-13*(1+math.Abs(a)) {
				t.Errorf("%d particles: log-weight %d was %v, is %v", particles, j, a, b)
			}
		}
	}
}

// spoilt is the file of a posterior of model m of predicted, once it is changed.
func spoilt(t *testing.T, m int, change func(*tensorfile.File)) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x")
	computetest.NoError(t, newPosterior(t, predicted[m].model, predicted[m].outputs, 3, compute.Float32).Save(path))
	file := computetest.Must(tensorfile.Read(path))
	change(&file)
	computetest.NoError(t, tensorfile.Write(path, file))
	return path
}

// replaced changes a file's text, which must be there.
func replaced(from, to string) func(*tensorfile.File) {
	return func(f *tensorfile.File) {
		if !strings.Contains(f.Metadata["gobnn"], from) {
			panic(fmt.Sprintf("there is no %s in %s", from, f.Metadata["gobnn"]))
		}
		f.Metadata["gobnn"] = strings.Replace(f.Metadata["gobnn"], from, to, 1)
	}
}

// tensor sets a tensor of a file; nil removes it.
func tensor(name string, value *tensors.Tensor) func(*tensorfile.File) {
	return func(f *tensorfile.File) {
		if f.Tensors[name] = value; value == nil {
			delete(f.Tensors, name)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "x")
	p := newPosterior(t, predicted[0].model, 1, 3, compute.Float32)
	computetest.NoError(t, p.Save(path))
	whole := computetest.Must(os.ReadFile(path))
	altered := slices.Clone(whole)
	altered[len(altered)-3]++
	for what, raw := range map[string][]byte{"cut off": whole[:len(whole)-1], "cut off in the header": whole[:200],
		"altered": altered, "empty": nil} {
		computetest.NoError(t, os.WriteFile(path, raw, 0o600))
		if _, err := bayes.Load(path); !errors.Is(err, tensorfile.ErrDamaged) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	_, unnamed := bayes.Load("")
	computetest.WantError(t, "loading", unnamed, "loading a posterior: the path is empty")
	computetest.WantError(t, "saving", p.Save(""), "saving a posterior: the path is empty")
	_, none := bayes.Load(filepath.Join(folder, "none"))
	for what, err := range map[string]error{"file": none, "folder": p.Save(filepath.Join(folder, "none", "x"))} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no %s: error %v", what, err)
		}
	}
}

// A file may have a right digest and yet have what Save does not write: it is forged, or of another program or version.
func TestLoadRefuses(t *testing.T) {
	const regression, classes = 0, 3
	const scalers = `"features":{"mean":[1,-2,0.5],"std_dev":[2,0.5,3]}`
	floats := func(dtype compute.DType, n int) *tensors.Tensor { return compute.Floats(dtype, make([]float64, n), n) }
	for _, c := range []struct {
		name   string
		model  int // of predicted
		change func(*tensorfile.File)
		says   string
	}{
		{"no posterior", regression, func(f *tensorfile.File) { delete(f.Metadata, "gobnn") }, "of which model"},
		{"a format of the future", regression, replaced("gobnn.posterior/2", "gobnn.posterior/3"),
			`"gobnn.posterior/3", not "gobnn.posterior/2"`},
		{"no format", regression, replaced(`"format":"gobnn.posterior/2",`, ""), "its format is"},
		{"a network that is not registered", regression, replaced(`"type":"MLP"`, `"type":"Magic"`), `"Magic"`},
		{"a setting of another name", regression, replaced(`"activation"`, `"nonlinearity"`), `unknown field "nonlinearity"`},
		{"a model that does not bind", regression, replaced(`"outputs":1`, `"outputs":0`), "0 outputs"},
		{"no weights", regression, tensor("log_weights", nil), "log_weights"},
		{"weights of integers", regression,
			tensor("log_weights", tensors.FromFlatDataAndDimensions([]int32{1, 2, 3}, 3)), "Int32"},
		{"a weight too few", regression, tensor("log_weights", floats(compute.Float64, 2)), "layer2/weights"},
		{"a tensor missing", regression, tensor("layer3/biases", nil), `no tensor "layer3/biases"`},
		{"a tensor too large", regression, tensor("layer3/biases", floats(compute.Float32, 2)),
			"shape [2], but the model needs [1]"},
		{"a matrix transposed", regression, tensor("layer1/weights", tensors.FromShape(shapes.Make(compute.Float32, 3, 4))),
			`"layer1/weights" has shape`},
		{"a tensor too many", regression, tensor("layer4/biases", floats(compute.Float32, 1)),
			`a parameter "layer4/biases", and the model has none`},
		{"a tensor of another type", regression, tensor("layer3/biases", floats(compute.Float64, 1)), "Float64"},
		{"features null", regression, replaced(scalers, `"features":null`), "no means of the features"},
		{"features absent", regression, replaced(scalers+",", ""), "no means of the features"},
		{"features without deviations", regression, replaced(`,"std_dev":[2,0.5,3]`, ""), "0 standard deviations"},
		{"target null", regression, replaced(`"target":{"mean":[40],"std_dev":[8]}`, `"target":null`), "the target"},
		{"classes of a regression", regression, replaced(scalers, scalers+`,"classes":["a","b"]`), "Classes are 2"},
		{"a class too few", classes, replaced(`["0","1","2"]`, `["0","1"]`), "the model has 3"},
		{"a class twice", classes, replaced(`["0","1","2"]`, `["0","1","0"]`), `"0" twice`},
		{"a feature's name too few", regression, replaced(`["depth","speed","load"]`, `["depth","speed"]`),
			"FeatureNames are 2"},
		{"a target's name too many", regression, replaced(`["drag"]`, `["drag","lift"]`), "TargetNames are 2"},
		{"a seed below 0", regression, replaced(`"seed":0`, `"seed":-1`), "seed"},
		{"chains below 0", regression, replaced(`"format"`, `"chains":-1,"format"`), "Chains is -1"},
		{"a standard error below 0", regression,
			replaced(`"format"`, `"log_evidence":"-3","log_evidence_std_err":"-1","format"`), "standard error"},
	} {
		path := spoilt(t, c.model, c.change)
		_, err := bayes.Load(path)
		if computetest.WantError(t, c.name, err, c.says, path); errors.Is(err, tensorfile.ErrDamaged) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A small file that declares a huge model is refused with little memory, and soon: what it declares is compared with
// what it holds first.
func TestLoadDeclaredSizes(t *testing.T) {
	const regression, classes, ordered = 0, 3, 4
	const hidden, billion = `"hidden":[4,3]`, "1000000000"
	for _, c := range []struct {
		name           string
		model          int // of predicted
		from, to, says string
	}{
		{"targets", regression, `"outputs":1`, `"outputs":` + billion, "1 means"},
		{"classes", classes, `"outputs":3`, `"outputs":` + billion, `"layer3/weights" has shape`},
		{"ordered classes", ordered, `"outputs":4`, `"outputs":` + billion, `"noise/cuts" has shape`},
		{"features", regression, `"inputs":3`, `"inputs":` + billion, "3 means"},
		{"a width", regression, hidden, `"hidden":[4,` + billion + `]`, `"layer2/weights" has shape`},
		{"widths whose product overflows", regression, hidden, `"hidden":[4294967296,4294967296]`, `"layer1/weights"`},
		{"layers", regression, hidden, `"hidden":[` + strings.Repeat("1,", 100_000) + "1]", "4000 tensors"},
		{"layers that are not there", regression, hidden, `"hidden":[4,3` + strings.Repeat(",3", 1900) + "]",
			"layer3/weights"},
		{"a prior for each layer", regression, `"std_dev":0}`, `"std_dev":0,"per_layer":{"` + billion + `":1}}`,
			"layer 1000000000"},
		{"chains", regression, `"format"`, `"chains":` + billion + `,"format"`, "3 particles cannot be split"},
	} {
		path := spoilt(t, c.model, replaced(c.from, c.to))
		var start, end runtime.MemStats
		began := time.Now()
		runtime.ReadMemStats(&start)
		_, err := bayes.Load(path)
		runtime.ReadMemStats(&end)
		computetest.WantError(t, c.name, err, c.says)
		allocated, most := end.TotalAlloc-start.TotalAlloc, uint64(4<<20+200*(1000+len(c.to)))
		if took := time.Since(began); allocated > most || took > 2*time.Second {
			t.Errorf("%s: %d bytes were allocated, of at most %d, in %v", c.name, allocated, most, took)
		}
	}
}

// What a file could not keep is refused before anything is computed with it.
func TestNewPosteriorRefusesNames(t *testing.T) {
	p := newPosterior(t, predicted[0].model, 1, 3, compute.Float32)
	draws := computetest.Must(p.Draws())
	for says, spoil := range map[string]func(*bayes.Origin){
		"iconv":          func(o *bayes.Origin) { o.FeatureNames[0] = "h\xf6he" },
		"TargetNames":    func(o *bayes.Origin) { o.TargetNames = []string{} },
		"Classes are 1":  func(o *bayes.Origin) { o.Classes = []string{"a"} },
		"Provenance.Dat": func(o *bayes.Origin) { o.Provenance.Data = "\xff" },
	} {
		origin := p.Origin()
		spoil(&origin)
		_, err := bayes.NewPosterior(p.Bound(), draws, origin)
		computetest.WantError(t, "names", err, says)
	}
}
