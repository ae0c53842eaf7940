package bayes

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
)

// Model is a Bayesian neural network, independent of data: a network, a likelihood, a prior, and which parameters are
// stochastic. The others are shared by all particles and learnt as point estimates: a partial Bayesian network.
type Model struct {
	Network    nn.Network
	Likelihood Likelihood
	Prior      Prior     // of the stochastic parameters; default Normal{StdDev: 1}
	Stochastic Partition // which parameters are stochastic; default All()
	Scaling    Scaling   // of the data; by default features and the target of a regression are standardised
}

// Scaling says whether features and targets are standardised, by mean and standard deviation over the training part.
// The likelihood and the prior are in these units; predictions are in raw units in any case.
type Scaling struct {
	KeepFeatures bool `json:"keep_features,omitempty"` // features stay in raw units; dataset.Pixels always do
	// NormalScores replaces skewed features by the normal scores of their ranks; see dataset.FitNormalScores.
	NormalScores bool `json:"normal_scores,omitempty"`
	KeepTarget   bool `json:"keep_target,omitempty"` // targets stay in raw units; classes and counts always do
}

// Scalers fits the scalers of features and target on the training part, as Model.Scaling says.
func (m Model) Scalers(train *dataset.Dataset) (features, target dataset.Scaler) {
	targets := len(train.TargetNames())
	features, target = dataset.NoScaler(train.Dims()), dataset.NoScaler(targets)
	if _, pictures := train.X.(*dataset.Pixels); !pictures && !m.Scaling.KeepFeatures {
		features = dataset.FitScaler(train.X)
		if m.Scaling.NormalScores {
			features = dataset.FitNormalScores(train.X)
		}
	}
	if len(train.Y) > 0 && train.Task == dataset.Regression && m.ScalesTarget() {
		target = dataset.FitScaler(mat.NewDense(train.Rows(), targets, train.Y))
	}
	return features, target
}

// ScalesTarget says whether targets are standardised. The targets of a regression are, except counts and where
// Scaling.KeepTarget is set.
func (m Model) ScalesTarget() bool {
	return !m.Scaling.KeepTarget && m.Likelihood.Task() == dataset.Regression && !IsCounted(m.Likelihood)
}

// Partition says which parameters are stochastic. Layers, Names and All make one; And joins two.
type Partition struct {
	Selectors []selector `json:"selectors"`
}

// selector picks the parameters that agree with all of its fields that are set; at least one field must be set.
type selector struct {
	Layer int     `json:"layer,omitempty"` // counted from 1
	Kind  nn.Kind `json:"kind,omitempty"`  // of All alone
	Name  string  `json:"name,omitempty"`
}

// Layers makes weights and biases of the numbered layers stochastic; layers count from 1.
func Layers(numbers ...int) Partition {
	var p Partition
	for _, n := range numbers {
		if n == 0 {
			n = layerZero
		}
		p.Selectors = append(p.Selectors, selector{Layer: n})
	}
	return p
}

// layerZero stands for layer 0 in a call such as Layers(0), since 0 in a selector means any layer: no layer has this
// number, so that Bind reports it.
const layerZero = math.MinInt32

// Names makes the named parameters stochastic, such as "layer3/weights" or "noise/log_scale".
func Names(names ...string) Partition {
	var p Partition
	for _, n := range names {
		p.Selectors = append(p.Selectors, selector{Name: n})
	}
	return p
}

// All makes every weight and bias stochastic: a full Bayesian network. A parameter of the likelihood, such as a learnt
// noise, is still shared; All().And(Names("noise/log_scale")) makes it stochastic too.
func All() Partition { return Partition{[]selector{{Kind: nn.Weights}, {Kind: nn.Biases}}} }

// And is the union of two partitions: it picks every parameter that either of them picks.
func (p Partition) And(other Partition) Partition {
	return Partition{slices.Concat(p.Selectors, other.Selectors)}
}

func (s selector) matches(p nn.Parameter) bool {
	return s != selector{} &&
		(s.Layer == 0 || s.Layer == p.Layer) && (s.Kind == "" || s.Kind == p.Kind) && (s.Name == "" || s.Name == p.Name)
}

func (s selector) String() string {
	switch {
	case s.Layer == layerZero:
		return "layer 0 (layers count from 1)"
	case s.Layer != 0:
		return fmt.Sprintf("layer %d", s.Layer)
	case s.Name != "":
		return fmt.Sprintf("name %q", s.Name)
	}
	return "an empty name"
}

// stochastic marks the parameters that the partition picks.
func (p Partition) stochastic(parameters []nn.Parameter) ([]bool, error) {
	picked := make([]bool, len(parameters))
	for _, one := range p.Selectors {
		matched := false
		for i, parameter := range parameters {
			if one.matches(parameter) {
				picked[i], matched = true, true
			}
		}
		if !matched && one.Kind == "" { // of weights and biases a network may have only the one
			names := make([]string, len(parameters))
			for i, parameter := range parameters {
				names[i] = parameter.Name
			}
			return nil, fmt.Errorf("bayes: the partition picks a parameter that the network does not have: %s; it has %s", one,
				strings.Join(names, ", "))
		}
	}
	if !slices.Contains(picked, true) {
		return nil, errors.New("bayes: no parameter is stochastic: set Model.Stochastic, for instance to bayes.Layers(1) " +
			"or bayes.All()")
	}
	return picked, nil
}
