package pictures

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"gobnn/bayes/dataset"
)

// level is a made-up byte of a picture.
func level(picture, row, column, channel int) byte {
	return byte(7*row + 3*column + 64*channel + 31*picture)
}

// batch is a batch of two pictures in the publisher's layout, of the classes label and label - 1.
func batch(label int) []byte {
	var all []byte
	for picture := range 2 {
		all = append(all, byte(label-picture))
		for channel := range colours {
			for row := range side {
				for column := range side {
					all = append(all, level(picture, row, column, channel))
				}
			}
		}
	}
	return all
}

// madePictures checks pictures of level, of which so many differ.
func madePictures(t *testing.T, d *dataset.Dataset, different int) {
	t.Helper()
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	for picture := range d.Rows() {
		for j, b := range d.X.(*dataset.Pixels).Bytes(picture) {
			pixel := j / colours
			if want := level(picture%different, pixel/side, pixel%side, j%colours); b != want {
				t.Fatalf("picture %d has %d at %s, want %d", picture, b, d.Features[j], want)
			}
		}
	}
	if d.Features[(5*side+7)*colours+2] != "5,7,blue" {
		t.Errorf("feature %q", d.Features[(5*side+7)*colours+2])
	}
}

func TestCIFARMade(t *testing.T) {
	s, dir := written(t, cifar, batch(9), batch(2), batch(5))
	train, test, err := readCIFAR(s)
	if err != nil {
		t.Fatal(err)
	}
	madePictures(t, train, 2)
	madePictures(t, test, 2)
	if !slices.Equal(train.Y, []float64{9, 8, 2, 1}) || !slices.Equal(test.Y, []float64{5, 4}) {
		t.Errorf("labels %v and %v", train.Y, test.Y)
	}
	if test.Name != "cifar10" || test.Classes[5] != "dog" || test.Source == "" || test.Licence == "" ||
		train.Title == test.Title {
		t.Errorf("%s, %s, %s, %s, %q", test.Name, test.Title, test.Source, test.Licence, test.Classes)
	}
	write(t, filepath.Join(dir, s.files[1].name), batch(2)[:4000])
	_, _, err = readCIFAR(s)
	refused(t, err, s.files[1].name, "it has 4000 bytes", "want 6146", "delete it", s.page)
	// With the right checksum.
	s, _ = written(t, cifar, batch(9), batch(2)[:4000], batch(5))
	_, _, err = readCIFAR(s)
	refused(t, err, s.files[1].name, "row 1 has 927 bytes")
	s, _ = written(t, cifar, batch(9), batch(11), batch(5))
	_, _, err = readCIFAR(s)
	refused(t, err, s.files[1].name, "row 0 has", "the label 11")
	s, _ = written(t, cifar, batch(9), batch(1))
	s.files = append(s.files, file{name: "test_batch.bin"})
	_, _, err = readCIFAR(s)
	refused(t, err, "test_batch.bin", "get the file from")
}

func TestCIFAR10(t *testing.T) {
	needs(t, cifar.folder)
	train, test, err := CIFAR10()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		d    *dataset.Dataset
		each int
	}{{train, 5000}, {test, 1000}} {
		if err := c.d.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := counts(c.d); !slices.Equal(got, slices.Repeat([]int{c.each}, 10)) {
			t.Errorf("%s: rows by class %v, want %d each", c.d.Title, got, c.each)
		}
	}
	// The means that users of the set standardise by.
	for channel, want := range []float64{.4914, .4822, .4465} {
		if got := mean(train, colours, channel); math.Abs(got-want) > 5e-5 {
			t.Errorf("mean of channel %d: %v, want %v", channel, got, want)
		}
	}
	if train.Classes[int(train.Y[0])] != "frog" || test.Classes[int(test.Y[0])] != "cat" {
		t.Errorf("first labels %v and %v", train.Y[0], test.Y[0])
	}
}
