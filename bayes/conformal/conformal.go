// Package conformal makes intervals of a regression and sets of classes that hold a new target with a stated
// probability whatever is wrong with the posterior. Of rows that it was not trained on it takes how far the targets lie
// beyond their predictive intervals, and moves the ends of new intervals by as much as holds the asked share (Vovk,
// Gammerman and Shafer 2005).
//
// The probability is marginal, an average over new rows and over the rows that calibrate; among rows of one kind it may
// be another, unless they are a group. It asks for new rows that come from where these come from.
//
//	c, err := conformal.Calibrate(conformal.Part{Prediction: left, Y: parts.Validation.Y})
//	lower, upper, err := c.Interval(.9, nil, prediction)
package conformal

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
)

// Part is rows that their posterior was not trained on.
type Part struct {
	Prediction bayes.Prediction
	Y          []float64 // targets, [rows], or indices of classes
	Group      []string  // of each row; nil: there are none, else each group is calibrated by itself
}

// Calibration is what the rows say of their predictions.
type Calibration struct {
	parts  []Part
	groups map[string]bool // that have rows; nil of none
}

// Calibrate takes the rows. One part is split conformal prediction: the probability is at least the level, and at most
// 1/(n+1) more, for n rows (of the group) without ties. Several, one for each fold of a cross-validation with the
// posterior that left it out, are CV+ (Barber, Candès, Ramdas and Tibshirani 2021): all rows both train and calibrate;
// the probability is about the level, and surely at least 2 level - 1 less a term that falls with the rows.
func Calibrate(parts ...Part) (*Calibration, error) {
	if len(parts) == 0 {
		return nil, errors.New("conformal: there is no part: give rows that the posterior was not trained on")
	}
	c := &Calibration{parts: parts}
	if parts[0].Group != nil {
		c.groups = map[string]bool{}
	}
	for k, part := range parts {
		err := c.check(part.Prediction, part.Group)
		if err == nil {
			err = part.Prediction.ValidateTarget(part.Y)
		}
		if err != nil {
			return nil, fmt.Errorf("conformal: part %d: %w", k, err)
		}
		for _, g := range part.Group {
			c.groups[g] = true
		}
	}
	return c, nil
}

func (c *Calibration) task() dataset.Task { return c.parts[0].Prediction.Task() }

// check is an error if a prediction is of another kind, or groups are given where there are none or the other way
// round.
func (c *Calibration) check(p bayes.Prediction, group []string) error {
	if err := p.Validate(); err != nil {
		return err
	}
	switch {
	case p.Censored != nil:
		return errors.New("targets are censored, so that it is not known which intervals hold them: take rows whose " +
			"targets were seen")
	case p.Task() != c.task():
		return fmt.Errorf("the prediction is of a %v, and the others of a %v", p.Task(), c.task())
	case p.Task() == dataset.Regression && p.Columns() > 1:
		return fmt.Errorf("the prediction is of %d targets: take one by Prediction.Of", p.Columns())
	case (group != nil) != (c.groups != nil):
		return errors.New("some rows have a Group and others none: give it for all, also for new rows, or for none")
	case group != nil && len(group) != p.Rows:
		return fmt.Errorf("there are %d rows and %d groups: each row has one", p.Rows, len(group))
	}
	return nil
}

// checkNew checks the level and the predictions of new rows, one for each part.
func (c *Calibration) checkNew(level float64, group []string, predictions []bayes.Prediction) error {
	if !(level > 0 && level < 1) {
		return fmt.Errorf("conformal: the level is %v: it must lie between 0 and 1", level)
	}
	if len(predictions) != len(c.parts) {
		return fmt.Errorf("conformal: there are %d predictions, and %d parts: give that of each part's posterior, in their "+
			"order", len(predictions), len(c.parts))
	}
	for _, p := range predictions {
		if err := c.check(p, group); err != nil {
			return fmt.Errorf("conformal: %w", err)
		}
		if p.Rows != predictions[0].Rows {
			return fmt.Errorf("conformal: the predictions are of %d and %d rows: give those of the same rows", p.Rows,
				predictions[0].Rows)
		}
	}
	for i, g := range group {
		if !c.groups[g] {
			return fmt.Errorf("conformal: the group %q of row %d has no row among those that calibrate: add some", g, i)
		}
	}
	return nil
}

// scores are one number for each calibrating row of a group, by part.
func (c *Calibration) scores(of [][]float64) map[string][][]float64 {
	byGroup := map[string][][]float64{}
	for k, part := range c.parts {
		for i, score := range of[k] {
			group := groupOf(part.Group, i)
			if byGroup[group] == nil {
				byGroup[group] = make([][]float64, len(c.parts))
			}
			byGroup[group][k] = append(byGroup[group][k], score)
		}
	}
	return byGroup
}

func groupOf(group []string, row int) string {
	if group == nil {
		return ""
	}
	return group[row]
}

// needed is the smallest whole number not below level (n+1), for the n scores: this many of them must not be beyond a
// target that is held. More than n: there are too few for the level.
func needed(level float64, byPart [][]float64) int {
	n := 0
	for _, all := range byPart {
		n += len(all)
	}
	return int(math.Ceil(level*float64(n+1) - 1e-9))
}

