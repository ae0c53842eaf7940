package bayes

import "gobnn/bayes/dataset"

// Task is what a model predicts.
type Task = dataset.Task

// The tasks.
const (
	Regression           = dataset.Regression
	BinaryClassification = dataset.BinaryClassification
	Classification       = dataset.Classification
)

// Prediction holds what each weighted particle predicts for each row.
type Prediction struct {
	Task Task
	// Outputs of the network, [Particles, Rows, Width], row-major. Regression: the mean, in the target's own units.
	// BinaryClassification: the logit of class 1 (Width 1). Classification: the logits (Width C).
	Outputs                []float64
	Particles, Rows, Width int
	// Weights of the particles, [Particles]; they sum to 1.
	Weights []float64
	// NoiseStdDev is the standard deviation of each particle's Gaussian noise, [Particles], in the target's own units; nil for classification.
	NoiseStdDev []float64
	// TargetMean and TargetStdDev are the target's mean and standard deviation over the training part: (y - TargetMean) /
	// TargetStdDev is the target in standardised units. 0 and 1 where the target was not standardised, and for classification.
	TargetMean, TargetStdDev float64
}
