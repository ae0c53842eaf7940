package baseline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
)

// Method is one way to a posterior: MLE, MAP, Ensemble, Dropout, SWAG, VI, Laplace, MAPHMC, SGLD, SGHMC or HMC. The zero value of each works.
type Method interface {
	// Name is what a table calls it.
	Name() string
	// prepared fills in defaults for a model and data of so many rows, and checks the method's own settings.
	prepared(bound *bayes.BoundModel, s Settings, rows int) (Method, error)
	// source says where it comes from, for provenance; describe is its settings, for provenance and checkpoints.
	source() string
	describe() any
	fit(ctx context.Context, j *job) (*Result, error)
}

// Methods are all of them, each with its default settings.
func Methods() []Method {
	return []Method{MLE{}, MAP{}, Ensemble{}, Dropout{}, SWAG{}, VI{}, Laplace{}, MAPHMC{}, SGLD{}, SGHMC{}, HMC{}}
}

// Status says how a run ended.
type Status string

// The ways to end.
const (
	Completed    Status = "completed"     // all epochs, all draws
	StoppedEarly Status = "stopped early" // no member had a better validation for Patience validations
	Cancelled    Status = "cancelled"     // by the context: the posterior is what was there
)

// ErrDiverged says that no member had a finite gradient, or that chains left for where nothing is finite. Fit wraps it.
var ErrDiverged = errors.New("baseline: training diverged")

// Result of Fit.
type Result struct {
	Posterior *bayes.Posterior
	Status    Status
	Steps     int           // of gradient ascent, made
	PerEpoch  int           // steps in an epoch
	Trace     []StepRecord  // one for each step
	Validated []Validation  // one for each validation
	Best      []Best        // for each member the validation that its parameters belong to; nil without a validation part
	Chains    *mcmc.Result  // of methods that run chains; nil for the others
	Elapsed   time.Duration // over all sessions of the training, and of this one of what follows it
}

// StepRecord is what a step of gradient ascent leaves on the host.
type StepRecord struct {
	// Loss is minus the objective over the number of rows: the negative log-posterior (MAP), the negative log-likelihood (MLE) or the negative evidence
	// lower bound (VI, dropout), estimated from the batch; mean over the members whose objective is finite.
	Loss float64
	// Rejected is how many members stayed where they were, since their gradient was not finite.
	Rejected int
}

// Validation are the NLPDs on the validation part after a step.
type Validation struct {
	Step int       // counted from 1
	NLPD []float64 // of each member
}

// Best is one member's best validation.
type Best struct {
	Step int
	NLPD float64
}

// Fit runs a method. Features, and the target of a regression, are standardised by the training part's means and standard deviations unless
// Model.Scaling says otherwise; the posterior keeps them and predicts in raw units.
//
// A cancelled context is no error: the result is what was there, with the status Cancelled; but where a method's second stage had not begun to give
// draws, there is no posterior, and the error wraps the context's. Errors wrap dataset.ErrMissingClass or ErrDiverged where these are at fault.
func Fit(ctx context.Context, model bayes.Model, method Method, parts dataset.Parts, settings Settings) (*Result, error) {
	trainer := NewTrainer(model)
	defer trainer.Close()
	return trainer.Fit(ctx, method, parts, settings)
}

// Trainer fits one model again and again, on other splits, with other methods, seeds and learning rates, and compiles training and chains only once for data
// and settings of the same size and kind. It may be used by several goroutines, one run at a time.
type Trainer struct {
	model    bayes.Model
	mu       sync.Mutex
	programs map[string]*programs // by what they were compiled for
	samplers mcmc.Samplers
}

// NewTrainer is a trainer of the model. Close it at the end.
func NewTrainer(model bayes.Model) *Trainer {
	return &Trainer{model: model, programs: map[string]*programs{}}
}

// Close frees what was compiled.
func (t *Trainer) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.programs {
		p.close()
	}
	clear(t.programs)
	t.samplers.Close()
}

// Fit is the function Fit with the trainer's model.
func (t *Trainer) Fit(ctx context.Context, method Method, parts dataset.Parts, settings Settings) (*Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j, err := t.newJob(method, parts, settings)
	if err != nil {
		return nil, err
	}
	result, err := j.method.fit(ctx, j)
	if result == nil || result.Posterior == nil {
		return nil, err
	}
	result.Elapsed += time.Since(j.begun)
	return result, nil
}

// job is one Fit: everything checked, the data standardised.
type job struct {
	Settings
	trainer *Trainer
	method  Method
	data    *fit.Data
	bound   *bayes.BoundModel // of the user's model
	engine  *compute.Engine
	parts   dataset.Parts
	begun   time.Time
}

func (t *Trainer) newJob(method Method, parts dataset.Parts, settings Settings) (*job, error) {
	if method == nil {
		return nil, fmt.Errorf("baseline: there is no method: take one of %s", strings.Join(names(), ", "))
	}
	data, err := fit.New("baseline", t.model, parts)
	if err != nil {
		return nil, err
	}
	bound := data.Bound
	if _, err := json.Marshal(bound.Model); err != nil { // programs are known by their models, as text
		return nil, fmt.Errorf("baseline: the model: %w", err)
	}
	if settings, err = settings.withDefaults(parts.Train.Rows()); err != nil {
		return nil, err
	}
	if method, err = method.prepared(bound, settings, parts.Train.Rows()); err != nil {
		return nil, err
	}
	if _, err := json.Marshal(method.describe()); err != nil { // a kernel of a user's own
		return nil, fmt.Errorf("baseline: the settings of %T: %w", method, err)
	}
	j := &job{
		Settings: settings, trainer: t, method: method, data: data, bound: bound, parts: parts, begun: time.Now(),
	}
	j.engine, err = settings.Engine.Or()
	return j, err
}

func names() []string {
	var all []string
	for _, m := range Methods() {
		all = append(all, fmt.Sprintf("%T", m))
	}
	return all
}

// particles are draws of equal weight, on the host.
type particles struct {
	phi    []float64 // flat [J, D]
	psi    []float64 // [W]; nil if nothing is shared
	at     []float64 // [D]: where the network is linearised; nil if it is not
	chains int       // that they are of, chain after chain; 0: of none
}

// posterior joins particles into what Fit returns.
func (j *job) posterior(bound *bayes.BoundModel, status Status, p particles) (*bayes.Posterior, error) {
	count := len(p.phi) / bound.D
	draws := bayes.Draws{
		Phi: compute.Floats(j.DType, p.phi, count, bound.D), LogWeights: bayes.EqualLogWeights(count), Chains: p.chains,
	}
	if bound.W > 0 {
		draws.Psi = compute.Floats(j.DType, p.psi, bound.W)
	}
	if p.at != nil {
		draws.LinearisedAt = compute.Floats(j.DType, p.at, bound.D)
	}
	data := *j.data
	data.Bound = bound
	return data.Posterior(draws, bayes.Provenance{
		Algorithm: "baseline: " + j.method.source(), Status: string(status), Seed: j.Seed,
		Settings: text(map[string]any{"method": j.method.describe(), "training": j.record()}),
	}, j.engine)
}
