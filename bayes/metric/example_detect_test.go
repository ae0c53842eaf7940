package metric_test

import (
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/metric"
)

// A classifier of three classes meets rows from outside: two particles know the classes, but are small in all logits,
// or disagree, where they have seen nothing. A threshold is learnt from validation rows and applied to test rows.
func Example_outOfDistribution() {
	// Each prediction is what Posterior.Predict returns.
	predict := func(first, second []float64) bayes.Prediction {
		return bayes.Prediction{
			Likelihood: bayes.Categorical{}, Particles: 2, Rows: len(first) / 3, Width: 3,
			Outputs: append(first, second...), Weights: []float64{.6, .4},
		}
	}
	validation := predict([]float64{6, 0, 1, 0, 5, 0, 1, 0, 7, 4, 0, 1}, []float64{7, 1, 0, 0, 6, 1, 0, 1, 6, 5, 1, 0})
	within := predict([]float64{7, 1, 0, 0, 6, 0, 0, 1, 5, 3, 0, 2}, []float64{6, 0, 0, 1, 7, 0, 0, 1, 6, 2, 3, 0})
	outside := predict([]float64{1, 2, 0, 5, 0, 0, 2, 1, 1, 0, 0, 1}, []float64{0, 1, 1, 0, 4, 0, 1, 2, 0, 1, 0, 0})
	for _, score := range []struct {
		name string
		of   func(bayes.Prediction) ([]float64, error)
	}{{"energy", metric.Energy}, {"entropy", metric.Entropy}, {"mutual information", metric.MutualInformation}} {
		var scores [3][]float64
		for i, p := range []bayes.Prediction{validation, within, outside} {
			of, err := score.of(p)
			if err != nil {
				fmt.Println(err)
				return
			}
			scores[i] = of
		}
		detection, err := metric.Detect(scores[1], scores[2])
		if err != nil {
			fmt.Println(err)
			return
		}
		threshold, err := metric.Threshold(scores[0])
		if err != nil {
			fmt.Println(err)
			return
		}
		found, err := metric.Decide(scores[1], scores[2], threshold)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: AUROC %.2f, FPR95 %.2f, above %.2f: recall %.2f, specificity %.2f\n", score.name,
			detection.ROC.AUC(), detection.FPR95, threshold, found.Recall(), found.Specificity())
	}
	// Output:
	// energy: AUROC 0.94, FPR95 0.25, above -4.45: recall 0.75, specificity 0.75
	// entropy: AUROC 0.88, FPR95 0.50, above 0.22: recall 1.00, specificity 0.75
	// mutual information: AUROC 0.81, FPR95 0.75, above 0.01: recall 1.00, specificity 0.75
}
