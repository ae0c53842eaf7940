package smc

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Sample draws particles from a problem's target and estimates its evidence, by an SMC sampler (Del Moral, Doucet and
// Jasra 2006, with moves that leave each distribution invariant, section 3.3.2.3). Particles begin as draws from the
// prior, by Problem.Initial; then, until the way from the prior to the posterior is gone,
//
//	weigh:     w_j <- w_j G(phi_j),  log Z <- log Z + log sum_j w_j G(phi_j)
//	resample:  draw ancestors by their weights, w_j <- 1/J
//	move:      by a kernel that leaves the distribution so far invariant
//
// where G is the part of the likelihood that comes in: p(y | phi)^(power' - power), whose next power is the largest at
// which the effective sample size is at least Threshold J, or p(y_n | phi), the next rows, which come in until the
// effective sample size is at most Threshold J. Problem.Target must give a Factored target for the former and a
// Sequential one for the latter.
//
// A cancelled context is no error: the result holds the particles as they are, with the status run.Cancelled. If no
// particle has any weight left, the error wraps ErrZeroWeights.
func Sample(ctx context.Context, problem mcmc.Problem, kernel mcmc.Kernel, settings Settings) (*Result, error) {
	sampler := Sampler{Problem: problem, Kernel: kernel}
	defer sampler.Close()
	return sampler.Sample(ctx, settings)
}

// Sampler samples again and again, with other seeds and settings, and with other Problem.Data of the same names and
// shapes, and compiles only once for settings of one kind. Nothing else of the problem may change after the first run.
// Close it at the end.
type Sampler struct {
	Problem mcmc.Problem
	Kernel  mcmc.Kernel

	compiled run.Cache[kind, *Stages]
}

// kind is what stages are compiled for, beside the problem and the kernel.
type kind struct {
	engine                                     *compute.Engine
	particles, chains, perCall, block, devices int
	dtype                                      compute.DType
	tempering                                  Tempering
	resampler                                  Resampler
	threshold                                  float64
	fixedScale, tuned                          bool
}

// Close frees what was compiled.
func (s *Sampler) Close() { s.compiled.Close() }

// Sample is the function Sample with the sampler's problem and kernel.
func (s *Sampler) Sample(ctx context.Context, settings Settings) (*Result, error) {
	if err := checkSampled(s.Problem, s.Kernel); err != nil {
		return nil, err
	}
	settings, err := settings.WithDefaults()
	if err != nil {
		return nil, err
	}
	m := &machine{Settings: settings, sampler: s}
	defer m.close()
	r := run.New(m, run.Options{
		Owner: "smc", Checkpoint: m.Checkpoint, Format: checkpointFormat, Every: m.CheckpointEvery, Replace: m.Replace,
		Progress: m.Settings.Progress,
	})
	err = r.Loop(ctx)
	if r.Status() == "" {
		return nil, err
	}
	result, failed := m.result(r)
	if failed != nil {
		return nil, failed
	}
	return result, err
}

// machine is a sampling in progress: the compiled stages, the state on the device, and where it stands.
type machine struct {
	Settings
	sampler  *Sampler
	engine   *compute.Engine
	stages   *Stages
	giveBack func() // of the stages
	state    *compute.State
	kept     map[string]*tensors.Tensor // of a checkpoint, until there is a state
	end      float64                    // the posterior's place: 1, or the number of rows
	position
	Trace []StepRecord
}

// position is where a run stands, but for the state on the device and the trace.
type position struct {
	Next        stage     `json:"next"`         // what the next call does
	Place       float64   `json:"place"`        // that is reached
	Rung        int       `json:"rung"`         // how many of the ladder's powers are reached
	Calls       uint32    `json:"calls"`        // made: what counts the random numbers
	Transition  int       `json:"transition"`   // made since the last resampling
	Going       bool      `json:"going"`        // a transition goes on
	Slot        int       `json:"slot"`         // of the chains' places that are kept
	StepSize    float64   `json:"step_size"`    // now
	LogEvidence float64   `json:"log_evidence"` // so far
	Genealogy   Genealogy `json:"genealogy"`    // what is known of its error
	Chains      float64   `json:"chains"`       // sum of the relative variances of the chains' weights
	Evaluations int       `json:"evaluations"`  // of one particle's likelihood
	Records     int       `json:"records"`      // of the trace
	Sum         float64   `json:"sum"`          // of the acceptance of the transitions that go on
}

