package mcmc

import (
	"fmt"
	"math"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/internal/stats"
)

// doubts are those about the draws: of chains that stood still, moves that were undone, divergences, rounding, and
// random numbers that a user's own kernel draws twice.
func (r *sampling) doubts(stats []ChainStats) (all fit.Doubts) {
	var still []string
	noise, diverged, transitions, nonFinite := 0.0, 0, 0, 0
	for chain, c := range stats {
		diverged, transitions, nonFinite = diverged+c.Divergences, transitions+c.Transitions, nonFinite+c.NonFinite
		if c.standsStill() {
			still = append(still, fmt.Sprint(chain))
			noise = max(noise, c.Noise)
		}
	}
	ofNoise := ""
	if noise > 1 {
		ofNoise = fmt.Sprintf("; the log-ratio that accepts or rejects has a variance of %.3g there: take more "+
			"mini-batches, or larger ones", noise)
	}
	all.If(len(still) > 0, "stood still", "%d of %d chains (%s) stood still for a quarter of their draws or more: what "+
		"is averaged over them is wrong; let them begin where the target has mass (Problem.Start, or a trained posterior "+
		"or a mode in place of the prior), make the warm-up longer or the step size smaller%s", len(still), len(stats),
		strings.Join(still, ", "), ofNoise)
	// A kernel that rejects such a step leaves the target invariant, and needs no warning.
	undoes := r.reports(infoNonFinite) && !r.reports(infoAccepted)
	all.If(undoes && float64(nonFinite) > mostUndone*float64(transitions), "undone", "in %d of %d moves the "+
		"log-density or its gradient was not finite, and the chain went back: the draws are not the target's; take a "+
		"smaller step size, and look in the data, and in the likelihood, for what has no finite log-density",
		nonFinite, transitions)
	aim := ""
	switch r.Kernel.(type) {
	case HMC, NUTS:
		if own, acceptance := r.Kernel.(Tunable).Tune(); own == 0 {
			aim = fmt.Sprintf(": let the warm-up aim at a mean acceptance of %.3g (%T.Acceptance) in place of %.3g",
				1-(1-acceptance)/4, r.Kernel, acceptance)
		}
	}
	all.If(diverged > 0, "diverged", "%d of %d transitions diverged: where they did the draws are biased; take a smaller "+
		"step size%s", diverged, transitions, aim)
	rounded := r.rounded()
	all.If(rounded != "", "rounded", "%s", rounded)
	all.If(r.Repeated != "", "repeated", "%s", r.Repeated)
	return all
}

// mostJudged is the largest number of draws' coordinates by which apart judges, a fraction of a second's work.
const mostJudged = 1 << 20

// apart are doubts about chains that disagree, by all coordinates, or as many, evenly spaced, as are judged.
func (d *Draws) apart() fit.Doubts {
	rows := d.Chains * d.PerChain
	some := min(d.Dim, max(1, mostJudged/rows))
	s := diag.Sample{Chains: d.Chains, Draws: d.PerChain, Parameters: some}
	for i := range some {
		s.Names = append(s.Names, fmt.Sprintf("coordinate %d", i*d.Dim/some))
	}
	for row := range rows {
		for i := range some {
			s.Values = append(s.Values, d.value(row*d.Dim+i*d.Dim/some))
		}
	}
	doubts := diag.Agreement(s)
	for i := range doubts {
		if some < d.Dim {
			doubts[i].Text += fmt.Sprintf(" (of %d coordinates %d were looked at)", d.Dim, some)
		}
	}
	return doubts
}

// The bound of the energies' Bayesian fraction of missing information, as in Stan, and the fewest transitions by which
// it is judged.
const (
	leastBFMI    = .3
	fewestJudged = 100
)

// slowEnergies are doubts of energies that change slowly from one transition to the next.
func slowEnergies(stats []ChainStats) (all fit.Doubts) {
	slow, least := 0, math.Inf(1)
	for _, c := range stats {
		if c.Transitions >= fewestJudged && c.EnergyBFMI < leastBFMI {
			slow, least = slow+1, min(least, c.EnergyBFMI)
		}
	}
	all.If(slow > 0, "slow energies", "the energies' Bayesian fraction of missing information (BFMI) is as small as "+
		"%.2g, below %.1f in %d of %d chains: the target has heavy tails, or a coordinate sets the width of others, and the "+
		"draws do not reach all of it; take other parameters", least, leastBFMI, slow, len(stats))
	return all
}

// mostUndone is the share of undone moves, of a kernel that accepts every step, above which there is a warning.
const mostUndone = 0.01

// mostRounding is the largest rounding error of a log-density in float32 without a warning. An error of a tenth changes
// the ratio of densities that accepts or rejects by a tenth.
const mostRounding = 0.1

// rounded returns a warning if at the end float32 rounds the chains' log-densities by more than mostRounding. The
// differences that decide acceptance are then mostly rounding error. For instance a chain that starts where large
// counts have a log-likelihood of -1e13 may stay there. The warning is empty if the log-densities are smaller, or the
// kernel carries none.
func (r *sampling) rounded() string {
	if r.DType != compute.Float32 || r.Kernel.Traits().Carries < CarriesLogDensity {
		return ""
	}
	host, err := r.at.Host(logDensityName)
	if err != nil {
		return "" // there is no state yet
	}
	values, err := compute.Float64s(host[logDensityName])
	if err != nil {
		return "" // which ends the run elsewhere
	}
	var chains []string
	var sizes []float64
	for chain, v := range values {
		if size := math.Abs(v); size*compute.Epsilon(r.DType) > mostRounding && !math.IsInf(size, 0) {
			chains, sizes = append(chains, fmt.Sprint(chain)), append(sizes, size)
		}
	}
	if len(chains) == 0 {
		return ""
	}
	which, size := "all chains", stats.Median(sizes)
	if len(chains) < len(values) {
		which = fmt.Sprintf("%d of %d chains (%s)", len(chains), len(values), strings.Join(chains, ", "))
	}
	return fmt.Sprintf("in %s log-densities of about %.2g are rounded to multiples of some %.2g in float32, and so is "+
		"what accepts or rejects a move: the draws are too wide, or stand still; set Settings.DType to compute.Float64 or, "+
		"in a target of your own, subtract a constant from the log-density", which, size, size*compute.Epsilon(r.DType))
}

// standsStill says whether a chain stayed in place for a quarter of its transitions in a row, and for at least 50 of
// them (or all, if it has fewer). The 50 is beyond chance: a random walk with the optimal acceptance, .234, stays 20
// times in a row with probability .005.
func (c ChainStats) standsStill() bool {
	return c.Transitions >= 20 && 4*c.Standstill >= c.Transitions && c.Standstill >= min(50, c.Transitions)
}
