package pictures

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/dataset"
)

// three is a file that scipy 1.17.1 wrote (savemat, compressed): X[row, column, channel, picture], of three pictures,
// is 7 row + 3 column + 64 channel + 31 picture modulo 256, and y is 1, 10, 9.
func three(t *testing.T) []byte {
	t.Helper()
	all, err := os.ReadFile("testdata/three_32x32.mat")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSVHNMade(t *testing.T) {
	s, _ := written(t, svhn, three(t), three(t))
	train, test, err := readSVHN(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*dataset.Dataset{train, test} {
		madePictures(t, d, 3)
		if !slices.Equal(d.Y, []float64{1, 0, 9}) || d.Classes[9] != "9" || d.Name != "svhn" || d.Source == "" ||
			!strings.Contains(d.Licence, "non-commercial") {
			t.Errorf("%s", d)
		}
	}
	if train.Title == test.Title {
		t.Errorf("both parts are %q", test.Title)
	}
}

// The files' checksums are compared; with others, made for this test, what is cut or changed is refused.
func TestSVHNFaults(t *testing.T) {
	whole := three(t)
	flipped := slices.Clone(whole)
	flipped[len(flipped)-1] ^= 1 // y's checksum
	for want, file := range map[string][]byte{
		"EOF": whole[:50], "X [] and y []": whole[:matHeader], "unexpected EOF": whole[:matHeader+300],
		"zlib: invalid checksum": flipped, "zlib: invalid header": append(bytes.Clone(whole[:matHeader+8]), "no zlib"...),
	} {
		s, _ := written(t, svhn, file, whole)
		_, _, err := readSVHN(s)
		refused(t, err, want, s.files[0].name)
	}
}

func TestSVHN(t *testing.T) {
	needs(t, svhn.folder)
	train, test, err := SVHN()
	if err != nil {
		t.Fatal(err)
	}
	if train.Rows() != 73257 || test.Rows() != 26032 {
		t.Errorf("%d and %d rows", train.Rows(), test.Rows())
	}
}
