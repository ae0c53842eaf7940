package smc

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// Result of Sample.
type Result struct {
	// Phi are the particles, [J, D], and LogWeights their weights. After a complete run all weights are equal, since the
	// particles are resampled and moved under the posterior in the end. If the run was cancelled or stopped, they are
	// particles of the distribution at the last Place of Trace, or on the way to it.
	Phi        *tensors.Tensor
	LogWeights bayes.LogWeights
	// LogEvidence is log p(y), relative to the density of what Problem.Initial draws, and LogEvidenceStdErr its standard
	// error, estimated from this run alone: from the families of the particles (Genealogy) and from how far the moves
	// changed the estimate (Drift). NaN if the run did not complete. It is noisy if there are few families
	// (StepRecord.First): with 27 of them 6 of 60 runs, of one tanh unit with 300 particles, were off by more than twice
	// the stated error, the worst by 3.1 times; the root mean square was 1.2.
	LogEvidence, LogEvidenceStdErr float64
	Trace                          []StepRecord // one for each temperature, or block of rows
	// Tuned are the step size and the scales of the last moves; the step size is 0 for kernels that are not Tunable.
	Tuned   mcmc.Tuned
	Status  run.Status
	Elapsed time.Duration // over all sessions
	// Evaluations counts the log-likelihoods of single particles that were evaluated, with or without the gradient.
	Evaluations int
	// NonFinite counts proposals that were rejected because their log-density, or its gradient, was not finite.
	// Divergent counts trajectories that were given up because the error of their energy was too large.
	NonFinite, Divergent int
	// Warnings say what makes the result doubtful; empty: nothing was seen. If the step size and the length of
	// trajectories are left to Sample, as by mcmc.HMC{}, it also looks for modes that were lost on the way. It moves
	// new draws of the prior under the posterior, and warns if they reach a region whose density is far above the
	// particles'. A mode that none of them reaches goes unnoticed. pmcnet/annealed has further estimates of the
	// evidence to compare with.
	Warnings []string
}

// StepRecord summarises one temperature, or one block of rows: its weighing and resampling, and the moves that
// followed.
type StepRecord struct {
	Place       float64 // the likelihood's power, or the number of rows that are taken in
	LogEvidence float64 // increase of the log evidence
	ESS         float64 // effective sample size after weighing, before resampling
	Ancestors   float64 // number of different ancestors, of those drawn if waste-free; else J if not resampled
	First       float64 // effective number of first particles that all descend from, 1 / sum_i G_i^2 of Genealogy
	Resampled   bool
	NonFinite   int     // particles whose log-likelihood is not finite: they have weight 0
	Transitions int     // number of transitions of each particle, or chain, that followed; 0: none
	Acceptance  float64 // their mean acceptance; NaN if there were none
	Correlation float64 // of log prior or log-likelihood after them with that before: see Settings.Correlation
	StepSize    float64 // of the last of them; 0 for kernels that are not Tunable
	Steps       int     // of a trajectory, where they are chosen (mcmc.Steered); else 0
	Rejected    int     // proposals whose log-density, or its gradient, was not finite
	Divergent   int     // trajectories that were given up since their energy was off by too much
	Unmoved     int     // particles, or chains, that none of the transitions moved from where resampling put them
	Drift       float64 // Drift.Sum over the steps before: 0 with DataTempering
	Seconds     float64
}

const recordWidth = 17

func (r StepRecord) values() []float64 {
	return []float64{
		r.Place, r.LogEvidence, r.ESS, r.Ancestors, r.First, flag(r.Resampled), float64(r.NonFinite), float64(r.Transitions),
		r.Acceptance, r.StepSize, float64(r.Rejected), float64(r.Divergent), r.Seconds, r.Correlation,
		r.Drift, float64(r.Steps), float64(r.Unmoved),
	}
}

func recordOf(v []float64) StepRecord {
	return StepRecord{
		Place: v[0], LogEvidence: v[1], ESS: v[2], Ancestors: v[3], First: v[4], Resampled: v[5] != 0,
		NonFinite: int(v[6]), Transitions: int(v[7]), Acceptance: v[8], StepSize: v[9], Rejected: int(v[10]),
		Divergent: int(v[11]), Seconds: v[12], Correlation: v[13], Drift: v[14], Steps: int(v[15]), Unmoved: int(v[16]),
	}
}

// evidence is the log evidence of what is taken in so far, with its standard error.
func (m *machine) evidence() (value, stdErr float64) {
	return m.LogEvidence, math.Hypot(m.Genealogy.StdErr(m.Resampler, m.chains()), m.Drift.Missing())
}

