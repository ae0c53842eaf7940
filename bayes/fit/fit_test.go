package fit_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
)

func network(likelihood bayes.Likelihood) bayes.Model {
	return bayes.Model{
		Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: likelihood, Stochastic: bayes.Layers(1),
	}
}

// rows are data of two features; of as many classes, if there are any, each with a row.
func rows(n int, classes ...string) *dataset.Dataset {
	d := &dataset.Dataset{Name: "few", X: mat.NewDense(n, 2, nil), Y: make([]float64, n), Features: []string{"a", "b"},
		Target: "y"}
	for i := range n {
		d.X.(*mat.Dense).SetRow(i, []float64{float64(i), 10 + 3*float64(i%3)})
		d.Y[i] = 5 - 2*float64(i)
	}
	if len(classes) > 0 {
		d.Task, d.Classes = dataset.Classification, classes
		for i := range d.Y {
			d.Y[i] = float64(i % len(classes))
		}
	}
	return d
}

// draws are two particles of a bound model.
func draws(b *bayes.BoundModel) bayes.Draws {
	d := bayes.Draws{Phi: compute.Floats(compute.Float64, make([]float64, 2*b.D), 2, b.D), LogWeights: []float64{0, 0}}
	if b.W > 0 {
		d.Psi = compute.Floats(compute.Float64, make([]float64, b.W), b.W)
	}
	return d
}

