package diag

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// errNonFinite says that draws or log-weights are NaN or infinite where they must not be.
var errNonFinite = errors.New("diag: not finite")

// minDraws is the least number of draws a chain can be halved with.
const minDraws = 4

// Sample is what [New] takes: draws of several chains that target the same distribution, without the warm-up.
type Sample struct {
	Values                    []float64 // the draws, [Chains, Draws, Parameters], row-major
	Chains, Draws, Parameters int
	// Names of the parameters, [Parameters]; nil names them "parameter 0", "parameter 1", ...
	Names []string
}

// Chains are draws that were checked. They do not change; several goroutines may use them.
//
// A parameter whose draws are all equal, or differ by less than 1e-15, has no autocorrelation. As in ArviZ its ESS is
// the number of draws (one fewer per chain if that is odd). Its R-hat and its k-hat are NaN. (The
// bulk ESS and R-hat look at ranks, and are NaN or the number of draws only if all draws are equal.) If each chain is
// constant, but at different values, R-hat is +Inf.
type Chains struct {
	sample Sample
	column func(parameter int) ([]float64, error) // a parameter's draws, [Chains, Draws], if Values is nil
	scores func() []float64                       // normal scores of ranks 1, 2, ..., index 0 unused
}

// New checks draws. They are not copied and must not change afterwards.
//
// There must be at least 1 chain, 4 draws and 1 parameter, and Chains x Draws x Parameters values. If any is not finite
// the error counts them, and names the chain, draw and parameter of the first.
func New(s Sample) (*Chains, error) { return newChains(s, nil) }

// newChains is New, with the draws from column instead of s.Values if column is not nil.
func newChains(s Sample, column func(parameter int) ([]float64, error)) (*Chains, error) {
	if s.Chains < 1 || s.Parameters < 1 {
		return nil, fmt.Errorf("diag: Chains is %d and Parameters %d: there must be at least 1 of each",
			s.Chains, s.Parameters)
	}
	if s.Draws < minDraws {
		return nil, fmt.Errorf("diag: %d draws a chain: there must be at least %d, for each chain is cut into halves",
			s.Draws, minDraws)
	}
	if want := s.Chains * s.Draws * s.Parameters; column == nil && len(s.Values) != want {
		return nil, fmt.Errorf("diag: %d values, but Chains x Draws x Parameters = %d x %d x %d = %d",
			len(s.Values), s.Chains, s.Draws, s.Parameters, want)
	}
	if s.Names != nil && len(s.Names) != s.Parameters {
		return nil, fmt.Errorf("diag: %d names for %d parameters", len(s.Names), s.Parameters)
	}
	s.Names = slices.Clone(s.Names)
	c := &Chains{sample: s, column: column}
	if err := c.checkFinite(); err != nil {
		return nil, err
	}
	c.scores = sync.OnceValue(func() []float64 { return scoreTable(2 * s.Chains * (s.Draws / 2)) })
	return c, nil
}

func (c *Chains) checkFinite() error {
	bad, first, value := 0, -1, 0. // the first in Values' order
	look := func(i int, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			if bad++; bad == 1 || i < first {
				first, value = i, v
			}
		}
	}
	for i, v := range c.sample.Values {
		look(i, v)
	}
	if c.column != nil {
		for parameter := range c.sample.Parameters {
			draws, err := c.column(parameter)
			if err != nil {
				return fmt.Errorf("diag: %w", err)
			}
			for j, v := range draws {
				look(j*c.sample.Parameters+parameter, v)
			}
		}
	}
	if bad == 0 {
		return nil
	}
	parameter, at := first%c.sample.Parameters, first/c.sample.Parameters
	chain, draw := at/c.sample.Draws, at%c.sample.Draws
	return fmt.Errorf("%w: %d of %d values, the first %v at chain %d, draw %d, %s (counted from 0): the chain diverged, "+
		"or its step is too large",
		errNonFinite, bad, c.sample.Chains*c.sample.Draws*c.sample.Parameters, value, chain, draw, c.Name(parameter))
}

// Chains is the number of chains.
func (c *Chains) Chains() int { return c.sample.Chains }

// Draws is the number of draws of each chain.
func (c *Chains) Draws() int { return c.sample.Draws }

// Parameters is the number of parameters.
func (c *Chains) Parameters() int { return c.sample.Parameters }

// Name is the name of a parameter.
func (c *Chains) Name(parameter int) string {
	if c.sample.Names == nil {
		return fmt.Sprintf("parameter %d", parameter)
	}
	return c.sample.Names[parameter]
}

func (c *Chains) checkParameter(method string, parameter int) error {
	if parameter < 0 || parameter >= c.sample.Parameters {
		return fmt.Errorf("diag: Chains.%s of parameter %d: there are parameters 0 to %d",
			method, parameter, c.sample.Parameters-1)
	}
	return nil
}

// gather copies the draws of a parameter, [Chains, Draws], to dst if it can.
func (c *Chains) gather(parameter int, dst []float64) []float64 {
	s := c.sample
	if c.column != nil {
		draws, err := c.column(parameter)
		if err != nil { // checkFinite has read all of them before
			panic(fmt.Errorf("diag: the draws of %s cannot be read any more: %w", c.Name(parameter), err))
		}
		return draws
	}
	dst = dst[:0]
	for at := parameter; at < len(s.Values); at += s.Parameters {
		dst = append(dst, s.Values[at])
	}
	return dst
}