// stage is what a call does.
type stage string

const (
	toWeigh   stage = "weigh"
	toRestart stage = "restart"
	toMove    stage = "move"
	finished  stage = "finished"
)

// Begin prepares the stages, puts the data on the device, and draws particles from the prior unless a checkpoint has
// some.
func (m *machine) Begin(context.Context) error {
	var err error
	if m.engine, err = m.Engine.Or(); err != nil {
		return err
	}
	if err := m.engine.CheckDevices(m.Devices, m.chains()); err != nil {
		return fmt.Errorf("smc: Settings.Devices is %d, %d particles are moved: %w", m.Devices, m.chains(), err)
	}
	if m.stages, m.giveBack, err = m.compiled(); err != nil {
		return err
	}
	sharding := compute.Sharding{Devices: m.Devices, Particles: m.stages.Sharded()}
	if m.state, err = compute.NewShardedState(m.engine, sharding); err != nil {
		return fmt.Errorf("smc: %w", err)
	}
	for name, t := range m.sampler.Problem.Data {
		local, err := t.LocalClone() // the state owns what it holds, and frees it
		if err != nil {
			return fmt.Errorf("smc: Problem.Data[%q]: %w", name, err)
		}
		m.state.Set(dataPrefix+name, local)
	}
	if m.kept != nil {
		return m.adopt()
	}
	if m.tunes() {
		own, _ := m.sampler.Kernel.(mcmc.Tunable).Tune()
		m.position.StepSize = cmp.Or(own, m.Settings.StepSize, 2.38/math.Sqrt(float64(m.sampler.Problem.Dim)))
	}
	m.Next = toWeigh
	if err := m.stages.Start(m.state, m.counter(1), m.Seed); err != nil {
		return fmt.Errorf("smc: %w", err)
	}
	return nil
}

// adopt puts what a checkpoint held on the device.
func (m *machine) adopt() error {
	for _, name := range m.stages.Entries() {
		t := m.kept[name]
		if t == nil && name != phiName && (m.Next == toWeigh || m.Next == toRestart) {
			continue // the kernel has carried nothing yet, or begins anew
		}
		if t == nil || t.Rank() == 0 {
			return m.wrongFile("it has no tensor %q", name)
		}
		m.state.Set(name, t)
	}
	if m.Place > m.end {
		return m.wrongFile("it stands at %s %v of %v", m.placeName(), m.Place, m.end)
	}
	m.kept = nil
	return nil
}

func (m *machine) wrongFile(format string, args ...any) error {
	return fmt.Errorf("smc: resuming from %s (delete the file to start anew): "+format,
		append([]any{m.Checkpoint}, args...)...)
}

// Step makes one call: a weighing with its resampling, the kernel's start, or some moves.
func (m *machine) Step(context.Context) error {
	begun := time.Now()
	var err error
	switch m.Next {
	case toWeigh:
		err = m.weigh()
	case toRestart:
		m.Evaluations += m.chains()
		err = m.stages.Restart(m.state, m.Place, m.counter(1), m.Seed)
		m.Next = toMove
	case toMove:
		err = m.move()
	}
	if n := len(m.Trace); n > 0 {
		m.Trace[n-1].Seconds += time.Since(begun).Seconds()
	}
	if err != nil {
		return fmt.Errorf("smc: at %s %.4g: %w", m.placeName(), m.Place, err)
	}
	return nil
}