// Interval is the interval of each new row, [rows]: the predictive one, each end moved by a multiple of its width
// (conformalised quantile regression; Romano, Patterson and Candès 2019; scaled as by Kivaranovic, Johnson and Leeb
// 2020). Of fewer than level/(1-level) calibrating rows (of a group) it is infinite: they cannot say more. There
// is one prediction from the posterior of each part, and one group for each row.
func (c *Calibration) Interval(
	level float64, group []string, predictions ...bayes.Prediction,
) (lower, upper []float64, err error) {
	if c.task() != dataset.Regression {
		return nil, nil, fmt.Errorf("conformal: an interval of a %v: take Sets", c.task())
	}
	if err := c.checkNew(level, group, predictions); err != nil {
		return nil, nil, err
	}
	beyond := make([][]float64, len(c.parts)) // of each target, in widths of its interval; negative within
	for k, part := range c.parts {
		from, to, err := part.Prediction.Interval(level)
		if err != nil {
			return nil, nil, fmt.Errorf("conformal: part %d: %w", k, err)
		}
		for i, y := range part.Y {
			beyond[k] = append(beyond[k], max(from[i]-y, y-to[i])/width(part.Prediction, from[i], to[i]))
		}
	}
	byGroup := c.scores(beyond)
	rows := predictions[0].Rows
	lower, upper = make([]float64, rows), make([]float64, rows)
	from, to := make([][]float64, len(predictions)), make([][]float64, len(predictions))
	for k, p := range predictions {
		if from[k], to[k], err = p.Interval(level); err != nil {
			return nil, nil, fmt.Errorf("conformal: %w", err)
		}
	}
	var lowers, uppers []float64
	for i := range rows {
		byPart := byGroup[groupOf(group, i)]
		lowers, uppers = lowers[:0], uppers[:0]
		for k, all := range byPart {
			w := width(predictions[k], from[k][i], to[k][i])
			for _, s := range all {
				lowers, uppers = append(lowers, -(from[k][i]-s*w)), append(uppers, to[k][i]+s*w)
			}
		}
		need := needed(level, byPart)
		if need > len(lowers) {
			lower[i], upper[i] = math.Inf(-1), math.Inf(1)
			continue
		}
		slices.Sort(lowers)
		slices.Sort(uppers)
		lower[i], upper[i] = -lowers[need-1], uppers[need-1]
		if bayes.IsCounted(predictions[0].Likelihood) {
			lower[i], upper[i] = max(0, math.Ceil(lower[i]-1e-9)), math.Floor(upper[i]+1e-9)
		}
		if lower[i] > upper[i] { // the empty set, for which its middle stands
			middle := (lower[i] + upper[i]) / 2
			if bayes.IsCounted(predictions[0].Likelihood) {
				middle = max(0, math.Round(middle))
			}
			lower[i], upper[i] = middle, middle
		}
	}
	return lower, upper, nil
}

// width is the scale of an interval's ends. An interval of counts may hold one number, and its width is 1.
func width(p bayes.Prediction, from, to float64) float64 {
	if bayes.IsCounted(p.Likelihood) {
		return to - from + 1
	}
	return to - from
}

// Sets are the classes of each new row that hold its own with the probability level, the most probable first: those
// that are not less probable than the calibrating rows' own classes are (Sadinle, Lei and Wasserman 2019). Of too few
// rows they are all classes; each has at least one.
func (c *Calibration) Sets(level float64, group []string, predictions ...bayes.Prediction) ([][]int, error) {
	if c.task() == dataset.Regression {
		return nil, fmt.Errorf("conformal: sets of a %v: take Interval", c.task())
	}
	if err := c.checkNew(level, group, predictions); err != nil {
		return nil, err
	}
	own := make([][]float64, len(c.parts))
	for k, part := range c.parts {
		probabilities, err := part.Prediction.Probabilities()
		if err != nil {
			return nil, fmt.Errorf("conformal: part %d: %w", k, err)
		}
		for i, y := range part.Y {
			own[k] = append(own[k], probabilities[i][int(y)])
		}
	}
	byGroup := c.scores(own)
	fresh := make([][][]float64, len(predictions))
	for k, p := range predictions {
		var err error
		if fresh[k], err = p.Probabilities(); err != nil {
			return nil, fmt.Errorf("conformal: %w", err)
		}
	}
	sets := make([][]int, predictions[0].Rows)
	for i := range sets {
		byPart := byGroup[groupOf(group, i)]
		need := needed(level, byPart)
		classes := make([]int, predictions[0].Classes())
		mean, larger := make([]float64, len(classes)), make([]int, len(classes))
		for class := range classes {
			classes[class] = class
			for k, all := range byPart {
				p := fresh[k][i][class]
				mean[class] += p
				for _, q := range all {
					if q > p {
						larger[class]++
					}
				}
			}
		}
		slices.SortStableFunc(classes, func(a, b int) int { return cmp.Compare(mean[b], mean[a]) })
		for at, class := range classes {
			if larger[class] < need || at == 0 {
				sets[i] = append(sets[i], class)
			}
		}
	}
	return sets, nil
}
