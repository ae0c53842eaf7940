package diag

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Comparison has a row for each model, the one of largest ELPD first.
type Comparison []ComparisonRow

// ComparisonRow compares a model with the best one.
type ComparisonRow struct {
	Name string
	LOO  LOO
	// Difference is the model's ELPD minus the best model's, 0 or below. DifferenceStdErr is its standard error, from
	// the differences of the rows; NaN for a single row. Both are 0 for the best model. With fewer than 100 rows, or for
	// differences below 4, a normal approximation by this error is not calibrated (Sivula, Magnusson, Matamoros and
	// Vehtari 2025, Uncertainty in Bayesian leave-one-out cross-validation).
	Difference, DifferenceStdErr float64
	// Weight is the model's weight in the mixture of the models' predictive distributions that has the largest ELPD:
	// stacking (Yao, Vehtari, Simpson and Gelman 2018, Bayesian Analysis 13(3)). Weights are at least 0 and sum to 1.
	Weight float64
}

// Compare compares models, by name, by their leave-one-out predictions of the same rows. It returns an error if the
// numbers of rows differ or, where the targets are known (see NewLOOForPosterior), the targets. Read the warnings of
// each LOO too.
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
		return nil, fmt.Errorf("diag: Compare: %q has no rows: make it by NewLOOForPosterior", all[0].Name)
	}
	for i := range all {
		if err := all[i].beside(all[0].Name, best); err != nil {
			return nil, err
		}
	}
	for i, w := range stack(all) {
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
	return nil
}

// The iterations of stacking end when no weight changes by more than stackingError, and at the latest after
// mostStacking.
const (
	stackingError = 1e-13
	mostStacking  = 100_000
)

// stack computes the weights of stacking: they maximise the mean over rows of log sum_k w_k p_k(y_n), which is concave.
// Each step of the EM algorithm for the weights of a mixture multiplies a weight by the mean over rows of its model's
// share, p_k(y_n) / sum_i w_i p_i(y_n).
func stack(models Comparison) []float64 {
	k, rows := len(models), len(models[0].LOO.Rows)
	densities := make([][]float64, rows) // [rows, K], relative to the largest of the row
	for n := range densities {
		own := make([]float64, k)
		for i, m := range models {
			own[i] = m.LOO.Rows[n].ELPD
		}
		floats.AddConst(-floats.Max(own), own)
		for i, l := range own {
			own[i] = math.Exp(l)
		}
		densities[n] = own
	}
	w, next := slices.Repeat([]float64{1 / float64(k)}, k), make([]float64, k)
	for range mostStacking {
		clear(next)
		for _, own := range densities {
			mixed := floats.Dot(own, w) * float64(rows)
			for i, p := range own {
				next[i] += w[i] * p / mixed
			}
		}
		w, next = next, w
		if floats.Distance(w, next, math.Inf(1)) < stackingError {
			break
		}
	}
	return w
}