// weigh takes in more of the likelihood and resamples: at each temperature of a ladder, or where rows have made the
// weights too unequal, and at the end.
func (m *machine) weigh() error {
	step, most, resampling := 0., m.end-m.Place, Always
	next := m.end
	switch {
	case m.Tempering == DataTempering:
		next = min(m.Place+float64(m.Block), m.end)
		if next < m.end {
			resampling = IfNeeded
		}
	case len(m.Ladder) > 0:
		next = m.Ladder[m.Rung]
		step = next - m.Place
		if next < m.end && !m.stages.wasteFree() {
			resampling = IfNeeded
		}
	}
	m.Evaluations += m.Particles
	w, err := m.stages.Weigh(m.state, m.Place, step, most, resampling, m.counter(1), m.Seed)
	if err != nil {
		return err
	}
	if m.Tempering == LikelihoodTempering && len(m.Ladder) == 0 && w.Step < most {
		next = m.Place + w.Step
	}
	m.Place, m.Rung = next, m.Rung+1
	m.LogEvidence += w.Increment
	m.Genealogy.Add(w)
	m.Trace = append(m.Trace, StepRecord{
		Place: m.Place, LogEvidence: w.Increment, ESS: w.ESS, Ancestors: w.Ancestors,
		First: 1 / w.Families, Resampled: w.Resampled, NonFinite: w.NonFinite, StepSize: m.position.StepSize,
	})
	if math.IsInf(w.Increment, -1) || math.IsNaN(w.Increment) {
		return fmt.Errorf("%w: %d of %d particles have a log-likelihood that is not finite; check the data for outliers, "+
			"or take more particles", ErrZeroWeights, w.NonFinite, m.Particles)
	}
	m.Transition, m.Slot, m.Going = 0, 1, false
	switch {
	case m.Tempering == DataTempering && !w.Resampled:
		m.Next = toWeigh
	case m.stages.CarriesDensity():
		m.Next = toMove
	default:
		m.Next = toRestart
	}
	return nil
}

// gain is how strongly log step sizes answer to a lack of acceptance. In many dimensions acceptance falls with the
// log step size, where it is best, by .5 (a random walk), 1.2 (MALA) and .4 (HMC): so a step leaves .3, -.7 and .4 of
// what was wrong.
const gain = 1.4

// move makes transitions of the chains, and adapts the step size to how they were accepted.
func (m *machine) move() error {
	last := &m.Trace[len(m.Trace)-1]
	made := m.stages.PerCall
	moved, err := m.stages.Move(m.state, m.Place, !m.Going, m.Slot, m.position.StepSize, m.counter(made), m.Seed)
	if err != nil {
		return err
	}
	m.Evaluations += m.chains() * made
	last.Rejected += moved.NonFinite
	last.Divergent += moved.Divergent
	m.Sum += moved.Acceptance
	if m.Going = moved.Unfinished > 0; m.Going {
		return nil
	}
	last.Acceptance = (last.Acceptance*float64(last.Transitions) + m.Sum) / float64(last.Transitions+made)
	last.Transitions += made
	last.StepSize = m.position.StepSize
	if m.adapts() {
		m.position.StepSize *= math.Exp(gain * (m.Sum/float64(made) - m.wanted()))
	}
	m.Sum = 0
	if m.Transition += made; m.Transition < m.Moves {
		return nil
	}
	m.Transition = 0
	if m.Slot++; m.Slot < m.WasteFree {
		return nil
	}
	m.Next = toWeigh
	if m.Place == m.end {
		m.Next = finished
	}
	return nil
}

// counter is the place in the stream of random numbers of the next call, which makes so many draws.
func (m *machine) counter(draws int) Counter {
	at := Counter{Call: m.Calls}
	m.Calls += uint32(draws)
	return at
}

// tunes says whether moves take a step size, adapts whether it is adapted, and wanted at what mean acceptance it aims.
func (m *machine) tunes() bool {
	_, ok := m.sampler.Kernel.(mcmc.Tunable)
	return ok
}

func (m *machine) adapts() bool {
	if !m.tunes() {
		return false
	}
	own, _ := m.sampler.Kernel.(mcmc.Tunable).Tune()
	return own == 0
}

func (m *machine) wanted() float64 {
	_, acceptance := m.sampler.Kernel.(mcmc.Tunable).Tune()
	return acceptance
}

// placeName is what a place is called.
func (m *machine) placeName() string {
	if m.Tempering == DataTempering {
		return "rows"
	}
	return "power"
}

// Names of entries of the state: of the data, and of what the stages call so.
const (
	dataPrefix     = "data/"
	phiName        = "phi"
	logWeightsName = "log_weights"
	scaleName      = "scale"
)

// compiled prepares the stages, or finds those of an earlier run of the same kind, and learns where the way ends.
func (m *machine) compiled() (*Stages, func(), error) {
	if err := compute.Try(m.probe); err != nil {
		return nil, nil, fmt.Errorf("smc: %w", err)
	}
	// A call costs a tenth of a millisecond, as much as some hundred particles; each transition in its graph costs
	// half a second of compilation.
	perCall := 1
	for k := range min(m.Moves, 5) {
		if m.Moves%(k+1) == 0 {
			perCall = k + 1
		}
	}
	key := kind{
		engine: m.engine, particles: m.Particles, chains: m.chains(), perCall: perCall, block: m.Block,
		devices: m.Devices, dtype: m.DType, tempering: m.Tempering, resampler: m.Resampler, threshold: m.Threshold,
		fixedScale: m.FixedScale, tuned: m.tunes(),
	}
	return m.sampler.compiled.Take(key, func() (*Stages, error) {
		return NewStages(m.engine, m.spec(perCall))
	})
}

