package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Doubt is a reason to doubt a result. The kinds of a method stand in a table in its file doubts.go.
type Doubt struct {
	Kind string // what is wrong in a few words, whatever the numbers, such as "stood still"
	Text string // the sentence, with its numbers and its cure
	Cure string // what to do, apart from Text where another method may have another cure
}

// Doubts are reasons to doubt a result.
type Doubts []Doubt

// If adds a doubt if it holds.
func (all *Doubts) If(holds bool, kind, format string, args ...any) {
	if holds {
		*all = append(*all, Doubt{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
}

// Of are the doubts as those of a part of a method, which is named before each.
func (all Doubts) Of(part string) Doubts {
	named := slices.Clone(all)
	for i := range named {
		named[i].Text = part + ": " + named[i].Text
	}
	return named
}

// Sentences are the doubts for people, as Result.Warnings has them.
func (all Doubts) Sentences() (sentences []string) {
	for _, d := range all {
		sentences = append(sentences, strings.TrimSuffix(d.Text+"; "+d.Cure, "; "))
	}
	return sentences
}

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
	judgedNumbers = 1 << 20 // and at most this many outputs of all particles: 8 MB
)

// A linear model is better if it is so by betterBy nats a row and by betterErrors standard errors of the paired
// differences, on fewestJudged rows at least.
const (
	betterBy     = .05
	betterErrors = 2.33
	fewestJudged = 20
)

// doubts are those by the validation part, or the first thousand of its rows: of a regression whose 90 % intervals hold
// clearly too few or too many of its targets, and of a posterior that predicts them clearly worse than a linear model.
// Amounts whose intervals reach below 0 are doubted by training rows too.
func (j *Job) doubts(ctx context.Context, p *bayes.Posterior) (all Doubts) {
	if j.Data == nil || p == nil || j.inner {
		return nil
	}
	rows, judges := j.Parts.Validation, []func(*Doubts, bayes.Prediction, *dataset.Dataset) error{held, j.belowLinear}
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
	all.If(err != nil, "not judged", "how the posterior predicts rows of the data is not known: %v", err)
	if err != nil {
		return all
	}
	for _, judge := range judges {
		err := judge(&all, prediction, rows)
		all.If(err != nil, "not judged", "how well the posterior predicts rows of the data is not known: %v", err)
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
func held(all *Doubts, prediction bayes.Prediction, rows *dataset.Dataset) error {
	if rows.Task != dataset.Regression {
		return nil
	}
	score, err := metric.Coverage(prediction, rows.Y, judgedLevel)
	if err != nil {
		return err
	}
	*all = append(*all, CoverageDoubts(score.Value, rows.Rows(), "take another method (auto.Method chooses by such "+
		"rows) or another likelihood")...)
	return nil
}

// CoverageDoubts are those about 90 % intervals that hold a share of the targets of so many rows that is clearly too
// small or too large, with the cure.
func CoverageDoubts(share float64, rows int, cure string) Doubts {
	fewer, more := Chance(judgedLevel, share, rows)
	text := ""
	switch {
	case share < fewestHeld && fewer < heldByChance:
		text = "too narrow: the predictions are surer than they should be"
	case share > mostHeld && more < heldByChance:
		text = "too wide: the predictions could be sharper"
	default:
		return nil
	}
	return Doubts{{"intervals", fmt.Sprintf("90 %% intervals hold %.0f %% of the targets of %d validation rows, and are "+
		"%s", 100*share, rows, text), cure}}
}

// Chance are the probabilities that intervals of a level hold so small a share of the targets of so many rows, or
// smaller, and so large a share, or larger, if they are right.
func Chance(level, share float64, rows int) (fewer, more float64) {
	held, inside := distuv.Binomial{N: float64(rows), P: level}, math.Round(share*float64(rows))
	return held.CDF(inside), 1 - held.CDF(inside-1)
}

// A training ended too early if its best validation is in the last quarter and its scores, NLPD in nats a row, still
// fell. They fell if the mean of the last quarter is below the mean of the third by more than fallen, and by more than
// fallenErrors standard errors. A training went astray if its best validation is in the first fiftieth, and all scores
// of the last quarter are worse by more than risen: one that is at its best later has learnt, and then fits the noise,
// which its best state does not. Neither is judged from fewer than fewestScores validations.
const (
	fallen       = .02
	fallenErrors = 3
	risen        = 1
	fewestScores = 16
)

// EndedEarly is the kind of doubt about a training that ended while its validation scores still fell. Its Cure is more
// Epochs.
const EndedEarly = "ended early"

// Ending are doubts about a training that ended while its validation scores still fell, or that soon left its best
// score for far worse ones. Scores that fall again after they have risen from the best do not count as falling: more
// steps are not the cure. The scores of all validations come in order; steps and epochs are the totals.
func Ending(scores []float64, steps, epochs int) (doubts Doubts) {
	n := len(scores)
	if n < fewestScores {
		return nil
	}
	third, last := scores[n/2:3*n/4], scores[3*n/4:]
	best, least := lowest(scores)
	if best >= 0 && best <= n/50 {
		if _, then := lowest(last); then > least+risen {
			doubts.If(true, "went astray", "the training went astray: of its %d validations number %d is the best, and those "+
				"of the last quarter are all worse, by %.2g nats a row or more, so that the posterior is hardly trained; take "+
				"smaller steps (a lower learning rate, shorter moves of the particles)", n, best+1, then-least)
			return doubts
		}
	}
	if best < 3*n/4 {
		return nil
	}
	before, beforeVariance := stat.MeanVariance(third, nil)
	after, afterVariance := stat.MeanVariance(last, nil)
	by := before - after
	stdErr := math.Sqrt(beforeVariance/float64(len(third)) + afterVariance/float64(len(last)))
	if !(by > fallen && by > fallenErrors*stdErr) || math.IsInf(by, 1) {
		return nil
	}
	return Doubts{{EndedEarly, fmt.Sprintf("the training ended too early: its validation NLPD still fell, on average by "+
		"%.2g nats a row from the third to the last quarter of its %d steps", by, steps),
		fmt.Sprintf("take more than %d Epochs", epochs)}}
}

// lowest is the first of the lowest scores and its index, which is -1 if none is below +Inf.
func lowest(scores []float64) (at int, least float64) {
	at, least = -1, math.Inf(1)
	for i, v := range scores {
		if v < least {
			at, least = i, v
		}
	}
	return at, least
}

// amounts says whether the targets are numbers above 0, as lifetimes and amounts are.
func (j *Job) amounts() bool {
	train := j.Parts.Train
	return train != nil && train.Task == dataset.Regression && len(train.Y) > 0 && slices.Min(train.Y) > 0
}

// belowZero doubts intervals of amounts that reach below 0: where the distribution has more than their lower tail.
func belowZero(all *Doubts, p bayes.Prediction, _ *dataset.Dataset) error {
	if err := p.Validate(); err != nil {
		return err
	}
	below := 0
	for n := range p.Rows {
		for k := range p.Columns() {
			mean, stdDev := p.Scale(k)
			share := 0.0
			for j, w := range p.Weights {
				share += w * p.Distribution(j, n, k).CDF(-mean/stdDev)
			}
			if share > (1-judgedLevel)/2 {
				below++
			}
		}
	}
	intervals := p.Rows * p.Columns()
	all.If(float64(below) > mostBelow*float64(intervals), "below 0", "%d of %d intervals of 90 %% begin below 0, though "+
		"every target in training is above 0: if it cannot be negative, as a lifetime or an amount, read such an end as 0, "+
		"or give the logarithm of the target in its place", below, intervals)
	return nil
}

// belowLinear doubts a posterior that a linear model's predictions beat. Weighted rows are not what it predicts best,
// and the density of a censored target is another.
func (j *Job) belowLinear(all *Doubts, prediction bayes.Prediction, rows *dataset.Dataset) error {
	if rows.Weights != nil || rows.Censored != nil || j.Parts.Train == nil || rows.Rows() < fewestJudged {
		return nil
	}
	model := newLinear(j.Parts.Train)
	if model == nil {
		return nil
	}
	densities, err := prediction.LogDensity(rows.Y)
	if err != nil {
		return err
	}
	better := model.logDensity(rows)
	floats.Sub(better, densities)
	mean, stdDev := stat.MeanStdDev(better, nil)
	stdErr := stdDev / math.Sqrt(float64(len(better)))
	all.If(mean > betterBy && mean > betterErrors*stdErr, "below linear", "a linear model predicts the validation rows "+
		"better, by %.2g +- %.1g nats a row: the network has not learnt what it could; take another method (auto.Method "+
		"chooses by such rows) or train longer, or take the linear model (nn.MLP{})", mean, stdErr)
	return nil
}
