package parquet_test

import (
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
		{kinds, `row 1, column "x": the value is missing`, dataset.CSVOptions{Target: "y", Ignore: []string{"l", "d", "t"}}},
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

// BenchmarkOpen reads 100 000 rows of 20 columns of doubles.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "big.parquet")
	group := pq.Group{}
	const columns, rows = 20, 100_000
	for k := range columns {
		group[fmt.Sprintf("x%02d", k)] = pq.Leaf(pq.DoubleType)
	}
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := pq.NewWriter(file, pq.NewSchema("table", group))
	row := make(pq.Row, columns)
	for i := range rows {
		for k := range columns {
			row[k] = pq.ValueOf(float64(i*k)/7).Level(0, 0, k)
		}
		if _, err := w.WriteRows([]pq.Row{row}); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if _, err := parquet.Open(path, dataset.CSVOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
