package baseline

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/optim"
	"gobnn/bayes/target"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// learner is what is trained by gradient ascent: theta, [J, Q], J members of Q numbers each that do not see one another. Its methods but size build graph.
type learner interface {
	// kind names what its graphs depend on, beside the model, the data's size and the settings.
	kind() string
	size() (members, width int)
	// initial draws where theta starts.
	initial(rng random.Stream) *Node
	// objective estimates from a batch what is to be maximised, [J], in the scale of all rows, and its gradient, [J, Q].
	objective(theta *Node, batch target.Batch, rng random.Stream) (value, gradient *Node)
	// nlpd is that of each member's prediction, [J].
	nlpd(theta *Node, batch target.Batch, rng random.Stream) *Node
}

// collector is a learner that takes something in at the end of each epoch, SWAG.
type collector interface {
	learner
	// collected names the entries of state, and gives their values at the start.
	collected(dtype compute.DType) map[string]*tensors.Tensor
	// collect takes theta in; count is the number of epochs that have ended, a scalar.
	collect(s compute.Nodes, count *Node) compute.Nodes
}

// stage is one training: what is learnt, for how long, and from where.
type stage struct {
	learner
	name     string // "training" or "collecting"
	epochs   int
	schedule optim.Schedule
	start    []float64 // theta, flat [J, Q]; nil: as initial draws it
	validate bool
}

// programs are what is compiled for one kind of stage.
type programs struct {
	learner
	optimiser optim.Adam

	initial, step    *compute.Program
	validate, gather *compute.Program // nil where there is none
}

func (p *programs) close() {
	for _, program := range []*compute.Program{p.initial, p.step, p.validate, p.gather} {
		if program != nil {
			program.Close()
		}
	}
}

// compiled prepares the programs of a stage, or finds those of an earlier one of the same kind. The learning rate and the seed are inputs.
func (j *job) compiled(s stage) (*programs, error) {
	optimiser := j.Optimiser
	optimiser.Schedule = optim.Schedule{}
	key := fmt.Sprint(j.engine, j.parts.Train.Rows(), j.bound.Inputs, j.bound.Outputs, j.BatchSize, j.DType, s.validate, string(text(optimiser)), s.kind())
	if s.validate {
		key += fmt.Sprint(j.parts.Validation.Rows())
	}
	if p, ok := j.trainer.programs[key]; ok {
		return p, nil
	}
	p := &programs{learner: s.learner, optimiser: j.Optimiser}
	carried := []string{"theta", "mean", "square"}
	var err error
	add := func(to **compute.Program, name string, reads, updates []string, step compute.Step) {
		if err == nil {
			*to, err = compute.NewProgram(j.engine, "baseline "+name, reads, updates, step)
		}
	}
	add(&p.initial, "initial state", []string{"train_y"}, carried, p.initialStep)
	add(&p.step, "step", append(carried, "train_x", "train_y"), carried, p.trainStep)
	if s.validate {
		add(&p.validate, "validation", []string{"theta", "best_theta", "best_nlpd", "valid_x", "valid_y"}, []string{"best_theta", "best_nlpd"}, p.validateStep)
	}
	if c, ok := s.learner.(collector); ok {
		var entries []string
		for name := range c.collected(j.DType) {
			entries = append(entries, name)
		}
		add(&p.gather, "collection", append(entries, "theta"), entries, func(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			return c.collect(s, ConvertDType(inputs[0], s["theta"].DType())), ConstAs(s["theta"], []float64{0})
		})
	}
	if err != nil {
		p.close()
		return nil, err
	}
	j.trainer.programs[key] = p
	return p, nil
}

// initialStep draws theta; moments are 0. Input: the seed.
func (p *programs) initialStep(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	theta := p.learner.initial(random.FromSeed(inputs[0]).Named("initial"))
	return compute.Nodes{"theta": theta, "mean": ZerosLike(theta), "square": ZerosLike(theta)}, ConstAs(theta, []float64{0})
}

