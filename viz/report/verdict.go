package report

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/metric"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Trust is how far a prediction should be believed.
type Trust int

// The verdicts, from the worst.
const (
	No Trust = iota
	WithinLimits
	Yes
)

// String is the verdict as a sentence.
func (t Trust) String() string {
	switch t {
	case No:
		return "Do not trust these predictions."
	case WithinLimits:
		return "Trust these predictions within limits."
	}
	return "These predictions can be trusted for rows like these."
}

// Verdict is what a person should do, and why.
type Verdict struct {
	Trust   Trust
	Reasons []string // what stands against the predictions, the gravest first; empty if nothing does
	Merits  []string // what speaks for them
	Scores  metric.Table
	// Skill is by how much the mean log-density of the targets is above that of a guess that ignores the features, the
	// mean of the predictive densities at other rows' features, in nats a row. A row counts at most 10.
	Skill metric.Estimate

	report     *Report
	prediction bayes.Prediction
}

// doubt adds what stands against the predictions.
func (v *Verdict) doubt(trust Trust, text string, args ...any) {
	text = fmt.Sprintf(text, args...)
	v.Trust = min(v.Trust, trust)
	if trust == No {
		v.Reasons = slices.Insert(v.Reasons, 0, text)
		return
	}
	v.Reasons = append(v.Reasons, text)
}

// praise adds what speaks for them.
func (v *Verdict) praise(text string, args ...any) {
	v.Merits = append(v.Merits, fmt.Sprintf(text, args...))
}

const (
	fewRows  = 50  // fewer judge little
	level    = .9  // of the intervals
	byChance = .01 // of a right model that is doubted
	mostGain = 10  // nats over the guess that a row counts: one that the guess has no idea of would drown the others
	// The guess is from so many rows, for as many as take about a second.
	guessedFrom, fewestGuessed, mostDensities = 100, 200, 100_000_000
	// Errors of a probability that do harm: one that many rows can tell from none need not matter. Intervals that are too
	// wide do less.
	offByALittle, tooWide, offByMuch = .02, .04, .05
)

// Judge is the verdict of the rows on their prediction. Each finding holds at 1 % by itself: a model that is right is
// doubted in one of thirty tables.
func (r *Report) Judge(ctx context.Context) (Verdict, error) {
	p, err := r.predict(ctx)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Trust: Yes, report: r, prediction: p}
	if err := v.judge(ctx); err != nil {
		return Verdict{}, fmt.Errorf("report: %w", err)
	}
	return v, nil
}

func (v *Verdict) judge(ctx context.Context) (err error) {
	r, p := v.report, v.prediction
	if v.Scores, err = metric.Scores(p, r.Rows.Y); err != nil {
		return err
	}
	if v.Skill, err = r.skill(ctx, p); err != nil {
		return err
	}
	if v.Skill.Value > distuv.UnitNormal.Quantile(1-byChance)*v.Skill.SamplingStdErr {
		v.praise("They are better than a guess that ignores the features, by %.3f ± %.3f nats a row.", v.Skill.Value,
			v.Skill.SamplingStdErr)
	} else {
		v.doubt(No, "They are not clearly better than a guess that ignores the features: by %.3f ± %.3f nats a row. The "+
			"features say too little about the target, or there are too few rows.", v.Skill.Value, v.Skill.SamplingStdErr)
	}
	if p.Task() == bayes.Regression {
		err = v.coverage()
	} else {
		err = v.confidence()
	}
	if err != nil {
		return err
	}
	if rows := r.Rows.Seen(); rows < fewRows {
		v.doubt(WithinLimits, "Only %d rows whose target was seen judge them, too few to see a fault that is not large.",
			rows)
	}
	if r.Result != nil && r.Result.Status != run.Completed && r.Result.Status != run.StoppedEarly {
		v.doubt(WithinLimits, "The run did not end by itself (%s): a longer one may be better.", r.Result.Status)
	}
	if r.Result != nil {
		for _, w := range r.Result.Warnings {
			v.doubt(WithinLimits, "The fit warns: %s.", w)
		}
	}
	for _, w := range p.Warnings {
		v.doubt(WithinLimits, "The prediction warns: %s.", w)
	}
	return nil
}

// coverage judges the intervals of a regression, wide and narrow ones of each target.
func (v *Verdict) coverage() error {
	p, rows := v.prediction, v.report.Rows
	n := float64(rows.Rows())
	supporter, ok := p.Likelihood.(bayes.Supporter)
	discrete := ok && supporter.Support() == bayes.Counts // whose intervals hold more than their level
	for k, name := range rows.TargetNames() {
		one, err := p.Of(k)
		if err != nil {
			return err
		}
		for _, level := range []float64{level, .5} {
			held, err := metric.Coverage(one, rows.TargetColumn(k), level)
			if err != nil {
				return err
			}
			v.held(name, level, held.Value, n, discrete)
		}
	}
	return nil
}

