package smc

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// A narrow mode can be lost on the way from the prior. While the likelihood's power is low, the mode's share is in
// proportion to its volume, far below its share of the posterior. If no particle is there when the power rises, the
// mode is missing from the particles, the evidence and its stated error alike. Scouts look for it. They are new draws
// of the prior that move under the posterior at once, so each goes to the mode in whose basin it lies. A narrow mode's
// basin is far larger than its share at low powers. A mode that is narrow and has a share nevertheless has a higher
// density than all others: a scout that settles above all particles has found one.

// The moves of scouts.
const (
	scoutTransitions = 20 // of each scout under the posterior
	scoutLooks       = 4  // at its log-density, after the last of them
	scoutSteps       = 4  // of a trajectory: momentum that is drawn often slows a scout down soonest
	// scoutShare is the share of the adapted step size that scouts take, or less of it: a longer step leaves the basin of
	// a mode that is much narrower than others.
	scoutShare = 1. / 8
)

// fewScouted is the number of first particles from which those in a region descend, below which it counts as lost.
const fewScouted = 20

// outlook holds the scouts' findings. A run's checkpoint has it.
type outlook struct {
	Rounds  int     `json:"rounds"`  // that are made
	Above   int     `json:"above"`   // scouts that settled clearly above nearly all particles
	Highest float64 `json:"highest"` // by how much the highest of them did, in nats
	Known   int     `json:"known"`   // first particles from which those descend that are as high
}

// add takes in a round: the log-densities at which scouts have settled, the particles' log-densities, and the numbers
// of the particles' first ancestors. A scout is clearly above nearly all particles if it exceeds their .95 quantile by
// four times the distance from the upper quartile to that quantile. For a normal distribution the bound is 5.5 standard
// deviations above the mean. The log-density of particles in one mode has a shorter tail, since it is bounded above.
func (o *outlook) add(particles []float64, eve []int32, settled []float64) {
	finite := slices.DeleteFunc(slices.Clone(particles), func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) })
	o.Rounds++
	if len(finite) == 0 {
		return
	}
	slices.Sort(finite)
	quantile := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, finite, nil) }
	most := quantile(.95)
	clearly := most + 4*(most-quantile(.75))
	for _, v := range settled {
		if v > clearly {
			o.Above, o.Highest = o.Above+1, math.Max(o.Highest, v-most)
		}
	}
	known := map[int32]bool{}
	for i, v := range particles {
		if v > clearly {
			known[eve[i]] = true
		}
	}
	o.Known = len(known)
}

// warning says what the scouts have found that the particles hardly know, or is empty. first is the number of first
// particles.
func (o outlook) warning(first int) string {
	if o.Above == 0 || o.Known >= min(fewScouted, first/2) {
		return ""
	}
	return fmt.Sprintf("a narrow region, with a log-density of up to %.1f above nearly all particles, is known to %d of "+
		"%d first particles only; %d new draws of the prior came to it when they were moved under the posterior: the region "+
		"was lost, or nearly so, while the likelihood's power was low, and no step size helps; the log evidence, its "+
		"standard error and the shares of modes are not to be trusted; take many more particles", o.Highest, o.Known, first,
		o.Above)
}
