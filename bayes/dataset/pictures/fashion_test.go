package pictures

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gobnn/bayes/dataset"
)

// counts are the rows of each class.
func counts(d *dataset.Dataset) []int {
	n := make([]int, len(d.Classes))
	for _, y := range d.Y {
		n[int(y)]++
	}
	return n
}

// mean is the mean of one channel.
func mean(d *dataset.Dataset, channels, channel int) float64 {
	sum, n := 0, 0
	for i := range d.Rows() {
		for k, b := range d.X.(*dataset.Pixels).Bytes(i) {
			if k%channels == channel {
				sum += int(b)
				n++
			}
		}
	}
	return float64(sum) / 255 / float64(n)
}

func TestFashionMNIST(t *testing.T) {
	needs(t, fashion.folder)
	train, test, err := FashionMNIST()
	if err != nil {
		t.Fatal(err)
	}
	// .2860 is the mean that users of the set standardise by; the first labels are ankle boots.
	for _, c := range []struct {
		d     *dataset.Dataset
		each  int
		mean  float64
		first []float64
	}{{train, 6000, .2860, []float64{9, 0, 0, 3, 0}}, {test, 1000, .2868, []float64{9, 2, 1, 1, 6}}} {
		if err := c.d.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := counts(c.d); !slices.Equal(got, slices.Repeat([]int{c.each}, 10)) {
			t.Errorf("%s: rows by class %v, want %d each", c.d.Title, got, c.each)
		}
		if got := mean(c.d, 1, 0); math.Abs(got-c.mean) > 5e-5 {
			t.Errorf("%s: the mean is %v, want %v", c.d.Title, got, c.mean)
		}
		if !slices.Equal(c.d.Y[:5], c.first) || c.d.Classes[9] != "ankle boot" {
			t.Errorf("%s: first labels %v", c.d.Title, c.d.Y[:5])
		}
	}
}

// The same of made-up files: four of them, and what is wrong with one.
func TestFashionMade(t *testing.T) {
	images, labels := zipped(t, imagesFile(1, 1, 2, 3, 4, 5, 6)), zipped(t, labelsFile(1, 7))
	s, dir := written(t, fashion, images, labels, images, labels)
	train, test, err := readFashion(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*dataset.Dataset{train, test} {
		if err := d.Validate(); err != nil {
			t.Error(err)
		}
		if d.Name != "fashion_mnist" || d.Licence != "MIT" || d.Source == "" || d.Classes[7] != "sneaker" ||
			d.Features[5] != "1,2" {
			t.Errorf("%+v", d)
		}
	}
	if train.Title == test.Title {
		t.Errorf("both parts are %q", test.Title)
	}
	write(t, filepath.Join(dir, s.files[2].name), images[:len(images)-1])
	_, _, err = readFashion(s)
	refused(t, err, s.files[2].name, s.files[2].sha256, "cut short")
	if err := os.Remove(filepath.Join(dir, s.files[3].name)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, s.files[2].name), images)
	_, _, err = readFashion(s)
	refused(t, err, s.files[3].name, "get the file from", s.page)

	// Files whose checksum is right, but not what is in them.
	for want, files := range map[string][2][]byte{
		"1 images but 2 labels": {images, zipped(t, labelsFile(2, 7, 7))},
		"cut short":             {zipped(t, imagesFile(2, 1, 2, 3, 4, 5, 6)), zipped(t, labelsFile(2, 7, 7))},
		"invalid header":        {bytes.Repeat([]byte("no zip"), 10), labels},
		"unexpected EOF":        {images, labels[:len(labels)-9]},
	} {
		s, _ := written(t, fashion, images, labels, files[0], files[1])
		_, _, err := readFashion(s)
		refused(t, err, want, s.files[2].name[:4])
	}
}
