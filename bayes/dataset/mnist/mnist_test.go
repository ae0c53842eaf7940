package mnist

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/dataset"
)

func TestLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 47 million pixels")
	}
	train, test, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		data   *dataset.Dataset
		rows   int
		counts []int   // rows of each digit, as the makers' labels have them
		first  []int   // labels of the first five rows
		mean   float64 // mean pixel: 0.1307 and 0.1325 are what users of MNIST standardise by
	}{
		{train, 60000, []int{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}, []int{5, 0, 4, 1, 9}, .1307},
		{test, 10000, []int{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}, []int{7, 2, 1, 0, 4}, .1325},
	} {
		d := want.data
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		if d.Name != "mnist" || d.Rows() != want.rows || d.Dims() != Side*Side || d.Outputs() != 10 ||
			d.Task != dataset.Classification {
			t.Errorf("got %s, %d x %d, %d outputs, %v", d.Name, d.Rows(), d.Dims(), d.Outputs(), d.Task)
		}
		if d.Title == "" || d.Source == "" || d.Licence == "" {
			t.Errorf("no title, source or licence: %q, %q, %q", d.Title, d.Source, d.Licence)
		}
		counts := make([]int, 10)
		for _, y := range d.Y {
			counts[int(y)]++
		}
		if !slices.Equal(counts, want.counts) {
			t.Errorf("%s: rows by digit %v, want %v", d.Title, counts, want.counts)
		}
		for i, label := range want.first {
			if d.Classes[int(d.Y[i])] != string(rune('0'+label)) {
				t.Errorf("%s: row %d is of class %s, want %d", d.Title, i, d.Classes[int(d.Y[i])], label)
			}
		}
		sum, lo, hi := 0.0, 1.0, 0.0
		for i := range d.Rows() {
			for _, b := range d.X.(*dataset.Pixels).Bytes(i) {
				v := float64(b) / 255
				sum += v
				lo, hi = min(lo, v), max(hi, v)
			}
		}
		if mean := sum / float64(d.Rows()*d.Dims()); math.Abs(mean-want.mean) > 5e-5 || lo != 0 || hi != 1 {
			t.Errorf("%s: pixels from %v to %v, mean %.5f, want 0 to 1, %v", d.Title, lo, hi, mean, want.mean)
		}
	}
	// The first picture, a 5, begins in row 5 at column 12 with the byte 3.
	for j, v := range train.X.(*dataset.Pixels).Bytes(0)[:5*Side+12] {
		if v != 0 {
			t.Fatalf("the first picture has ink at %s", train.Features[j])
		}
	}
	if got, name := train.X.At(0, 5*Side+12), train.Features[5*Side+12]; got != 3./255 || name != "5,12" {
		t.Errorf("the first picture has %v at %s", got, name)
	}
	some, err := train.Subset([]int{59999, 1})
	if err != nil {
		t.Fatal(err)
	}
	if some.Y[0] != 8 || some.Y[1] != 0 || some.Dims() != Side*Side {
		t.Errorf("a subset's labels are %v", some.Y)
	}
}

// TestSources compares every embedded file with the checksum in SOURCES.md.
func TestSources(t *testing.T) {
	text, err := os.ReadFile("data/SOURCES.md")
	if err != nil {
		t.Fatal(err)
	}
	sums := regexp.MustCompile(`(?m)^([0-9a-f]{64})  (\S+)$`).FindAllStringSubmatch(string(text), -1)
	entries, err := files.ReadDir("data")
	if err != nil || len(entries) != 4 || len(sums) != 4 {
		t.Fatalf("%d files, %d checksums, %v", len(entries), len(sums), err)
	}
	for _, m := range sums {
		data, err := files.ReadFile("data/" + m[2])
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != m[1] {
			t.Errorf("%s has the sha256 %x, SOURCES.md says %s", m[2], sum, m[1])
		}
	}
	if !strings.Contains(string(text), "CC BY-SA 3.0") || !strings.Contains(licence, "CC BY-SA 3.0") {
		t.Error("SOURCES.md and the Dataset's Licence differ")
	}
}

func BenchmarkTest(b *testing.B) {
	for b.Loop() {
		if _, err := Test(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, _, err := Load(); err != nil {
			b.Fatal(err)
		}
	}
}
