package parquet

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/dataset"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"gonum.org/v1/gonum/mat"
)

// described is a Parquet file with a changed description.
func described(t *testing.T, whole []byte, change func(*format.FileMetaData)) []byte {
	t.Helper()
	var d format.FileMetaData
	end := len(whole) - 8
	from := end - int(binary.LittleEndian.Uint32(whole[end:]))
	if err := thrift.Unmarshal(protocol, whole[from:end], &d); err != nil {
		t.Fatal(err)
	}
	change(&d)
	text, err := thrift.Marshal(protocol, &d)
	if err != nil {
		t.Fatal(err)
	}
	changed := append(bytes.Clone(whole[:from]), text...)
	return append(binary.LittleEndian.AppendUint32(changed, uint32(len(text))), "PAR1"...)
}

// Columns are what their types say: numbers of 16 bits, durations and times of day in seconds, texts without the spaces
// around them, codes, an index; and a number may be a column's name.
func TestTypesOfWriters(t *testing.T) {
	type row struct {
		Half  [2]byte `parquet:"0"`
		Wait  int64   `parquet:"wait"`
		Clock int64   `parquet:"clock,time(microsecond)"`
		Zip   string  `parquet:"zip"`
		Text  string  `parquet:"colour"`
		Digit string  `parquet:"digits"`
		Raw   [3]byte `parquet:"raw"`
		Y     float64 `parquet:"y"`
		ID    int64   `parquet:"id"`
	}
	var buffer bytes.Buffer
	w := pq.NewGenericWriter[row](&buffer)
	halves := [][2]byte{{0x00, 0x3c}, {0x00, 0xc0}, {0x01, 0x00}, {0xff, 0x7b}, {0x00, 0x80}}
	for i, half := range halves {
		if _, err := w.Write([]row{{half, 1500000000, 3600500000, []string{"00037", "37"}[i%2],
			[]string{"blue", " blue "}[i%2], "7", [3]byte{}, float64(i), int64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "typed.pq")
	if err := os.WriteFile(path, described(t, buffer.Bytes(), func(d *format.FileMetaData) {
		for i := range d.Schema {
			if d.Schema[i].Name == "0" {
				d.Schema[i].LogicalType.Value = &format.Float16Type{}
			}
		}
		d.KeyValueMetadata = append(d.KeyValueMetadata, format.KeyValue{Key: "pandas", Value: `{"index_columns": ["id"],
			"columns": [{"field_name": "wait", "numpy_type": "timedelta64[ns]"}, {"field_name": null}]}`})
	}), 0o644); err != nil {
		t.Fatal(err)
	}
	if !Is(path) || Is("parquet.go") {
		t.Error("a Parquet file is not told by its first bytes")
	}
	opts := dataset.CSVOptions{Categorical: []string{dataset.EveryText}, Ignore: []string{"raw"}}
	d, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Fields("0 wait clock zip=00037 zip=37 colour=blue digits"); !slices.Equal(d.Features, want) ||
		d.Target != "y" {
		t.Fatalf("features %q and target %q, want %q", d.Features, d.Target, want)
	}
	if got, want := mat.Col(nil, 0, d.X), []float64{1, -2, 1. / (1 << 24), 65504, 0}; !slices.Equal(got, want) {
		t.Errorf("numbers of 16 bits are %v, want %v", got, want)
	}
	if got, want := mat.Row(nil, 1, d.X)[1:], []float64{1.5, 3600.5, 0, 1, 1, 7}; !slices.Equal(got, want) {
		t.Errorf("the second row is %v, want %v", got, want)
	}
	for _, want := range []string{`"wait" is of durations`, `"clock" is of durations`,
		`"id", an index of pandas, is left out`} {
		if !strings.Contains(d.String(), want) {
			t.Errorf("%v does not say %s", d, want)
		}
	}
	opts.Target, opts.Ignore = "id", append(opts.Ignore, "y")
	if d, err := Open(path, opts); err != nil || d.Target != "id" {
		t.Errorf("an index that is named: %v, %v", d, err)
	}
	for want, opts := range map[string]dataset.CSVOptions{
		`"raw" has 3 raw bytes`:                            {Categorical: []string{dataset.EveryText}},
		`"zip" has texts such as "00037", which are codes`: {Ignore: []string{"raw"}},
	} {
		if _, err := Open(path, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}