// probe builds the target in a graph that is thrown away, to see that it can be tempered, and how many rows it has.
func (m *machine) probe() {
	g := graph.NewGraph(m.engine.Backend(), "smc probe")
	defer g.Finalize()
	nodes := m.parameters(g)
	m.end = 1
	if m.Tempering == DataTempering {
		m.end = float64(m.sequential(nodes).Rows())
		return
	}
	m.factored(nodes)
}

// parameters are the problem's data in a graph that is thrown away.
func (m *machine) parameters(g *graph.Graph) compute.Nodes {
	nodes := compute.Nodes{}
	for name, t := range m.sampler.Problem.Data {
		nodes[dataPrefix+name] = graph.Parameter(g, dataPrefix+name, t.Shape())
	}
	return nodes
}

// target is the problem's.
func (m *machine) target(nodes compute.Nodes) mcmc.Target {
	data := compute.Nodes{}
	for name, node := range nodes {
		if bare, ok := strings.CutPrefix(name, dataPrefix); ok {
			data[bare] = node
		}
	}
	return m.sampler.Problem.Target(data, nil)
}

func (m *machine) factored(nodes compute.Nodes) Factored {
	t, ok := m.target(nodes).(Factored)
	if !ok {
		panic(fmt.Errorf("Problem.Target gives a %T, which is not smc.Factored: likelihood tempering needs prior and "+
			"likelihood apart: give an smc.Posterior", m.target(nodes)))
	}
	return t
}

func (m *machine) sequential(nodes compute.Nodes) Sequential {
	t, ok := m.target(nodes).(Sequential)
	if !ok {
		panic(fmt.Errorf("Problem.Target gives a %T, which is not smc.Sequential: data tempering needs the rows' "+
			"likelihoods apart: give an smc.RowPosterior", m.target(nodes)))
	}
	if t.Rows() < 1 {
		panic(fmt.Errorf("the target %T has %d rows: there must be at least 1", t, t.Rows()))
	}
	return t
}

// spec says what the stages are to do.
func (m *machine) spec(perCall int) Spec {
	s := Spec{
		Kernel: m.sampler.Kernel, Particles: m.Particles, Chains: m.chains(), Dim: m.sampler.Problem.Dim,
		DType: m.DType, PerCall: perCall, Resampler: m.Resampler, Threshold: m.Threshold, FixedScale: m.FixedScale,
		Tuned: m.tunes(),
		Probe: func(g *graph.Graph) mcmc.Target { return m.tempered(m.parameters(g), graph.Scalar(g, m.DType, 0.5)) },
		Initial: func(_ compute.Nodes, rng random.Stream) *graph.Node {
			return m.sampler.Problem.Initial(rng, m.DType, m.Particles)
		},
	}
	for _, name := range slices.Sorted(maps.Keys(m.sampler.Problem.Data)) {
		s.Reads = append(s.Reads, dataPrefix+name)
	}
	s.Tempered = m.Tempering == LikelihoodTempering
	s.LogPrior = func(nodes compute.Nodes, phi *graph.Node) *graph.Node {
		if s.Tempered {
			return m.factored(nodes).LogPrior(phi)
		}
		return m.sequential(nodes).LogPrior(phi)
	}
	s.Target = m.tempered
	s.Potential = func(nodes compute.Nodes, phi, place *graph.Node) *graph.Node {
		if s.Tempered {
			return m.factored(nodes).LogLikelihood(phi)
		}
		return m.sequential(nodes).LogLikelihoodOf(phi, graph.ConvertDType(place, dtypes.Int32), m.Block)
	}
	return s
}

// tempered is the distribution at a place.
func (m *machine) tempered(nodes compute.Nodes, place *graph.Node) mcmc.Target {
	if m.Tempering == LikelihoodTempering {
		return m.factored(nodes).Tempered(place)
	}
	return m.sequential(nodes).FirstRows(place)
}

// Status is run.Completed once the particles were moved under the posterior.
func (m *machine) Status() run.Status {
	if m.Next == finished {
		return run.Completed
	}
	return ""
}

