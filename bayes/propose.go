package bayes

import (
	"fmt"
	"math"

	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
)

// ModelFor proposes a model for a table: a network of two hidden layers of 50 units, whose weights have a prior that
// goes with the layers' widths, N(0, 2/inputs), so that its outputs have the size of a standardised target's whatever
// the width. The likelihood follows the task: of a regression HeteroscedasticT, whose noise depends on the features and
// has tails as heavy as the data ask for; of a classification Bernoulli or Categorical. Skewed features become normal
// scores (Scaling.NormalScores). It is an error for pictures,
// which take nn.CNN or nn.ResNet20.
func ModelFor(data *dataset.Dataset) (Model, error) {
	if err := data.Validate(); err != nil {
		return Model{}, fmt.Errorf("bayes: %w", err)
	}
	if _, pictures := data.X.(*dataset.Pixels); pictures {
		return Model{}, fmt.Errorf("bayes: ModelFor proposes networks for tables, and the data %q are pictures: take nn.CNN "+
			"or nn.ResNet20, with the likelihood Categorical", data.Name)
	}
	m := Model{Likelihood: HeteroscedasticT{}, Scaling: Scaling{NormalScores: true}}
	switch data.Task {
	case dataset.BinaryClassification:
		m.Likelihood = Bernoulli{}
	case dataset.Classification:
		m.Likelihood = Categorical{}
	}
	hidden := []int{50, 50}
	prior := Normal{PerLayer: map[int]float64{}}
	inputs := data.Dims()
	for i, width := range append(hidden, 0) {
		prior.PerLayer[i+1] = math.Sqrt(2 / float64(inputs))
		inputs = width
	}
	m.Network, m.Prior = nn.MLP{Hidden: hidden, Activation: nn.GELU}, prior
	return m, nil
}
