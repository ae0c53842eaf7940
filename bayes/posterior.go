package bayes

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// Posterior is the result of a sampler: weighted particles of the stochastic parameters, the shared parameters, the
// scalers of the data, with which it predicts from raw features, and the provenance. NewPosterior and Load make it. It
// does not change, and may be used by several goroutines.
type Posterior struct {
	bound          *BoundModel
	phi            *tensors.Tensor // [J, D], on the host
	psi            *tensors.Tensor // [W], on the host; nil if nothing is shared
	expansionPoint *tensors.Tensor // [D], on the host: where the network is linearised; nil if it is not
	logWeights     LogWeights
	chains         int
	evidence       Evidence
	diagnostics    map[string]float64
	origin         Origin
	evaluators     *evaluators // shared by copies with the same particles
}

// Draws are the particles of a posterior, as tensors on the host, with their sampler's chains, evidence and
// diagnostics.
type Draws struct {
	Phi        *tensors.Tensor // [J, D]
	Psi        *tensors.Tensor // [W]; nil if nothing is shared
	LogWeights []float64       // [J], normalised or not; EqualLogWeights for draws of equal weight
	// Chains is the number of Markov chains, of equal length, that the draws come from; one chain follows another in
	// Phi. 0: the draws are not from chains.
	Chains int
	// Evidence is an estimate of log p(y), such as SMC gives; its zero value means unknown.
	Evidence Evidence
	// Diagnostics are numbers that measure how far the draws can be trusted, by name, such as "k-hat"; nil if none.
	Diagnostics map[string]float64
	// LinearisedAt, phi* [D], if set, makes Predict evaluate the network linearised at phi* instead of the network:
	//
	//	f(x; phi_j) = f(x; phi*) + (df/dphi)(x; phi*) (phi_j - phi*)
	//
	// (Immer, Korzepa and Bauer 2021, equation 8).
	LinearisedAt *tensors.Tensor
}

// LeftOut is the name of a diagnostic: the NLPD of rows that parts of the posterior were not trained on, in the
// target's units. LeftOutErr is its standard error.
const (
	LeftOut    = "NLPD of rows left out"
	LeftOutErr = "NLPD of rows left out, standard error"
)

// EqualLogWeights returns the normalised log-weights of J draws of equal weight, -log J each.
func EqualLogWeights(draws int) []float64 {
	return slices.Repeat([]float64{-math.Log(float64(draws))}, draws)
}

// Evidence is an estimate of the log evidence, log p(y). If the target was standardised, as a regression's is by
// default, Value is the log density of the standardised target. The log density of the raw target is Value - N sum_k
// log s_k, with N training rows and the standard deviations s_k in Origin().Target. Compare models by it only on the
// same training rows and in the same units.
type Evidence struct {
	Value  float64 // NaN if unknown
	StdErr float64 // the standard error of Value; NaN if unknown
}

// Known says whether there is an estimate.
func (e Evidence) Known() bool { return !math.IsNaN(e.Value) }

// String is such as "-21.280 ± 0.006", or "unknown".
func (e Evidence) String() string {
	if !e.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%.3f ± %.3f", e.Value, e.StdErr)
}

// Origin is the record of a posterior's data and run.
type Origin struct {
	// Features and Target standardise the data as in training; Target, with a column for each target, also transforms
	// predictions back. Their zero values leave data as they are.
	Features dataset.Scaler
	Target   dataset.Scaler
	// FeatureNames are the columns that Predict expects, and TargetNames are the targets that it predicts; nil if they
	// have no names. Classes are the labels of a classification, nil for regression; if they are nil for a
	// classification, NewPosterior names them "0", "1" and so on.
	FeatureNames []string
	TargetNames  []string
	Classes      []string
	// Extractor makes the features of rows, whose columns FeatureNames then are; nil: these are the features.
	Extractor Extractor
	// Engine to predict on; nil takes compute.Default. It is not saved.
	Engine     *compute.Engine
	Provenance Provenance
}

