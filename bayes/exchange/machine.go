package exchange

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/internal/tempering"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// sweeps are the programs of a sweep.
type sweeps struct {
	*sweep
	begin, start, move, end *compute.Program
	carried                 *compute.Program // compares what a user's own kernel carries; nil for others
	tried                   bool             // the target is no user's, or has passed its trial
}

// Close frees the programs.
func (s *sweeps) Close() {
	for _, p := range []*compute.Program{s.begin, s.start, s.move, s.end} {
		p.Close()
	}
	if s.carried != nil {
		s.carried.Close()
	}
}

// machine is a replica exchange in progress.
type machine struct {
	*fit.Job
	Replicas
	problem  density.Problem
	session  *run.Run
	sweeps   *sweeps
	giveBack func() // of the sweeps
	state    *compute.State

	kept map[string]*tensors.Tensor // tensors of a checkpoint, until there is a state
	position
	logLikelihood, accepted, odds, draws [][]float64 // a row for each sweep that counts; draws for each that is kept
}

// position is the progress of a run, without the replicas and the records of its sweeps.
type position struct {
	Powers    []float64         `json:"powers"` // from 0
	Made      int               `json:"made"`   // sweeps, those of the warm-up included
	Arrivals  int               `json:"arrivals"`
	NonFinite int               `json:"non_finite"`
	Moves     int               `json:"moves"`  // moves of single replicas, each an evaluation
	Search    int               `json:"search"` // evaluations that it took to find the ladder
	Scouts    tempering.Outlook `json:"scouts"`
	Repeated  string            `json:"repeated"` // mcmc.Carrier.RepeatedDraws, as of the last checkpoint
}

// Begin finds the ladder, compiles the sweep, and draws all replicas from the prior unless a checkpoint has some.
func (m *machine) Begin(ctx context.Context) (err error) {
	if m.Powers == nil {
		if m.Powers, err = m.ladder(ctx); err != nil {
			return err
		}
	}
	if err := m.compile(); err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	m.state = compute.NewState(m.Engine)
	if err := m.problem.Load(m.state); err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	m.state.Set(powersName, compute.Floats(m.DType, m.Powers, len(m.Powers)))
	if m.kept != nil {
		for _, name := range m.sweeps.entries() {
			m.state.Set(name, m.kept[name])
		}
		m.kept = nil
		return nil
	}
	if !m.sweeps.tried {
		if err := smc.TryTarget(m.Job, m.problem, m.Kernel, m.state); err != nil {
			return fmt.Errorf("exchange: %w", err)
		}
		m.sweeps.tried = true
	}
	record, err := m.sweeps.begin.Run(m.state, random.KeyOf(m.Seed).Named("exchange begins").Words())
	if err == nil && len(record) > 1 {
		err = tryout.CheckDraws(record, m.problem.Dim, "Problem.Initial")
	}
	if err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	return nil
}

// carries says which of the kernel's carried values the sweeps reuse. With a small power they reuse none, since the
// log-likelihood would not follow from them exactly enough, see leastCarried.
func (m *machine) carries() mcmc.Carries {
	if len(m.Powers) > 1 && m.Powers[1] < leastCarried {
		return mcmc.CarriesNothing
	}
	return m.Kernel.Traits().Carries
}

// compile prepares the programs of a sweep, or takes those that the engine has kept.
func (m *machine) compile() (err error) {
	key := m.problem.ProgramKey()
	if key != "" {
		key = compute.KeyOf("exchange", key, m.Kernel, m.DType, m.Sets, len(m.Powers), m.carries())
	}
	m.sweeps, m.giveBack, err = compute.Keep(m.Engine, key, m.newSweeps)
	return err
}