// held judges the share of n targets that intervals hold, which may be more of discrete ones.
func (v *Verdict) held(name string, level, held, n float64, discrete bool) {
	chance, inside := distuv.Binomial{N: n, P: level}, math.Round(held*n)
	told := fmt.Sprintf("The %.0f %% intervals hold %.0f %% of the %.0f values of %s", 100*level, 100*held, n, name)
	switch {
	case chance.CDF(inside) < byChance/2 && held < level-offByMuch:
		v.doubt(No, "%s: they are too narrow, and the predictions surer than they should be.", told)
	case chance.CDF(inside) < byChance/2 && held < level-offByALittle:
		v.doubt(WithinLimits, "%s: they are somewhat too narrow.", told)
	case !discrete && 1-chance.CDF(inside-1) < byChance/2 && held > level+tooWide:
		v.doubt(WithinLimits, "%s: they are wider than they need be.", told)
	default:
		v.praise("%s, as they should, but for a little or chance.", told)
	}
}

// confidence judges the probabilities of a classification: the sum of those of the predicted classes against the number
// of right ones, which is a sum of independent trials with these probabilities if they are right.
func (v *Verdict) confidence() error {
	p, y := v.prediction, v.report.Rows.Y
	probabilities, err := p.Probabilities()
	if err != nil {
		return err
	}
	labels, err := p.Labels()
	if err != nil {
		return err
	}
	right, expected, variance := 0., 0., 0.
	for i, label := range labels {
		q := probabilities[i][label]
		expected, variance = expected+q, variance+q*(1-q)
		if float64(label) == y[i] {
			right++
		}
	}
	n := float64(len(y))
	z := (expected - right) / math.Sqrt(variance)
	most := distuv.UnitNormal.Quantile(1 - byChance/2)
	told := fmt.Sprintf("They name the right class in %.1f %% of the %d rows, and say %.1f %%", 100*right/n, len(y),
		100*expected/n)
	switch {
	case z > most && (expected-right)/n > offByMuch:
		v.doubt(No, "%s: they are much surer than they should be.", told)
	case z > most && (expected-right)/n > offByALittle:
		v.doubt(WithinLimits, "%s: they are surer than they should be.", told)
	case z < -most && (right-expected)/n > offByALittle:
		v.doubt(WithinLimits, "%s: they are less sure than they could be.", told)
	default:
		v.praise("%s, which agrees but for a little or chance.", told)
	}
	return nil
}

// skill is Verdict.Skill, over rows drawn by lot. The guess for a row is the mean of the predictive densities at the
// features of others: what the model would say if it did not know which row it is.
func (r *Report) skill(ctx context.Context, p bayes.Prediction) (metric.Estimate, error) {
	none := metric.Estimate{}
	ours, err := p.LogDensity(r.Rows.Y)
	if err != nil {
		return none, err
	}
	n := r.Rows.Rows()
	others := some(n, guessedFrom)
	elsewhere, err := r.Rows.Subset(others)
	if err != nil {
		return none, err
	}
	there, err := r.Posterior.Predict(ctx, elsewhere.X)
	if err != nil {
		return none, err
	}
	var gains []float64
	for _, i := range some(n, max(fewestGuessed, mostDensities/(len(others)*p.Particles*p.Columns()))) {
		same, err := r.Rows.Subset(slices.Repeat([]int{i}, len(others)))
		if err != nil {
			return none, err
		}
		guess, err := there.OfRows(same)
		if err != nil {
			return none, err
		}
		logs, err := guess.LogDensity(same.Y)
		if err != nil {
			return none, err
		}
		if own := slices.Index(others, i); own >= 0 {
			logs = slices.Delete(logs, own, own+1)
		}
		mean := floats.LogSumExp(logs) - math.Log(float64(len(logs)))
		gains = append(gains, min(ours[i]-mean, mostGain))
	}
	mean, stdDev := stat.MeanStdDev(gains, nil)
	return metric.Estimate{Value: mean, StdErr: math.NaN(), SamplingStdErr: stdDev / math.Sqrt(float64(len(gains)))}, nil
}

// some are at most so many of n rows, drawn by lot, so that a period of the rows does not matter.
func some(n, most int) []int {
	rows := rand.New(rand.NewPCG(uint64(n), 0x67756573)).Perm(n)[:min(n, most)]
	slices.Sort(rows)
	return rows
}
