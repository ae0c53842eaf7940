package baseline

import (
	"context"
	"fmt"
	"math"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"

	"github.com/gomlx/gomlx/core/tensors"
)

// run is a stage in progress: the programs, the state on the device, and the records on the host.
type run struct {
	*job
	*programs
	stage   stage
	state   *compute.State
	batches dataset.Batches
	members int

	step, steps int
	trace       []StepRecord
	validated   []Validation
	best        []Best // of each member; Step 0 before the first
	sinceBest   []int  // validations since the best, of each member
	status      Status
	begun       time.Time
	before      time.Duration // of earlier sessions
	saved       time.Time     // last checkpoint
	reported    time.Time
}

// trained is what a stage ends with.
type trained struct {
	*Result
	theta []float64                  // flat [J, Q]: of each member's best validation, or the last
	state map[string]*tensors.Tensor // all of the state but the data, on the host
}

// train runs a stage.
func (j *job) train(ctx context.Context, s stage) (trained, error) {
	r, err := j.newRun(s)
	if err != nil {
		return trained{}, err
	}
	defer r.state.Close()
	if err := r.restore(); err != nil {
		return trained{}, err
	}
	if err := r.loop(ctx); err != nil {
		return trained{}, err
	}
	return r.result()
}

// newRun compiles what is not compiled yet, puts the data on the device and sets the initial state.
func (j *job) newRun(s stage) (*run, error) {
	members, width := s.size()
	r := &run{job: j, stage: s, members: members, best: make([]Best, members), sinceBest: make([]int, members), begun: time.Now(), saved: time.Now()}
	for m := range r.best {
		r.best[m].NLPD = nan
	}
	batches, err := dataset.NewEpochBatches(j.parts.Train.Rows(), j.BatchSize, j.Seed)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	r.batches, r.steps = batches, s.epochs*batches.PerEpoch()
	if r.programs, err = j.compiled(s); err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	r.state = compute.NewState(j.engine)
	if err := r.fill(width); err != nil {
		r.state.Close()
		return nil, err
	}
	return r, nil
}

func (r *run) fill(width int) error {
	x, y, err := r.data.Tensors(r.DType, r.parts.Train)
	if err != nil {
		return err
	}
	r.state.Set("train_x", x)
	r.state.Set("train_y", y)
	if _, err := r.programs.initial.Run(r.state, random.SeedWords(r.Seed)); err != nil {
		return fmt.Errorf("baseline: initial state: %w", err)
	}
	if r.stage.start != nil {
		r.state.Set("theta", compute.Floats(r.DType, r.stage.start, r.members, width))
	}
	if c, ok := r.stage.learner.(collector); ok {
		for name, t := range c.collected(r.DType) {
			r.state.Set(name, t)
		}
	}
	if !r.stage.validate {
		return nil
	}
	if x, y, err = r.data.Tensors(r.DType, r.parts.Validation); err != nil {
		return err
	}
	r.state.Set("valid_x", x)
	r.state.Set("valid_y", y)
	start, err := r.state.Host("theta")
	if err != nil {
		return fmt.Errorf("baseline: initial state: %w", err)
	}
	r.state.Set("best_theta", start["theta"])
	worst := make([]float64, r.members)
	for m := range worst {
		worst[m] = math.Inf(1)
	}
	r.state.Set("best_nlpd", tensors.FromFlatDataAndDimensions(worst, r.members))
	return nil
}

// loop makes steps until the stage ends.
func (r *run) loop(ctx context.Context) error {
	for r.status == "" {
		if r.step == r.steps {
			r.status = Completed
			break
		}
		if ctx.Err() != nil {
			r.status = Cancelled
			break
		}
		if err := r.advance(); err != nil {
			return err
		}
		if err := r.observe(); err != nil {
			return err
		}
		if r.validated != nil && r.open() == nil {
			r.status = StoppedEarly
		}
		if err := r.checkpointIfDue(); err != nil {
			return err
		}
		r.report(false)
	}
	r.report(true)
	return r.checkpoint()
}

