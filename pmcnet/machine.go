package pmcnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/diag"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
)

// machine is a run of PMC in progress: the compiled programs, the state on the device, and what its iterations left on
// the host.
type machine struct {
	PMC
	*Job
	*programs
	giveBack func() // of the programs
	state    *compute.State
	kept     map[string]*tensors.Tensor // of a checkpoint, until there is a state
	startAt  *tensors.Tensor            // where the means begin, [M, D] or [1, D]; nil: as Problem.Initial draws

	position
	Trace          []IterationRecord
	honest, output []float64 // log-weights of the last iteration: honest ones, and those of the result
}

// position is where a run stands, but for the state on the device and the trace.
type position struct {
	Iteration  int     `json:"iteration"`   // made
	LogSum     float64 `json:"log_sum"`     // of the honest weights of all iterations; -Inf is written as noWeight
	LogSquares float64 `json:"log_squares"` // of their squares
}

// begin is a run of a PMC, as Prepare gave it, that has made no iteration yet. Close the machine at the end.
func (a PMC) begin(job *Job) (*machine, *run.Run) {
	m := &machine{PMC: a, Job: job}
	m.LogSum, m.LogSquares = noWeight, noWeight
	return m, run.New(m, run.Options{
		Owner: "pmcnet", Checkpoint: m.Checkpoint, Format: "gobnn.pmcnet/3", Every: m.CheckpointEvery, Replace: m.Replace,
		Progress: m.Settings.Progress,
	})
}

// Sample implements Algorithm.
func (a PMC) Sample(ctx context.Context, job *Job) (*Result, error) {
	m, r := a.begin(job)
	defer m.close()
	err := r.Loop(ctx)
	if r.Status() == "" {
		return nil, err
	}
	result, failed := m.result(r.Status())
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	result.Elapsed = r.Elapsed()
	return result, err
}

// noWeight is a log of 0 that JSON can write.
const noWeight = -math.MaxFloat64

// Begin prepares the programs, puts the data on the device, and the means where they begin unless a checkpoint has
// them.
func (m *machine) Begin(ctx context.Context) error {
	var err error
	if m.kept == nil {
		if m.startAt, err = m.startsAt(ctx); err != nil {
			return err
		}
	}
	if m.programs, m.giveBack, err = m.compiled(); err != nil {
		return err
	}
	m.state = compute.NewState(m.Engine)
	if err := setData(m.state, m.Problem); err != nil {
		return err
	}
	if m.kept != nil {
		for _, name := range m.entries() {
			if m.kept[name] == nil {
				return fmt.Errorf("pmcnet: resuming from %s (delete the file to start anew): it has no tensor %q",
					m.Checkpoint, name)
			}
			m.state.Set(name, m.kept[name])
		}
		m.kept = nil
		return nil
	}
	if m.startAt != nil {
		m.state.Set(startName, m.startAt)
	}
	trial, err := m.start.Run(m.state, random.KeyOf(m.Seed).Named("pmcnet start").Words())
	if err == nil && m.tried != "" {
		_, err = mcmc.CheckTried(trial, m.tried)
	}
	if err != nil {
		return fmt.Errorf("pmcnet: %w", err)
	}
	return nil
}

// startsAt is where the means begin: Problem.Start, or a maximum.
func (m *machine) startsAt(ctx context.Context) (*tensors.Tensor, error) {
	if m.Start != FromPrior {
		return m.maximum(ctx, m.PMC)
	}
	start := m.Problem.Start
	if start == nil {
		return nil, nil
	}
	if want := shapes.Make(m.DType, m.Proposals, m.Problem.Dim); !start.Shape().Equal(want) {
		return nil, fmt.Errorf("pmcnet: Problem.Start is %s: it must be %s, a mean for each proposal", start.Shape(), want)
	}
	return start.LocalClone()
}

