// Package checkpoint keeps a run that can be interrupted: the tensors of its state, a head that says where it stands, and its identity, which is
// what must agree for another run to go on from the file. It is a tensorfile, so it is whole or not there.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/tensorfile"

	"github.com/gomlx/gomlx/core/tensors"
)

// ErrOtherRun says that a file is whole, but not of the run that wants to go on from it.
var ErrOtherRun = errors.New("the checkpoint is of another run")

// Run is one kind of run, with its head.
type Run[Head any] struct {
	Format   string // of the file, with its version, such as "gobnn.mcmc/1"
	Identity []Part // in the order in which they are compared
	Head     Head
	Tensors  map[string]*tensors.Tensor
}

// Part is one part of what identifies a run, under the name that a message gives it, such as the seed.
type Part struct{ Name, Value string }

// metadataKey is where the head stands in the tensorfile.
const metadataKey = "gobnn"

type head[Head any] struct {
	Format   string            `json:"format"`
	Identity map[string]string `json:"identity"`
	Head     Head              `json:"head"`
}

// Write puts the run in a file, replacing what is there only when all of it is on disk.
func (r Run[Head]) Write(path string) error {
	identity := map[string]string{}
	for _, part := range r.Identity {
		identity[part.Name] = part.Value
	}
	text, err := json.Marshal(head[Head]{r.Format, identity, r.Head})
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", path, err)
	}
	return tensorfile.Write(path, tensorfile.File{Metadata: map[string]string{metadataKey: string(text)}, Tensors: r.Tensors})
}

// Read fills in Head and Tensors from a file of the same format and identity. The error wraps fs.ErrNotExist if there is no file,
// tensorfile.ErrDamaged if it is not whole, and ErrOtherRun, with what differs, if it is of another run. After an error the run is as it was.
func (r *Run[Head]) Read(path string) error {
	file, err := tensorfile.Read(path)
	if err != nil {
		return err
	}
	other := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w: %s", path, ErrOtherRun, fmt.Sprintf(format, args...))
	}
	var at head[json.RawMessage]
	if err := json.Unmarshal([]byte(file.Metadata[metadataKey]), &at); err != nil {
		return other("it has no head that can be read (%v)", err)
	}
	if at.Format != r.Format {
		return other("its format is %q, not %q", at.Format, r.Format)
	}
	for _, here := range r.Identity {
		if there := at.Identity[here.Name]; there != here.Value {
			return other("it belongs to one with another %s: there %s, here %s", here.Name, there, here.Value)
		}
	}
	var found Head
	if err := json.Unmarshal(at.Head, &found); err != nil {
		return other("its head cannot be read (%v)", err)
	}
	r.Head, r.Tensors = found, file.Tensors
	return nil
}

// Resume is Read for a setting that says whether a file that holds something else is to be replaced: found is false, without an error, where the run
// begins anew.
func (r *Run[Head]) Resume(path string, replace bool) (found bool, err error) {
	err = r.Read(path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case !errors.Is(err, ErrOtherRun) && !errors.Is(err, tensorfile.ErrDamaged):
		return false, err // the file may be good, but cannot be reached
	case replace:
		return false, nil
	}
	return false, fmt.Errorf("%w (to start anew, delete the file or set Settings.Replace)", err)
}

// Table lays records of a run out as a tensor, float64, a row of the given width each.
func Table(rows []float64, width int) *tensors.Tensor {
	if len(rows) == 0 {
		rows = make([]float64, width) // tensors of size 0 are not portable: a row of zeros stands for none
	}
	return tensors.FromFlatDataAndDimensions(rows, len(rows)/width, width)
}

// Rows is the inverse of Table. t is nil where the file has no such tensor, which is an error.
func Rows(t *tensors.Tensor, width int) ([][]float64, error) {
	if t == nil {
		return nil, errors.New("its records are missing")
	}
	flat, err := compute.Float64s(t)
	if err != nil || len(flat)%width != 0 {
		return nil, fmt.Errorf("its records cannot be read (%d numbers in rows of %d): %w", len(flat), width, err)
	}
	rows := slices.Collect(slices.Chunk(flat, width))
	if len(rows) == 1 && !slices.ContainsFunc(rows[0], func(v float64) bool { return v != 0 }) {
		return nil, nil
	}
	return rows, nil
}

// Into gives the named tensors to the state of a run that goes on, which from then on owns them.
func (r *Run[Head]) Into(state *compute.State, names []string) error {
	for _, name := range names {
		t := r.Tensors[name]
		if t == nil {
			return fmt.Errorf("it has no tensor %q", name)
		}
		state.Set(name, t)
	}
	return nil
}
