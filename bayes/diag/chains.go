package diag

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// errNonFinite says that draws or log-weights are NaN or infinite where they must not be.
var errNonFinite = errors.New("diag: not finite")

// minDraws is the least number of draws a chain can be halved with.
const minDraws = 4

// Sample is what [OfSample] takes: draws of several chains that target the same distribution, without the warm-up.
type Sample struct {
	Values                    []float64 // the draws, [Chains, Draws, Parameters], row-major
	Chains, Draws, Parameters int
	// Names of the parameters, [Parameters]; nil names them "parameter 0", "parameter 1", ...
	Names []string
}

// chains are draws of which one parameter after the other is read.
type chains struct {
	sample Sample                                           // without Values
	column func(parameter int) (draws []float64, err error) // [Chains, Draws]
}

// chainsIn checks the numbers and names of a sample.
func chainsIn(s Sample) (*chains, error) {
	if want := s.Chains * s.Draws * s.Parameters; len(s.Values) != want {
		return nil, fmt.Errorf("diag: %d values, but Chains x Draws x Parameters = %d x %d x %d = %d",
			len(s.Values), s.Chains, s.Draws, s.Parameters, want)
	}
	return newChains(s, func(parameter int) (draws []float64, err error) {
		for at := parameter; at < len(s.Values); at += s.Parameters {
			draws = append(draws, s.Values[at])
		}
		return draws, nil
	})
}

// newChains is chainsIn, with the draws from column instead of s.Values.
func newChains(s Sample, column func(parameter int) ([]float64, error)) (*chains, error) {
	if s.Chains < 1 || s.Parameters < 1 {
		return nil, fmt.Errorf("diag: Chains is %d and Parameters %d: there must be at least 1 of each",
			s.Chains, s.Parameters)
	}
	if s.Draws < minDraws {
		return nil, fmt.Errorf("diag: %d draws a chain: there must be at least %d, for each chain is cut into halves",
			s.Draws, minDraws)
	}
	if s.Names != nil && len(s.Names) != s.Parameters {
		return nil, fmt.Errorf("diag: %d names for %d parameters", len(s.Names), s.Parameters)
	}
	return &chains{sample: s, column: column}, nil
}

// name is the name of a parameter.
func (c *chains) name(parameter int) string {
	if c.sample.Names == nil {
		return fmt.Sprintf("parameter %d", parameter)
	}
	return c.sample.Names[parameter]
}

// draws reads the draws of a parameter, [Chains, Draws]. The error names those that are not finite.
func (c *chains) draws(parameter int) ([]float64, error) {
	draws, err := c.column(parameter)
	if err != nil {
		return nil, fmt.Errorf("diag: %w", err)
	}
	bad := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	first := slices.IndexFunc(draws, bad)
	if first < 0 {
		return draws, nil
	}
	count := 0
	for _, v := range draws[first:] {
		if bad(v) {
			count++
		}
	}
	return nil, fmt.Errorf("%w: %d of %d draws of %s, the first %v at chain %d, draw %d (counted from 0): the chain "+
		"diverged, or its step is too large", errNonFinite, count, len(draws), c.name(parameter), draws[first],
		first/c.sample.Draws, first%c.sample.Draws)
}
