package bayes

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/dataset"

	"github.com/gomlx/gomlx/core/tensors"
)

// The formats of a posterior's file. A linearised posterior has a format of its own, so that a reader that does not
// know linearisation refuses it instead of predicting with the network itself.
const (
	posteriorFormat  = "gobnn.posterior/2"
	linearisedFormat = "gobnn.posterior.linearised/2"
	weightsTensor    = "log_weights"
	linearisedTensor = "linearised_at"
)

func (p *Posterior) format() string {
	if p.expansionPoint != nil {
		return linearisedFormat
	}
	return posteriorFormat
}

// posteriorFile is the part of a posterior's file that is not tensors.
type posteriorFile struct {
	Format       string         `json:"format"`
	Model        Model          `json:"model"`
	Inputs       int            `json:"inputs"`
	Outputs      int            `json:"outputs"`
	Features     dataset.Scaler `json:"features"`
	Target       dataset.Scaler `json:"target"`
	FeatureNames []string       `json:"feature_names"`
	Extractor    *tagged        `json:"extractor,omitempty"`
	TargetNames  []string       `json:"target_names"`
	Classes      []string       `json:"classes,omitempty"`
	Provenance   Provenance     `json:"provenance"`
	// Numbers that may not be finite, which JSON cannot express, are written as text.
	Chains      int               `json:"chains,omitempty"`
	LogEvidence string            `json:"log_evidence,omitempty"`
	StdErr      string            `json:"log_evidence_std_err,omitempty"`
	Diagnostics map[string]string `json:"diagnostics,omitempty"`
}

// Save writes the posterior to a file in safetensors format: each stochastic parameter as [J, shape...], each shared
// one as [shape...], the normalised log-weights, [J], the point of linearisation, [D], if there is one, and the rest as
// JSON in the metadata. The write is atomic.
func (p *Posterior) Save(path string) error {
	if path == "" {
		return errors.New("bayes: saving a posterior: the path is empty: name the file")
	}
	o := p.origin
	head := posteriorFile{
		Format: p.format(), Model: p.bound.Model, Inputs: p.bound.Inputs, Outputs: p.bound.Outputs,
		Features: o.Features, Target: o.Target, FeatureNames: o.FeatureNames, TargetNames: o.TargetNames,
		Classes: o.Classes, Provenance: o.Provenance, Chains: p.chains,
	}
	if o.Extractor != nil {
		written, err := written(o.Extractor)
		if err != nil {
			return fmt.Errorf("bayes: saving a posterior: %w", err)
		}
		head.Extractor = &written
	}
	if p.evidence.Known() {
		head.LogEvidence, head.StdErr = number(p.evidence.Value), number(p.evidence.StdErr)
	}
	for name, value := range p.diagnostics {
		if head.Diagnostics == nil {
			head.Diagnostics = map[string]string{}
		}
		head.Diagnostics[name] = number(value)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("bayes: saving a posterior: %w", err)
	}
	file := tensorfile.File{Metadata: map[string]string{"gobnn": string(text)}, Columns: map[string]tensorfile.Columns{},
		Tensors: map[string]*tensors.Tensor{
			weightsTensor: tensors.FromFlatDataAndDimensions([]float64(p.logWeights), p.Particles())}}
	for _, slot := range p.bound.Slots {
		file.Columns[slot.Name] = p.columnsOf(slot)
	}
	if p.expansionPoint != nil {
		file.Tensors[linearisedTensor] = p.expansionPoint
	}
	return tensorfile.Write(path, file)
}

// number writes a number such that ParseFloat reads it back exactly.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// columnsOf are a slot's columns of phi, or its part of psi.
func (p *Posterior) columnsOf(slot Slot) tensorfile.Columns {
	if slot.Stochastic {
		return tensorfile.Columns{Of: p.phi, Width: p.bound.D, From: slot.Offset,
			Shape: append([]int{p.Particles()}, slot.Shape...)}
	}
	return tensorfile.Columns{Of: p.psi, Width: p.bound.W, From: slot.Offset, Shape: slot.Shape}
}

