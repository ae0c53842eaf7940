package dataset

import (
	"crypto/sha256"
	"fmt"
	"math"
	"regexp"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Leaks finds features that let a model look better than it will be on new rows. Those of targets give a target by
// themselves: those of which a target is a linear or a power function, or
// the logarithm or exponential of one, up to rounding, and those whose values and the target's correspond one to one.
// Those of rows count the rows, or name each by a number. The errors say what a feature does, and what to do. Of
// pictures there are none.
func (d *Dataset) Leaks() (targets, rows []error) {
	if _, pictures := d.X.(*Pixels); pictures || d.needTarget() != nil || d.validateShapes() != nil {
		return nil, nil
	}
	for j := 0; j < d.Dims(); j++ {
		name, values := d.Features[j], mat.Col(nil, j, d.X)
		column, _, category := strings.Cut(name, "=")
		if category {
			name = column
			for j+1 < d.Dims() && strings.HasPrefix(d.Features[j+1], column+"=") {
				j++
				floats.AddScaled(values, math.Pi*float64(j), mat.Col(nil, j, d.X)) // a number for each category
			}
		}
		for k, target := range d.TargetNames() {
			if how := d.gives(values, name, category, d.TargetColumn(k), target); how != "" {
				targets = append(targets, fmt.Errorf("%q gives the target by itself: %s. If it is computed from "+
					"the target, or not known before it, list it in CSVOptions.Ignore", name, how))
			}
		}
		if how := d.counts(values, name); how != "" {
			rows = append(rows, fmt.Errorf("%q %s, which says nothing about new rows: list it in "+
				"CSVOptions.Ignore; if it stands for time, name it as CSVOptions.Order", name, how))
		}
	}
	return targets, rows
}

// fewestRows are needed to tell a rule from chance.
const fewestRows = 20

// gives says how x gives the target y, empty if it does not.
func (d *Dataset) gives(x []float64, name string, category bool, y []float64, target string) string {
	if len(y) < fewestRows {
		return ""
	}
	if levels := oneToOne(x, y); levels >= 2 && 5*levels <= len(y) {
		return fmt.Sprintf("each of its %d values stands for one of %q", levels, target)
	}
	if category || d.Task != Regression || d.Censored != nil {
		return ""
	}
	number := func(v float64) float64 { return v }
	for _, ofY := range []func(float64) float64{number, math.Log} {
		for _, ofX := range []func(float64) float64{number, math.Log} {
			if slope, intercept, exact := line(x, y, ofX, ofY); exact {
				formula := fmt.Sprintf("%s%q = %.5g %s%q", log(ofY), target, slope, log(ofX), name)
				if math.Abs(intercept) > 1e-3*stat.StdDev(y, nil) {
					formula += fmt.Sprintf(" %+.5g", intercept)
				}
				return fmt.Sprintf("%s in all %d rows, up to rounding", formula, len(y))
			}
		}
	}
	return ""
}

func log(of func(float64) float64) string {
	if of(1) == 0 {
		return "log "
	}
	return ""
}

// oneToOne is the number of values of x if each stands with one value of y alone, and the other way round; else 0.
func oneToOne(x, y []float64) int {
	to, from := map[float64]float64{}, map[float64]float64{}
	for i := range x {
		a, known := to[x[i]]
		b, too := from[y[i]]
		if known && a != y[i] || too && b != x[i] {
			return 0
		}
		to[x[i]], from[y[i]] = y[i], x[i]
	}
	return len(to)
}

// line fits ofY(y) = slope ofX(x) + intercept, and says whether that leaves no more than a millionth of the variance,
// as rounding may.
func line(x, y []float64, ofX, ofY func(float64) float64) (slope, intercept float64, exact bool) {
	xs, ys := make([]float64, len(x)), make([]float64, len(y))
	for i := range x {
		xs[i], ys[i] = ofX(x[i]), ofY(y[i])
	}
	intercept, slope = stat.LinearRegression(xs, ys, nil, false)
	return slope, intercept, stat.RSquared(xs, ys, nil, intercept, slope) > 1-1e-6 // false if a logarithm does not exist
}

// numberOfRow are names as pandas, R and data bases give them.
var numberOfRow = regexp.MustCompile(`(?i)^(unnamed: \d+|index|#|nr\.?|row[ _]?(names?|number|nr|id)?)$|` +
	`(^|[_ .-])id$|(?-i:[a-z]I[dD]$)`)

// counts says how x counts or names the rows, empty if it does not.
func (d *Dataset) counts(x []float64, name string) string {
	named, first, ofFile, seen := numberOfRow.MatchString(name), x[0]-float64(d.OriginalRow(0)), true, map[float64]bool{}
	for i, v := range x {
		if v != math.Trunc(v) || seen[v] {
			return ""
		}
		seen[v] = true
		ofFile = ofFile && v-float64(d.OriginalRow(i)) == first
	}
	switch {
	case len(x) < fewestRows:
		return ""
	case ofFile && (first == 0 || first == 1) && (named || d.Dims() > 1): // the only feature may be a grid
		return "counts the rows of the file"
	case named:
		return "has another whole number in each row, as the number of a row or case"
	}
	return ""
}

// CopiesIn is the number of rows that have an exact copy, in all features and targets, among the others; 0 where most
// of the others are copies because few different rows are possible.
func (d *Dataset) CopiesIn(others *Dataset) (copies int) {
	blocks, chance := others.distinct(inOrder(others.Rows()))
	if chance {
		return 0
	}
	key, known := others.key(), map[[sha256.Size]byte]bool{}
	for _, block := range blocks {
		known[key(block[0])] = true
	}
	key = d.key()
	for i := range d.Rows() {
		if known[key(i)] {
			copies++
		}
	}
	return copies
}

// Distinct leaves out exact copies of rows where at least half are, since they are no further evidence; but not where
// few different rows are possible.
func (d *Dataset) Distinct() (*Dataset, error) {
	blocks, chance := d.distinct(inOrder(d.Rows()))
	if chance || 2*len(blocks) > d.Rows() {
		return d, nil
	}
	rows := make([]int, len(blocks))
	for i, block := range blocks {
		rows[i] = block[0]
	}
	return d.Subset(rows)
}
