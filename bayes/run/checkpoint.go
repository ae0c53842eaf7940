package run

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/tensorfile"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// ErrOtherRun is wrapped by the error for a checkpoint that is intact but belongs to another run, such as one with
// other settings.
var ErrOtherRun = errors.New("the checkpoint is of another run")

// metadataKey is the key of the header in the tensorfile's metadata.
const metadataKey = "gobnn"

// header is the part of a checkpoint that is not tensors.
type header struct {
	Format   string            `json:"format"`
	Identity map[string]string `json:"identity"`
	Elapsed  time.Duration     `json:"elapsed"`
	Threads  int               `json:"threads,omitempty"`
	Finished bool              `json:"finished,omitempty"`
	Head     json.RawMessage   `json:"head"` // the machine's
}

// save writes the checkpoint, if one is set.
func (r *Run) save() error {
	if r.Checkpoint == "" {
		return nil
	}
	if err := r.write(); err != nil {
		return fmt.Errorf("%s: checkpoint: %w", r.Owner, err)
	}
	r.saved = time.Now()
	return nil
}

// identify returns the machine's identity. It is computed at the first call and kept: the machine runs on copies, and
// the caller may change its own data and settings meanwhile.
func (r *Run) identify() (parts []Part, err error) {
	if r.identity == nil {
		r.identity, err = r.machine.Identity()
	}
	return r.identity, err
}

func (r *Run) write() error {
	identity, err := r.identify()
	if err != nil {
		return err
	}
	head, kept, err := r.machine.Keep()
	if err != nil {
		return err
	}
	h := header{Format: r.Format, Identity: valuesOf(identity), Elapsed: r.Elapsed(), Threads: r.Threads,
		Finished: r.machine.Status() != ""}
	if h.Head, err = json.Marshal(head); err != nil {
		return err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	file := tensorfile.File{Metadata: map[string]string{metadataKey: string(text)}, Tensors: kept}
	return tensorfile.Write(r.Checkpoint, file)
}

// name replaces the * in the checkpoint's name. If a machine cannot state its identity, the error comes here, before
// its first step.
func (r *Run) name() error {
	if r.Checkpoint == "" {
		return nil
	}
	identity, err := r.identify()
	if err != nil {
		return fmt.Errorf("%s: checkpoint: %w", r.Owner, err)
	}
	r.Checkpoint = Named(r.Checkpoint, identity)
	return nil
}

// Named is a checkpoint's name with a hash of what the run is in place of a *.
func Named(checkpoint string, identity []Part) string {
	before, after, star := strings.Cut(filepath.Base(checkpoint), "*")
	if !star {
		return checkpoint
	}
	sum := sha256.New()
	for _, part := range identity {
		fmt.Fprintf(sum, "%q %q\n", part.Name, part.Value)
	}
	return filepath.Join(filepath.Dir(checkpoint), before+hex.EncodeToString(sum.Sum(nil))[:12]+after)
}

// resume restores the machine from the checkpoint, if there is one.
func (r *Run) resume() (resumed bool, err error) {
	if r.Checkpoint == "" {
		return false, nil
	}
	h, kept, err := r.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, ErrOtherRun) || errors.Is(err, tensorfile.ErrDamaged):
		if r.Replace {
			return false, nil
		}
		return false, fmt.Errorf("%s: resuming: %w (to start anew, delete the file or set Settings.Replace)", r.Owner, err)
	case err != nil: // the file may be good, but cannot be read
		return false, fmt.Errorf("%s: resuming: %w", r.Owner, err)
	}
	if err := r.machine.Adopt(h.Head, kept); err != nil {
		return false, fmt.Errorf("%s: resuming from %s (delete the file to start anew): %w", r.Owner, r.Checkpoint, err)
	}
	r.before = h.Elapsed
	return true, nil
}

// Spent is the time that the run of a checkpoint has taken so far, in all of its sessions; 0 if there is none that can
// be read.
func Spent(checkpoint string) time.Duration {
	var h header
	if file, err := tensorfile.Read(checkpoint); err == nil {
		_ = json.Unmarshal([]byte(file.Metadata[metadataKey]), &h)
	}
	return h.Elapsed
}