// result is the result so far.
func (m *machine) result() (*Result, error) {
	status := m.session.Status()
	host := m.kept
	if m.state != nil {
		var err error
		if host, err = m.state.Host(phiName, logWeightsName, scaleName); err != nil {
			return nil, fmt.Errorf("smc: %w", err)
		}
	}
	weights, err := compute.Float64s(host[logWeightsName])
	if err != nil {
		return nil, fmt.Errorf("smc: %w", err)
	}
	scale, err := compute.Float64s(host[scaleName])
	if err != nil {
		return nil, fmt.Errorf("smc: %w", err)
	}
	result := &Result{
		Phi: host[phiName], LogEvidence: math.NaN(), LogEvidenceStdErr: math.NaN(),
		Trace: slices.Clone(m.Trace), // a run goes on with its own
		Tuned: mcmc.Tuned{StepSize: m.position.StepSize, Scale: scale}, Status: status, Elapsed: m.session.Elapsed(),
		Evaluations: m.Evaluations,
	}
	if result.LogWeights, err = bayes.NewLogWeights(weights); err != nil {
		return nil, err
	}
	for _, t := range m.Trace {
		result.NonFinite += t.Rejected
		result.Divergent += t.Divergent
	}
	if status != run.Completed {
		return result, nil
	}
	result.LogEvidence, result.LogEvidenceStdErr = m.evidence()
	result.Warnings = m.warnings()
	return result, nil
}

// What makes a result doubtful.
const (
	fewFirst        = 20   // effective first ancestors below which the genealogy says little of the error
	fewChains       = 200  // of a waste-free sampler, below which it says too little
	lowAcceptance   = 0.05 // of the moves at a temperature
	highCorrelation = 0.5  // left by the moves at a temperature
	manyRejected    = 0.1  // share of proposals that are not finite
)

// expectedUnmoved returns the number of n particles that may not have moved because by chance all their moves were
// rejected, at the mean acceptance. It allows for some more, since acceptance differs between places.
func (r StepRecord) expectedUnmoved(n int) float64 {
	return float64(n) * (mostUnmoved + 2*math.Pow(1-r.Acceptance, float64(r.Transitions)))
}

// warnings lists what makes a finished run doubtful.
func (m *machine) warnings() []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	repeated := m.Repeated
	if m.stages != nil { // else a finished run was read from its checkpoint
		repeated = m.stages.carrier.RepeatedDraws()
	}
	if repeated != "" {
		out = append(out, repeated)
	}
	last := m.Trace[len(m.Trace)-1]
	if last.First < fewFirst {
		warn("all particles descend from few of the first ones (effectively from %.1f): the standard error of the log "+
			"evidence is unreliable; take more particles", last.First)
	}
	if m.WasteFree > 0 && m.chains() < fewChains {
		warn("there are only %d waste-free chains, too few for the standard error of the log evidence: with 100 chains it "+
			"comes out too small by a fifth; take more particles, or a smaller WasteFree", m.chains())
	}
	if m.Genealogy.Before > 0 && m.Resampler != Multinomial {
		warn("the log evidence has no standard error: it cannot be estimated from the genealogy of %s resampling; take "+
			"smc.Multinomial, or run it with several seeds", m.Resampler)
	}
	if lost := m.Scouts.warning(m.chains(), "first particles"); lost != "" {
		out = append(out, lost)
	}
	low, where, proposals, rejected := 1., 0., 0, 0
	high, still := 0., 0.
	var stuck StepRecord
	for _, r := range m.Trace {
		if r.Unmoved > stuck.Unmoved && float64(r.Unmoved) > r.expectedUnmoved(m.chains()) {
			stuck = r
		}
		if r.Transitions > 0 && r.Acceptance < low {
			low, where = r.Acceptance, r.Place
		}
		if r.Correlation > high {
			high, still = r.Correlation, r.Place
		}
		proposals += r.Transitions * m.chains()
		rejected += r.Rejected
	}
	if low < lowAcceptance {
		warn("moves were accepted with a mean probability of only %.3f at %s %.4g: particles that are copies of each other "+
			"hardly separate; take a smaller step size, or more moves", low, m.placeName(), where)
	}
	if stuck.Unmoved > 0 {
		warn("%d of %d particles never moved at %s %.4g, where the others moved well (%d of %d trajectories diverged): they "+
			"are copies of their ancestors, probably in a region that is narrow for the step size, and their share and the log "+
			"evidence may be wrong; take more moves, or a smaller step size", stuck.Unmoved, m.chains(), m.placeName(),
			stuck.Place, stuck.Divergent, stuck.Transitions*m.chains())
	}
	if high > highCorrelation {
		cure := "take more Moves, or 0, which makes as many as it takes"
		if m.Moves == 0 {
			cure = "take a higher MostMoves, or another kernel"
		}
		warn("the moves at %s %.4g left the particles' log prior or log-likelihood with a correlation of %.2f to its value "+
			"before them: particles that were copies of each other are still close, and the log evidence is too low in most "+
			"such runs; %s", m.placeName(), still, high, cure)
	}
	if missing := m.Drift.Missing(); missing > m.Genealogy.StdErr(m.Resampler, m.chains()) {
		warn("moving the particles changed the estimate of the log evidence by %.2f in all, more than chance explains: a "+
			"part of the posterior had too few particles before the moves; the standard error includes %.2f for this, and the "+
			"log evidence may be off by more; take longer trajectories (HMC.Steps), more moves, or more particles",
			m.Drift.Sum, missing)
	}
	if float64(rejected) > manyRejected*float64(proposals) {
		warn("%d of %d proposals had a log-density or a gradient that is not finite: check the target",
			rejected, proposals)
	}
	return out
}
