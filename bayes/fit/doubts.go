package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Intervals of 90 % are doubted if they hold fewer than 87 or more than 98 % of the validation part's targets, and if
// chance would do so in one of a hundred fits at most.
const (
	judgedLevel   = .9
	fewestHeld    = .87
	mostHeld      = .98
	heldByChance  = .01
	judgedRows    = 1000    // at most so many rows are predicted
	fewRows       = 200     // where they are judged for amounts alone
	mostBelow     = .02     // of the intervals of amounts may begin below 0
	judgedNumbers = 4 << 20 // and at most this many outputs of all particles: 32 MB
)

// A linear model is better if it is so by betterBy nats a row and by betterErrors standard errors of the paired
// differences, on fewestJudged rows at least.
const (
	betterBy     = .05
	betterErrors = 2.33
	fewestJudged = 20
)

// doubts are warnings, for Result.Warnings, by the validation part, or the first thousand of its rows: of a regression
// whose 90 % intervals hold clearly too few or too many of its targets, and of a posterior that predicts them clearly
// worse than a linear model. Amounts whose intervals reach below 0 are doubted by training rows too.
func (j *Job) doubts(ctx context.Context, p *bayes.Posterior) []string {
	if j.Data == nil || p == nil || j.inner {
		return nil
	}
	rows, judges := j.Parts.Validation, []func(bayes.Prediction, *dataset.Dataset) (string, error){held, j.belowLinear}
	most := judgedRows
	if j.takes.Validation || rows == nil {
		rows, judges, most = cmp.Or(rows, j.Parts.Train), nil, fewRows
	}
	if j.amounts() {
		judges = append(judges, belowZero)
	}
	if rows == nil || len(judges) == 0 {
		return nil
	}
	if bayes.IsCounted(p.Model().Likelihood) { // whose intervals hold more than their level
		return nil
	}
	n := min(rows.Rows(), most, judgedNumbers/(p.Particles()*p.Bound().Width))
	if n < 1 {
		return nil
	}
	prediction, rows, err := predicted(context.WithoutCancel(ctx), p, rows, n)
	if err != nil {
		return []string{fmt.Sprintf("how the posterior predicts rows of the data is not known: %v", err)}
	}
	var all []string
	for _, doubt := range judges {
		text, err := doubt(prediction, rows)
		if err != nil {
			text = fmt.Sprintf("how well the posterior predicts rows of the data is not known: %v", err)
		}
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}

// predicted are the predictions of the first n rows, and these.
func predicted(
	ctx context.Context, p *bayes.Posterior, rows *dataset.Dataset, n int,
) (bayes.Prediction, *dataset.Dataset, error) {
	first := make([]int, n)
	for i := range first {
		first[i] = i
	}
	rows, err := rows.Subset(first)
	if err != nil {
		return bayes.Prediction{}, nil, err
	}
	prediction, err := p.Predict(ctx, rows.X)
	if err != nil {
		return bayes.Prediction{}, nil, err
	}
	prediction, err = prediction.OfRows(rows)
	return prediction, rows, err
}

// held doubts intervals that hold too few or too many targets.
func held(prediction bayes.Prediction, rows *dataset.Dataset) (string, error) {
	if rows.Task != dataset.Regression {
		return "", nil
	}
	score, err := metric.Coverage(prediction, rows.Y, judgedLevel)
	if err != nil {
		return "", err
	}
	return CoverageDoubt(score.Value, rows.Rows(), "take another method (fit.Fit without one chooses by such rows) or "+
		"another likelihood"), nil
}

// CoverageDoubt is a warning, which ends with the cure, if 90 % intervals hold a share of the targets of so many rows
// that is clearly too small or too large; else it is empty.
func CoverageDoubt(share float64, rows int, cure string) string {
	chance, inside := distuv.Binomial{N: float64(rows), P: judgedLevel}, share*float64(rows)
	text := ""
	switch {
	case share < fewestHeld && chance.CDF(inside) < heldByChance:
		text = "too narrow: the predictions are surer than they should be"
	case share > mostHeld && 1-chance.CDF(inside-1) < heldByChance:
		text = "too wide: the predictions could be sharper"
	default:
		return ""
	}
	return fmt.Sprintf("90 %% intervals hold %.0f %% of the targets of %d validation rows, and are %s; %s", 100*share,
		rows, text, cure)
}

// amounts says whether the targets are numbers above 0, as lifetimes and amounts are.
func (j *Job) amounts() bool {
	train := j.Parts.Train
	return train != nil && train.Task == dataset.Regression && len(train.Y) > 0 && slices.Min(train.Y) > 0
}

// belowZero doubts intervals of amounts that reach below 0.
func belowZero(prediction bayes.Prediction, rows *dataset.Dataset) (string, error) {
	lower, _, err := prediction.Interval(judgedLevel)
	if err != nil {
		return "", err
	}
	below := 0
	for _, end := range lower {
		if end < 0 {
			below++
		}
	}
	if float64(below) <= mostBelow*float64(len(lower)) {
		return "", nil
	}
	return fmt.Sprintf("%d of %d intervals of 90 %% begin below 0, though every target in training is above 0: if it "+
		"cannot be negative, as a lifetime or an amount, read such an end as 0, or give the logarithm of the target in its "+
		"place", below, len(lower)), nil
}

// belowLinear doubts a posterior that a linear model's predictions beat. Weighted rows are not what it predicts best,
// and the density of a censored target is another.
func (j *Job) belowLinear(prediction bayes.Prediction, rows *dataset.Dataset) (string, error) {
	if rows.Weights != nil || rows.Censored != nil || j.Parts.Train == nil || rows.Rows() < fewestJudged {
		return "", nil
	}
	model := newLinear(j.Parts.Train)
	if model == nil {
		return "", nil
	}
	densities, err := prediction.LogDensity(rows.Y)
	if err != nil {
		return "", err
	}
	better := model.logDensity(rows)
	floats.Sub(better, densities)
	mean, stdDev := stat.MeanStdDev(better, nil)
	if stdErr := stdDev / math.Sqrt(float64(len(better))); mean > betterBy && mean > betterErrors*stdErr {
		return fmt.Sprintf("a linear model predicts the validation rows better, by %.2g +- %.1g nats a row: the network has "+
			"not learnt what it could; take another method (fit.Fit without one chooses by such rows) or train longer, or "+
			"take the linear model (nn.MLP{})", mean, stdErr), nil
	}
	return "", nil
}
