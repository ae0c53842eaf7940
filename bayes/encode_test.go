package bayes_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"
)

// models are every network, likelihood, prior, activation, initialiser and way to pick parameters.
var models = map[string]bayes.Model{
	"defaults": {Network: nn.MLP{}, Likelihood: bayes.Gaussian{}, Prior: bayes.Normal{}, Stochastic: bayes.Layers(1)},
	"gaussian": {
		Network:    nn.MLP{Hidden: []int{4, 3}, Activation: nn.GELU, Init: nn.HeNormal},
		Likelihood: bayes.Gaussian{StdDev: .7, Learn: true}, Prior: bayes.Normal{StdDev: .1 + .2,
			PerLayer: map[int]float64{1: 1e-3, 12: 1. / 3}},
		Stochastic: bayes.Layers(1, 3).And(bayes.Names("noise/log_scale")),
	},
	"bernoulli": {
		Network: nn.MLP{Hidden: []int{2}, Activation: nn.Swish, Init: nn.GlorotUniform}, Likelihood: bayes.Bernoulli{},
		Prior: bayes.LearntPrecision{ByWidth: true}, Stochastic: bayes.All(),
	},
	"categorical": {
		Network: nn.MLP{Hidden: []int{7}, Activation: nn.Softplus, Init: nn.Zeros}, Likelihood: bayes.Categorical{},
		Prior: bayes.LearntPrecision{}, Stochastic: bayes.Names("layer2/weights").And(bayes.Layers(1)),
		Scaling: bayes.Scaling{KeepFeatures: true},
	},
	"convolutional": {
		Network: nn.CNN{Height: 8, Width: 9, Channels: 2, Hidden: []int{7}, Activation: nn.Swish, Init: nn.HeNormal,
			Convolutions: []nn.Conv{{Filters: 3, Kernel: 4, Valid: true, Pool: 2, MaxPool: true}, {Filters: 5}}},
		Likelihood: bayes.Bernoulli{}, Prior: bayes.Normal{}, Stochastic: bayes.Layers(1),
	},
}

func TestModelJSON(t *testing.T) {
	for name, model := range models {
		text, err := json.Marshal(model)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var read bayes.Model
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(read, model) {
			t.Errorf("%s: wrote %+v, read %+v from %s", name, model, read, text)
		}
	}
	var read bayes.Model
	text, err := json.Marshal(bayes.Model{Network: mlp, Likelihood: bayes.Gaussian{}, Stochastic: bayes.Layers(1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &read); err != nil || read.Prior == nil {
		t.Errorf("a model without prior came back with %+v, %v, want the default prior", read.Prior, err)
	}
}

// A network, a likelihood and a prior of a user's own.
type (
	wide         struct{ Width int }
	neverTold    struct{ nn.MLP }
	ownGaussian  struct{ bayes.Gaussian }
	ownNormal    struct{ bayes.Normal }
	registeredIn struct{}
	// Of these something is not written, or not read back.
	silent    struct{ act nn.Activation }
	unwritten struct {
		nn.MLP `json:"-"`
	}
	forgetful struct{ Width int }
)

func (n silent) Layers(inputs, outputs int) ([]nn.Layer, error) {
	return nn.MLP{Hidden: []int{2}, Activation: n.act}.Layers(inputs, outputs)
}

func (n forgetful) Layers(inputs, outputs int) ([]nn.Layer, error) {
	return nn.MLP{Hidden: []int{n.Width}}.Layers(inputs, outputs)
}

func (n forgetful) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int{"width": n.Width})
}

func (n *forgetful) UnmarshalJSON([]byte) error { return nil }

