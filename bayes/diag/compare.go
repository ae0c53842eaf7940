package diag

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Comparison has a row for each model, the one of largest ELPD first.
type Comparison []ComparisonRow

// ComparisonRow compares a model with the best one.
type ComparisonRow struct {
	Name string
	LOO  LOO
	// Difference is the model's ELPD minus that of the best model, 0 or below, and DifferenceStdErr its standard error,
	// from the differences of the rows, NaN for a single row; both are 0 for the best.
	Difference, DifferenceStdErr float64
	// Worse is the probability that the model predicts worse than the best, by a normal approximation; NaN for the best.
	Worse float64
	// Weight is the model's weight in the mixture of the models' predictive distributions that has the largest ELPD:
	// stacking (Yao, Vehtari, Simpson and Gelman 2018, Bayesian Analysis 13(3)). Weights are at least 0 and sum to 1.
	Weight float64
	// Note says why the difference, or the ELPD, may be unreliable; empty if no reason is known.
	Note string
}

// With fewer rows, or for smaller differences, the normal approximation of a difference is not calibrated (Sivula,
// Magnusson, Matamoros and Vehtari 2025, Uncertainty in Bayesian leave-one-out cross-validation).
const (
	fewRows         = 100
	smallDifference = 4.
)

// Compare compares models, by name, by their leave-one-out predictions of the same rows. It returns an error if the
// numbers of rows differ or, where the targets are known (see NewLOOForPrediction), the targets.
func Compare(models map[string]LOO) (Comparison, error) {
	if len(models) < 2 {
		return nil, fmt.Errorf("diag: Compare with %d models: it takes two or more", len(models))
	}
	var all Comparison
	for _, name := range slices.Sorted(maps.Keys(models)) {
		all = append(all, ComparisonRow{Name: name, LOO: models[name]})
	}
	slices.SortStableFunc(all, func(a, b ComparisonRow) int { return cmp.Compare(b.LOO.ELPD, a.LOO.ELPD) })
	best := all[0].LOO
	if len(best.Rows) == 0 {
		return nil, fmt.Errorf("diag: Compare: %q has no rows: make it by NewLOO", all[0].Name)
	}
	for i := range all {
		if err := all[i].beside(all[0].Name, best); err != nil {
			return nil, err
		}
	}
	weights, err := stack(all)
	if err != nil {
		return nil, err
	}
	for i, w := range weights {
		all[i].Weight = w
	}
	return all, nil
}

// beside compares the row with the best model, and fills in the fields that depend on it.
func (r *ComparisonRow) beside(name string, best LOO) error {
	if len(r.LOO.Rows) != len(best.Rows) {
		return fmt.Errorf("diag: Compare: %q predicts %d rows and %q %d: they must be the same", r.Name, len(r.LOO.Rows),
			name, len(best.Rows))
	}
	if r.LOO.targets != nil && best.targets != nil && !slices.Equal(r.LOO.targets, best.targets) {
		return fmt.Errorf("diag: Compare: %q and %q predict other targets: they must be of the same rows in the same order, "+
			"in the same units", r.Name, name)
	}
	r.Worse = math.NaN()
	if above := r.LOO.above(); above > 0 {
		r.Note = fmt.Sprintf("k-hat > %.2f in %d rows", KHatThreshold(r.LOO.Draws), above)
	} else if len(r.LOO.Warnings) > 0 {
		r.Note = "its LOO has warnings"
	}
	if r.Name == name {
		return nil
	}
	differences := make([]float64, len(best.Rows))
	for n := range differences {
		differences[n] = r.LOO.Rows[n].ELPD - best.Rows[n].ELPD
	}
	r.Difference = floats.Sum(differences)
	// As ArviZ has it.
	r.DifferenceStdErr = math.Sqrt(float64(len(differences)) * stat.PopVariance(differences, nil))
	if len(differences) == 1 { // its spread is not 0 but unknown
		r.DifferenceStdErr = math.NaN()
	}
	if r.DifferenceStdErr > 0 {
		r.Worse = distuv.UnitNormal.CDF(-r.Difference / r.DifferenceStdErr)
	}
	doubt := ""
	switch {
	case len(differences) < fewRows:
		doubt = fmt.Sprintf("fewer than %d rows", fewRows)
	case r.Difference > -smallDifference:
		doubt = fmt.Sprintf("a difference below %v", smallDifference)
	}
	if doubt != "" && r.Note != "" {
		doubt = "; " + doubt
	}
	r.Note += doubt
	return nil
}

// above is the number of rows whose k-hat is too large.
func (l LOO) above() (count int) {
	threshold := KHatThreshold(l.Draws)
	for _, r := range l.Rows {
		if r.KHat > threshold {
			count++
		}
	}
	return count
}

