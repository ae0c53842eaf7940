package bayes

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/dataset"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/tensors"
)

// Posterior is what a sampler returns: weighted particles of the stochastic parameters, the shared parameters, and what is needed to
// predict from raw data and to know where it came from. It does not change; it may be used by several goroutines.
type Posterior struct {
	Model      Model
	LogWeights smc.LogWeights
	// Features and Target standardise the data as in training; predictions are undone by Target.
	Features dataset.Scaler
	Target   dataset.TargetScaler
	// FeatureNames are the columns that Predict expects, TargetName is what it predicts; Classes are its labels, nil for regression.
	FeatureNames []string
	TargetName   string
	Classes      []string
	Provenance   Provenance
	// Engine to predict on; nil takes compute.Default. It is not saved.
	Engine *compute.Engine

	bound          *BoundModel
	phi            *tensors.Tensor // [J, D], on the host
	psi            *tensors.Tensor // [W], on the host; nil if nothing is shared
	expansionPoint *tensors.Tensor // [D], on the host: where the network is linearised; nil if it is not
}

// Provenance says where a posterior came from.
type Provenance struct {
	Algorithm string            `json:"algorithm"`
	Status    string            `json:"status"` // how training ended
	Seed      uint64            `json:"seed"`
	Settings  json.RawMessage   `json:"settings,omitempty"`
	Data      string            `json:"data"`      // name of the training data
	DataHash  string            `json:"data_hash"` // dataset.Dataset.Hash of the training part
	Rows      int               `json:"rows"`      // of the training part
	Created   time.Time         `json:"created"`
	Versions  map[string]string `json:"versions"` // of Go, of the modules that compute, and the backend
}