// A part that is not what it was once it is written and read back is refused before training: the posterior that is
// loaded, or the run that goes on from a checkpoint, would be another model's.
func TestOwnTypesAreWritten(t *testing.T) {
	bayes.Register(silent{})
	bayes.Register(unwritten{})
	bayes.Register(forgetful{})
	for _, c := range []struct {
		network nn.Network
		says    string
	}{
		{silent{nn.Tanh}, "bayes_test.silent is not the same"},
		{unwritten{nn.MLP{Hidden: []int{3}}}, "it was {MLP:{Hidden:[3]"},
		{forgetful{4}, "contradict each other"}, {silent{}, ""}, {nn.MLP{Hidden: []int{}}, ""},
		{nn.CNN{Convolutions: []nn.Conv{}}, ""},
	} {
		m := bayes.Model{Network: c.network, Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}
		_, written := json.Marshal(m)
		for _, err := range []error{m.Registered(), written} {
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%#v: error %v, want one that says %q", c.network, err, c.says)
			}
		}
	}
}

func (w wide) Layers(inputs, outputs int) ([]nn.Layer, error) {
	return nn.MLP{Hidden: []int{w.Width}}.Layers(inputs, outputs)
}

func TestOwnTypes(t *testing.T) {
	own := bayes.Model{Network: wide{5}, Likelihood: ownGaussian{bayes.Gaussian{StdDev: 2}},
		Prior: ownNormal{bayes.Normal{StdDev: 3}}, Stochastic: bayes.Layers(1)}
	if _, err := json.Marshal(own); err == nil || !strings.Contains(err.Error(), "bayes_test.wide is not registered") ||
		!strings.Contains(err.Error(), "bayes.Register") {
		t.Errorf("before Register: error %v", err)
	}
	bayes.Register(wide{})
	bayes.Register(ownGaussian{})
	bayes.Register(ownNormal{})
	bayes.Register(wide{}) // twice is no fault
	text := computetest.Must(json.Marshal(own))
	var read bayes.Model
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, own) {
		t.Errorf("wrote %+v, read %+v, %v", own, read, err)
	}

	for name, model := range map[string]bayes.Model{
		"*nn.MLP":              {Network: &nn.MLP{}, Likelihood: bayes.Gaussian{}},
		"bayes_test.neverTold": {Network: neverTold{}, Likelihood: bayes.Gaussian{}},
		"without a Network":    {Likelihood: bayes.Gaussian{}},
		"or a Likelihood":      {Network: nn.MLP{}},
	} {
		if _, err := json.Marshal(model); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("writing a model with %s: error %v", name, err)
		}
	}
	bayes.Register(registeredIn{})
	for _, c := range []struct{ text, says string }{
		{`{"network":{"type":"wavenet","settings":{}}}`,
			`"wavenet", which is not registered (known: Bernoulli, CNN, Categorical`},
		{`{"network":{"type":"MLP","settings":{}},"likelihood":{"type":"Gaussian","settings":{}},` +
			`"prior":{"type":"Horseshoe","settings":{"global":1}}}`, `"Horseshoe", which was removed`},
		{`{"network":{"type":"MLP","settings":{"hidden":"four"}}}`, `settings of "MLP"`},
		{`{"network":{"type":"Gaussian","settings":{}}}`, `"Gaussian" is no nn.Network`},
		{`{"network":{"type":"MLP","settings":{}},"likelihood":{"type":"registeredIn","settings":{}}}`,
			`"registeredIn" is no bayes.Likelihood`},
		{
			`{"network":{"type":"MLP","settings":{}},"likelihood":{"type":"Gaussian","settings":{}},` +
				`"prior":{"type":"","settings":{}}}`, `type ""`},
		{`[]`, "model"},
		{`{"scaling":{"keep_weights":true}}`, `unknown field "keep_weights"`}, // an option of a newer version
		{`{"stochastic":{"selectors":[{"block":2}]}}`, `unknown field "block"`},
	} {
		var read bayes.Model
		if err := json.Unmarshal([]byte(c.text), &read); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v does not say %q", c.text, err, c.says)
		}
	}
}

func TestRegisterFaults(t *testing.T) {
	type Gaussian struct{} // a name of the library's
	for name, value := range map[string]any{"a pointer": &wide{}, "nil": nil, "no struct": nn.ReLU, "no name": struct{}{},
		"a name that is taken": Gaussian{}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: Register took it", name)
				}
			}()
			bayes.Register(value)
		}()
	}
}
