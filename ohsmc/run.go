package ohsmc

import (
	"fmt"
	"math"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/target"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// run is a training in progress: the algorithm, its state on the device, and its records on the host.
type run struct {
	algorithm
	engine     *compute.Engine
	state      *compute.State
	train      *compute.Program
	validation *compute.Program // nil without a validation part
	batches    *dataset.EpochBatches

	data     *dataset.Dataset // the training part
	features dataset.Scaler
	scaler   dataset.TargetScaler

	step, steps int
	trace       []StepRecord
	validated   []Validation
	best        Validation
	sinceBest   int // validations since the best
	status      Status
	begun       time.Time
	before      time.Duration // of earlier sittings
	saved       time.Time     // last checkpoint
	reported    time.Time
}

// newRun checks everything, puts the data on the device and draws the initial state.
func newRun(model bayes.Model, parts dataset.Parts, settings Settings) (*run, error) {
	if parts.Train == nil {
		return nil, fmt.Errorf("ohsmc: there is no training part")
	}
	for _, part := range []*dataset.Dataset{parts.Train, parts.Validation} {
		if part == nil {
			continue
		}
		if err := part.Validate(); err != nil {
			return nil, fmt.Errorf("ohsmc: %w", err)
		}
		if part.Dims() != parts.Train.Dims() || part.Outputs() != parts.Train.Outputs() {
			return nil, fmt.Errorf("ohsmc: the training part has shape [%d, %d] and %d outputs, the validation part [%d, %d] and %d",
				parts.Train.Rows(), parts.Train.Dims(), parts.Train.Outputs(), part.Rows(), part.Dims(), part.Outputs())
		}
	}
	bound, err := model.Bind(parts.Train.Dims(), parts.Train.Outputs())
	if err != nil {
		return nil, err
	}
	if want, have := bound.Model.Likelihood.Task(), parts.Train.Task; want != have {
		return nil, fmt.Errorf("ohsmc: likelihood %T is for %v, but the data %q is for %v", bound.Model.Likelihood, want, parts.Train.Name, have)
	}
	if settings, err = settings.withDefaults(bound, parts.Train.Rows()); err != nil {
		return nil, err
	}
	r := &run{
		algorithm: algorithm{Settings: settings, bound: bound},
		data:      parts.Train,
		features:  dataset.FitScaler(parts.Train.X),
		scaler:    dataset.TargetScaler{StdDev: 1},
		best:      Validation{NLPD: nan},
		begun:     time.Now(),
		saved:     time.Now(),
	}
	if parts.Train.Task == dataset.Regression {
		r.scaler = dataset.FitTargetScaler(parts.Train.Y)
	}
	if r.batches, err = dataset.NewEpochBatches(parts.Train.Rows(), settings.BatchSize, settings.Seed); err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	r.steps = settings.Epochs * r.batches.PerEpoch()
	if r.engine, err = settings.Engine.Or(); err != nil {
		return nil, err
	}
	if err := r.compile(parts); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// activationCopies is how many tensors of a layer's size a chunk holds at once, forward and backward.
const activationCopies = 4

// compile plans the chunks, prepares the programs and fills the state.
func (r *run) compile(parts dataset.Parts) error {
	plan := func(rows, copies int) (target.Likelihood, error) {
		bytes := int64(copies*r.bound.SuffixWidth()*rows) * int64(r.DType.Size())
		p, err := compute.NewPlan(r.Particles, bytes, r.Chunk)
		return target.Likelihood{Model: r.bound, Plan: p}, err
	}
	likelihood, err := plan(r.BatchSize, activationCopies)
	if err != nil {
		return err
	}
	r.target = target.MiniBatch{Likelihood: likelihood, Rows: parts.Train.Rows()}
	r.state = compute.NewState(r.engine)
	if err := r.load("train", parts.Train); err != nil {
		return err
	}
	current := r.kept()
	if r.bound.W > 0 {
		current = append(current, "mean", "square")
	}
	if r.train, err = compute.NewProgram(r.engine, "ohsmc step", append(current, "train_x", "train_y"), current, r.trainStep); err != nil {
		return err
	}
	if err := r.initialise(); err != nil {
		return fmt.Errorf("ohsmc: initial particles: %w", err)
	}
	if parts.Validation == nil {
		return nil
	}
	if r.validate, err = plan(parts.Validation.Rows(), 2); err != nil {
		return err
	}
	if err := r.load("valid", parts.Validation); err != nil {
		return err
	}
	best := []string{"best_nlpd"}
	for _, name := range r.kept() {
		best = append(best, "best_"+name)
		copied, err := r.state.Host(name)
		if err != nil {
			return err
		}
		r.state.Set("best_"+name, copied[name])
	}
	r.state.Set("best_nlpd", tensors.FromScalar(math.Inf(1)))
	reads := append(append(r.kept(), best...), "valid_x", "valid_y")
	r.validation, err = compute.NewProgram(r.engine, "ohsmc validation", reads, best, r.validateStep)
	return err
}

// load standardises a part and puts it into the state.
func (r *run) load(name string, part *dataset.Dataset) error {
	x, err := r.features.Apply(part.X)
	if err != nil {
		return fmt.Errorf("ohsmc: %w", err)
	}
	y := r.scaler.Apply(part.Y)
	r.state.Set(name+"_x", compute.Floats(r.DType, flat(x), part.Rows(), part.Dims()))
	r.state.Set(name+"_y", compute.Floats(r.DType, y, part.Rows()))
	return nil
}

// initialise draws phi from the prior and psi from its initialisers; weights are equal, moments 0.
func (r *run) initialise() error {
	names := r.kept()
	program, err := compute.NewProgram(r.engine, "ohsmc initial state", []string{"train_x"}, names, func(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
		g := s["train_x"].Graph()
		rng := random.New(g, r.Seed)
		start := compute.Nodes{
			"phi":         r.bound.SamplePrior(rng.Named("prior"), r.DType, r.Particles),
			"log_weights": BroadcastToDims(ConstAs(s["train_x"], -math.Log(float64(r.Particles))), r.Particles),
		}
		if r.bound.W > 0 {
			start["psi"] = r.bound.InitShared(rng.Named("shared"), r.DType, g)
		}
		return start, ConstAs(s["train_x"], []float64{0})
	})
	if err != nil {
		return err
	}
	defer program.Close()
	if _, err := program.Run(r.state); err != nil {
		return err
	}
	if r.bound.W > 0 {
		r.state.Set("mean", compute.Floats(r.DType, make([]float64, r.bound.W), r.bound.W))
		r.state.Set("square", compute.Floats(r.DType, make([]float64, r.bound.W), r.bound.W))
	}
	return nil
}

func (r *run) patienceOver() bool { return r.Patience > 0 && r.sinceBest >= r.Patience }

func (r *run) elapsed() time.Duration { return r.before + time.Since(r.begun) }

// report calls Progress, but not more than about ten times a second.
func (r *run) report(end bool) {
	if r.Progress == nil || !end && time.Since(r.reported) < 100*time.Millisecond {
		return
	}
	r.reported = time.Now()
	p := Progress{Step: r.step, Steps: r.steps, Epoch: r.step / r.batches.PerEpoch(), Validation: nan, Best: r.best.NLPD, LogEvidence: nan, ESS: nan, Elapsed: r.elapsed()}
	if n := len(r.trace); n > 0 {
		p.LogEvidence, p.ESS = -r.trace[n-1].Loss, r.trace[n-1].ESS
	}
	if n := len(r.validated); n > 0 {
		p.Validation = r.validated[n-1].NLPD
	}
	r.Progress(p)
}

// result makes the posterior of the best validation, or of the last step.
func (r *run) result() (*Result, error) {
	prefix := ""
	if r.best.Step > 0 {
		prefix = "best_"
	}
	var names []string
	for _, name := range r.kept() {
		names = append(names, prefix+name)
	}
	host, err := r.state.Host(names...)
	if err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	logWeights, err := compute.Float64s(host[prefix+"log_weights"])
	if err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	posterior, err := bayes.NewPosterior(r.bound, bayes.Draws{Phi: host[prefix+"phi"], Psi: host[prefix+"psi"], LogWeights: logWeights})
	if err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	posterior.Features, posterior.Target = r.features, r.scaler
	posterior.FeatureNames, posterior.TargetName, posterior.Classes = r.data.Features, r.data.Target, r.data.Classes
	posterior.Engine = r.Engine
	posterior.Provenance = bayes.Provenance{
		Algorithm: "ohsmc: open-horizon SMC (Zhao et al. 2024, Algorithm 3)", Status: string(r.status), Seed: r.Seed,
		Settings: r.Settings.record(), Data: r.data.Name, DataHash: r.data.Hash(), Rows: r.data.Rows(),
		Created: time.Now().UTC().Truncate(time.Second), Versions: bayes.Versions(r.engine),
	}
	return &Result{
		Posterior: posterior, Status: r.status, Steps: r.step, PerEpoch: r.batches.PerEpoch(), Trace: r.trace, Validated: r.validated, Best: r.best,
		Plan: r.target.Plan, Elapsed: r.elapsed(),
	}, nil
}

func (r *run) close() {
	if r.state != nil {
		r.state.Close()
	}
	if r.train != nil {
		r.train.Close()
	}
	if r.validation != nil {
		r.validation.Close()
	}
}

func flat(x *mat.Dense) []float64 {
	rows, columns := x.Dims()
	out := make([]float64, 0, rows*columns)
	for i := range rows {
		out = append(out, x.RawRowView(i)...)
	}
	return out
}
