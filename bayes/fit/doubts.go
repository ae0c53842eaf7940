package fit

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"

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
	judgedNumbers = 4 << 20 // and at most this many outputs of all particles: 32 MB
)

// UsesValidation is a Method that trains on the rows of the validation part too, by which its posterior can then not be
// judged.
type UsesValidation interface{ UsesValidation() }

// doubts are warnings, for Result.Warnings, by the validation part, or the first thousand of its rows: of a regression
// whose 90 % intervals hold clearly too few or too many of its targets.
func (j *Job) doubts(ctx context.Context, p *bayes.Posterior) []string {
	if j.Data == nil || j.Parts.Validation == nil || p == nil || j.inner {
		return nil
	}
	if _, uses := j.method.(UsesValidation); uses {
		return nil
	}
	rows := j.Parts.Validation
	if counts, ok := p.Model().Likelihood.(bayes.Supporter); rows.Task != dataset.Regression || ok &&
		counts.Support() == bayes.Counts { // whose intervals hold more than their level
		return nil
	}
	n := min(rows.Rows(), judgedRows, judgedNumbers/(p.Particles()*p.Bound().Width))
	held, err := coverage(context.WithoutCancel(ctx), p, rows, n)
	if err != nil {
		return []string{fmt.Sprintf("whether the intervals hold as much as they say is not known: %v", err)}
	}
	chance := distuv.Binomial{N: float64(n), P: judgedLevel}
	inside := held * float64(n)
	text := ""
	switch {
	case held < fewestHeld && chance.CDF(inside) < heldByChance:
		text = "too narrow: the predictions are surer than they should be"
	case held > mostHeld && 1-chance.CDF(inside-1) < heldByChance:
		text = "too wide: the predictions could be sharper"
	default:
		return nil
	}
	return []string{fmt.Sprintf("90 %% intervals hold %.0f %% of the targets of %d validation rows, and are %s; take "+
		"another method (fit.Fit without one chooses by such rows) or another likelihood", 100*held, n, text)}
}

// coverage is the share of the first n rows' targets that intervals of judgedLevel hold; NaN of none.
func coverage(ctx context.Context, p *bayes.Posterior, rows *dataset.Dataset, n int) (float64, error) {
	if n < 1 {
		return math.NaN(), nil
	}
	first := make([]int, n)
	for i := range first {
		first[i] = i
	}
	some, err := rows.Subset(first)
	if err != nil {
		return 0, err
	}
	prediction, err := p.Predict(ctx, some.X)
	if err != nil {
		return 0, err
	}
	if prediction, err = prediction.OfRows(some); err != nil {
		return 0, err
	}
	held, err := metric.Coverage(prediction, some.Y, judgedLevel)
	return held.Value, err
}