// read reads the checkpoint. The error wraps fs.ErrNotExist if there is no file, tensorfile.ErrDamaged if it is
// damaged, and ErrOtherRun, with the difference, if it has another format, identity or number of threads.
func (r *Run) read() (header, map[string]*tensors.Tensor, error) {
	file, err := tensorfile.Read(r.Checkpoint)
	if err != nil {
		return header{}, nil, err
	}
	other := func(format string, args ...any) (header, map[string]*tensors.Tensor, error) {
		return header{}, nil, fmt.Errorf("%s: %w: %s", r.Checkpoint, ErrOtherRun, fmt.Sprintf(format, args...))
	}
	var h header
	if err := json.Unmarshal([]byte(file.Metadata[metadataKey]), &h); err != nil {
		return other("it has no head that can be read (%v)", err)
	}
	if h.Format != r.Format {
		return other("its format is %q, not %q, which this version writes", h.Format, r.Format)
	}
	identity, err := r.identify()
	if err != nil {
		return header{}, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(h.Identity)) {
		identity = append(identity, Part{Name: name})
	}
	here := valuesOf(identity)
	for _, part := range identity {
		if there, here := h.Identity[part.Name], here[part.Name]; there != here {
			old, now := difference(there, here)
			return other("by its %s: the file has %s, this run %s", part.Name, cmp.Or(old, "none"), cmp.Or(now, "none"))
		}
	}
	if r.Threads > 0 && h.Threads > 0 && h.Threads != r.Threads && !h.Finished {
		return other("it was computed with %d threads, and this process has %d: sums would differ in their last digits, and "+
			"then all that follows; set the environment variable NPROC=%d to go on with as many threads, which may share "+
			"processors", h.Threads, r.Threads, h.Threads)
	}
	return h, file.Tensors, nil
}

// valuesOf are the values of parts by their names, of several with one name the first.
func valuesOf(parts []Part) map[string]string {
	values := map[string]string{}
	for _, part := range slices.Backward(parts) {
		values[part.Name] = part.Value
	}
	return values
}

// difference reduces two texts that are JSON objects to the fields in which they differ, so that a message shows these
// only. Other texts are returned as they are.
func difference(a, b string) (string, string) {
	var left, right map[string]json.RawMessage
	if json.Unmarshal([]byte(a), &left) != nil || json.Unmarshal([]byte(b), &right) != nil || left == nil || right == nil {
		return a, b
	}
	for name, value := range left {
		other, both := right[name]
		if !both {
			continue
		}
		if bytes.Equal(value, other) {
			delete(left, name)
			delete(right, name)
			continue
		}
		old, now := difference(string(value), string(other))
		left[name], right[name] = json.RawMessage(old), json.RawMessage(now)
	}
	old, errLeft := json.Marshal(left)
	now, errRight := json.Marshal(right)
	if errLeft != nil || errRight != nil {
		return a, b
	}
	return string(old), string(now)
}

// Tensor is a tensor of a checkpoint; it is an error if there is none with this name, shape and type.
func Tensor(kept map[string]*tensors.Tensor, name string, want shapes.Shape) (*tensors.Tensor, error) {
	t := kept[name]
	if t == nil {
		return nil, fmt.Errorf("it has no tensor %q", name)
	}
	if !t.Shape().Equal(want) {
		return nil, fmt.Errorf("its tensor %q is %s: it must be %s", name, t.Shape(), want)
	}
	return t, nil
}

// Digest is a text that identifies a tensor by its shape and bits, for the Value of a Part.
func Digest(t *tensors.Tensor) (string, error) {
	digest := sha256.New()
	fmt.Fprintf(digest, "%s ", t.Shape())
	if err := t.ConstBytes(func(raw []byte) { digest.Write(raw) }); err != nil {
		return "", err
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// Table makes a tensor of a run's records for a checkpoint: float64, [records, width].
func Table(rows []float64, width int) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(rows, len(rows)/width, width)
}

// Rows reads rows that Table has written. It returns an error if their number is not the one given.
func Rows(kept map[string]*tensors.Tensor, name string, rows, width int) ([][]float64, error) {
	t, err := Tensor(kept, name, shapes.Make(compute.Float64, rows, width))
	if err != nil {
		return nil, err
	}
	flat, err := compute.Float64s(t)
	return slices.Collect(slices.Chunk(flat, width)), err
}
