package bayes

import (
	"fmt"

	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
)

// ModelFor proposes a model for a table: a network of three hidden layers of 16 units, or of three times the classes if
// there are more, with weights N(0, 2/inputs) (Normal.ByWidth). The likelihood follows the task: of a regression
// HeteroscedasticT, whose noise depends on the features and has tails as heavy as the data ask for, NegativeBinomial
// with an Exposure, Heteroscedastic with Censored targets; of a classification Bernoulli or Categorical; where the
// classes have an order, set it to Ordinal. Skewed features become normal scores (Scaling.NormalScores). It is an error
// for pictures, which take nn.CNN or nn.ResNet20.
func ModelFor(data *dataset.Dataset) (Model, error) {
	if err := data.Validate(); err != nil {
		return Model{}, fmt.Errorf("bayes: %w", err)
	}
	if _, pictures := data.X.(*dataset.Pixels); pictures {
		return Model{}, fmt.Errorf("bayes: ModelFor proposes networks for tables, and the data %q are pictures: take nn.CNN "+
			"or nn.ResNet20, with the likelihood Categorical", data.Name)
	}
	m := Model{Likelihood: HeteroscedasticT{}, Scaling: Scaling{NormalScores: true}}
	switch {
	case data.Exposure != nil:
		m.Likelihood = NegativeBinomial{}
	case data.Censored != nil:
		m.Likelihood = Heteroscedastic{}
	case data.Task == dataset.BinaryClassification:
		m.Likelihood = Bernoulli{}
	case data.Task == dataset.Classification:
		m.Likelihood = Categorical{}
	}
	units := max(16, 3*len(data.Classes)) // fewer than the classes could not tell them apart
	m.Network, m.Prior = nn.MLP{Hidden: []int{units, units, units}, Activation: nn.GELU}, Normal{ByWidth: true}
	return m, nil
}
