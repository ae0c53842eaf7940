package check

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/mcmc"

	"gonum.org/v1/gonum/floats"
)

// uniforms returns the Rosenblatt transforms of a block's rows of phi, [rows][D].
func (c *chains) uniforms(b block, phi, data []float64) [][]float64 {
	u := make([][]float64, 0, b.to-b.from)
	for j := b.from; j < b.to; j++ {
		u = append(u, b.Uniform(phi[j*c.d:(j+1)*c.d], data[j*c.layout.data:j*c.layout.data+b.Data]))
	}
	return u
}

// independent is the end of the rows of a block whose chains are independent of one another.
func (b block) independent() int {
	if b.kind == twinStart {
		return (b.from + b.to) / 2
	}
	return b.to
}

// ended compares where a block's chains end with the exact distribution: each coordinate's uniforms, the moments of
// their normal scores, which see shifts and scales better, their dependence, and the log-density, against fresh exact
// draws.
func ended(c *chains, report *Report, b block, phi, data, logDensity, fresh []float64) {
	b.to = b.independent()
	when := "invariant"
	if b.kind == farStart {
		when = "converged"
	}
	u := c.uniforms(b, phi, data)
	outside := 0
	for j := b.from; j < b.to; j++ {
		if math.IsInf(logDensity[j], -1) {
			outside++
		}
	}
	report.exact(b.Name, when+": particles where the density is 0", outside)
	z, sizes := make([][]float64, c.d), make([][]float64, c.d) // normal scores, and their absolute values
	column := make([]float64, len(u))
	for k := range c.d {
		z[k], sizes[k] = make([]float64, len(u)), make([]float64, len(u))
		for j := range u {
			column[j] = u[j][k]
			z[k][j] = score(u[j][k])
			sizes[k][j] = math.Abs(z[k][j])
		}
		name := fmt.Sprintf("%s: coordinate %d, ", when, k+1)
		s, p := uniformTest(column)
		report.add(b.Name, name+"distribution", s, p)
		s, p = meanTest(z[k])
		report.add(b.Name, name+"mean", s, p)
		s, p = varianceTest(z[k])
		report.add(b.Name, name+"variance", s, p)
		for i := range k {
			name := fmt.Sprintf("%s: coordinates %d and %d, ", when, i+1, k+1)
			s, p = zTest(floats.MulTo(make([]float64, len(u)), z[i], z[k]), 0)
			report.add(b.Name, name+"correlation", s, p)
			s, p = zTest(floats.MulTo(make([]float64, len(u)), z[k], sizes[i]), 0)
			report.add(b.Name, name+"bend", s, p)
		}
	}
	s, p := sameTest(logDensity[b.from:b.to], fresh[b.from:b.to])
	report.add(b.Name, when+": log-density, distribution", s, p)
}

// carried compares the log-density and the gradient that the kernel's state carries with those evaluated anew at its
// phi.
func carried(c *chains, report *Report, again *compute.State) error {
	entries := []struct {
		entry, name string
		carries     mcmc.Carries
	}{
		{c.carrier.LogDensity(), "log-density", mcmc.CarriesLogDensity},
		{c.carrier.Gradient(), "gradient", mcmc.CarriesGradient},
	}
	for _, e := range entries {
		if c.kernel.Traits().Carries < e.carries {
			continue
		}
		have, err := values(c.state, e.entry)
		if err != nil {
			return err
		}
		want, err := values(again, e.entry)
		if err != nil {
			return err
		}
		tolerance := 5e-4 // of float32, after sums of a few terms of either sign
		if c.dtype == compute.Float64 {
			tolerance = 1e-9
		}
		wrong := 0
		for k := range have {
			if !(math.Abs(have[k]-want[k]) <= tolerance*(1+math.Abs(want[k]))) && have[k] != want[k] {
				wrong++
			}
		}
		report.exact("all", "State: values of the "+e.name+" that are not those of phi", wrong)
	}
	return nil
}
