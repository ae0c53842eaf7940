package exchange

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/internal/tempering"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/stat"
)

// Now is the result so far, for fit.Steps.
func (m *machine) Now() (*fit.Result, error) { return m.result() }

// result summarises the sweeps so far. Its Draws are empty if there are none yet.
func (m *machine) result() (*fit.Result, error) {
	sweeps, status := len(m.logLikelihood), m.session.Status()
	details := &Details{
		Arrivals: m.Arrivals, NonFinite: m.NonFinite, Evaluations: m.Search + m.Moves + m.evaluatedBetween(),
	}
	result := &fit.Result{Draws: m.inside(), Status: status, Elapsed: m.Elapsed(), Details: []any{details}}
	step, err := m.stepSizes()
	if err != nil {
		return nil, err
	}
	mean := func(of func(sweep int) float64) float64 {
		if sweeps == 0 { // the run ended in the warm-up
			return math.NaN()
		}
		sum := 0.
		for i := range sweeps {
			sum += of(i) / float64(sweeps)
		}
		return sum
	}
	for t, power := range m.Powers {
		r := PowerRecord{Power: power, Acceptance: math.NaN(), Exchanged: math.NaN(), LogEvidence: math.NaN()}
		if t > 0 {
			r.StepSize = step[t-1]
			r.Acceptance = mean(func(i int) float64 { return m.accepted[i][t-1] })
		}
		r.LogLikelihood = mean(func(i int) float64 {
			return stat.Mean(m.logLikelihood[i][t*m.Sets:(t+1)*m.Sets], nil)
		})
		if t < len(m.Powers)-1 {
			r.Exchanged = m.exchanges(t)
		}
		details.Powers = append(details.Powers, r)
	}
	all := exchanged{powers: m.Powers, sets: m.Sets, rows: m.logLikelihood}
	details.Outside = all.outside()
	if status == run.Completed {
		value, stdErr, steps := all.evidence()
		drift := m.drift()
		if drift.apart() {
			stdErr = max(stdErr, math.Abs(drift.first-drift.second)/2)
		}
		for t, v := range steps {
			details.Powers[t].LogEvidence = v
		}
		result.Draws.Evidence = bayes.Evidence{Value: value, StdErr: stdErr}
		result.Warnings = m.warnings(details, drift)
	}
	if result.Draws.Phi != nil && !m.Inner() {
		result.Posterior, err = m.posterior(result.Draws, status)
	}
	return result, err
}

// posterior is the job's posterior with these draws.
func (m *machine) posterior(draws bayes.Draws, status run.Status) (*bayes.Posterior, error) {
	return m.PosteriorOf(draws, bayes.Provenance{Status: string(status)})
}

// observe calls Settings.Observe with the draws so far, after each sweep that counts at which it is due.
func (m *machine) observe() error {
	step, every := len(m.logLikelihood), cmp.Or(m.ObserveEvery, max(1, m.Sweeps/10))
	if m.Observe == nil || step%every != 0 {
		return nil
	}
	draws := m.inside()
	if draws.Phi == nil {
		return nil
	}
	now, err := m.posterior(draws, "")
	if err != nil {
		return err
	}
	if err := m.Observe(step, now); err != nil {
		return run.Stop(fmt.Errorf("exchange: Settings.Observe after sweep %d: %w", step, err))
	}
	return nil
}

// inside returns the kept draws of replicas whose likelihood was not 0, without an evidence; empty if there are none.
func (m *machine) inside() (draws bayes.Draws) {
	var flat []float64
	for _, row := range m.draws {
		likelihoods, phi := row[:m.Sets], row[2*m.Sets:]
		for set, l := range likelihoods {
			if !math.IsInf(l, -1) {
				flat = append(flat, phi[set*m.problem.Dim:(set+1)*m.problem.Dim]...)
			}
		}
	}
	nan := math.NaN()
	draws.Evidence = bayes.Evidence{Value: nan, StdErr: nan}
	if len(flat) > 0 {
		n := len(flat) / m.problem.Dim
		draws.Phi, draws.LogWeights = compute.Floats(m.DType, flat, n, m.problem.Dim), bayes.EqualLogWeights(n)
	}
	return draws
}

// evaluatedBetween counts the evaluations of single replicas outside of moves: at the beginning, and of the prior's
// draws in each sweep. If the kernel carries no log-density, every sweep evaluates all replicas.
func (m *machine) evaluatedBetween() int {
	moved, drawn := max(0, len(m.Powers)-1)*m.Sets, m.Made*m.Sets
	switch {
	case m.carries() >= mcmc.CarriesLogDensity:
		return moved + drawn
	case m.Kernel.Traits().Carries >= mcmc.CarriesLogDensity: // whose transitions begin with an evaluation
		return drawn + 2*m.Made*moved
	}
	return drawn + m.Made*moved
}