// How the weights of stacking are computed: for K models the mean log density is within barrier K nats of the maximum,
// and the Newton steps at one barrier end when a step gains less than a hundredth of the barrier.
const (
	firstBarrier, lastBarrier = 1e-1, 1e-12
	mostNewton                = 100
)

// stack computes the weights of stacking: they maximise the mean over rows of log sum_k w_k p_k(y_n), which is concave.
// It makes Newton steps with a barrier term, mu sum_k log w_k, and lowers mu tenfold until the term is negligible.
func stack(models Comparison) ([]float64, error) {
	k, rows := len(models), len(models[0].LOO.Rows)
	density := mat.NewDense(rows, k, nil) // relative to the largest of the row
	for n := range rows {
		largest := math.Inf(-1)
		for _, m := range models {
			largest = max(largest, m.LOO.Rows[n].ELPD)
		}
		for i, m := range models {
			density.Set(n, i, math.Exp(m.LOO.Rows[n].ELPD-largest))
		}
	}
	value := func(w []float64, barrier float64) float64 {
		sum := 0.
		for n := range rows {
			sum += math.Log(floats.Dot(density.RawRowView(n), w)) / float64(rows)
		}
		for _, v := range w {
			sum += barrier * math.Log(v)
		}
		return sum
	}
	w := slices.Repeat([]float64{1 / float64(k)}, k)
	for barrier := firstBarrier; barrier >= lastBarrier; barrier /= 10 {
		for range mostNewton {
			step, gain, err := newton(density, w, barrier)
			if err != nil {
				return nil, fmt.Errorf("diag: stacking: %w", err)
			}
			if gain < barrier/100 {
				break
			}
			now, length := value(w, barrier), 1.
			next := make([]float64, k)
			for ; length > 1e-12; length /= 2 {
				floats.AddScaledTo(next, w, length, step)
				if floats.Min(next) > 0 && value(next, barrier) >= now+1e-4*length*gain {
					copy(w, next)
					break
				}
			}
			if length <= 1e-12 { // even the shortest step gains nothing in floating point
				break
			}
		}
	}
	floats.Scale(1/floats.Sum(w), w)
	return w, nil
}

// newton is the Newton step that keeps the sum of the weights, and its gain to first order.
func newton(density *mat.Dense, w []float64, barrier float64) (step []float64, gain float64, err error) {
	rows, k := density.Dims()
	gradient := make([]float64, k+1) // the last element is for the multiplier of the constraint on the sum
	system := mat.NewDense(k+1, k+1, nil)
	for n := range rows {
		row := density.RawRowView(n)
		mixed := floats.Dot(row, w)
		for i, a := range row {
			gradient[i] += a / mixed / float64(rows)
			for j, b := range row {
				system.Set(i, j, system.At(i, j)+a*b/(mixed*mixed*float64(rows)))
			}
		}
	}
	for i, v := range w {
		gradient[i] += barrier / v
		system.Set(i, i, system.At(i, i)+barrier/(v*v))
		system.Set(i, k, 1)
		system.Set(k, i, 1)
	}
	var solved mat.VecDense
	var condition mat.Condition
	if err := solved.SolveVec(system, mat.NewVecDense(k+1, gradient)); err != nil && !errors.As(err, &condition) {
		return nil, 0, err
	}
	step = mat.Col(nil, 0, &solved)[:k]
	return step, floats.Dot(gradient[:k], step), nil
}

// Table is the comparison as a table, one row a model; without notes where there are none.
func (c Comparison) Table() Table {
	t := Table{{"model", "ELPD", "±", "difference", "±", "worse", "parameters", "weight", "note"}}
	noted := slices.ContainsFunc(c, func(r ComparisonRow) bool { return r.Note != "" })
	for _, r := range c {
		worse := "-"
		if !math.IsNaN(r.Worse) {
			worse = fmt.Sprintf("%.2f", r.Worse)
		}
		t = append(t, []string{
			r.Name, fmt.Sprintf("%.2f", r.LOO.ELPD), fmt.Sprintf("%.2f", r.LOO.StdErr), fmt.Sprintf("%.2f", r.Difference),
			fmt.Sprintf("%.2f", r.DifferenceStdErr), worse, fmt.Sprintf("%.1f", r.LOO.Parameters),
			fmt.Sprintf("%.2f", r.Weight), r.Note,
		})
	}
	if !noted {
		for i, row := range t {
			t[i] = row[:len(row)-1]
		}
	}
	return t
}

// String is the table as text.
func (c Comparison) String() string { return c.Table().String() }
