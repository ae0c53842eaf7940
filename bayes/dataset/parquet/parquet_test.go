package parquet_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/parquet"

	pq "github.com/parquet-go/parquet-go"
	"gonum.org/v1/gonum/mat"
)

// kinds is a file of pyarrow's with a column of each kind, a null in x and in s, and an index of pandas.
const kinds = "testdata/kinds.parquet"

// Each kind of column is read as it is meant.
func TestKinds(t *testing.T) {
	d, err := parquet.Open(kinds, dataset.CSVOptions{
		Target: "y", Categorical: []string{"s"}, Ignore: []string{"l", "t"}, Order: "d", Missing: dataset.MissingDropRow,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Row 1 has no x, and row 3 no s.
	want := mat.NewDense(2, 6, []float64{
		1.5, 1, .5, 1, 1, 1.25,
		3, 3, 1.5, 1, 1, 1.25,
	})
	if features := []string{"x", "i", "f", "b", "s=Köln", "c"}; !slices.Equal(d.Features, features) {
		t.Fatalf("features %q, want %q", d.Features, features)
	}
	if !mat.Equal(d.X, want) || !slices.Equal(d.Y, []float64{1, 3}) ||
		!slices.Equal(d.Order, []float64{86400, 3 * 86400}) || d.OriginalRow(1) != 2 {
		t.Errorf("%v%v, order %v", d, mat.Formatted(d.X), d.Order)
	}
	later, err := parquet.Open(kinds, dataset.CSVOptions{Order: "t", Ignore: []string{"l", "d", "x", "s"}})
	if err != nil || later.Order[0] != 1.5 {
		t.Errorf("times %v: %v", later, err)
	}
	classes, err := parquet.Open(kinds, dataset.CSVOptions{Target: "b", Task: dataset.TaskByTarget,
		Ignore: []string{"l", "d", "t", "x", "s"}})
	if err != nil || !slices.Equal(classes.Classes, []string{"false", "true"}) ||
		!slices.Equal(classes.Y, []float64{1, 0, 1, 1}) {
		t.Errorf("booleans as target: %v, %v", classes, err)
	}
}

// What cannot be read is refused with its column and what to do.
func TestRefuses(t *testing.T) {
	cut := filepath.Join(t.TempDir(), "cut.parquet")
	whole, err := os.ReadFile(kinds)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, whole[:len(whole)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, want string
		opts       dataset.CSVOptions
	}{
		{kinds, `the column "l" has lists or records`, dataset.CSVOptions{}},
		{kinds, `which is no feature`, dataset.CSVOptions{Target: "y", Ignore: []string{"l", "x", "s"}}},
		{kinds, `row 1, column "x": the value is missing`,
			dataset.CSVOptions{Target: "y", Ignore: []string{"l", "d", "t", "s"}}},
		{kinds, "NoHeader is set", dataset.CSVOptions{NoHeader: true, Ignore: []string{"l"}}},
		{"none.parquet", "none.parquet", dataset.CSVOptions{}},
		{"parquet.go", "no Parquet file", dataset.CSVOptions{}},
		{cut, "no Parquet file, or was cut off", dataset.CSVOptions{}},
	} {
		if _, err := parquet.Open(c.path, c.opts); err == nil || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v does not say %q", c.path, err, c.want)
		}
	}
}

// A file that is damaged anywhere is an error or other data, but never a panic, nor memory without end.
func TestDamaged(t *testing.T) {
	whole, err := os.ReadFile(kinds)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged.parquet")
	refused := 0
	for at := 0; at < len(whole); at += 7 {
		damaged := slices.Clone(whole)
		damaged[at] ^= 0xff
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := parquet.Open(path, dataset.CSVOptions{Ignore: []string{"l", "d", "t"}}); err != nil {
			refused++
		}
	}
	if refused < len(whole)/14 {
		t.Errorf("%d of %d damaged files are refused", refused, len(whole)/7)
	}
}

// A file of numbers alone whose head promises rows that it does not have, down to fewer than none, is refused.
func TestDamagedCount(t *testing.T) {
	whole, err := os.ReadFile(large(t, 100, 30, 77))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged.parquet")
	foot := len(whole) - 8 - int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))
	for at := foot; at < len(whole); at++ {
		for _, change := range []byte{0xff, 0x01, 0x80} {
			damaged := slices.Clone(whole)
			damaged[at] ^= change
			if err := os.WriteFile(path, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			if d, err := parquet.Open(path, dataset.CSVOptions{}); err == nil && d.Rows() != 100 {
				t.Fatalf("byte %d: %d rows", at, d.Rows())
			}
		}
	}
}