// Provenance says where a posterior came from.
type Provenance struct {
	Algorithm string `json:"algorithm"`
	Status    string `json:"status"` // how training ended
	// Warnings are the reasons to doubt the posterior that its fit has found (fit.Result.Warnings); of a file that an
	// earlier version wrote there are none.
	Warnings []string        `json:"warnings,omitempty"`
	Seed     uint64          `json:"seed"`
	Settings json.RawMessage `json:"settings,omitempty"`
	Data     string          `json:"data"`      // name of the training data
	DataHash string          `json:"data_hash"` // dataset.Dataset.Hash of the training part
	Rows     int             `json:"rows"`      // of the training part
	// Trained are these rows, if they were in memory.
	Trained dataset.RowSet `json:"trained,omitzero"`
	// Percentages are dataset.Dataset.Percentages of these rows; nil: not known.
	Percentages []string `json:"percentages,omitzero"`
	// Extras says what these rows had beside features and targets.
	Extras dataset.Extras `json:"extras,omitzero"`
	// LikelihoodPower is the exponent of the likelihood in the distribution that the draws come from; 0 means 1, the
	// posterior itself. A tempered posterior has another exponent.
	LikelihoodPower float64 `json:"likelihood_power,omitempty"`
	// Approximation describes the distribution that the draws come from if it is not the posterior even in the limit of
	// many draws, such as "a Gaussian at the mode". It is empty if it is the posterior.
	Approximation string    `json:"approximation,omitempty"`
	Created       time.Time `json:"created"` // by default the time of NewPosterior
	// Versions holds the versions of Go, of the modules that compute, and of the backend.
	Versions map[string]string `json:"versions"`
	// Before is the provenance of the posterior that this run continued from; nil if none.
	Before *Provenance `json:"before,omitempty"`
}

// CheckExposure is an error if the posterior is of counts over exposures and the rows, which are to be compared with
// its predictions, have none.
func (p *Posterior) CheckExposure(rows *dataset.Dataset) error {
	if !p.origin.Provenance.Extras.Exposure || rows.Exposure != nil {
		return nil
	}
	return fmt.Errorf("bayes: the posterior is of counts over exposures, and the data %q have none: set "+
		"CSVOptions.Exposure, in the options of the file or in the data; 1 each if it does not matter", rows.Name)
}

// Power is the exponent of the likelihood: LikelihoodPower, or 1 if that is 0.
func (p Provenance) Power() float64 { return cmp.Or(p.LikelihoodPower, 1) }

