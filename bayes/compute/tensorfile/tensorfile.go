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
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	Columns  map[string]Columns // Read makes tensors of them
	Metadata map[string]string
}

// Columns are a tensor to be written, of neighbouring columns of a matrix. Memory holds no copy of them.
type Columns struct {
	Of          *tensors.Tensor
	Width, From int   // of Of, in numbers: a row, and what stands before the first column
	Shape       []int // of the tensor
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
	all := maps.Clone(f.Columns)
	if all == nil {
		all = map[string]Columns{}
	}
	for name, t := range f.Tensors {
		all[name] = Columns{t, t.Size(), 0, t.Shape().Dimensions}
	}
	if _, taken := all[metadataKey]; taken {
		return fmt.Errorf("tensorfile: %s: the format keeps the name %q for itself", path, metadataKey)
	}
	header, names, from := map[string]any{}, slices.Sorted(maps.Keys(all)), int64(0)
	for _, name := range names {
		c := all[name]
		code, ok := codes[c.Of.DType()]
		if !ok {
			return fmt.Errorf("tensorfile: %s: tensor %q has type %s, which the format lacks", path, name, c.Of.DType())
		}
		rows, each, fit := c.rows()
		if !fit {
			return fmt.Errorf("tensorfile: %s: tensor %q of shape %v is not made of columns from %d on of rows of %d numbers, "+
				"of %d in all", path, name, c.Shape, c.From, c.Width, c.Of.Size())
		}
		to := from + int64(rows*each)*int64(c.Of.DType().Size())
		header[name], from = entry{code, append([]int{}, c.Shape...), [2]int64{from, to}}, to
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
	head := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if err := replace(path, head, names, all); err != nil {
		return fmt.Errorf("tensorfile: writing %s (is the folder there, writable, and the disk not full?): %w", path, err)
	}
	return nil
}

// replace writes head and tensors, one after another, of which memory holds no copy, and then the digest into the head.
func replace(path string, head []byte, names []string, all map[string]Columns) error {
	file, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithExistingPermissions(),
		renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return err
	}
	defer func() { _ = file.Cleanup() }() // does nothing once it is replaced
	sum := sha256.New()
	both := bufio.NewWriterSize(io.MultiWriter(sum, file), 1<<20)
	_, err = both.Write(head)
	for _, name := range names {
		err = cmp.Or(err, all[name].write(both))
	}
	if err = cmp.Or(err, both.Flush()); err != nil {
		return err
	}
	digest := []byte(hex.EncodeToString(sum.Sum(nil)))
	if _, err := file.WriteAt(digest, int64(placeOfDigest(head, noDigest))); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}

// rows is how many rows there are, how many numbers of each, and whether that fits the shape.
func (c Columns) rows() (rows, each int, fit bool) {
	size := 1
	for _, dim := range c.Shape {
		size *= dim
	}
	rows = c.Of.Size() / max(1, c.Width)
	each = size / max(1, rows)
	return rows, each, rows*c.Width == c.Of.Size() && rows*each == size && c.From >= 0 && c.From+each <= c.Width
}

// write writes them row by row. What fails in writing is said by to.Flush.
func (c Columns) write(to *bufio.Writer) error {
	rows, each, _ := c.rows()
	number := c.Of.DType().Size()
	return c.Of.ConstBytes(func(raw []byte) {
		for r := range rows {
			_, _ = to.Write(raw[(r*c.Width+c.From)*number:][:each*number])
		}
	})
}

// noDigest stands in the place of the digest while the digest is taken.
var noDigest = strings.Repeat("0", 2*sha256.Size)

// placeOfDigest is where a digest stands in the head of a file. Only metadata have text as a value, and in text the
// quotes would have backslashes: the first match is the digest.
func placeOfDigest(head []byte, digest string) int {
	before := `"` + digestKey + `":"`
	return bytes.Index(head, []byte(before+digest+`"`)) + len(before)
}

