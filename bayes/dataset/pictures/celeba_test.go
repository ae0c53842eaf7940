package pictures

import (
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/mat"
)

const (
	attributesFile = "4\nBald Blond_Hair Young \n1.jpg -1  1  1\n2.jpg  1 -1 -1\n3.jpg -1 -1  1\n4.jpg -1  1 -1\n"
	partitionFile  = "1.jpg 0\n2.jpg 1\n3.jpg 0\n4.jpg 2\n"
)

func TestCelebAMade(t *testing.T) {
	s, _ := written(t, celeba, []byte(attributesFile), []byte(partitionFile))
	parts, err := readCelebA(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		d    *dataset.Dataset
		x, y []float64
	}{
		{parts.Train, []float64{-1, 1, -1, 1}, []float64{1, 0}}, {parts.Validation, []float64{1, -1}, []float64{0}},
		{parts.Test, []float64{-1, -1}, []float64{1}},
	} {
		if err := c.d.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := c.d.X.(*mat.Dense).RawMatrix().Data; !slices.Equal(got, c.x) || !slices.Equal(c.d.Y, c.y) ||
			!slices.Equal(c.d.Features, []string{"Bald", "Young"}) || c.d.Target != "Blond_Hair" || c.d.Classes[1] != "blond" {
			t.Errorf("%v, want %v; labels %v, want %v\n%s", got, c.x, c.d.Y, c.y, c.d)
		}
		if c.d.Name != "celeba" || c.d.Title == "" || c.d.Source == "" || !strings.Contains(c.d.Licence, "non-commercial") {
			t.Errorf("%q, %q, %q, %q", c.d.Name, c.d.Title, c.d.Source, c.d.Licence)
		}
	}
	if parts.Test.OriginalRow(0) != 3 {
		t.Errorf("the test row is row %d of all", parts.Test.OriginalRow(0))
	}
}

// The files' checksums are compared; with others, made for this test, what would be read otherwise is refused.
func TestCelebAFaults(t *testing.T) {
	for _, c := range []struct {
		attributes, partition string
		wants                 []string
	}{
		{strings.Replace(attributesFile, "1 -1 -1", "1 -1", 1), partitionFile, []string{"line 4", "3 fields"}},
		{strings.Replace(attributesFile, "Blond_Hair", "Blond", 1), partitionFile, []string{"Blond_Hair among them"}},
		{strings.Replace(attributesFile, "1 -1 -1", "1 x -1", 1), partitionFile, []string{"line 4, Blond_Hair", `"x"`}},
		{attributesFile, strings.Replace(partitionFile, "3.jpg 0", "3.jpg 3", 1), []string{"line 3", "3.jpg 3"}},
		{attributesFile, strings.Replace(partitionFile, "4.jpg 2", "4.jpg 0", 1), []string{"at least one row"}},
	} {
		s, _ := written(t, celeba, []byte(c.attributes), []byte(c.partition))
		_, err := readCelebA(s)
		refused(t, err, c.wants...)
	}
}

func TestCelebA(t *testing.T) {
	needs(t, celeba.folder)
	parts, err := CelebA()
	if err != nil {
		t.Fatal(err)
	}
	if parts.Train.Rows() != 162770 || parts.Validation.Rows() != 19867 || parts.Test.Rows() != 19962 ||
		parts.Train.Dims() != 39 {
		t.Errorf("%d, %d and %d rows of %d", parts.Train.Rows(), parts.Validation.Rows(), parts.Test.Rows(),
			parts.Train.Dims())
	}
}