// Step makes an iteration.
func (m *machine) Step(ctx context.Context) error {
	begun := time.Now()
	t := m.Iteration + 1
	isGlobal := 0.
	if m.Resampling > 0 && t%int(m.Resampling) == 0 {
		isGlobal = 1
	}
	inputs := []float64{forgetting, 1 / float64(t), isGlobal}
	record, err := m.step.Run(m.state, inputs, random.KeyOf(m.Seed).Named("pmcnet").At(uint32(t)).Words())
	if err != nil {
		return fmt.Errorf("pmcnet: iteration %d: %w", t, err)
	}
	count := m.Proposals * m.Draws
	m.honest, m.output = record[recordHead:recordHead+count], record[recordHead+count:]
	r := IterationRecord{
		Distinct: record[inDistinct] / float64(m.Proposals), Exponent: record[inExponent],
		Replaced: int(record[inReplaced]), Stalled: int(record[inStalled]), Halvings: record[inHalvings],
		Stayed: int(record[inStayed]), NonFinite: int(record[inNonFinite]), Wrong: int(record[inWrong]),
	}
	w, err := bayes.NewLogWeights(m.honest)
	if err != nil {
		return fmt.Errorf("pmcnet: iteration %d: %w: %d of %d draws have a log-density that is not finite; begin elsewhere "+
			"(PMC.Start), or with another PMC.StdDev", t, err, r.NonFinite, count)
	}
	if m.Ascent == MiniBatchAscent {
		if r.Halvings, r.Stayed, err = m.epoch(t); err != nil {
			return fmt.Errorf("pmcnet: iteration %d: %w", t, err)
		}
	}
	r.ESS = w.EffectiveSampleSize()
	r.KHat = kHat(w)
	r.LogEvidence, r.LogEvidenceStdErr = smc.LogEvidence(m.honest)
	m.running(&r)
	m.Iteration = t
	r.Seconds = time.Since(begun).Seconds()
	m.Trace = append(m.Trace, r)
	return m.observe()
}

// epoch is PMCnet-light's step of the means: each mini-batch once, in an order drawn anew.
func (m *machine) epoch(t int) (halvings float64, stayed int, err error) {
	batches := (m.rows + m.batchSize - 1) / m.batchSize
	for _, b := range rand.New(rand.NewPCG(m.Seed, uint64(t))).Perm(batches) {
		record, err := m.batch.Run(m.state, []int32{int32(b * m.batchSize)})
		if err != nil {
			return 0, 0, err
		}
		halvings += record[0] / float64(batches)
		stayed += int(record[1])
	}
	return halvings, stayed, nil
}

// running adds an iteration's weights to those before, and gives the evidence of all.
func (m *machine) running(r *IterationRecord) {
	weights, squares := append([]float64{m.LogSum}, m.honest...), []float64{m.LogSquares}
	for _, l := range m.honest {
		squares = append(squares, 2*l)
	}
	m.LogSum, m.LogSquares = floats.LogSumExp(weights), floats.LogSumExp(squares)
	n := float64(len(m.honest) * (m.Iteration + 1))
	r.Running = m.LogSum - math.Log(n)
	// The relative standard error of the mean weight, as of smc.LogEvidence.
	r.RunningStdErr = math.Sqrt(max(0, n*math.Exp(m.LogSquares-2*m.LogSum)-1) / (n - 1))
}

// kHat returns the k-hat of weights; NaN where there is no tail to estimate it from.
func kHat(w bayes.LogWeights) float64 {
	s, err := diag.PSIS(w, 1)
	if err != nil {
		return math.NaN()
	}
	return s.KHat
}

// lastDraws returns the draws of the last iteration, flat [M K, D].
func (m *machine) lastDraws() ([]float64, error) {
	kept := m.kept
	if m.state != nil {
		var err error
		if kept, err = m.state.Host(phiName); err != nil {
			return nil, fmt.Errorf("pmcnet: %w", err)
		}
	}
	return compute.Float64s(kept[phiName])
}

// Status is run.Completed once all iterations are made.
func (m *machine) Status() run.Status {
	if m.Iteration == m.Iterations {
		return run.Completed
	}
	return ""
}

// Progress is where the run stands.
func (m *machine) Progress() run.Progress {
	p := run.Progress{Step: m.Iteration, Steps: m.Iterations}
	if n := len(m.Trace); n > 0 {
		last := m.Trace[n-1]
		p.Scores = []run.Score{{Name: "ESS", Value: last.ESS}, {Name: "k-hat", Value: last.KHat}}
		if e := last.stated(m.Proposals * m.Draws); !math.IsNaN(e) {
			p.Scores = append(p.Scores, run.Score{Name: LogEvidenceCurve, Value: e})
		}
	}
	return p
}

