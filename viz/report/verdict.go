package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
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
	Errors  []string // for each target how far off the predictions are, beside a guess, in its unit
	Scores  metric.Table
	// Skill is by how much the mean log-density of the targets is above that of a guess that ignores the features, the
	// mean of the predictive densities at other rows' features, in nats a row. A row counts at most 10.
	Skill metric.Estimate

	report     *Report
	prediction bayes.Prediction
	// causes are, by target, what is wrong with its values or with all predictions of it, which explains bad scores and
	// intervals.
	causes map[string]string
	grave  int // how many of the reasons, the first, let the verdict be No
}

// doubt adds what stands against the predictions.
func (v *Verdict) doubt(trust Trust, text string, args ...any) {
	text = fmt.Sprintf(text, args...)
	v.Trust = min(v.Trust, trust)
	at := len(v.Reasons)
	if trust == No {
		at = v.grave
		v.grave++
	}
	v.Reasons = slices.Insert(v.Reasons, at, text)
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
// doubted in one of thirty tables. Rows that are copies of others, if most are, judge once.
func (r *Report) Judge(ctx context.Context) (v Verdict, err error) {
	once := *r
	if r.Rows != nil && r.Rows.Validate() == nil { // else predict says what is wrong
		if once.Rows, err = r.Rows.Distinct(); err != nil {
			return Verdict{}, fmt.Errorf("report: %w", err)
		}
	}
	v = Verdict{Trust: Yes, report: &once}
	if v.prediction, err = once.predict(ctx); err != nil {
		return Verdict{}, err
	}
	if err := v.judge(ctx, r.Rows.Rows()-once.Rows.Rows()); err != nil {
		return Verdict{}, fmt.Errorf("report: %w", err)
	}
	return v, nil
}

func (v *Verdict) judge(ctx context.Context, copies int) (err error) {
	r, p := v.report, v.prediction
	if v.Scores, err = metric.Scores(p, r.Rows.Y); err != nil {
		return err
	}
	if err := v.look(); err != nil {
		return err
	}
	if v.Skill, err = r.skill(ctx, p); err != nil {
		return err
	}
	if v.Skill.Value > distuv.UnitNormal.Quantile(1-byChance)*v.Skill.SamplingStdErr {
		v.praise("They are better than a guess that ignores the features, by %.3f ± %.3f nats a row.", v.Skill.Value,
			v.Skill.SamplingStdErr)
	} else {
		v.doubt(No, "They are not clearly better than a guess that ignores the features (by %.3f ± %.3f nats a row): %s.",
			v.Skill.Value, v.Skill.SamplingStdErr,
			cmp.Or(v.causes[r.Rows.TargetNames()[0]], "the features say too little about the target, or there are too few rows"))
	}
	if p.Task() == dataset.Regression {
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
	if copies > 0 {
		v.doubt(WithinLimits, "%d of the rows are exact copies of the other %d, which judge nothing more: the others alone "+
			"count here.", copies, r.Rows.Rows())
	}
	v.leftOut()
	from := r.Posterior.Provenance()
	status, warnings := run.Status(from.Status), from.Warnings
	if r.Result != nil {
		status, warnings = r.Result.Status, r.Result.Warnings
	}
	if status != "" && status != run.Completed && status != run.StoppedEarly {
		v.doubt(WithinLimits, "The run did not end by itself (%s): a longer one may be better.", status)
	}
	for _, w := range warnings {
		v.doubt(WithinLimits, "The fit warns: %s.", w)
	}
	for _, w := range p.Warnings {
		v.doubt(WithinLimits, "The prediction warns: %s.", w)
	}
	v.leaks()
	return nil
}

// look finds what is wrong with the targets themselves, or with all predictions alike, before features or model are
// blamed for it.
func (v *Verdict) look() error {
	rows := v.report.Rows
	v.causes = map[string]string{}
	found := func(trust Trust, target, cause, more string) {
		v.causes[target] = cmp.Or(v.causes[target], cause)
		v.doubt(trust, "%s%s.", strings.ToUpper(cause[:1])+cause[1:], more)
	}
	if rows.Task != dataset.Regression {
		often, share, _ := piled(rows.Y)
		accuracy, err := metric.Accuracy(v.prediction, rows.Y)
		if err != nil {
			return err
		}
		v.Errors = append(v.Errors, fmt.Sprintf("The class is right in %.1f %% of the rows; by guessing %s always, in %.1f "+
			"%%.", 100*accuracy.Value, rows.Classes[int(often)], 100*share))
		var absent []string
		for c, class := range rows.Classes {
			if !slices.Contains(rows.Y, float64(c)) {
				absent = append(absent, class)
			}
		}
		others := math.Round((1 - share) * float64(rows.Rows()))
		switch names := strings.Join(absent, " or "); {
		case others == 0:
			found(No, rows.Target, fmt.Sprintf("no row that judges them is of %s", names), ", so that nothing is known of how "+
				"they tell classes apart: hold out more rows, or give rows of each class")
		case others < fewOthers && share > .9:
			found(WithinLimits, rows.Target, fmt.Sprintf("of the %d rows that judge them only %.0f are of another class than %s",
				rows.Rows(), others, rows.Classes[int(often)]), ", too few to see how these are found: hold out more rows")
		case len(absent) > 0:
			v.doubt(WithinLimits, "No row that judges them is of %s: how well these are found is not known.", names)
		}
		return nil
	}
	for k, name := range rows.TargetNames() {
		one, err := v.prediction.Of(k)
		if err != nil {
			return err
		}
		if one.Censored != nil { // the values are those of the shortest, and of the ends of watching
			continue
		}
		y := rows.TargetColumn(k)
		value, share, others := piled(y)
		spread := stat.PopStdDev(y, nil)
		switch exactly := number(value, spread); {
		case share == 1:
			found(No, name, fmt.Sprintf("all %d values of %s are %s", len(y), name, exactly), ": there is nothing to predict")
			continue
		case share > muchPiled && others > muchPiled && !bayes.IsCounted(one.Likelihood):
			found(WithinLimits, name, fmt.Sprintf("%.0f %% of the values of %s are exactly %s", 100*share, name, exactly),
				fmt.Sprintf(", which no smooth distribution fits: predict first, as a class, whether it is %s, and then the "+
					"values of the other rows", exactly))
		}
		mean, err := one.Mean()
		if err != nil {
			return err
		}
		floats.Sub(mean, y) // what they are too high by
		typical := floats.Norm(mean, 2) / math.Sqrt(float64(len(y)))
		v.Errors = append(v.Errors, fmt.Sprintf("Typical error of %s: %s; by guessing its mean: %s.", name,
			rounded(typical, 3), rounded(spread, 3)))
		bias, stdDev := stat.MeanStdDev(mean, nil)
		chance := distuv.UnitNormal.Quantile(1-byChance/2) * stdDev / math.Sqrt(float64(len(y)))
		if size := math.Abs(bias); size > chance && size > muchBias*stdDev {
			trust, where := WithinLimits, "high"
			if size > stdDev {
				trust = No
			}
			if bias < 0 {
				where = "low"
			}
			found(trust, name, fmt.Sprintf("the predictions of %s are too %s by %s on average", name, where, rounded(size, 3)),
				": these rows differ from those trained on, by time, place, instrument or unit, or training was too short")
		}
	}
	return nil
}

// Shares of rows, and of a standard deviation, above which something is worth a word.
const (
	muchPiled, muchBias = .25, .25
	muchCopied          = .05

	fewOthers = 10 // rows of other classes than the most frequent: fewer tell little
)

// piled is the most frequent value and its share of all, and the share of different ones among the others.
func piled(y []float64) (value, share, others float64) {
	count := map[float64]int{}
	for _, v := range y {
		if count[v]++; count[v] > count[value] {
			value = v
		}
	}
	n := len(y) - count[value]
	return value, 1 - float64(n)/float64(len(y)), float64(len(count)-1) / math.Max(float64(n), 1)
}

// leftOut doubts scores that are worse than those of the rows that the fit left out itself.
func (v *Verdict) leftOut() {
	d, rows := v.report.Posterior.Diagnostics(), v.report.Rows
	before, known := d[bayes.LeftOut]
	if !known || v.report.Posterior.Provenance().Extras.Weights || rows.Weights != nil {
		return
	}
	now := v.Scores[slices.IndexFunc(v.Scores, func(s metric.Score) bool { return s.Name == "NLPD" })]
	most := distuv.UnitNormal.Quantile(1-byChance) * math.Hypot(now.SamplingStdErr, d[bayes.LeftOutErr])
	if now.Value-before > math.Max(most, .02) {
		v.doubt(WithinLimits, "These rows are predicted worse than those that the fit left out to judge itself (NLPD %.3f "+
			"± %.3f, there %.3f ± %.3f): they are of another kind, or the rows trained on resemble each other.", now.Value,
			now.SamplingStdErr, before, d[bayes.LeftOutErr])
	}
}

// leaks puts what makes scores better than they will be on new rows before all other reasons.
func (v *Verdict) leaks() {
	r := v.report
	first := func(trust Trust, text string) {
		v.Trust = min(v.Trust, trust)
		v.Reasons = slices.Insert(v.Reasons, 0, text)
	}
	if r.Train != nil {
		n := r.Rows.CopiesIn(r.Train)
		share := float64(n) / float64(r.Rows.Rows())
		text := fmt.Sprintf("%d of the %d rows that judge them are exact copies of rows trained on, which are known by "+
			"heart: leave out rows that stand twice, or hold out by SplitDistinct, as the verb fit does.", n, r.Rows.Rows())
		if share > .5 {
			first(No, text)
		} else if share > muchCopied {
			first(WithinLimits, text)
		}
	}
	targets, rows := r.training().Leaks()
	for _, leak := range slices.Backward(rows) {
		first(WithinLimits, "The feature "+leak.Error()+".")
	}
	for _, leak := range slices.Backward(targets) {
		first(No, "The feature "+leak.Error()+".")
	}
}

// coverage judges the intervals of a regression, wide and narrow ones of each target.
func (v *Verdict) coverage() error {
	p, rows := v.prediction, v.report.Rows
	n := float64(rows.Rows())
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
			v.held(name, level, held.Value, n, bayes.IsCounted(one.Likelihood))
		}
	}
	return nil
}

// held judges the share of n targets that intervals hold, which may be more of discrete ones.
func (v *Verdict) held(name string, level, held, n float64, discrete bool) {
	fewer, more := fit.Chance(level, held, int(n))
	told := fmt.Sprintf("The %.0f %% intervals hold %.0f %% of the %.0f values of %s", 100*level, 100*held, n, name)
	switch {
	case fewer < byChance/2 && held < level-offByMuch:
		v.doubt(No, "%s: %s.", told, cmp.Or(v.causes[name],
			"they are too narrow, and the predictions surer than they should be"))
	case fewer < byChance/2 && held < level-offByALittle:
		v.doubt(WithinLimits, "%s: %s.", told, cmp.Or(v.causes[name], "they are somewhat too narrow"))
	case !discrete && more < byChance/2 && held > level+tooWide:
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
