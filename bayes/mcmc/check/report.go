package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// test is one comparison.
type test struct {
	target, name string // the target's name, and what was compared
	statistic    float64
	p            float64 // the probability of a statistic at least as far out, if all is right; 0 or 1 if exact
	exact        bool    // there is no chance in it: it holds or not
	failed       bool    // set by the family's rule
}

// Report is what a call found.
type Report struct {
	subject string // the kernel or sampler
	tests   []test
}

// failed are the tests that failed.
func (r Report) failed() (all []test) {
	for _, t := range r.tests {
		if t.failed {
			all = append(all, t)
		}
	}
	return all
}

// Failures is the number of tests that failed; 0 if all is well.
func (r Report) Failures() int { return len(r.failed()) }

// Summary is a line, and a table of the tests that failed.
func (r Report) Summary() string {
	if r.Failures() == 0 {
		return fmt.Sprintf("%s: all %d tests passed, at a false-alarm rate of %g for all together",
			r.subject, len(r.tests), falseAlarm)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "target\ttest\tstatistic\tp-value\t")
	for _, t := range r.failed() {
		p := fmt.Sprintf("%.3g", t.p)
		if t.exact {
			p = "exact"
		}
		fmt.Fprintf(w, "%s\t%s\t%.4g\t%s\tFAIL\n", t.target, t.name, t.statistic, p)
	}
	w.Flush() //nolint:errcheck // a strings.Builder takes everything
	return fmt.Sprintf("%s: %d of %d tests failed, at a false-alarm rate of %g for all together\n%s",
		r.subject, r.Failures(), len(r.tests), falseAlarm, &text)
}

// add appends a test of chance. A p-value that is NaN comes of numbers that are not finite, and is 0.
func (r *Report) add(target, name string, statistic, p float64) {
	if math.IsNaN(p) {
		p = 0
	}
	r.tests = append(r.tests, test{target: target, name: name, statistic: statistic, p: p})
}

// exact appends a test without chance: the number of violations must be 0.
func (r *Report) exact(target, name string, violations int) {
	p := 1.0
	if violations > 0 {
		p = 0
	}
	r.tests = append(r.tests, test{target: target, name: name, statistic: float64(violations), p: p, exact: true})
}

// judge marks the tests that fail: of the m tests of chance those that Holm (1979) rejects, with the p-values in
// ascending order the k-th as long as p_k <= falseAlarm / (m - k + 1). If all is right, the probability that any is
// rejected is at most falseAlarm, however the tests depend on one another.
func (r *Report) judge() {
	var order []int
	for i, t := range r.tests {
		if t.exact {
			r.tests[i].failed = t.p == 0
		} else {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.tests[a].p, r.tests[b].p) })
	for k, i := range order {
		if !(r.tests[i].p <= falseAlarm/float64(len(order)-k)) {
			return
		}
		r.tests[i].failed = true
	}
}