// Numbers of every type are the same whether they lie in a page as such or by a dictionary, in two row groups; decimals
// are in their units.
func TestDictionaries(t *testing.T) {
	const rows = 3000
	types := map[string]pq.Node{
		"double": pq.Leaf(pq.DoubleType), "float": pq.Leaf(pq.FloatType), "int32": pq.Leaf(pq.Int32Type),
		"int64": pq.Leaf(pq.Int64Type), "price": pq.Decimal(2, 9, pq.Int32Type), "y": pq.Leaf(pq.DoubleType),
	}
	value := func(name string, i int) pq.Value {
		switch i %= 17; name {
		case "float":
			return pq.ValueOf(float32(i) / 4)
		case "int32", "price":
			return pq.ValueOf(int32(3 * i))
		case "int64":
			return pq.ValueOf(int64(-i))
		}
		return pq.ValueOf(float64(i) / 7)
	}
	path := filepath.Join(t.TempDir(), "numbers.parquet")
	var plain *dataset.Dataset
	for _, dictionary := range []bool{false, true} {
		group := pq.Group{}
		for name, node := range types {
			if dictionary {
				node = pq.Encoded(node, &pq.RLEDictionary)
			}
			group[name] = node
		}
		schema := pq.NewSchema("table", group)
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := pq.NewWriter(file, schema)
		for i := range rows {
			var row pq.Row
			for k, column := range schema.Columns() {
				row = append(row, value(column[0], i).Level(0, 0, k))
			}
			if _, err := w.WriteRows([]pq.Row{row}); err != nil {
				t.Fatal(err)
			}
			if i == rows/3 {
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := errors.Join(w.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
		d, err := parquet.Open(path, dataset.CSVOptions{Target: "y"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := parquet.OpenSource(path, "y")
		if err != nil {
			t.Fatal(err)
		}
		x, y := make([]float64, rows*d.Dims()), make([]float64, rows)
		if err := errors.Join(s.Read(t.Context(), 0, x, y), s.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x, d.X.(*mat.Dense).RawMatrix().Data) || !slices.Equal(y, d.Y) {
			t.Errorf("dictionary %v: a Source has other numbers than Open", dictionary)
		}
		if plain == nil {
			plain = d
			for k, name := range d.Features {
				want := map[string]float64{"double": 5. / 7, "float": 1.25, "int32": 15, "int64": -5, "price": .15}[name]
				if got := d.X.At(22, k); got != want {
					t.Errorf("%s: row 22 is %v, want %v", name, got, want)
				}
			}
		} else if d.Hash() != plain.Hash() {
			t.Error("by a dictionary the numbers are others")
		}
	}
}

// Numbers without a sign are not negative, decimals in bytes are in their units, and what cannot be read is no matter
// in new rows, which do not need it.
func TestTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "types.parquet")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	schema := pq.NewSchema("table", pq.Group{"u32": pq.Uint(32), "u64": pq.Uint(64),
		"tags": pq.Repeated(pq.Leaf(pq.Int32Type)), "price": pq.Decimal(2, 9, pq.FixedLenByteArrayType(5)),
		"y": pq.Leaf(pq.DoubleType)})
	w := pq.NewWriter(file, schema)
	for i := range 3 {
		values := map[string]pq.Value{"u32": pq.ValueOf(int32(-1 - i)), "u64": pq.ValueOf(int64(i)),
			"tags": pq.ValueOf(int32(1)), "price": pq.FixedLenByteArrayValue([]byte{255, 255, 255, 255, byte(250 - i)}),
			"y": pq.ValueOf(float64(i))}
		var row pq.Row
		for k, column := range schema.Columns() {
			definition := 0
			if column[0] == "tags" {
				definition = 1
			}
			row = append(row, values[column[0]].Level(0, definition, k))
		}
		if _, err := w.WriteRows([]pq.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	d, err := parquet.Open(path, dataset.CSVOptions{Target: "y", Ignore: []string{"tags"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"u32": 1<<32 - 3, "u64": 2, "price": -.08} {
		if got := d.X.At(2, slices.Index(d.Features, name)); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	again, err := parquet.Open(path, dataset.CSVOptions{Like: d})
	if err != nil || again.Hash() != d.Hash() {
		t.Errorf("read like itself: %v, %v", again, err)
	}
}