// observe calls Settings.Observe where it is due.
func (m *machine) observe() error {
	if m.Observe == nil || m.Iteration%m.ObserveEvery != 0 {
		return nil
	}
	result, err := m.result("")
	if err != nil {
		return err
	}
	var posterior *bayes.Posterior
	if posterior, err = m.Posterior(result); err != nil {
		return err
	}
	if err := m.Observe(m.Iteration, posterior); err != nil {
		return run.Stop(fmt.Errorf("pmcnet: Settings.Observe after iteration %d: %w", m.Iteration, err))
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

// The records' tensors in a checkpoint.
const (
	traceName   = "trace"
	weightsName = "log_weights"
)

// Identity returns what must agree with a checkpoint for a run to resume from it.
func (m *machine) Identity() ([]run.Part, error) {
	parts, err := m.Problem.Identity()
	if err != nil {
		return nil, err
	}
	if parts, err = m.Identified(parts); err != nil {
		return nil, err
	}
	algorithm, err := json.Marshal(m.PMC)
	if err != nil {
		return nil, err
	}
	start := string(m.Start)
	if m.Problem.Start != nil {
		if start, err = run.Digest(m.Problem.Start); err != nil {
			return nil, fmt.Errorf("Problem.Start: %w", err)
		}
	}
	return append(parts, run.Part{Name: "start", Value: start}, run.Part{Name: "algorithm", Value: string(algorithm)},
		run.Part{Name: "seed", Value: fmt.Sprint(m.Seed)}, run.Part{Name: "type", Value: m.DType.String()},
		run.Part{Name: "backend", Value: m.Engine.Name()}), nil
}

// Keep returns the content of a checkpoint: the state on the device without the data, the trace, and the values kept
// from each iteration.
func (m *machine) Keep() (any, map[string]*tensors.Tensor, error) {
	kept, err := m.state.Host(m.state.NamesWithout(dataPrefix, startName)...)
	if err != nil {
		return nil, nil, err
	}
	var rows, weights []float64
	for _, r := range m.Trace {
		rows = append(rows, r.values()...)
	}
	for i, l := range m.honest {
		weights = append(weights, l, m.output[i])
	}
	kept[traceName], kept[weightsName] = run.Table(rows, recordWidth), run.Table(weights, 2)
	return m.position, kept, nil
}

// Adopt takes over what Keep gave.
func (m *machine) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at position
	if err := run.Decode(head, &at); err != nil {
		return err
	}
	if at.Iteration < 0 || at.Iteration > m.Iterations {
		return fmt.Errorf("no such run stands at iteration %d of %d", at.Iteration, m.Iterations)
	}
	trace, err := run.Rows(kept, traceName, at.Iteration, recordWidth)
	if err != nil {
		return err
	}
	count := m.Proposals * m.Draws
	weights, err := run.Rows(kept, weightsName, min(at.Iteration, 1)*count, 2)
	if err != nil {
		return err
	}
	m.position = at
	for _, w := range weights {
		m.honest, m.output = append(m.honest, w[0]), append(m.output, w[1])
	}
	for name, dims := range m.PMC.shapes(m.Problem.Dim) {
		if _, err := run.Tensor(kept, name, shapes.Make(m.DType, dims...)); err != nil {
			return err
		}
	}
	for _, v := range trace {
		m.Trace = append(m.Trace, recordOf(v))
	}
	m.kept = kept
	return nil
}

// shapes returns the dims of the state's own entries.
func (a PMC) shapes(d int) map[string][]int {
	m := a.Proposals
	all := map[string][]int{meanName: {m, d}, phiName: {m * a.Draws, d}}
	for _, name := range a.names() {
		all[name] = map[string][]int{
			covarianceName: {m, d, d}, lowerName: {m, d, d}, inverseName: {m, d, d}, logDetName: {m},
			varianceName: {m, d},
		}[name]
	}
	return all
}