// exchanges is the mean probability of an exchange with the next power, over the sweeps in which it was tried.
func (m *machine) exchanges(t int) float64 {
	sum, tried := 0., 0
	for i, row := range m.odds {
		if (m.WarmUp+i)%2 == t%2 {
			sum, tried = sum+row[t], tried+1
		}
	}
	return sum / float64(tried)
}

// What makes a result doubtful.
const (
	fewArrivals  = 5   // per set: below it the posterior depends much on where its replicas began
	lowExchanged = 0.1 // mean probability of an exchange with the next power
	manyRounded  = .05 // rounding of log-likelihoods
	apartHalves  = 4   // difference of the log evidence between the halves of the sweeps, in standard errors
)

// drift holds the log evidence of either half of the sweeps, with its standard error.
type drift struct{ first, firstErr, second, secondErr float64 }

func (m *machine) drift() (d drift) {
	half := len(m.logLikelihood) / 2
	d.first, d.firstErr, _ = exchanged{m.Powers, m.Sets, m.logLikelihood[:half]}.evidence()
	d.second, d.secondErr, _ = exchanged{m.Powers, m.Sets, m.logLikelihood[half:]}.evidence()
	return d
}

// apart says whether the halves differ by more than chance explains.
func (d drift) apart() bool {
	return math.Abs(d.first-d.second) > apartHalves*math.Hypot(d.firstErr, d.secondErr)
}

// warnings lists what makes a finished run doubtful.
func (m *machine) warnings(r *Details, drift drift) (out []string) {
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	repeated := m.Repeated
	if m.sweeps != nil { // else a finished run was read from its checkpoint
		repeated = m.sweeps.carrier.RepeatedDraws()
	}
	if repeated != "" {
		out = append(out, repeated)
	}
	if lost := m.Scouts.Warning(m.Sets, "sets"); lost != "" {
		out = append(out, lost)
	}
	if r.Arrivals < fewArrivals*m.Sets {
		warn("replicas travelled from the prior to the posterior only %d times, in %d sets: the draws still depend on where "+
			"the replicas began; take more Sweeps and WarmUp, or a finer Ladder", r.Arrivals, m.Sets)
	}
	for _, p := range r.Powers[:len(r.Powers)-1] {
		if p.Exchanged < lowExchanged {
			warn("replicas at power %.4g and at the next power were exchanged with a mean probability of only %.3f; take a "+
				"finer Ladder", p.Power, p.Exchanged)
		}
	}
	for _, p := range r.Powers[1:] {
		if p.Acceptance < tempering.LowAcceptance {
			warn("moves at power %.4g were accepted with a mean probability of only %.3f; take a smaller step size, or a "+
				"longer WarmUp", p.Power, p.Acceptance)
		}
	}
	if drift.apart() {
		warn("the log evidence is %.2f ± %.2f in the first half of the sweeps and %.2f ± %.2f in the second: the replicas "+
			"have not reached their stationary distribution; take a longer WarmUp", drift.first, drift.firstErr, drift.second,
			drift.secondErr)
	}
	l := math.Abs(r.Powers[len(r.Powers)-1].LogLikelihood)
	rounding := l * compute.Epsilon(m.DType)
	if m.DType == compute.Float32 && rounding > manyRounded && !math.IsInf(l, 1) {
		warn("log-likelihoods of about %.2g are rounded to multiples of some %.2g in float32, which the evidence has too: "+
			"subtract a constant from them, or take DType: compute.Float64", l, rounding)
	}
	if r.Outside > 0 {
		warn("%d of %d states of replicas at powers above 0 had a likelihood of 0 (counted over all sweeps): these replicas "+
			"began there and had not left; they are not part of the draws and the evidence; take a longer WarmUp, or let "+
			"Problem.Initial draw where the likelihood is above 0", r.Outside, (len(m.Powers)-1)*m.Sets*m.Sweeps)
	}
	proposals := (len(m.Powers) - 1) * m.Sets * m.Sweeps
	if float64(m.NonFinite) > tempering.ManyRejected*float64(proposals) {
		warn("%d of %d proposals had a log-density or a gradient that is not finite: check the target", m.NonFinite,
			proposals)
	}
	return out
}

// stepSizes returns the step sizes of the moves, one for each power but the prior's; 0 if there are none, as before the
// first sweep.
func (m *machine) stepSizes() ([]float64, error) {
	moved := max(0, len(m.Powers)-1) // there are none until the ladder is found
	if k, ok := m.Kernel.(mcmc.Tunable); !ok || m.state == nil && m.kept == nil {
		return make([]float64, moved), nil
	} else if own, _ := k.Tune(); own > 0 {
		return slices.Repeat([]float64{own}, moved), nil
	}
	host := m.kept
	if m.state != nil {
		var err error
		if host, err = m.state.Host(stepsName); err != nil {
			return nil, fmt.Errorf("exchange: %w", err)
		}
	}
	return compute.Float64s(host[stepsName])
}