// Read loads a file that Write wrote. The error wraps ErrDamaged if it is not whole, fs.ErrNotExist if it is not there.
func Read(path string) (File, error) {
	file, err := os.Open(path)
	if err != nil {
		return File{}, fmt.Errorf("tensorfile: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return File{}, fmt.Errorf("tensorfile: %w", err)
	}
	in := &source{Reader: file}
	f, err := parse(in, info.Size())
	switch {
	case in.fault != nil: // of the disk, or of a folder
		return File{}, fmt.Errorf("tensorfile: %w", in.fault)
	case err != nil:
		return File{}, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return f, nil
}

// source keeps the error with which reading failed, other than at the end.
type source struct {
	io.Reader
	fault error
}

func (s *source) Read(to []byte) (n int, err error) {
	if n, err = s.Reader.Read(to); err != nil && err != io.EOF {
		s.fault = err
	}
	return n, err
}

// parse reads a file of so many bytes, from its beginning to its end, each tensor into its own memory.
func parse(file io.Reader, size int64) (File, error) {
	if size < 8 {
		return File{}, fmt.Errorf("it has %d bytes, too few for a header", size)
	}
	var first [8]byte
	if _, err := io.ReadFull(file, first[:]); err != nil {
		return File{}, err
	}
	length := binary.LittleEndian.Uint64(first[:])
	if length > uint64(size-8) {
		return File{}, fmt.Errorf("its header should have %d bytes, but the file ends after %d", length, size-8)
	}
	head := make([]byte, 8+length)
	copy(head, first[:])
	if _, err := io.ReadFull(file, head[8:]); err != nil {
		return File{}, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(head[8:], &fields); err != nil {
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
	if len(want) == len(noDigest) {
		copy(head[placeOfDigest(head, want):], noDigest)
	}
	sum := sha256.New()
	sum.Write(head)
	delete(f.Metadata, digestKey)
	delete(fields, metadataKey)
	if err := f.read(io.TeeReader(file, sum), fields, size-int64(len(head))); err != nil {
		return File{}, err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return File{}, fmt.Errorf("its content has the digest %.12s..., but %.12s... was written: it was altered", got, want)
	}
	return f, nil
}

// read reads the tensors of a header from the data behind it, of so many bytes.
func (f File) read(data io.Reader, fields map[string]json.RawMessage, size int64) error {
	entries := map[string]entry{}
	for name, field := range fields {
		var e entry
		if err := json.Unmarshal(field, &e); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		entries[name] = e
	}
	at := int64(0)
	for _, name := range slices.SortedFunc(maps.Keys(entries), func(a, b string) int {
		return cmp.Or(cmp.Compare(entries[a].Offsets[0], entries[b].Offsets[0]),
			cmp.Compare(entries[a].Offsets[1], entries[b].Offsets[1]))
	}) {
		e := entries[name]
		t, err := e.tensor(size)
		if err == nil && e.Offsets[0] != at {
			err = fmt.Errorf("it begins at byte %d, and the one before ends at %d", e.Offsets[0], at)
		}
		if err == nil {
			var inner error
			err = t.MutableBytes(func(raw []byte) { _, inner = io.ReadFull(data, raw) })
			err = cmp.Or(err, inner)
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		f.Tensors[name], at = t, e.Offsets[1]
	}
	_, err := io.Copy(io.Discard, data) // which the digest is over, too
	return err
}

// tensor is one of an entry's type and shape, which must fit the data's size.
func (e entry) tensor(size int64) (*tensors.Tensor, error) {
	for dtype, code := range codes {
		if code != e.DType {
			continue
		}
		from, to := e.Offsets[0], e.Offsets[1]
		if from < 0 || from > to || to > size {
			return nil, fmt.Errorf("bytes %d to %d of %d", from, to, size)
		}
		bytes := float64(dtype.Size()) // an int64 could overflow
		for _, d := range e.Shape {
			bytes *= float64(d)
		}
		if bytes != float64(to-from) || len(e.Shape) > 0 && slices.Min(e.Shape) < 0 {
			return nil, fmt.Errorf("bytes %d to %d do not hold a %s of shape %v", from, to, code, e.Shape)
		}
		return tensors.FromShape(shapes.Make(dtype, e.Shape...)), nil
	}
	return nil, fmt.Errorf("unknown type %q", e.DType)
}
