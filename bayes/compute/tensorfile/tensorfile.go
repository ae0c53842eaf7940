// Package tensorfile keeps named tensors and text in one file: the safetensors format (github.com/huggingface/safetensors), which holds no code
// and which Python reads with safetensors.numpy.load_file(path).
//
// A file is eight bytes with the length of a JSON header, the header, and the tensors' bytes, little-endian, row-major. The entry "sha256" of
// the header's metadata is a digest over everything else, so that Read notices a file that was cut off or altered. Write is atomic: a reader sees the old
// file or the new one, never half of either.
package tensorfile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/google/renameio/v2"
)

// ErrDamaged says that a file is not what was written.
var ErrDamaged = errors.New("tensorfile: the file is damaged")

// File is what a tensorfile holds.
type File struct {
	Tensors  map[string]*tensors.Tensor
	Metadata map[string]string
}

const (
	metadataKey = "__metadata__"
	digestKey   = "sha256"
)

var codes = map[dtypes.DType]string{
	dtypes.Float32: "F32", dtypes.Float64: "F64", dtypes.Int32: "I32", dtypes.Int64: "I64", dtypes.Uint32: "U32", dtypes.Uint8: "U8",
}

type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Write puts the file at path, replacing what is there only when all of it is on disk.
func Write(path string, f File) error {
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
	metadata[digestKey] = ""
	header[metadataKey] = metadata
	digest, err := digestOf(header, data)
	if err != nil {
		return fmt.Errorf("tensorfile: %s: %w", path, err)
	}
	metadata[digestKey] = digest
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("tensorfile: %s: %w", path, err)
	}
	for len(text)%8 != 0 { // the format wants the data aligned
		text = append(text, ' ')
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	file = append(append(file, text...), data...)
	if err := renameio.WriteFile(path, file, 0o644); err != nil {
		return fmt.Errorf("tensorfile: writing %s (is the folder there, writable, and the disk not full?): %w", path, err)
	}
	return nil
}

// digestOf is over the header with an empty digest, as encoding/json writes it (keys sorted), and the data.
func digestOf(header map[string]any, data []byte) (string, error) {
	text, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	hash.Write(text)
	hash.Write(data)
	return hex.EncodeToString(hash.Sum(nil)), nil
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
	header := map[string]any{}
	var end int64
	for name, field := range fields {
		if name == metadataKey {
			continue
		}
		var e entry
		if err := json.Unmarshal(field, &e); err != nil {
			return File{}, fmt.Errorf("tensor %q: %w", name, err)
		}
		header[name] = e
		end = max(end, e.Offsets[1])
	}
	if end != int64(len(data)) {
		return File{}, fmt.Errorf("its tensors need %d bytes, but it has %d: was it cut off?", end, len(data))
	}
	if err := checkDigest(f.Metadata, header, data); err != nil {
		return File{}, err
	}
	for name, e := range header {
		t, err := tensorOf(e.(entry), data)
		if err != nil {
			return File{}, fmt.Errorf("tensor %q: %w", name, err)
		}
		f.Tensors[name] = t
	}
	return f, nil
}

// checkDigest compares the metadata's digest with the content's, and takes it out of the metadata.
func checkDigest(metadata map[string]string, header map[string]any, data []byte) error {
	want, ok := metadata[digestKey]
	if !ok {
		return errors.New("it has no digest: it was not written by this library")
	}
	blank := maps.Clone(metadata)
	blank[digestKey] = ""
	header[metadataKey] = blank
	got, err := digestOf(header, data)
	delete(header, metadataKey)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("its content has the digest %.12s..., but %.12s... was written: it was altered", got, want)
	}
	delete(metadata, digestKey)
	return nil
}

func tensorOf(e entry, data []byte) (*tensors.Tensor, error) {
	for dtype, code := range codes {
		if code != e.DType {
			continue
		}
		for _, d := range e.Shape {
			if d < 0 {
				return nil, fmt.Errorf("negative dimension in shape %v", e.Shape)
			}
		}
		shape := shapes.Make(dtype, e.Shape...)
		from, to := e.Offsets[0], e.Offsets[1]
		if from < 0 || to > int64(len(data)) || to-from != shape.ByteSize() {
			return nil, fmt.Errorf("bytes %d to %d do not hold a %s", from, to, shape)
		}
		t := tensors.FromShape(shape)
		if err := t.MutableBytes(func(raw []byte) { copy(raw, data[from:to]) }); err != nil {
			return nil, err
		}
		return t, nil
	}
	return nil, fmt.Errorf("unknown type %q", e.DType)
}
