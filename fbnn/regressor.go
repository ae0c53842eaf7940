package fbnn

import (
	"context"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// Regressor learns to predict R numbers, the scores, from theta: Network or RandomNetwork.
type Regressor interface {
	// prepare fills in defaults, and returns an error that names a setting that is wrong.
	prepare() (Regressor, error)
	// learn learns from the lesson's pairs.
	learn(ctx context.Context, lesson *lesson) (*predictor, error)
}

var _ Regressor = Network{}

// lesson has all that a regressor needs for learning: the pairs and the run's settings.
type lesson struct {
	*fit.Job // the run, with settings for the part that learns
	// theta has the pairs' weights, [J, D], in the order of the chain, standardised by the mean and the standard
	// deviation of the first learn pairs. scores, [J, R], are the values to predict. A regressor learns from the first
	// learn pairs. The later ones are held out: for early stopping and to choose among candidates, but not to learn from.
	theta, scores *mat.Dense
	learn         int
	// judge computes a candidate's errors on the held-out pairs.
	judge    func(ctx context.Context, candidate *predictor) (Errors, error)
	identity run.Part // of the pairs
}

// predictor is the result of a regressor's learning: tensors, and a function that predicts from them.
type predictor struct {
	data map[string]*tensors.Tensor // the tensors that predict needs, by their names
	// predict builds the scores, [J, R], from standardised theta, [J, D], and the data by their names.
	predict    func(data compute.Nodes, theta *graph.Node) *graph.Node
	activation nn.Activation // that was chosen; empty if there is none
}

// within returns the nodes whose names begin with the prefix, by their names without it.
func within(nodes compute.Nodes, prefix string) compute.Nodes {
	some := compute.Nodes{}
	for name, node := range nodes {
		if bare, ok := strings.CutPrefix(name, prefix); ok {
			some[bare] = node
		}
	}
	return some
}
