package fit_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
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
	d, err := fit.New("mine", network(bayes.Gaussian{}), parts)
	if err != nil {
		t.Fatal(err)
	}
	if want := dataset.FitScaler(parts.Train.X); !reflect.DeepEqual(d.Features, want) {
		t.Errorf("features are scaled by %v, want %v", d.Features, want)
	}
	if want := dataset.FitTargetScaler(parts.Train.Y, 1); !reflect.DeepEqual(d.Target, want) {
		t.Errorf("the target is scaled by %v, want %v", d.Target, want)
	}
	x, y, err := d.Tensors(compute.Float64, parts.Validation)
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Shape().Dimensions; !reflect.DeepEqual(got, []int{3, 2}) {
		t.Errorf("x has shape %v, want [3 2]", got)
	}
	values, err := compute.Float64s(y)
	if err != nil {
		t.Fatal(err)
	}
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
	d, err := fit.New("mine", gaussian, dataset.Parts{Train: rows(6)})
	if err != nil {
		t.Fatal(err)
	}
	trained, err := d.Posterior(draws(d.Bound), bayes.Provenance{}, nil)
	if err != nil {
		t.Fatal(err)
	}
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
		if c.err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, word := range c.words {
			if !strings.Contains(c.err.Error(), word) {
				t.Errorf("%s: %q does not say %q", name, c.err, word)
			}
		}
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
	d, err := fit.New("mine", network(bayes.Gaussian{}), dataset.Parts{Train: rows(6)})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := compute.Default()
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Posterior(draws(d.Bound), bayes.Provenance{Algorithm: "by hand", Seed: 7}, engine)
	if err != nil {
		t.Fatal(err)
	}
	from := p.Provenance()
	if from.Algorithm != "by hand" || from.Seed != 7 || from.Data != "few" || from.DataHash != rows(6).Hash() ||
		from.Rows != 6 ||
		from.Created.IsZero() || from.Versions["backend"] == "" {
		t.Errorf("its provenance is %+v", from)
	}
	if !reflect.DeepEqual(p.Origin().Features, d.Features) || !reflect.DeepEqual(p.Origin().Target, d.Target) ||
		p.Origin().TargetNames[0] != "y" {
		t.Errorf("it scales features by %v and target %q by %v", p.Origin().Features, p.Origin().TargetNames, p.Origin().Target)
	}

	turned := rows(9)
	turned.Features = []string{"b", "a"}
	if _, err := fit.Of("mine", p, turned); err == nil || !strings.Contains(err.Error(), "in another order") {
		t.Errorf("rows whose columns stand in another order: %v", err)
	}
	more := rows(9)
	more.Features = []string{"other", "names"}
	on, err := fit.Of("mine", p, more)
	if err != nil {
		t.Fatal(err)
	}
	if on.Rows() != 9 || !reflect.DeepEqual(on.Features, d.Features) || !reflect.DeepEqual(on.Target, d.Target) {
		t.Errorf("to go on, %d rows are scaled by %v and %v: not as before", on.Rows(), on.Features, on.Target)
	}
	next, err := on.Posterior(draws(on.Bound), bayes.Provenance{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	from = next.Provenance()
	if names := next.Origin().FeatureNames; !reflect.DeepEqual(names, []string{"a", "b"}) || from.Rows != 9 {
		t.Errorf("what went on has features %q and %d rows", names, from.Rows)
	}
	if from.Before == nil || from.Before.Algorithm != "by hand" || from.Before.Before != nil {
		t.Errorf("what it went on from is %+v", from.Before)
	}

	model := d.Bound.Model
	model.Stochastic = bayes.All()
	all, err := d.With(model)
	if err != nil {
		t.Fatal(err)
	}
	if all.Bound.W != 0 || all.Bound.D != d.Bound.D+d.Bound.W || d.Bound.W == 0 {
		t.Errorf("with all parameters stochastic there are %d and %d, before %d and %d",
			all.Bound.D, all.Bound.W, d.Bound.D, d.Bound.W)
	}
}

// A target that is so far from the others that scaling makes these equal is named, by the rows that leave it out too;
// one that is merely far, or Float64, is taken.
func TestOutlierIsNamed(t *testing.T) {
	for value, want := range map[float64]string{1e9: `target "y" of row 41 is 1e+09`, -1e12: "row 41 is -1e+12", 1e3: ""} {
		data := plane(300)
		data.Y[41] = value
		d, err := fit.New("mine", network(bayes.Gaussian{}), dataset.Parts{Train: data})
		if err != nil {
			t.Fatal(err)
		}
		first, err := data.Subset([]int{0, 1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []*dataset.Dataset{data, first} {
			d.Parts.Train = part
			_, _, err := d.Tensors(compute.Float32, part)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v among others, %d rows: error %v, want %q", value, part.Rows(), err, want)
			}
			if _, _, err := d.Tensors(compute.Float64, part); err != nil {
				t.Errorf("%v in Float64: %v", value, err)
			}
		}
	}
}

// What is too large for float32 after scaling is refused by its place in the user's table; Float64 takes it.
func TestTensorsTooLargeForFloat32(t *testing.T) {
	data := rows(6)
	data.X.(*mat.Dense).Set(4, 1, 1e30)
	train, err := data.Subset([]int{5, 4, 3, 2, 1, 0})
	if err != nil {
		t.Fatal(err)
	}
	for _, scaling := range []bayes.Scaling{{}, {KeepFeatures: true}} {
		model := network(bayes.Gaussian{})
		model.Scaling = scaling
		d, err := fit.New("mine", model, dataset.Parts{Train: train})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Tensors(compute.Float64, train); err != nil {
			t.Errorf("%+v: Float64: %v", scaling, err)
		}
		_, _, err = d.Tensors(compute.Float32, train)
		if !scaling.KeepFeatures {
			if err != nil {
				t.Errorf("standardised: %v", err)
			}
			continue
		}
		if err == nil {
			t.Fatal("1e30 goes into float32")
		}
		for _, want := range []string{`feature "b" of row 4 is 1e+30`, "Model.Scaling", "Float64"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %v does not say %q", err, want)
			}
		}
	}
}

// Columns whose values float32 rounds to the same numbers are refused, unless they are standardised first.
func TestTensorsTooFineForFloat32(t *testing.T) {
	for _, c := range []struct {
		offset  float64
		scaling bayes.Scaling
		refused string
	}{
		{1.7e9, bayes.Scaling{}, ""},
		{1.7e9, bayes.Scaling{KeepFeatures: true}, `feature "b"`},
		{100, bayes.Scaling{KeepFeatures: true}, ""},
	} {
		data := rows(6)
		for i := range 6 {
			data.X.(*mat.Dense).Set(i, 1, c.offset+float64(i))
		}
		model := network(bayes.Gaussian{})
		model.Scaling = c.scaling
		d, err := fit.New("mine", model, dataset.Parts{Train: data})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Tensors(compute.Float64, data); err != nil {
			t.Errorf("%+v: Float64: %v", c, err)
		}
		_, _, err = d.Tensors(compute.Float32, data)
		if (err != nil) != (c.refused != "") || err != nil && (!strings.Contains(err.Error(), c.refused) ||
			!strings.Contains(err.Error(), "rows become equal")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A result gives its curves by name, in the units asked for, and an empty one for a curve that it does not have.
func TestCurve(t *testing.T) {
	r := &fit.Result{}
	r.Curves = []fit.Curve{
		fit.NewCurve(fit.LossCurve, []float64{3, 2}, func(v float64) float64 { return v / 2 }),
		{Name: fit.ValidationCurve, Steps: []int{2}, Values: []float64{1}},
	}
	want := fit.Curve{Name: fit.LossCurve, Steps: []int{1, 2}, Values: []float64{1.5, 1}}
	if got := r.Curve(fit.LossCurve); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := r.Curve(fit.ESSCurve); got.Name != fit.ESSCurve || len(got.Steps) != 0 {
		t.Errorf("a curve that is not there is %+v", got)
	}
}
