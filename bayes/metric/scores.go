package metric

import (
	"context"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
)

// Score is a named estimate.
type Score struct {
	Name string
	Estimate
}

// Table is a list of scores.
type Table []Score

// usualLevel is the level of the intervals in Scores.
const usualLevel = 0.95

// usual returns the measures that Scores takes for a task, of so many targets.
func usual(task dataset.Task, targets int, censored bool) []*measure {
	switch {
	case censored:
		return []*measure{newNLPD(), newCoverage(usualLevel)}
	case targets > 1:
		return []*measure{newNLPD(), newEnergyScore(0)}
	case task == dataset.Regression:
		return []*measure{newNLPD(), newRMSE(), newParticleRMSE(), newCoverage(usualLevel), newWidth(usualLevel),
			newIntervalScore(usualLevel), newCRPS()}
	}
	return []*measure{newNLPD(), newAccuracy(), newECE(), newBrier()}
}

// Scores computes the usual scores of the prediction's task, in the prediction's units. For a regression these are
// NLPD, RMSE, particle RMSE, the coverage, width and interval score at 95 %, and CRPS; of censored targets NLPD and
// coverage, and of several targets NLPD and the energy score: [bayes.Prediction.Of] gives each by itself. For a
// classification they are NLPD, accuracy, ECE and Brier score. [CalibrationCurve] has the coverage at other levels.
func Scores(p bayes.Prediction, y []float64) (Table, error) {
	metrics := usual(p.Task(), p.Columns(), p.Censored != nil)
	if err := add(p, y, metrics); err != nil {
		return nil, err
	}
	return table(metrics)
}

// scoreRows is the number of rows in one prediction, so that memory does not grow with the data.
const scoreRows = 1024

// Of predicts a data set with a posterior and computes the usual scores; in raw units. (In units of the training part's
// standard deviation of the target, as papers report them, [Scores] computes them from a
// [bayes.Prediction.Standardised] and the targets by [bayes.Prediction.StandardiseTarget].) Exposures count. Rows count
// alike, whatever their weights. It predicts in batches of rows, so that predictions need not fit in memory.
func Of(ctx context.Context, posterior *bayes.Posterior, data *dataset.Dataset) (Table, error) {
	if posterior == nil || data == nil {
		return nil, fmt.Errorf("metric: the posterior is %v and the data are %v: both are needed", posterior, data)
	}
	if err := data.Validate(); err != nil {
		return nil, fmt.Errorf("metric: %w", err)
	}
	model := posterior.Model()
	if want := model.Likelihood.Task(); data.Task != want { // Y would be numbers where indices of classes are taken
		return nil, fmt.Errorf("metric: the posterior's likelihood %T is for %v, but the data %q are for %v: read them with "+
			"the Task, and the Classes, of the training part", model.Likelihood, want, data.Name, data.Task)
	}
	origin := posterior.Origin()
	if err := data.SameOrder(origin.FeatureNames, origin.TargetNames, origin.Classes); err != nil {
		return nil, fmt.Errorf("metric: %w", err)
	}
	metrics, from := usual(data.Task, len(data.TargetNames()), data.Censored != nil), 0
	for p, err := range posterior.PredictBatches(ctx, data.X, scoreRows) {
		if err != nil {
			return nil, fmt.Errorf("metric: rows from %d on: %w", from, err)
		}
		var places []int
		for i := range p.Rows {
			places = append(places, from+i)
		}
		rows, err := data.Subset(places)
		if err != nil {
			return nil, fmt.Errorf("metric: %w", err)
		}
		if p, err = p.OfRows(rows); err != nil {
			return nil, fmt.Errorf("metric: %w", err)
		}
		if err := add(p, rows.Y, metrics); err != nil {
			return nil, fmt.Errorf("metric: rows from %d on: %w", from, err)
		}
		from += p.Rows
	}
	return table(metrics)
}

// String is the table as aligned text: one line for each score, with its Monte Carlo and its sampling standard error.
func (t Table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "score\tvalue ± Monte Carlo s.e.\tsampling s.e.")
	for _, s := range t {
		fmt.Fprintf(w, "%s\t%v\t%s\n", s.Name, s.Estimate, s.sampling())
	}
	_ = w.Flush() // a strings.Builder does not fail
	return b.String()
}

// Markdown is the table in Markdown.
func (t Table) Markdown() string {
	var b strings.Builder
	b.WriteString("| score | value ± Monte Carlo s.e. | sampling s.e. |\n|---|---|---|\n")
	for _, s := range t {
		fmt.Fprintf(&b, "| %s | %v | %s |\n", s.Name, s.Estimate, s.sampling())
	}
	return b.String()
}

// sampling is the sampling standard error to two digits, or a dash if there is none.
func (e Estimate) sampling() string {
	if math.IsNaN(e.SamplingStdErr) {
		return "-"
	}
	return fmt.Sprintf("%.2g", e.SamplingStdErr)
}