// versionsOf returns the versions of Go, the library, GoMLX and the backend, for a Provenance.
func versionsOf(engine *compute.Engine) map[string]string {
	versions := map[string]string{"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
	if engine != nil {
		versions["backend"] = engine.Name()
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range append(info.Deps, &info.Main) {
			switch module.Path {
			case "gobnn", "github.com/gomlx/gomlx", "github.com/gomlx/compute", "github.com/gomlx/go-xla":
				versions[module.Path] = module.Version
			}
		}
	}
	return versions
}

// NewPosterior makes a posterior of a bound model, particles and their origin, and checks that they fit. It owns the
// draws' tensors from then on. Created and Versions of the provenance are filled in if empty.
func NewPosterior(bound *BoundModel, draws Draws, origin Origin) (*Posterior, error) {
	weights, err := NewLogWeights(draws.LogWeights)
	if err != nil {
		return nil, err
	}
	if err := draws.check(bound, len(weights)); err != nil {
		return nil, err
	}
	if err := draws.checkFinite(bound, weights.Weights()); err != nil {
		return nil, err
	}
	if origin, err = origin.complete(bound); err != nil {
		return nil, err
	}
	if draws.Evidence == (Evidence{}) || math.IsNaN(draws.Evidence.Value) {
		draws.Evidence = Evidence{Value: math.NaN(), StdErr: math.NaN()}
	}
	return &Posterior{
		bound: bound, phi: draws.Phi, psi: draws.Psi, expansionPoint: draws.LinearisedAt,
		logWeights: weights, chains: draws.Chains, evidence: draws.Evidence, diagnostics: maps.Clone(draws.Diagnostics),
		origin: origin, evaluators: newEvaluators(),
	}, nil
}

// check is an error if shapes or types do not fit the model, or each other.
func (d Draws) check(bound *BoundModel, particles int) error {
	if d.Phi == nil {
		return errors.New("bayes: a posterior needs particles: Draws.Phi is nil")
	}
	if dims := d.Phi.Shape().Dimensions; len(dims) != 2 || dims[0] != particles || dims[1] != bound.D {
		return fmt.Errorf("bayes: particles have shape %v, but there are %d log-weights and the model has %d stochastic "+
			"numbers",
			dims, particles, bound.D)
	}
	dtype := d.Phi.DType()
	if dtype != compute.Float32 && dtype != compute.Float64 {
		return fmt.Errorf("bayes: particles are of type %s: they must be Float32 or Float64", dtype)
	}
	if bound.W > 0 {
		if d.Psi == nil {
			return fmt.Errorf("bayes: the model has %d shared numbers, but Draws.Psi is nil", bound.W)
		}
		if shape := d.Psi.Shape(); shape.Rank() != 1 || shape.Size() != bound.W || d.Psi.DType() != dtype {
			return fmt.Errorf("bayes: the model has %d shared numbers and particles of type %s, but psi is %s",
				bound.W, dtype, shape)
		}
	}
	if at := d.LinearisedAt; at != nil && (at.Shape().Rank() != 1 || at.Shape().Size() != bound.D || at.DType() != dtype) {
		return fmt.Errorf("bayes: the model has %d stochastic numbers and particles of type %s, but Draws.LinearisedAt is %s",
			bound.D, dtype, at.Shape())
	}
	if d.Evidence.StdErr < 0 {
		return fmt.Errorf("bayes: the standard error of Draws.Evidence is %v: it must be at least 0, or NaN if it is not "+
			"known", d.Evidence.StdErr)
	}
	if d.Chains < 0 || d.Chains > 0 && particles%d.Chains != 0 {
		return fmt.Errorf("bayes: Draws.Chains is %d, but %d particles cannot be split into that many chains of equal "+
			"length: set it to 0 if the draws are not from chains",
			d.Chains, particles)
	}
	return nil
}

// checkFinite is an error that names the parameter if a number is NaN or infinite: a shared one, or one of a particle
// that has a weight.
func (d Draws) checkFinite(bound *BoundModel, weights []float64) error {
	for _, s := range bound.Slots {
		of := []*tensors.Tensor{d.Psi}
		if s.Stochastic {
			of = []*tensors.Tensor{d.Phi, d.LinearisedAt}
		}
		for _, t := range of {
			if t == nil {
				continue
			}
			counts := func(particle int) bool { return t != d.Phi || weights[particle] != 0 }
			row, v := -1, 0.
			err := t.ConstFlatData(func(flat any) {
				switch flat := flat.(type) {
				case []float32:
					row, v = notFinite(flat, t.Shape().Dim(-1), s, counts)
				case []float64:
					row, v = notFinite(flat, t.Shape().Dim(-1), s, counts)
				}
			})
			switch {
			case err != nil:
				return fmt.Errorf("bayes: the particles cannot be read: %w", err)
			case row < 0:
				continue
			}
			which := ""
			if t == d.Phi {
				which = fmt.Sprintf(" in particle %d, counted from 0", row)
			}
			return fmt.Errorf("bayes: parameter %q is %v%s: nothing can be predicted with it; the training diverged, or the "+
				"file was altered", s.Name, v, which)
		}
	}
	return nil
}

// notFinite is the first number of a slot that is NaN or infinite, with its row, of the rows that count; -1: there is
// none. It makes no copy, of draws that may take gigabytes.
func notFinite[T float32 | float64](flat []T, width int, s Slot, counts func(row int) bool) (row int, v float64) {
	for row := range len(flat) / width {
		if !counts(row) {
			continue
		}
		for _, v := range flat[row*width+s.Offset:][:s.Size()] {
			if !finite(float64(v)) {
				return row, float64(v)
			}
		}
	}
	return -1, 0
}

// complete checks the scalers, fills in defaults, and copies slices and maps.
func (o Origin) complete(bound *BoundModel) (Origin, error) {
	var err error
	if o.Features, err = scaler("Features", o.Features, bound.Inputs); err != nil {
		return o, err
	}
	if o.Target, err = scaler("Target", o.Target, bound.Targets()); err != nil {
		return o, err
	}
	if err := checkCounts(bound.Model.Likelihood, o.Target); err != nil {
		return o, fmt.Errorf("bayes: %w", err)
	}
	if o.Classes == nil {
		for c := range bound.classes() {
			o.Classes = append(o.Classes, strconv.Itoa(c))
		}
	}
	if err := o.checkNames(bound); err != nil {
		return o, err
	}
	for p := &o.Provenance; p != nil; p = p.Before {
		if !(p.LikelihoodPower >= 0) || math.IsInf(p.LikelihoodPower, 1) {
			return o, fmt.Errorf("bayes: Provenance.LikelihoodPower is %v: it must be finite and positive, or 0, which means 1",
				p.LikelihoodPower)
		}
	}
	if o.Provenance.Created.IsZero() {
		o.Provenance.Created = time.Now().UTC().Truncate(time.Second)
	}
	if o.Provenance.Versions == nil {
		o.Provenance.Versions = versionsOf(o.Engine)
	}
	return o.clone(), nil
}

// checkNames is an error if names do not fit the model, or are not UTF-8, which a file could not hold.
func (o Origin) checkNames(bound *BoundModel) error {
	for _, list := range []struct {
		what  string
		names []string
		want  int
	}{
		{"FeatureNames", o.FeatureNames, o.columns(bound)}, {"TargetNames", o.TargetNames, bound.Targets()},
		{"Classes", o.Classes, bound.classes()}, {"Provenance.Data", []string{o.Provenance.Data}, 1},
	} {
		if n := len(list.names); list.names != nil && n != list.want {
			return fmt.Errorf("bayes: Origin.%s are %d (%.200q), but the model has %d", list.what, n, list.names, list.want)
		}
		for _, name := range list.names {
			if !utf8.ValidString(name) {
				return fmt.Errorf("bayes: Origin.%s has %q, which is not UTF-8: convert the data's file, for example by "+
					"iconv -f latin1 -t utf8", list.what, name)
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range o.Classes {
		if seen[c] {
			return fmt.Errorf("bayes: Origin.Classes lists %q twice: each class needs a name of its own", c)
		}
		seen[c] = true
	}
	return nil
}

// columns is the number of numbers in a row that the posterior predicts.
func (o Origin) columns(bound *BoundModel) int {
	if o.Extractor != nil {
		return len(o.FeatureNames)
	}
	return bound.Inputs
}

// scaler is a checked copy of s, which must have the given number of columns; its zero value scales nothing.
func scaler(name string, s dataset.Scaler, columns int) (dataset.Scaler, error) {
	if s.Mean == nil && s.StdDev == nil {
		return dataset.NoScaler(columns), nil
	}
	if a, b, c := len(s.Mean), len(s.StdDev), len(s.Constant); a != columns || b != columns || c > 0 && c != columns {
		return s, fmt.Errorf("bayes: the model has %d columns of %s, but Origin.%s has %d means, %d standard deviations and "+
			"%d numbers in Constant", columns, strings.ToLower(name), name, a, b, c)
	}
	for i, v := range s.StdDev {
		if m := s.Mean[i]; !(v > 0) || !finite(v) || !finite(m) {
			return s, fmt.Errorf("bayes: Origin.%s scales column %d by mean %v and standard deviation %v: they must be "+
				"finite, and the "+
				"second above 0", name, i, m, v)
		}
	}
	if err := s.CheckCurves(columns); err != nil {
		return s, fmt.Errorf("bayes: Origin.%s: %w", name, err)
	}
	return s.Clone(), nil
}

func (o Origin) clone() Origin {
	o.Features, o.Target = o.Features.Clone(), o.Target.Clone()
	o.FeatureNames, o.TargetNames, o.Classes = slices.Clone(o.FeatureNames), slices.Clone(o.TargetNames),
		slices.Clone(o.Classes)
	o.Provenance = o.Provenance.clone()
	return o
}

func (p Provenance) clone() Provenance {
	p.Percentages = slices.Clone(p.Percentages)
	p.Settings, p.Versions, p.Warnings = slices.Clone(p.Settings), maps.Clone(p.Versions), slices.Clone(p.Warnings)
	if p.Before != nil {
		before := p.Before.clone()
		p.Before = &before
	}
	return p
}

// Model copies the posterior's model.
func (p *Posterior) Model() Model { return p.bound.Model.clone() }

// LogWeights copies the particles' normalised log-weights.
func (p *Posterior) LogWeights() LogWeights { return slices.Clone(p.logWeights) }

// Chains is the number of Markov chains, of equal length and one after another, that the particles come from; 0 if they
// are not from chains.
func (p *Posterior) Chains() int { return p.chains }

// Evidence is the run's estimate of log p(y); NaN if unknown.
func (p *Posterior) Evidence() Evidence { return p.evidence }

// Diagnostics copies the run's numbers that measure how far its draws can be trusted, by name; nil if none.
func (p *Posterior) Diagnostics() map[string]float64 { return maps.Clone(p.diagnostics) }

// Origin copies the record of the data and the run. With Draws it is what NewPosterior takes.
func (p *Posterior) Origin() Origin { return p.origin.clone() }

// Like is a table without rows that has the features, targets and classes which the posterior was trained on, for
// dataset.CSVOptions.Like. MissingMean takes the training part's means, if the model standardises its features.
func (p *Posterior) Like() *dataset.Dataset {
	o := p.Origin()
	d := &dataset.Dataset{Name: o.Provenance.Data, Task: p.Model().Likelihood.Task(), Features: o.FeatureNames,
		Classes: o.Classes, Percentages: o.Provenance.Percentages}
	if len(o.TargetNames) > 1 {
		d.Targets = o.TargetNames
	} else {
		d.Target = strings.Join(o.TargetNames, "")
	}
	if !o.Features.IsIdentity() && o.Extractor == nil {
		d.X = mat.NewDense(1, len(o.Features.Mean), o.Features.Mean)
	}
	return d
}

// Provenance copies the posterior's provenance.
func (p *Posterior) Provenance() Provenance { return p.origin.Provenance.clone() }

// On is the same posterior with another engine to predict on.
func (p *Posterior) On(engine *compute.Engine) *Posterior {
	other := *p
	other.origin.Engine = engine
	return &other
}

// WithDoubts is the same posterior with another Status and other Warnings in its provenance.
func (p *Posterior) WithDoubts(status string, warnings []string) *Posterior {
	other := *p
	other.origin.Provenance.Status, other.origin.Provenance.Warnings = status, slices.Clone(warnings)
	return &other
}

// Bound is the bound model, with the layout of its parameters.
func (p *Posterior) Bound() *BoundModel { return p.bound }

// Particles is the number of particles J.
func (p *Posterior) Particles() int { return len(p.logWeights) }

// Draws copies the particles with their chains, evidence and diagnostics. With Origin it is what NewPosterior takes.
func (p *Posterior) Draws() (Draws, error) {
	copied, err := clones(p.phi, p.psi, p.expansionPoint)
	if err != nil {
		return Draws{}, err
	}
	return Draws{
		Phi: copied[0], Psi: copied[1], LinearisedAt: copied[2], LogWeights: slices.Clone(p.logWeights),
		Chains: p.chains, Evidence: p.evidence, Diagnostics: p.Diagnostics(),
	}, nil
}

// Parameter copies one parameter, by its name in Bound().Slots: for a stochastic one values are [J, shape...], for a
// shared one [shape...], row-major.
func (p *Posterior) Parameter(name string) (values []float64, stochastic bool, err error) {
	for _, slot := range p.bound.Slots {
		if slot.Name != name {
			continue
		}
		values, err = p.valuesOf(slot)
		return values, slot.Stochastic, err
	}
	return nil, false, fmt.Errorf("bayes: the model has no parameter %q; it has\n%s", name, p.bound.Summary())
}

// Coordinate copies coordinate k of phi, from 0 to D - 1, of each particle: [J]. Number i of a parameter is coordinate
// Offset + i, with Offset from its slot in Bound().Slots.
func (p *Posterior) Coordinate(k int) ([]float64, error) {
	if k < 0 || k >= p.bound.D {
		return nil, fmt.Errorf("bayes: coordinate %d: the model has %d stochastic numbers, counted from 0", k, p.bound.D)
	}
	slot := Slot{Stochastic: true, Offset: k}
	slot.Shape = []int{1}
	return p.valuesOf(slot)
}

// valuesOf copies a slot's columns of phi, or its part of psi.
func (p *Posterior) valuesOf(slot Slot) ([]float64, error) {
	c := p.columnsOf(slot)
	t := tensors.FromShape(shapeOf(c.Of, c.Shape))
	if err := copyColumns(t, slot.Size(), 0, c.Of, c.Width, c.From, t.Size()/slot.Size(), slot.Size()); err != nil {
		return nil, err
	}
	return compute.Float64s(t)
}

// own returns the values of the likelihood's own parameters, [J, P]; nil if it has none.
func (p *Posterior) own() ([]float64, error) {
	var columns [][]float64 // each [J, size], or [size] if it is shared
	each := 0
	parameters := p.bound.Model.Likelihood.Parameters(p.bound.Outputs)
	for _, parameter := range parameters {
		values, _, err := p.Parameter(parameter.Name)
		if err != nil {
			return nil, err
		}
		columns, each = append(columns, values), each+parameter.Size()
	}
	own := make([]float64, 0, each*p.Particles())
	for j := range p.Particles() {
		for i, values := range columns {
			size := parameters[i].Size()
			at := j * size % len(values) // 0 if it is shared
			own = append(own, values[at:at+size]...)
		}
	}
	return own, nil
}