// Versions are those of Go, the library, GoMLX and the backend, for a Provenance.
func Versions(engine *compute.Engine) map[string]string {
	versions := map[string]string{"go": runtime.Version(), "backend": engine.Name(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
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

// Draws are particles as tensors on the host, for NewPosterior.
type Draws struct {
	Phi        *tensors.Tensor // [J, D]
	Psi        *tensors.Tensor // [W]; nil if nothing is shared
	LogWeights []float64       // [J], normalised or not
	// LinearisedAt, [D], makes particles those of the network's linearisation there, which Predict then evaluates in the place of the network:
	//
	//	f(x; phi_j) = f(x; phi*) + (df/dphi)(x; phi*) (phi_j - phi*)
	//
	// (Immer, Korzepa and Bauer 2021, equation 8). Nil: particles go through the network.
	LinearisedAt *tensors.Tensor
}

// NewPosterior joins a bound model with particles. It checks that shapes fit; the caller fills in the other fields.
func NewPosterior(bound *BoundModel, draws Draws) (*Posterior, error) {
	weights, err := smc.NewLogWeights(draws.LogWeights)
	if err != nil {
		return nil, err
	}
	if draws.Phi == nil {
		return nil, errors.New("bayes: a posterior needs particles: Draws.Phi is nil")
	}
	if d := draws.Phi.Shape().Dimensions; len(d) != 2 || d[0] != weights.Len() || d[1] != bound.D {
		return nil, fmt.Errorf("bayes: particles have shape %v, but there are %d log-weights and the model has %d stochastic numbers", d, weights.Len(), bound.D)
	}
	dtype := draws.Phi.DType()
	if dtype != compute.Float32 && dtype != compute.Float64 {
		return nil, fmt.Errorf("bayes: particles are of type %s: they must be Float32 or Float64", dtype)
	}
	if bound.W > 0 {
		if draws.Psi == nil {
			return nil, fmt.Errorf("bayes: the model has %d shared numbers, but Draws.Psi is nil", bound.W)
		}
		if shape := draws.Psi.Shape(); shape.Rank() != 1 || shape.Size() != bound.W || draws.Psi.DType() != dtype {
			return nil, fmt.Errorf("bayes: the model has %d shared numbers and particles of type %s, but psi is %s", bound.W, dtype, shape)
		}
	}
	if at := draws.LinearisedAt; at != nil && (at.Shape().Rank() != 1 || at.Shape().Size() != bound.D || at.DType() != dtype) {
		return nil, fmt.Errorf("bayes: the model has %d stochastic numbers and particles of type %s, but Draws.LinearisedAt is %s", bound.D, dtype, at.Shape())
	}
	return &Posterior{Model: bound.Model, LogWeights: weights, Target: dataset.TargetScaler{StdDev: 1}, bound: bound, phi: draws.Phi, psi: draws.Psi, expansionPoint: draws.LinearisedAt}, nil
}

// Bound is the model with its layout.
func (p *Posterior) Bound() *BoundModel { return p.bound }

// Particles is the number of particles J.
func (p *Posterior) Particles() int { return p.LogWeights.Len() }

// Linearised says whether Predict takes the particles through the network's linearisation, see Draws.LinearisedAt, not through the network.
func (p *Posterior) Linearised() bool { return p.expansionPoint != nil }

// Draws copies the particles: what NewPosterior joins with the model.
func (p *Posterior) Draws() (Draws, error) {
	copied, err := p.copies()
	if err != nil {
		return Draws{}, err
	}
	d := Draws{Phi: copied[0], Psi: copied[1], LinearisedAt: copied[2], LogWeights: make([]float64, p.Particles())}
	for j := range d.LogWeights {
		d.LogWeights[j] = p.LogWeights.At(j)
	}
	return d, nil
}

// Parameter copies one parameter, by its name in Bound().Slots: for a stochastic one values are [J, shape...], for a shared one
// [shape...], row-major.
func (p *Posterior) Parameter(name string) (values []float64, stochastic bool, err error) {
	for _, slot := range p.bound.Slots {
		if slot.Name != name {
			continue
		}
		t, rows, width := p.psi, 1, p.bound.W
		if slot.Stochastic {
			t, rows, width = p.phi, p.Particles(), p.bound.D
		}
		flat, err := compute.Float64s(t)
		if err != nil {
			return nil, false, err
		}
		for j := range rows {
			values = append(values, flat[j*width+slot.Offset:j*width+slot.Offset+slot.Size()]...)
		}
		return values, slot.Stochastic, nil
	}
	return nil, false, fmt.Errorf("bayes: the model has no parameter %q; it has\n%s", name, p.bound.Summary())
}

// The formats of a posterior's file. That of a linearised one has another name, so that a version that does not know of it cannot read it as particles of the
// network.
const (
	posteriorFormat  = "gobnn.posterior/1"
	linearisedFormat = "gobnn.posterior.linearised/1"
	weightsTensor    = "log_weights"
	linearisedTensor = "linearised_at"
)

func (p *Posterior) format() string {
	if p.Linearised() {
		return linearisedFormat
	}
	return posteriorFormat
}

// posteriorFile is the part of a posterior's file that is no tensor.
type posteriorFile struct {
	Format       string               `json:"format"`
	Model        Model                `json:"model"`
	Inputs       int                  `json:"inputs"`
	Outputs      int                  `json:"outputs"`
	Features     dataset.Scaler       `json:"features"`
	Target       dataset.TargetScaler `json:"target"`
	FeatureNames []string             `json:"feature_names"`
	TargetName   string               `json:"target_name"`
	Classes      []string             `json:"classes,omitempty"`
	Provenance   Provenance           `json:"provenance"`
}

// Save writes the posterior to a file in safetensors format: each stochastic parameter as [J, shape...], each shared one as
// [shape...], the normalised log-weights, where a linearised one is linearised, [D], and the rest as JSON in the metadata. The write is atomic.
func (p *Posterior) Save(path string) error {
	text, err := json.Marshal(posteriorFile{
		p.format(), p.Model, p.bound.Inputs, p.bound.Outputs, p.Features, p.Target, p.FeatureNames, p.TargetName, p.Classes, p.Provenance,
	})
	if err != nil {
		return fmt.Errorf("bayes: saving a posterior: %w", err)
	}
	file := tensorfile.File{Metadata: map[string]string{"gobnn": string(text)}, Tensors: map[string]*tensors.Tensor{}}
	logWeights := make([]float64, p.Particles())
	for j := range logWeights {
		logWeights[j] = p.LogWeights.At(j)
	}
	file.Tensors[weightsTensor] = tensors.FromFlatDataAndDimensions(logWeights, len(logWeights))
	for _, slot := range p.bound.Slots {
		t, err := p.slice(slot)
		if err != nil {
			return fmt.Errorf("bayes: saving %q: %w", slot.Name, err)
		}
		file.Tensors[slot.Name] = t
	}
	if p.Linearised() {
		file.Tensors[linearisedTensor] = p.expansionPoint
	}
	return tensorfile.Write(path, file)
}

// slice copies a slot's columns of phi, or its part of psi.
func (p *Posterior) slice(slot Slot) (*tensors.Tensor, error) {
	from, rows, width := p.psi, 1, p.bound.W
	dims := slot.Shape
	if slot.Stochastic {
		from, rows, width = p.phi, p.Particles(), p.bound.D
		dims = append([]int{rows}, slot.Shape...)
	}
	to := tensors.FromShape(shapeOf(from, dims))
	return to, copyColumns(to, slot.Size(), 0, from, width, slot.Offset, rows, slot.Size())
}

// Load reads a posterior that Save wrote. The error wraps tensorfile.ErrDamaged if the file was cut off or altered.
func Load(path string) (*Posterior, error) {
	file, err := tensorfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("bayes: loading a posterior: %w", err)
	}
	p, err := fromFile(file)
	if err != nil {
		return nil, fmt.Errorf("bayes: %s is not a posterior that this version reads: %w", path, err)
	}
	return p, nil
}

func fromFile(file tensorfile.File) (*Posterior, error) {
	text, ok := file.Metadata["gobnn"]
	if !ok {
		return nil, errors.New("it holds tensors, but nothing says of which model")
	}
	var head posteriorFile
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return nil, err
	}
	if head.Format != posteriorFormat && head.Format != linearisedFormat {
		return nil, fmt.Errorf("its format is %q, not %q or %q", head.Format, posteriorFormat, linearisedFormat)
	}
	bound, err := head.Model.Bind(head.Inputs, head.Outputs)
	if err != nil {
		return nil, err
	}
	weights := file.Tensors[weightsTensor]
	if weights == nil {
		return nil, errors.New("it has no log_weights")
	}
	logWeights, err := compute.Float64s(weights)
	if err != nil {
		return nil, err
	}
	draws := Draws{LogWeights: logWeights, LinearisedAt: file.Tensors[linearisedTensor]}
	if (head.Format == linearisedFormat) != (draws.LinearisedAt != nil) {
		return nil, fmt.Errorf("its format is %q, which goes with a tensor %q in a linearised one only", head.Format, linearisedTensor)
	}
	for _, slot := range bound.Slots {
		t := file.Tensors[slot.Name]
		if t == nil {
			return nil, fmt.Errorf("it has no tensor %q", slot.Name)
		}
		to, rows, width := &draws.Psi, 1, bound.W
		dims := []int{bound.W}
		if slot.Stochastic {
			to, rows, width = &draws.Phi, len(logWeights), bound.D
			dims = []int{rows, bound.D}
		}
		if t.Size() != rows*slot.Size() {
			return nil, fmt.Errorf("tensor %q has shape %s, but the model needs %d numbers", slot.Name, t.Shape(), rows*slot.Size())
		}
		if *to == nil {
			*to = tensors.FromShape(shapeOf(t, dims))
		}
		if err := copyColumns(*to, width, slot.Offset, t, slot.Size(), 0, rows, slot.Size()); err != nil {
			return nil, err
		}
	}
	p, err := NewPosterior(bound, draws)
	if err != nil {
		return nil, err
	}
	p.Features, p.Target, p.Classes = head.Features, head.Target, head.Classes
	p.FeatureNames, p.TargetName, p.Provenance = head.FeatureNames, head.TargetName, head.Provenance
	return p, nil
}

// noise is the standard deviation of each particle's Gaussian noise in the target's own units, [J]; nil for other likelihoods.
func (p *Posterior) noise() ([]float64, error) {
	gaussian, ok := p.Model.Likelihood.(Gaussian)
	if !ok {
		return nil, nil
	}
	noise := make([]float64, p.Particles())
	for j := range noise {
		noise[j] = gaussian.stdDev() * p.Target.StdDev
	}
	if !gaussian.Learn {
		return noise, nil
	}
	logScale, stochastic, err := p.Parameter(noiseName)
	if err != nil {
		return nil, err
	}
	for j := range noise {
		if stochastic {
			noise[j] *= math.Exp(logScale[j])
		} else {
			noise[j] *= math.Exp(logScale[0])
		}
	}
	return noise, nil
}
