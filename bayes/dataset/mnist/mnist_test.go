package mnist

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

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
		if d.Name != "mnist" || d.Rows() != want.rows || d.Dims() != Side*Side || d.Outputs() != Classes ||
			d.Task != dataset.Classification {
			t.Errorf("got %s, %d x %d, %d outputs, %v", d.Name, d.Rows(), d.Dims(), d.Outputs(), d.Task)
		}
		if d.Title == "" || d.Source == "" || d.Licence == "" {
			t.Errorf("no title, source or licence: %q, %q, %q", d.Title, d.Source, d.Licence)
		}
		counts := make([]int, Classes)
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
			for _, v := range d.X.RawRowView(i) {
				sum += v
				lo, hi = min(lo, v), max(hi, v)
			}
		}
		if mean := sum / float64(d.Rows()*d.Dims()); math.Abs(mean-want.mean) > 5e-5 || lo != 0 || hi != 1 {
			t.Errorf("%s: pixels from %v to %v, mean %.5f, want 0 to 1, %v", d.Title, lo, hi, mean, want.mean)
		}
	}
	// The first picture, a 5, begins in row 5 at column 12 with the byte 3.
	for j, v := range train.X.RawRowView(0)[:5*Side+12] {
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

// pictures is an images file of pictures of 2 x 3 pixels, marks a labels file, with what stands in the header.
func pictures(n byte, pixels ...byte) []byte {
	return append([]byte{0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 2, 0, 0, 0, 3}, pixels...)
}

func marks(n byte, labels ...byte) []byte {
	return append([]byte{0, 0, 8, 1, 0, 0, 0, n}, labels...)
}

func TestRead(t *testing.T) {
	d, err := Read(bytes.NewReader(pictures(2, 0, 51, 255, 1, 2, 3, 255, 0, 0, 0, 0, 102)),
		bytes.NewReader(marks(2, 9, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := d.X.RawRowView(0); !slices.Equal(got, []float64{0, .2, 1, 1. / 255, 2. / 255, 3. / 255}) ||
		d.X.At(1, 5) != .4 {
		t.Errorf("pixels are %v and %v", got, d.X.RawRowView(1))
	}
	if !slices.Equal(d.Y, []float64{9, 0}) || !slices.Equal(d.Features,
		[]string{"0,0", "0,1", "0,2", "1,0", "1,1", "1,2"}) || d.Outputs() != Classes {
		t.Errorf("labels %v, features %q, %d classes", d.Y, d.Features, d.Outputs())
	}
}

func TestReadFaults(t *testing.T) {
	images, labels := pictures(1, 1, 2, 3, 4, 5, 6), marks(1, 7)
	gzipped := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0}
	with := func(b []byte, at int, v ...byte) []byte { return slices.Replace(slices.Clone(b), at, at+len(v), v...) }
	for name, c := range map[string]struct {
		images, labels []byte
		want           []string
		cut            bool // errors.Is io.ErrUnexpectedEOF
	}{
		"no images":                {nil, labels, []string{"images", "first four bytes"}, false},
		"no labels":                {images, nil, []string{"labels", "first four bytes"}, false},
		"images cut in the magic":  {images[:3], labels, []string{"images", "first four bytes"}, true},
		"images cut in the header": {images[:14], labels, []string{"images", "header"}, true},
		"no picture":               {images[:16], labels, []string{"images", "0 of the 1 rows", "cut short"}, true},
		"images cut in a picture":  {images[:20], labels, []string{"images", "0 of the 1 rows", "cut short"}, true},
		"labels cut": {pictures(3, images[16:]...), marks(3, 1, 2),
			[]string{"labels", "2 of the 3 rows", "cut short"}, true},
		"second picture cut": {pictures(2, 1, 2, 3, 4, 5, 6, 7), marks(2, 1, 2),
			[]string{"images", "1 of the 2 rows"}, true},
		"swapped":        {labels, images, []string{"images", "0x00000801", "swapped"}, false},
		"labels twice":   {images, images, []string{"labels", "0x00000803", "swapped"}, false},
		"gzip":           {gzipped, labels, []string{"images", "gzip.NewReader"}, false},
		"labels in gzip": {images, gzipped, []string{"labels", "gzip.NewReader"}, false},
		"a text": {[]byte("label,pixel0\n"), labels,
			[]string{"images", "0x6c616265", "no IDX file"}, false},
		"floats":                {with(images, 2, 0x0d), labels, []string{"images", "0x00000d03", "no IDX file"}, false},
		"other numbers of rows": {images, marks(2, 7, 7), []string{"1 images", "2 labels"}, false},
		"no rows":               {pictures(0), marks(0), []string{"0 pictures"}, false},
		"no height":             {with(images, 11, 0), labels, []string{"0 x 3"}, false},
		"a damaged width":       {with(images, 12, 0x80), labels, []string{"2 x 2147483651"}, false},
		"label 10":              {pictures(2, make([]byte, 12)...), marks(2, 9, 10), []string{"row 1", "10"}, false},
		"images go on": {append(slices.Clone(images), 0), labels,
			[]string{"images", "after the last row"}, false},
		"labels go on": {images, append(slices.Clone(labels), 0),
			[]string{"labels", "after the last row"}, false},
	} {
		_, err := Read(bytes.NewReader(c.images), bytes.NewReader(c.labels))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", name, err, want)
			}
		}
		if c.cut != errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %q: errors.Is io.ErrUnexpectedEOF is %t", name, err, !c.cut)
		}
	}
}

// A reader's own error is passed on, also after the last row, where a damaged gzip stream says so.
func TestReadPassesErrors(t *testing.T) {
	own := errors.New("own")
	broken := func(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b), iotest.ErrReader(own)) }
	images, labels := pictures(1, 1, 2, 3, 4, 5, 6), marks(1, 7)
	for _, cut := range []int{0, 8, 18, len(images)} {
		if _, err := Read(broken(images[:cut]), bytes.NewReader(labels)); !errors.Is(err, own) {
			t.Errorf("images after %d bytes: %v", cut, err)
		}
	}
	for _, cut := range []int{0, 6, 8, len(labels)} {
		if _, err := Read(bytes.NewReader(images), broken(labels[:cut])); !errors.Is(err, own) {
			t.Errorf("labels after %d bytes: %v", cut, err)
		}
	}
}

func BenchmarkTest(b *testing.B) {
	for b.Loop() {
		if _, err := Test(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTrain(b *testing.B) {
	for b.Loop() {
		if _, err := Train(); err != nil {
			b.Fatal(err)
		}
	}
}