// trainStep is one step of Adam for every member. A member whose objective or gradient is not finite stays. Inputs: rows of the batch, int32 [B]; the step's
// number, the learning rate and how many rows are real; the seed. The record: the objective of each member, and 1 for each that stayed, [2 J].
func (p *programs) trainStep(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	theta := s["theta"]
	as := func(i int) *Node { return ConvertDType(element(inputs[1], i), theta.DType()) }
	rows := ExpandAxes(inputs[0], -1)
	batch := target.Batch{X: Gather(s["train_x"], rows), Y: Gather(s["train_y"], rows), Count: as(2)}
	rng := random.FromSeed(inputs[2]).Named("step").At(ConvertDType(element(inputs[1], 0), dtypes.Uint32))

	value, gradient := p.objective(theta, batch, rng)
	usable := And(IsFinite(value), LogicalAll(IsFinite(gradient), 1)) // [J]
	moved, moments := p.optimiser.Ascend(theta, gradient, optim.Moments{Mean: s["mean"], Square: s["square"]}, as(0), as(1))
	usable = And(usable, LogicalAll(IsFinite(moved), 1))
	keep := func(new, old *Node) *Node {
		return Where(BroadcastToDims(ExpandAxes(usable, 1), old.Shape().Dimensions...), new, old)
	}
	return compute.Nodes{"theta": keep(moved, theta), "mean": keep(moments.Mean, s["mean"]), "square": keep(moments.Square, s["square"])},
		Concatenate([]*Node{value, ConvertDType(Not(usable), value.DType())}, 0)
}

// validateStep scores every member and keeps theta in "best_theta" where it is better than before. Inputs: 1 for each member that is still in training,
// [J]; the seed. The record: the NLPDs and 1 for each that is better, [2 J]. The draws that a score needs are the same each time, so that
// scores differ by theta alone.
func (p *programs) validateStep(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	nlpd := ConvertDType(p.nlpd(s["theta"], target.Batch{X: s["valid_x"], Y: s["valid_y"]}, random.FromSeed(inputs[1]).Named("validation")), compute.Float64)
	better := And(LessThan(nlpd, s["best_nlpd"]), GreaterThan(inputs[0], ZerosLike(inputs[0])))
	return compute.Nodes{
		"best_nlpd":  Where(better, nlpd, s["best_nlpd"]),
		"best_theta": Where(BroadcastToDims(ExpandAxes(better, 1), s["theta"].Shape().Dimensions...), s["theta"], s["best_theta"]),
	}, Concatenate([]*Node{nlpd, ConvertDType(better, compute.Float64)}, 0)
}

// element is one of a vector's elements, a scalar.
func element(v *Node, i int) *Node { return Reshape(Slice(v, AxisElem(i))) }

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
	before      time.Duration // of earlier sittings
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
	x, y, err := r.standardised(r.parts.Train)
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
	if x, y, err = r.standardised(r.parts.Validation); err != nil {
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
	told, err := r.programs.step.Run(r.state, batch.Rows, []float64{float64(r.step + 1), r.stage.schedule.At(r.step), float64(batch.Count)}, random.SeedWords(r.Seed))
	if err != nil {
		return fmt.Errorf("baseline: step %d: %w", r.step+1, err)
	}
	r.step++
	record, finite := StepRecord{}, 0
	for m, value := range told[:r.members] {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			record.Loss -= value / float64(r.parts.Train.Rows())
			finite++
		}
		record.Rejected += int(told[r.members+m])
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
	told, err := r.programs.validate.Run(r.state, r.open(), random.SeedWords(r.Seed))
	if err != nil {
		return fmt.Errorf("baseline: validation after step %d: %w", r.step, err)
	}
	v := Validation{Step: r.step, NLPD: told[:r.members:r.members]}
	r.validated = append(r.validated, v)
	r.rank(v, func(m int) bool { return told[r.members+m] != 0 })
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
func (r *run) own() []string {
	var names []string
	for _, name := range r.state.Names() {
		if !strings.HasPrefix(name, "train_") && !strings.HasPrefix(name, "valid_") {
			names = append(names, name)
		}
	}
	return names
}