// newSweeps prepares the programs. Each is compiled at its first call.
func (m *machine) newSweeps() (*sweeps, error) {
	problem, engine, dtype := m.problem, m.Engine, m.DType
	wanted, tuned := tempering.Adapts(m.Kernel)
	factored := func(nodes compute.Nodes) smc.Factored { return smc.FactoredOf(problem, nodes) }
	s := &sweep{
		carries: m.carries(), powers: len(m.Powers), sets: m.Sets, dim: problem.Dim, dtype: dtype,
		tuned: tuned, steered: tempering.Steers(m.Kernel), factored: factored,
		initial: func(rng random.Stream, n int) *graph.Node { return problem.Initial(rng, dtype, n) },
	}
	if tuned {
		s.acceptance, s.stepSize = wanted, 1/math.Sqrt(float64(problem.Dim))
	}
	s.scaled = s.tuned && m.Kernel.Traits().Carries == mcmc.CarriesGradient
	replicas := shapes.Make(m.DType, s.replicas(), problem.Dim)
	var err error
	s.carrier, err = mcmc.NewCarrier(engine, m.Kernel, replicas, func(g *graph.Graph) density.Target {
		return factored(problem.Parameters(g)).Tempered(graph.Scalar(g, dtype, 0.5))
	})
	if err != nil {
		return nil, err
	}
	data := append([]string{powersName}, problem.Entries()...)
	all := &sweeps{sweep: s}
	for _, p := range []struct {
		program        **compute.Program
		name           string
		reads, updates []string
		step           compute.Step
	}{
		{&all.begin, "exchange begin", nil, s.entries(), s.first},
		{&all.start, "exchange start", s.starts(), s.within(), s.transition},
		{&all.move, "exchange move", append(s.within(), stepsName, scalesName), s.within(), s.moves},
		{&all.end, "exchange", append(s.within(), descendName, stepsName, scalesName), s.entries(), s.exchange},
	} {
		*p.program, err = compute.NewProgram(engine, p.name, append(p.reads, data...), p.updates, p.step)
		if err != nil {
			return nil, err
		}
	}
	if s.carrier.ComparesCarried() {
		reads := append(append(s.carrier.Names(), scalesName), data...)
		all.carried, err = compute.NewProgram(engine, "exchange carried values", reads, nil, s.carriedStep)
	}
	return all, err
}

// Step makes one sweep or, after the last, a round of scouts.
func (m *machine) Step(context.Context) error {
	if m.Made == m.WarmUp+m.Sweeps {
		if err := m.scout(); err != nil {
			return fmt.Errorf("exchange, scouts: %w", err)
		}
		return nil
	}
	counts := m.Made >= m.WarmUp
	adapts := 1.
	if counts {
		adapts = 0
	}
	record, err := m.sweepOnce(adapts)
	if err != nil {
		return fmt.Errorf("exchange, sweep %d: %w", m.Made+1, err)
	}
	m.Made++
	if !counts {
		return nil
	}
	take := func(n int) []float64 {
		part := record[:n]
		record = record[n:]
		return part
	}
	pairs := len(m.Powers) - 1
	m.logLikelihood = append(m.logLikelihood, take((pairs+1)*m.Sets))
	m.accepted, m.odds = append(m.accepted, take(pairs)), append(m.odds, take(pairs))
	m.Arrivals += int(take(1)[0])
	m.NonFinite += int(take(1)[0])
	if (m.Made-m.WarmUp)%m.Thin == 0 {
		m.draws = append(m.draws, record)
	}
	return m.observe()
}

// sweepOnce makes one sweep and returns its record.
func (m *machine) sweepOnce(adapts float64) ([]float64, error) {
	key := func(purpose string) random.Key { return random.KeyOf(m.Seed).Named(purpose).At(uint32(m.Made)) }
	if _, err := m.sweeps.start.Run(m.state, key("transition").Words()); err != nil {
		return nil, err
	}
	steps := float64(tempering.Steps(usualSteps, m.Made))
	moves, shares, parity := key("move"), key("step sizes").Words(), float64(m.Made%2)
	for call := uint32(0); ; call++ {
		left, err := m.sweeps.move.Run(m.state, moves.At(call).Words(), steps, shares, parity)
		if err != nil {
			return nil, err
		}
		m.Moves += m.sweeps.replicas()
		if left[0] == 0 {
			break
		}
	}
	if sweep := m.Made + 1; m.sweeps.carried != nil && sweep&(sweep-1) == 0 { // a power of 2
		counts, err := m.sweeps.carried.Run(m.state)
		if err != nil {
			return nil, err
		}
		if err := m.sweeps.carrier.CheckCarried(counts, sweep); err != nil {
			return nil, err
		}
	}
	return m.sweeps.end.Run(m.state, key("exchange").Words(), adapts, parity, shares)
}

// Status is run.Completed once all sweeps are made, and the scouts are back.
func (m *machine) Status() run.Status {
	if m.Made == m.WarmUp+m.Sweeps && m.Scouts.Rounds >= m.scoutRounds() {
		return run.Completed
	}
	return ""
}

// Progress reports the stage, the number of sweeps made and the scores.
func (m *machine) Progress() run.Progress {
	p := run.Progress{Stage: "replica exchange", Step: m.Made, Steps: m.WarmUp + m.Sweeps}
	if m.Made < m.WarmUp {
		p.Stage = "warm-up"
	}
	if n := len(m.accepted); n > 0 {
		p.Scores = []run.Score{{Name: "acceptance", Value: stat.Mean(m.accepted[n-1], nil)},
			{Name: "exchanged", Value: 2 * stat.Mean(m.odds[n-1], nil)}, {Name: "arrivals", Value: float64(m.Arrivals)}}
	}
	return p
}

func (m *machine) close() {
	if m.giveBack != nil {
		m.giveBack()
	}
	if m.state != nil {
		m.state.Close()
	}
}
