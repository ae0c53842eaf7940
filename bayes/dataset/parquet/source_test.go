package parquet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/parquet"

	pq "github.com/parquet-go/parquet-go"
)

// record is a row of the test's files.
type record struct {
	A float64  `parquet:"a"`
	B int32    `parquet:"b"`
	F bool     `parquet:"f"`
	Y float32  `parquet:"y"`
	N *float64 `parquet:"n,optional"`
}

// large writes rows in groups of so many, and returns the path. One row of n is missing if missing is not negative.
func large(t *testing.T, rows, group, missing int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := pq.NewGenericWriter[record](f, pq.MaxRowsPerRowGroup(int64(group)), pq.PageBufferSize(1<<14))
	for i := range rows {
		n := float64(2 * i)
		r := record{A: float64(i), B: int32(-i), F: i%3 == 0, Y: float32(i) / 2, N: &n}
		if i == missing {
			r.N = nil
		}
		if _, err := w.Write([]record{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// A source's rows are those of the file, in any order of reading and by several goroutines, across pages, segments and
// row groups.
func TestSource(t *testing.T) {
	const rows = 150_000
	s, err := parquet.OpenSource(large(t, rows, 40_000, -1), "y", "b")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if features, targets := s.Names(); s.Rows() != rows || !slices.Equal(features, []string{"a", "f", "n"}) ||
		!slices.Equal(targets, []string{"y", "b"}) {
		t.Fatalf("%d rows of %q and %q", s.Rows(), features, targets)
	}
	var all sync.WaitGroup
	for _, c := range []struct{ from, n int }{
		{0, 100}, {149_000, 1000}, {39_990, 20}, {65_530, 12}, {60_000, 80_000}, {0, rows}, {131_072, 1},
	} {
		all.Go(func() {
			x, y := make([]float64, 3*c.n), make([]float64, 2*c.n)
			if err := s.Read(t.Context(), c.from, x, y); err != nil {
				t.Error(err)
				return
			}
			for i := range c.n {
				row := float64(c.from + i)
				flag := 0.
				if (c.from+i)%3 == 0 {
					flag = 1
				}
				if got := [5]float64{x[3*i], x[3*i+1], x[3*i+2], y[2*i], y[2*i+1]}; got != [5]float64{row, flag, 2 * row,
					float64(float32(row) / 2), -row} {
					t.Errorf("row %v is %v", row, got)
					return
				}
			}
		})
	}
	all.Wait()
}

// Readers side by side, each of which goes from segment to segment, get their rows: without a lock around what is held
// they crash on two processors. On one the race detector alone finds it.
func TestSourceSideBySide(t *testing.T) {
	const rows, readers = 150_000, 8
	reads := 300_000
	if testing.Short() { // with the race detector fewer do
		reads = 20_000
	}
	s, err := parquet.OpenSource(large(t, rows, 40_000, -1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all sync.WaitGroup
	for reader := range readers {
		all.Go(func() {
			x, y := make([]float64, s.Dims()), make([]float64, s.Targets())
			for i := range reads {
				row := (reader*31 + i*70_001) % rows
				if err := s.Read(t.Context(), row, x, y); err != nil || x[0] != float64(row) {
					t.Errorf("row %d is %v (%v)", row, x, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestSourceRefuses(t *testing.T) {
	path := large(t, 100, 30, 77)
	for _, c := range []struct {
		path, want string
		targets    []string
	}{
		{kinds, `the column "s" is not of numbers`, nil},
		{"none.parquet", "none.parquet", nil},
		{"source.go", "no Parquet file", nil},
		{path, `no column "z"`, []string{"z"}},
	} {
		if _, err := parquet.OpenSource(c.path, c.targets...); err == nil || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%v does not say %q", err, c.want)
		}
	}
	s, err := parquet.OpenSource(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, y := make([]float64, 4), make([]float64, 1)
	ended, end := context.WithCancel(t.Context())
	end()
	for want, err := range map[string]error{
		`row 77, column "n": the value is missing`: s.Read(t.Context(), 77, x, y),
		"rows 100 to 100 are asked for":            s.Read(t.Context(), 100, x, y),
		"3 numbers of x":                           s.Read(t.Context(), 0, x[:3], y),
		"canceled":                                 s.Read(ended, 0, x, y),
	} {
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	var _ dataset.Source = s
}
