package pictures

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"gonum.org/v1/gonum/mat"
)

// imagesFile is an images file of pictures of 2 x 3 pixels, labelsFile a labels file, with what stands in the header.
func imagesFile(n byte, pixels ...byte) []byte {
	return append([]byte{0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 2, 0, 0, 0, 3}, pixels...)
}

func labelsFile(n byte, labels ...byte) []byte {
	return append([]byte{0, 0, 8, 1, 0, 0, 0, n}, labels...)
}

func TestReadIDX(t *testing.T) {
	d, err := ReadIDX(bytes.NewReader(imagesFile(2, 0, 51, 255, 1, 2, 3, 255, 0, 0, 0, 0, 102)),
		bytes.NewReader(labelsFile(2, 9, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := mat.Row(nil, 0, d.X); !slices.Equal(got, []float64{0, .2, 1, 1. / 255, 2. / 255, 3. / 255}) ||
		d.X.At(1, 5) != .4 {
		t.Errorf("pixels are %v and %v", got, mat.Row(nil, 1, d.X))
	}
	if !slices.Equal(d.Y, []float64{9, 0}) || !slices.Equal(d.Features,
		[]string{"0,0", "0,1", "0,2", "1,0", "1,1", "1,2"}) || d.Outputs() != idxClasses {
		t.Errorf("labels %v, features %q, %d classes", d.Y, d.Features, d.Outputs())
	}
}

func TestReadIDXFaults(t *testing.T) {
	images, labels := imagesFile(1, 1, 2, 3, 4, 5, 6), labelsFile(1, 7)
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
		"labels cut": {imagesFile(3, images[16:]...), labelsFile(3, 1, 2),
			[]string{"labels", "2 of the 3 rows", "cut short"}, true},
		"second picture cut": {imagesFile(2, 1, 2, 3, 4, 5, 6, 7), labelsFile(2, 1, 2),
			[]string{"images", "1 of the 2 rows"}, true},
		"swapped":        {labels, images, []string{"images", "0x00000801", "swapped"}, false},
		"labels twice":   {images, images, []string{"labels", "0x00000803", "swapped"}, false},
		"gzip":           {gzipped, labels, []string{"images", "gzip.NewReader"}, false},
		"labels in gzip": {images, gzipped, []string{"labels", "gzip.NewReader"}, false},
		"a text": {[]byte("label,pixel0\n"), labels,
			[]string{"images", "0x6c616265", "no IDX file"}, false},
		"floats":                {with(images, 2, 0x0d), labels, []string{"images", "0x00000d03", "no IDX file"}, false},
		"other numbers of rows": {images, labelsFile(2, 7, 7), []string{"1 images", "2 labels"}, false},
		"no rows":               {imagesFile(0), labelsFile(0), []string{"0 pictures"}, false},
		"no height":             {with(images, 11, 0), labels, []string{"0 x 3"}, false},
		"a damaged width":       {with(images, 12, 0x80), labels, []string{"2 x 2147483651"}, false},
		"label 10":              {imagesFile(2, make([]byte, 12)...), labelsFile(2, 9, 10), []string{"row 1", "10"}, false},
		"images go on": {append(slices.Clone(images), 0), labels,
			[]string{"images", "after the last row"}, false},
		"labels go on": {images, append(slices.Clone(labels), 0),
			[]string{"labels", "after the last row"}, false},
	} {
		_, err := ReadIDX(bytes.NewReader(c.images), bytes.NewReader(c.labels))
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
func TestReadIDXPassesErrors(t *testing.T) {
	own := errors.New("own")
	broken := func(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b), iotest.ErrReader(own)) }
	images, labels := imagesFile(1, 1, 2, 3, 4, 5, 6), labelsFile(1, 7)
	for _, cut := range []int{0, 8, 18, len(images)} {
		if _, err := ReadIDX(broken(images[:cut]), bytes.NewReader(labels)); !errors.Is(err, own) {
			t.Errorf("images after %d bytes: %v", cut, err)
		}
	}
	for _, cut := range []int{0, 6, 8, len(labels)} {
		if _, err := ReadIDX(bytes.NewReader(images), broken(labels[:cut])); !errors.Is(err, own) {
			t.Errorf("labels after %d bytes: %v", cut, err)
		}
	}
}
