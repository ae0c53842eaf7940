// Package tensorfile keeps named tensors and text in one file: the safetensors format
// (github.com/huggingface/safetensors), which holds no code and which Python reads with
// safetensors.numpy.load_file(path).
//
// A file is eight bytes with the length of a JSON header, the header, and the tensors' bytes, little-endian, row-major.
// The entry "sha256" of the header's metadata is a digest over every byte of the file, taken while it holds zeros
// itself, so that Read notices a file that was cut off or altered. Write is atomic: a reader sees the old file or the
// new one, never half of either.
package tensorfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/google/renameio/v2"
)

// ErrDamaged says that a file is not what was written.
var ErrDamaged = errors.New("tensorfile: the file is damaged")

// File is the content of a tensorfile.
type File struct {
	Tensors  map[string]*tensors.Tensor
	Metadata map[string]string
}

const (
	metadataKey = "__metadata__"
	digestKey   = "sha256"
)

var codes = map[dtypes.DType]string{
	dtypes.Float32: "F32", dtypes.Float64: "F64", dtypes.Int32: "I32", dtypes.Int64: "I64", dtypes.Uint32: "U32",
	dtypes.Uint8: "U8",
}

type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Write puts the file at path, replacing what is there only when all of it is on disk.
func Write(path string, f File) error {
	if _, taken := f.Tensors[metadataKey]; taken {
		return fmt.Errorf("tensorfile: %s: the format keeps the name %q for itself", path, metadataKey)
	}
	header := map[string]any{}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(f.Tensors)) {
		t := f.Tensors[name]
		code, ok := codes[t.DType()]
		if !ok {
			return fmt.Errorf("tensorfile: %s: tensor %q has type %s, which the format lacks", path, name, t.DType())
		}
		from := int64(len(data))
		if err := t.ConstBytes(func(raw []byte) { data = append(data, raw...) }); err != nil {
			return fmt.Errorf("tensorfile: %s: tensor %q: %w", path, name, err)
		}
		shape := slices.Clone(t.Shape().Dimensions)
		if shape == nil {
			shape = []int{}
		}
		header[name] = entry{code, shape, [2]int64{from, int64(len(data))}}
	}
	metadata := maps.Clone(f.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[digestKey] = noDigest
	header[metadataKey] = metadata
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("tensorfile: %s: %w", path, err)
	}
	for len(text)%8 != 0 { // the format wants the data aligned
		text = append(text, ' ')
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	file = append(append(file, text...), data...)
	file = withDigest(file, noDigest, digestOf(file))
	if err := renameio.WriteFile(path, file, 0o644, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("tensorfile: writing %s (is the folder there, writable, and the disk not full?): %w", path, err)
	}
	return nil
}

// noDigest stands in the place of the digest while the digest is taken.
var noDigest = strings.Repeat("0", 2*sha256.Size)

// digestOf is the digest of a whole file, with noDigest in the place of the digest.
func digestOf(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// withDigest is a copy of a file with another digest. Only metadata have text as a value, and in text the quotes would
// have backslashes: the first match is the digest.
func withDigest(file []byte, from, to string) []byte {
	field := func(digest string) []byte { return []byte(`"` + digestKey + `":"` + digest + `"`) }
	return bytes.Replace(file, field(from), field(to), 1)
}

// Read loads a file that Write wrote. The error wraps ErrDamaged if it is not whole, fs.ErrNotExist if it is not there.
func Read(path string) (File, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("tensorfile: %w", err)
	}
	f, err := parse(raw)
	if err != nil {
		return File{}, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return f, nil
}

func parse(raw []byte) (File, error) {
	if len(raw) < 8 {
		return File{}, fmt.Errorf("it has %d bytes, too few for a header", len(raw))
	}
	length := binary.LittleEndian.Uint64(raw)
	if length > uint64(len(raw)-8) {
		return File{}, fmt.Errorf("its header should have %d bytes, but the file ends after %d", length, len(raw)-8)
	}
	text, data := raw[8:8+length], raw[8+length:]
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return File{}, fmt.Errorf("its header is not JSON: %w", err)
	}
	f := File{Tensors: map[string]*tensors.Tensor{}, Metadata: map[string]string{}}
	if err := json.Unmarshal(fields[metadataKey], &f.Metadata); err != nil {
		return File{}, fmt.Errorf("its metadata cannot be read: %w", err)
	}
	want, ok := f.Metadata[digestKey]
	if !ok {
		return File{}, errors.New("it has no digest: it was not written by this library")
	}
	if got := digestOf(withDigest(raw, want, noDigest)); got != want {
		return File{}, fmt.Errorf("its content has the digest %.12s..., but %.12s... was written: it was altered", got, want)
	}
	delete(f.Metadata, digestKey)
	delete(fields, metadataKey)
	for name, field := range fields {
		var e entry
		err := json.Unmarshal(field, &e)
		if err == nil {
			f.Tensors[name], err = tensorOf(e, data)
		}
		if err != nil {
			return File{}, fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	return f, nil
}

func tensorOf(e entry, data []byte) (*tensors.Tensor, error) {
	for dtype, code := range codes {
		if code != e.DType {
			continue
		}
		from, to := e.Offsets[0], e.Offsets[1]
		if from < 0 || from > to || to > int64(len(data)) {
			return nil, fmt.Errorf("bytes %d to %d of %d", from, to, len(data))
		}
		size := float64(dtype.Size()) // an int64 could overflow
		for _, d := range e.Shape {
			size *= float64(d)
		}
		if size != float64(to-from) || len(e.Shape) > 0 && slices.Min(e.Shape) < 0 {
			return nil, fmt.Errorf("bytes %d to %d do not hold a %s of shape %v", from, to, code, e.Shape)
		}
		t := tensors.FromShape(shapes.Make(dtype, e.Shape...))
		if err := t.MutableBytes(func(raw []byte) { copy(raw, data[from:to]) }); err != nil {
			return nil, err
		}
		return t, nil
	}
	return nil, fmt.Errorf("unknown type %q", e.DType)
}
