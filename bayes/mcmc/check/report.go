package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Test is one comparison.
type Test struct {
	Target    string // the target's name
	Name      string // what was compared
	statistic float64
	// PValue is the probability of a statistic at least as far out, if all is right. 0 or 1 if Exact.
	PValue float64
	exact  bool // there is no chance in it: it holds or not
	failed bool // set by the family's rule
}

// Report is what a call found.
type Report struct {
	subject    string // the kernel or sampler
	falseAlarm float64
	tests      []Test
}

// Failures returns the tests that failed, the smallest p-value first; none if all is well.
func (r Report) Failures() []Test {
	var failed []Test
	for _, t := range r.tests {
		if t.failed {
			failed = append(failed, t)
		}
	}
	slices.SortStableFunc(failed, func(a, b Test) int {
		switch {
		case a.PValue < b.PValue:
			return -1
		case a.PValue > b.PValue:
			return 1
		}
		return 0
	})
	return failed
}

// String is a table of all tests, with "FAIL" at those that failed.
func (r Report) String() string { return r.table(r.tests) }

// Summary is a line, and a table of the tests that failed.
func (r Report) Summary() string {
	failed := r.Failures()
	if len(failed) == 0 {
		return fmt.Sprintf("%s: all %d tests passed, at a false-alarm rate of %g for all together",
			r.subject, len(r.tests), r.falseAlarm)
	}
	return fmt.Sprintf("%s: %d of %d tests failed, at a false-alarm rate of %g for all together\n%s",
		r.subject, len(failed), len(r.tests), r.falseAlarm, r.table(failed))
}

func (r Report) table(tests []Test) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "target\ttest\tstatistic\tp-value\t")
	for _, t := range tests {
		mark := ""
		if t.failed {
			mark = "FAIL"
		}
		p := fmt.Sprintf("%.3g", t.PValue)
		if t.exact {
			p = "exact"
		}
		fmt.Fprintf(w, "%s\t%s\t%.4g\t%s\t%s\n", t.Target, t.Name, t.statistic, p, mark)
	}
	w.Flush() //nolint:errcheck // a strings.Builder takes everything
	return text.String()
}

// add appends a test of chance. A p-value that is NaN comes of numbers that are not finite, and is 0.
func (r *Report) add(target, name string, statistic, p float64) {
	if math.IsNaN(p) {
		p = 0
	}
	r.tests = append(r.tests, Test{Target: target, Name: name, statistic: statistic, PValue: p})
}

// exact appends a test without chance: the number of violations must be 0.
func (r *Report) exact(target, name string, violations int) {
	p := 1.0
	if violations > 0 {
		p = 0
	}
	r.tests = append(r.tests, Test{Target: target, Name: name, statistic: float64(violations), PValue: p, exact: true})
}

// judge marks the tests that fail: of the m tests of chance those that Holm (1979) rejects, with the p-values in
// ascending order the k-th as long as p_k <= falseAlarm / (m - k + 1). If all is right, the probability that any is
// rejected is at most falseAlarm, however the tests depend on one another.
func (r *Report) judge() {
	var order []int
	for i, t := range r.tests {
		if t.exact {
			r.tests[i].failed = t.PValue == 0
		} else {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case r.tests[a].PValue < r.tests[b].PValue:
			return -1
		case r.tests[a].PValue > r.tests[b].PValue:
			return 1
		}
		return 0
	})
	for k, i := range order {
		if !(r.tests[i].PValue <= r.falseAlarm/float64(len(order)-k)) {
			return
		}
		r.tests[i].failed = true
	}
}
