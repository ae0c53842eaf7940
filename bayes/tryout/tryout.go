// Package tryout tries a user's own parts: networks, likelihoods, priors, targets, kernels and proposals. A part that
// contradicts itself makes nothing fail but all results wrong, so it is tried with a few numbers before a run. Parts of
// the library's own are not tried.
//
// Model tries the parts of a model, and TryProposal a proposal, by themselves. A Trial stands in the graph of a run
// that has particles: it has what the graph is to compute, and what must hold of the numbers.
package tryout

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
)

// What all trials allow, so that chance and rounding refuse no right part.
const (
	roundingError = 2e-3 // of float32, relative and absolute
	chanceErrors  = 7    // standard errors: a mean is further off by chance in fewer than one of 10^9 trials

	// The allowed difference of log-densities that are computed in one way: relative and absolute, and over their mean
	// absolute deviation, since they may be small differences of large numbers.
	mixingError, mixingDeviation = 1e-4, 1e-3

	densityError   = 1e-3 // of log-densities that are computed in two ways, which are rounded differently
	slopeError     = .3   // relative, of the gradient along a step: differences over a step are not exact
	informedChange = 1e-4 // the least change of a log-density, over its size, whose difference says something
	wrongChains    = .9   // the share of chains in which the gradient is wrong, from which the target is refused
	identityError  = 1e-4 // of the two sides of an identity, over the size of the log-densities, and as much in itself

	// What a kernel carries may differ by rounding, in so many chains by more.
	carriedDensity  = 1e-2 // of log-densities, beside half of their digits
	carriedGradient = .1   // of gradients, over their length
	carriedChains   = .1   // the share of chains
)

// near says whether two numbers are equal up to rounding in float32.
func near(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= roundingError*(1+math.Abs(b))
}

// allNear says whether all numbers are equal up to rounding in float32.
func allNear(a, b []float64) bool {
	for i := range a {
		if !near(a[i], b[i]) {
			return false
		}
	}
	return true
}

// meanOf is the mean of numbers and its standard error.
func meanOf(x []float64) (mean, stdErr float64) {
	mean, stdDev := stat.MeanStdDev(x, nil)
	return mean, stdDev / math.Sqrt(float64(len(x)))
}

// library lists the folders of the module whose types need no trial.
var library = []string{"bayes", "fbnn", "ohsmc", "pbnn", "pmcnet"}

// Foreign says whether a part's type is defined outside of the library's packages, or in the tests of one of them.
func Foreign(part any) bool {
	kind := reflect.TypeOf(part)
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	path := strings.Split(kind.PkgPath(), "/")
	module, _, _ := strings.Cut(reflect.TypeFor[sized]().PkgPath(), "/")
	inside := len(path) > 1 && path[0] == module && slices.Contains(library, path[1])
	return !inside || strings.HasSuffix(path[len(path)-1], "_test")
}

// holder is a part of the library's that only passes on what another part computes, which may be a user's own.
type holder interface{ Holds() any }

// held is the part whose type says whether a trial is needed: what a holder holds, or else the part itself.
func held(part any) any {
	for {
		holder, ok := part.(holder)
		if !ok {
			return part
		}
		part = holder.Holds()
	}
}

// sized is a type of this module.
type sized struct{}

// Trial is what a graph tries. The zero value tries nothing.
type Trial struct {
	numbers []*graph.Node // vectors
	sizes   []int         // of these
	checks  []func(numbers []float64) error
}

// add adds a vector of numbers, and an error if they show a contradiction.
func (t *Trial) add(numbers *graph.Node, check func(numbers []float64) error) {
	t.numbers = append(t.numbers, graph.ConvertDType(numbers, dtypes.Float64))
	t.checks = append(t.checks, check)
	t.sizes = append(t.sizes, numbers.Shape().Size())
}

// Numbers are those that the graph is to compute, a vector; nil if there is nothing to try.
func (t *Trial) Numbers() *graph.Node {
	if len(t.numbers) == 0 {
		return nil
	}
	all := graph.Concatenate(t.numbers, 0)
	t.numbers = nil // of a graph that may go
	return all
}

// Check is an error if, by the numbers that the graph has computed, a part contradicts itself.
func (t *Trial) Check(numbers []float64) error {
	for i, check := range t.checks {
		if err := check(numbers[:t.sizes[i]]); err != nil {
			return err
		}
		numbers = numbers[t.sizes[i]:]
	}
	return nil
}