// advance makes one step and, where they are due, a validation and a collection.
func (r *run) advance() error {
	batch := r.batches.At(r.step)
	outcome, err := r.programs.step.Run(r.state, batch.Rows, []float64{float64(r.step + 1), r.stage.schedule.At(r.step), float64(batch.Count)}, random.SeedWords(r.Seed))
	if err != nil {
		return fmt.Errorf("baseline: step %d: %w", r.step+1, err)
	}
	r.step++
	record, finite := StepRecord{}, 0
	for m, value := range outcome[:r.members] {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			record.Loss -= value / float64(r.parts.Train.Rows())
			finite++
		}
		record.Rejected += int(outcome[r.members+m])
	}
	record.Loss /= float64(finite)
	r.trace = append(r.trace, record)
	if record.Rejected == r.members {
		return fmt.Errorf("%w: step %d of %d: of %d members %d have a gradient that is not finite: take a smaller learning rate than %.3g, and check the data for outliers",
			ErrDiverged, r.step, r.steps, r.members, record.Rejected, r.stage.schedule.At(r.step-1))
	}
	if r.programs.gather != nil && r.step%r.batches.PerEpoch() == 0 {
		if _, err := r.programs.gather.Run(r.state, float64(r.step/r.batches.PerEpoch())); err != nil {
			return fmt.Errorf("baseline: collecting after step %d: %w", r.step, err)
		}
	}
	if r.programs.validate != nil && (r.step%r.ValidateEvery == 0 || r.step == r.steps) {
		return r.runValidation()
	}
	return nil
}

// observe calls Settings.Observe where it is due.
func (r *run) observe() error {
	if r.Observe == nil || r.stage.name != training || r.step%r.batches.PerEpoch() != 0 {
		return nil
	}
	host, err := r.state.Host("theta")
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	theta, err := compute.Float64s(host["theta"])
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	var psi []float64
	if s, ok := r.stage.learner.(*variational); ok {
		psi = theta[s.width():]
	} else {
		_, psi = split(r.bound, theta[:len(theta)/r.members])
	}
	if err := r.Observe(r.step/r.batches.PerEpoch(), psi); err != nil {
		return fmt.Errorf("baseline: Settings.Observe after step %d: %w", r.step, err)
	}
	return nil
}

// open is 1 for each member whose patience lasts; nil if there is none.
func (r *run) open() []float64 {
	open, any := make([]float64, r.members), false
	for m, since := range r.sinceBest {
		if r.Patience == 0 || since < r.Patience {
			open[m], any = 1, true
		}
	}
	if !any {
		return nil
	}
	return open
}

// runValidation scores the members on the validation part and keeps those that are better than before.
func (r *run) runValidation() error {
	outcome, err := r.programs.validate.Run(r.state, r.open(), random.SeedWords(r.Seed))
	if err != nil {
		return fmt.Errorf("baseline: validation after step %d: %w", r.step, err)
	}
	v := Validation{Step: r.step, NLPD: outcome[:r.members:r.members]}
	r.validated = append(r.validated, v)
	r.rank(v, func(m int) bool { return outcome[r.members+m] != 0 })
	return nil
}

// rank keeps the books of a validation.
func (r *run) rank(v Validation, better func(member int) bool) {
	for m, nlpd := range v.NLPD {
		if better(m) {
			r.best[m], r.sinceBest[m] = Best{v.Step, nlpd}, 0
		} else {
			r.sinceBest[m]++
		}
	}
}

func (r *run) elapsed() time.Duration { return r.before + time.Since(r.begun) }

// report calls Progress, but not more than about ten times a second.
func (r *run) report(end bool) {
	if r.Progress == nil || !end && time.Since(r.reported) < 100*time.Millisecond {
		return
	}
	r.reported = time.Now()
	p := Progress{Stage: r.stage.name, Step: r.step, Steps: r.steps, Loss: nan, Validation: nan, Best: nan, Elapsed: r.elapsed()}
	if n := len(r.trace); n > 0 {
		p.Loss = r.trace[n-1].Loss
	}
	if n := len(r.validated); n > 0 {
		p.Validation, p.Best = 0, 0
		for m, nlpd := range r.validated[n-1].NLPD {
			p.Validation += nlpd / float64(r.members)
			p.Best += r.best[m].NLPD / float64(r.members)
		}
	}
	r.Progress(p)
}

func (r *run) result() (trained, error) {
	host, err := r.state.Host(r.own()...)
	if err != nil {
		return trained{}, fmt.Errorf("baseline: %w", err)
	}
	from := "theta"
	result := &Result{Status: r.status, Steps: r.step, PerEpoch: r.batches.PerEpoch(), Trace: r.trace, Validated: r.validated, Elapsed: r.before}
	if r.stage.validate {
		result.Best = r.best
		if r.step > 0 {
			from = "best_theta"
		}
	}
	theta, err := compute.Float64s(host[from])
	if err != nil {
		return trained{}, fmt.Errorf("baseline: %w", err)
	}
	return trained{result, theta, host}, nil
}

// own names the tensors that are the stage's state, not its data.
func (r *run) own() []string { return r.state.NamesWithout("train_", "valid_") }