// Scalers see the training part alone, and classes are not scaled; Model and data that do not fit are refused by name.
func TestNew(t *testing.T) {
	parts := dataset.Parts{Train: rows(6), Validation: rows(3)}
	d := computetest.Must(fit.New("mine", network(bayes.Gaussian{}), parts))
	if want := dataset.FitScaler(parts.Train.X); !reflect.DeepEqual(d.Features, want) {
		t.Errorf("features are scaled by %v, want %v", d.Features, want)
	}
	if want := dataset.FitScaler(mat.NewDense(parts.Train.Rows(), 1, parts.Train.Y)); !reflect.DeepEqual(d.Target, want) {
		t.Errorf("the target is scaled by %v, want %v", d.Target, want)
	}
	x, y, err := d.Tensors(compute.Float64, parts.Validation)
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Shape().Dimensions; !reflect.DeepEqual(got, []int{3, 2}) {
		t.Errorf("x has shape %v, want [3 2]", got)
	}
	values := computetest.Must(compute.Float64s(y))
	if want := (parts.Validation.Y[2] - d.Target.Mean[0]) / d.Target.StdDev[0]; len(values) != 3 ||
		math.Abs(values[2]-want) > 1e-12 {
		t.Errorf("y is %v, want 3 values, the last %v", values, want)
	}

	kept := network(bayes.Gaussian{})
	kept.Scaling = bayes.Scaling{KeepFeatures: true, KeepTarget: true}
	for name, of := range map[string]struct {
		model bayes.Model
		parts dataset.Parts
	}{
		"kept":    {kept, parts},
		"classes": {network(bayes.Categorical{}), dataset.Parts{Train: rows(6, "u", "v", "w")}},
	} {
		d, err := fit.New("mine", of.model, of.parts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(d.Target, dataset.NoScaler(1)) || name == "kept" &&
			!reflect.DeepEqual(d.Features, dataset.NoScaler(2)) {
			t.Errorf("%s: the features are scaled by %v, the target by %v", name, d.Features, d.Target)
		}
	}
}

func TestRefused(t *testing.T) {
	gaussian := network(bayes.Gaussian{})
	d := computetest.Must(fit.New("mine", gaussian, dataset.Parts{Train: rows(6)}))
	trained := computetest.Must(d.Posterior(draws(d.Bound), bayes.Provenance{}, nil))
	infinite := rows(4)
	infinite.Y[3] = math.Inf(1)
	missing := rows(4, "u", "v", "w")
	for i := range missing.Y {
		missing.Y[i] = float64(i % 2)
	}
	wide := rows(4)
	wide.X, wide.Features = mat.NewDense(4, 3, nil), []string{"a", "b", "c"}
	of := func(trained *bayes.Posterior, data *dataset.Dataset) error {
		_, err := fit.Of("mine", trained, data)
		return err
	}
	made := func(model bayes.Model, data *dataset.Dataset) error {
		_, err := fit.New("mine", model, dataset.Parts{Train: data})
		return err
	}
	for name, c := range map[string]struct {
		err   error
		words []string
	}{
		"no data":      {made(gaussian, nil), []string{"mine: ", "no training part"}},
		"infinite":     {made(gaussian, infinite), []string{"mine: ", "row 3", "+Inf"}},
		"another task": {made(gaussian, rows(4, "u", "v")), []string{"mine: ", "bayes.Gaussian", "classification"}},
		"Bernoulli": {made(network(bayes.Bernoulli{}), rows(4)), []string{"mine: ", "bayes.Bernoulli",
			`"few" is for regression`}},
		"a class without row": {made(network(bayes.Categorical{}), missing), []string{"mine: ", `"w"`}},
		"nothing trained":     {of(nil, rows(4)), []string{"mine: ", "no trained posterior"}},
		"no data to go on":    {of(trained, nil), []string{"mine: ", "no training part"}},
		"too wide":            {of(trained, wide), []string{"mine: ", "2 features", `"few" has 3`}},
		"classes to go on":    {of(trained, rows(4, "u", "v")), []string{"mine: ", "bayes.Gaussian", "classification"}},
	} {
		computetest.WantError(t, name, c.err, c.words...)
	}
	if _, err := fit.New("mine", network(bayes.Categorical{}), dataset.Parts{Train: missing}); !errors.Is(err,
		dataset.ErrMissingClass) {
		t.Errorf("a class without a row: %v is not dataset.ErrMissingClass", err)
	}
	if _, err := fit.Share("mine", network(bayes.Categorical{}), missing); err != nil {
		t.Errorf("a share of the rows may lack a class: %v", err)
	}
}

// A posterior knows its data and how to scale them; one that goes on keeps the scalers and the names of the one before.
func TestPosterior(t *testing.T) {
	d := computetest.Must(fit.New("mine", network(bayes.Gaussian{}), dataset.Parts{Train: rows(6)}))
	engine := computetest.Must(compute.Default())
	p := computetest.Must(d.Posterior(draws(d.Bound), bayes.Provenance{Algorithm: "by hand", Seed: 7}, engine))
	from := p.Provenance()
	if from.Algorithm != "by hand" || from.Seed != 7 || from.Data != "few" || from.DataHash != rows(6).Hash() ||
		from.Rows != 6 ||
		from.Created.IsZero() || from.Versions["backend"] == "" {
		t.Errorf("its provenance is %+v", from)
	}
	if !reflect.DeepEqual(p.Origin().Features, d.Features) || !reflect.DeepEqual(p.Origin().Target, d.Target) ||
		p.Origin().TargetNames[0] != "y" {
		t.Errorf("it scales features by %v and target %q by %v", p.Origin().Features, p.Origin().TargetNames,
			p.Origin().Target)
	}

	turned := rows(9)
	turned.Features = []string{"b", "a"}
	if _, err := fit.Of("mine", p, turned); err == nil || !strings.Contains(err.Error(), "in another order") {
		t.Errorf("rows whose columns stand in another order: %v", err)
	}
	more := rows(9)
	more.Features = []string{"other", "names"}
	on := computetest.Must(fit.Of("mine", p, more))
	if on.Rows() != 9 || !reflect.DeepEqual(on.Features, d.Features) || !reflect.DeepEqual(on.Target, d.Target) {
		t.Errorf("to go on, %d rows are scaled by %v and %v: not as before", on.Rows(), on.Features, on.Target)
	}
	next := computetest.Must(on.Posterior(draws(on.Bound), bayes.Provenance{}, nil))
	from = next.Provenance()
	if names := next.Origin().FeatureNames; !reflect.DeepEqual(names, []string{"a", "b"}) || from.Rows != 9 {
		t.Errorf("what went on has features %q and %d rows", names, from.Rows)
	}
	if from.Before == nil || from.Before.Algorithm != "by hand" || from.Before.Before != nil {
		t.Errorf("what it went on from is %+v", from.Before)
	}

	model := d.Bound.Model
	model.Stochastic = bayes.All()
	all := computetest.Must(d.With(model))
	if all.Bound.W != 0 || all.Bound.D != d.Bound.D+d.Bound.W || d.Bound.W == 0 {
		t.Errorf("with all parameters stochastic there are %d and %d, before %d and %d",
			all.Bound.D, all.Bound.W, d.Bound.D, d.Bound.W)
	}
}

// Numbers that float32 cannot hold or tell apart after scaling are refused by their place in the user's table, and in
// Float64 all are taken: what is too large, targets that an outlier makes equal (by the rows that leave it out too),
// and columns that are far from 0.
func TestTensorsOfFloat32(t *testing.T) {
	kept := bayes.Scaling{KeepFeatures: true}
	large := rows(6)
	large.X.(*mat.Dense).Set(4, 1, 1e30)
	large = computetest.Must(large.Subset([]int{5, 4, 3, 2, 1, 0}))
	outlier := func(value float64) *dataset.Dataset {
		data := plane(300)
		data.Y[41] = value
		return data
	}
	offset := func(by float64) *dataset.Dataset {
		data := rows(6)
		for i := range 6 {
			data.X.(*mat.Dense).Set(i, 1, by+float64(i))
		}
		return data
	}
	for name, c := range map[string]struct {
		data    *dataset.Dataset
		scaling bayes.Scaling
		says    []string // nothing: it is taken
	}{
		"large, standardised": {large, bayes.Scaling{}, nil},
		"large":               {large, kept, []string{`feature "b" of row 4 is 1e+30`, "Model.Scaling", "Float64"}},
		"an outlier":          {outlier(1e9), bayes.Scaling{}, []string{`target "y" of row 41 is 1e+09`}},
		"an outlier below":    {outlier(-1e12), bayes.Scaling{}, []string{"row 41 is -1e+12"}},
		"far":                 {outlier(1e3), bayes.Scaling{}, nil},
		"fine, standardised":  {offset(1.7e9), bayes.Scaling{}, nil},
		"fine":                {offset(1.7e9), kept, []string{`feature "b"`, "rows become equal"}},
		"not so fine":         {offset(100), kept, nil},
	} {
		model := network(bayes.Gaussian{})
		model.Scaling = c.scaling
		d := computetest.Must(fit.New("mine", model, dataset.Parts{Train: c.data}))
		parts := []*dataset.Dataset{c.data}
		if c.data.Rows() > 6 {
			parts = append(parts, computetest.Must(c.data.Subset([]int{0, 1, 2, 3})))
		}
		for _, part := range parts {
			d.Parts.Train = part
			if _, _, err := d.Tensors(compute.Float64, part); err != nil {
				t.Errorf("%s, Float64: %v", name, err)
			}
			if _, _, err := d.Tensors(compute.Float32, part); len(c.says) > 0 {
				computetest.WantError(t, name, err, c.says...)
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