// Load reads a posterior that Save wrote. The error wraps tensorfile.ErrDamaged if the file was cut off or altered.
func Load(path string) (*Posterior, error) {
	if path == "" {
		return nil, errors.New("bayes: loading a posterior: the path is empty: name the file")
	}
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
		return nil, errors.New("it holds tensors, but does not say of which model")
	}
	var head posteriorFile
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return nil, err
	}
	if head.Format != posteriorFormat && head.Format != linearisedFormat {
		return nil, fmt.Errorf("its format is %q, not %q or %q", head.Format, posteriorFormat, linearisedFormat)
	}
	weights := file.Tensors[weightsTensor]
	if weights == nil {
		return nil, errors.New("it has no log_weights")
	}
	logWeights, err := compute.Float64s(weights)
	if err != nil {
		return nil, err
	}
	bound, err := head.bind(file.Tensors, len(logWeights))
	if err != nil {
		return nil, err
	}
	draws := Draws{LogWeights: logWeights, Chains: head.Chains, LinearisedAt: file.Tensors[linearisedTensor]}
	if draws.Evidence, draws.Diagnostics, err = head.numbers(); err != nil {
		return nil, err
	}
	if (head.Format == linearisedFormat) != (draws.LinearisedAt != nil) {
		return nil, fmt.Errorf("its format is %q, but only a linearised posterior has the tensor %q, and needs it",
			head.Format, linearisedTensor)
	}
	for _, slot := range bound.Slots {
		t := file.Tensors[slot.Name]
		to, rows, width := &draws.Psi, 1, bound.W
		dims := []int{bound.W}
		if slot.Stochastic {
			to, rows, width = &draws.Phi, len(logWeights), bound.D
			dims = []int{rows, bound.D}
		}
		if *to == nil {
			*to = tensors.FromShape(shapeOf(t, dims))
		}
		if err := copyColumns(*to, width, slot.Offset, t, slot.Size(), 0, rows, slot.Size()); err != nil {
			return nil, err
		}
	}
	var extractor Extractor
	if head.Extractor != nil {
		if extractor, err = decode[Extractor](*head.Extractor); err != nil {
			return nil, err
		}
	}
	return NewPosterior(bound, draws, Origin{
		Extractor: extractor, Features: head.Features, Target: head.Target, FeatureNames: head.FeatureNames,
		TargetNames: head.TargetNames, Classes: head.Classes, Provenance: head.Provenance,
	})
}

// bind binds the model. Before any memory or time is spent by the sizes that the file declares, they are compared with
// what it holds: a mean for each feature and target, and each parameter's numbers, for all particles.
func (f posteriorFile) bind(held map[string]*tensors.Tensor, particles int) (*BoundModel, error) {
	if f.Features.Mean == nil || f.Target.Mean == nil {
		return nil, errors.New("it has no means of the features or of the target: without them it would predict from data " +
			"that are not standardised")
	}
	if _, err := scaler("Features", f.Features, f.Inputs); err != nil {
		return nil, err
	}
	bound, err := f.Model.laidOut(f.Inputs, f.Outputs)
	if err != nil {
		return nil, err
	}
	if _, err := scaler("Target", f.Target, bound.Targets()); err != nil {
		return nil, err
	}
	needed := map[string]bool{weightsTensor: true, linearisedTensor: true}
	for _, slot := range bound.Slots {
		t := held[slot.Name]
		if t == nil {
			return nil, fmt.Errorf("it has no tensor %q", slot.Name)
		}
		want := slot.Shape
		if slot.Stochastic {
			want = append([]int{particles}, slot.Shape...)
		}
		if have := t.Shape().Dimensions; !slices.Equal(have, want) { // [in, out] is not [out, in], though of one size
			return nil, fmt.Errorf("tensor %q has shape %v, but the model needs %v", slot.Name, have, want)
		}
		needed[slot.Name] = true
	}
	for name := range held {
		if !needed[name] {
			return nil, fmt.Errorf("it has a parameter %q, and the model has none of this name: was the network changed "+
				"since? Give a changed network's type another name", name)
		}
	}
	return bound, bound.tryGraphs()
}

// numbers reads the numbers that are written as text.
func (f posteriorFile) numbers() (evidence Evidence, diagnostics map[string]float64, err error) {
	read := func(name, text string) float64 {
		v, parseErr := strconv.ParseFloat(text, 64)
		if parseErr != nil {
			err = fmt.Errorf("its %s is %q, which is no number", name, text)
		}
		return v
	}
	if f.LogEvidence != "" {
		evidence = Evidence{read("log_evidence", f.LogEvidence), read("log_evidence_std_err", f.StdErr)}
	}
	for name, text := range f.Diagnostics {
		if diagnostics == nil {
			diagnostics = map[string]float64{}
		}
		diagnostics[name] = read(fmt.Sprintf("diagnostic %q", name), text)
	}
	return evidence, diagnostics, err
}