// Progress is where the run stands.
func (m *machine) Progress() run.Progress {
	p := run.Progress{Stage: string(m.Tempering) + " tempering", Step: len(m.Trace), Steps: len(m.Ladder)}
	if m.Tempering == DataTempering {
		p.Step, p.Steps = int(m.Place), int(m.end)
	}
	p.Scores = []run.Score{{Name: m.placeName(), Value: m.Place}, {Name: "log evidence", Value: m.LogEvidence}}
	if n := len(m.Trace); n > 0 {
		last := m.Trace[n-1]
		p.Scores = append(p.Scores, run.Score{Name: "ESS", Value: last.ESS},
			run.Score{Name: "acceptance", Value: last.Acceptance})
	}
	return p
}

const checkpointFormat = "gobnn.smc/1"

// Identity is what must agree for a run to go on from a file.
func (m *machine) Identity() ([]run.Part, error) {
	parts, err := m.sampler.Problem.Identity(m.sampler.Kernel)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(m.Settings.Record())
	if err != nil {
		return nil, err
	}
	engine, err := m.Engine.Or()
	if err != nil {
		return nil, err
	}
	return append(parts, run.Part{Name: "seed", Value: fmt.Sprint(m.Seed)},
		run.Part{Name: "settings", Value: string(settings)}, run.Part{Name: "backend", Value: engine.Name()}), nil
}

// Keep is what a checkpoint holds: the state of the device but for the data, and the trace.
func (m *machine) Keep() (any, map[string]*tensors.Tensor, error) {
	kept, err := m.state.Host(m.state.NamesWithout(dataPrefix)...)
	if err != nil {
		return nil, nil, err
	}
	var rows []float64
	for _, r := range m.Trace {
		rows = append(rows, r.values()...)
	}
	kept[traceName] = run.Table(rows, recordWidth)
	m.Records = len(m.Trace)
	return m.position, kept, nil
}

const traceName = "trace"

// Adopt takes over what Keep gave.
func (m *machine) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at position
	if err := run.Decode(head, &at); err != nil {
		return err
	}
	known := slices.Contains([]stage{toWeigh, toRestart, toMove, finished}, at.Next)
	if !known || !(at.Place >= 0) || at.Rung < 0 || at.Transition < 0 || at.Records < 0 || at.Genealogy.Before < 0 ||
		!(at.StepSize >= 0) || at.Next == toWeigh && len(m.Ladder) > 0 && at.Rung >= len(m.Ladder) ||
		at.Next != toWeigh && at.Records == 0 {
		return fmt.Errorf("no such run stands at %+v", at)
	}
	rows, err := run.Rows(kept, traceName, at.Records, recordWidth)
	if err != nil {
		return err
	}
	for name, dims := range map[string][]int{
		phiName:        {m.Particles, m.sampler.Problem.Dim},
		logWeightsName: {m.Particles},
		scaleName:      {m.sampler.Problem.Dim},
	} {
		if _, err := run.Tensor(kept, name, shapes.Make(m.DType, dims...)); err != nil {
			return err
		}
	}
	delete(kept, traceName)
	m.position, m.kept = at, kept
	for _, v := range rows {
		m.Trace = append(m.Trace, recordOf(v))
	}
	return nil
}

func (m *machine) close() {
	if m.state != nil {
		m.state.Close()
	}
	if m.giveBack != nil {
		m.giveBack()
	}
}

// result is what there is.
func (m *machine) result(r *run.Run) (*Result, error) {
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
		Phi: host[phiName], LogEvidence: math.NaN(), LogEvidenceStdErr: math.NaN(), Trace: m.Trace,
		Tuned: mcmc.Tuned{StepSize: m.position.StepSize, Scale: scale}, Status: r.Status(), Elapsed: r.Elapsed(),
		Evaluations: m.Evaluations,
	}
	if result.LogWeights, err = NewLogWeights(weights); err != nil {
		return nil, err
	}
	for _, t := range m.Trace {
		result.NonFinite += t.Rejected
		result.Divergent += t.Divergent
	}
	if r.Status() != run.Completed {
		return result, nil
	}
	result.LogEvidence = m.LogEvidence
	result.LogEvidenceStdErr = m.Genealogy.StdErr(m.Resampler, m.chains())
	result.Warnings = m.warnings()
	return result, nil
}
