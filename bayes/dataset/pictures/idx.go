package pictures

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"gobnn/bayes/dataset"
)

// idxClasses is the number of classes, in MNIST and in the sets made to replace it.
const idxClasses = 10

// An IDX file begins with two zero bytes, the type of its values (8: unsigned bytes) and its number of dimensions, and
// their sizes as big-endian 32-bit numbers.
const (
	magicLabels = 0x00000801
	magicImages = 0x00000803
)

// maxSide bounds the memory that the header of a damaged file can make ReadIDX allocate.
const maxSide = 1 << 12

// ReadIDX reads pictures and their labels from files of MNIST's IDX format, uncompressed (put gzip.NewReader in front
// of compressed ones). It gives N pictures of any height and width, as dataset.Pixels [N, height x width] with features
// named "row,column" from 0, and N labels from 0 to 9. The Dataset's Name is "idx": set it, with Title, Source and
// Licence.
//
// It is an error if one of the files is no IDX file of that kind, is cut short or has bytes left over, if their numbers
// of rows differ, or a label is above 9.
func ReadIDX(images, labels io.Reader) (*dataset.Dataset, error) {
	sizes, err := header(images, "images", magicImages, 3)
	if err != nil {
		return nil, err
	}
	n, height, width := sizes[0], sizes[1], sizes[2]
	if n < 1 || height < 1 || width < 1 || height > maxSide || width > maxSide {
		return nil, fmt.Errorf("pictures: images: the header says %d pictures of %d x %d pixels: there must be at least "+
			"one, and 1 to %d pixels along each side", n, height, width, maxSide)
	}
	marked, err := header(labels, "labels", magicLabels, 1)
	if err != nil {
		return nil, err
	}
	if marked[0] != n {
		return nil, fmt.Errorf("pictures: there are %d images but %d labels: take the two files of one part", n, marked[0])
	}
	classes, err := readRows(labels, "labels", n, 1)
	if err != nil {
		return nil, err
	}
	y := make([]float64, n)
	for i, label := range classes {
		if label >= idxClasses {
			return nil, fmt.Errorf("pictures: labels: row %d is %d: it must be from 0 to %d", i, label, idxClasses-1)
		}
		y[i] = float64(label)
	}
	x, err := readRows(images, "images", n, height*width)
	if err != nil {
		return nil, err
	}
	d := &dataset.Dataset{Name: "idx", Task: dataset.Classification, Target: "label", Y: y,
		X: dataset.NewPixels(x, height*width), Features: features(height, width)}
	for c := range idxClasses {
		d.Classes = append(d.Classes, fmt.Sprint(c))
	}
	return d, nil
}

// header reads the magic number, which must be the wanted one, and the sizes.
func header(r io.Reader, file string, magic uint32, dims int) ([]int, error) {
	words := make([]uint32, 1+dims)
	if err := binary.Read(r, binary.BigEndian, words[:1]); err != nil {
		return nil, fmt.Errorf("pictures: %s: the file ends within its first four bytes or cannot be read: %w", file, err)
	}
	switch m := words[0]; {
	case m == magic:
	case m == magicImages || m == magicLabels:
		return nil, fmt.Errorf("pictures: %s: the file begins with %#08x where %#08x is expected: the files of images and "+
			"of labels are swapped", file, m, magic)
	case m>>16 == 0x1f8b:
		return nil, fmt.Errorf("pictures: %s: the file is compressed with gzip: put gzip.NewReader in front of it", file)
	default:
		return nil, fmt.Errorf("pictures: %s: the file begins with %#08x where %#08x is expected: it is no IDX file of "+
			"bytes with %d dimensions", file, m, magic, dims)
	}
	if err := binary.Read(r, binary.BigEndian, words[1:]); err != nil {
		return nil, fmt.Errorf("pictures: %s: the file ends within its header or cannot be read: %w", file, err)
	}
	sizes := make([]int, dims)
	for i, w := range words[1:] {
		sizes[i] = int(w)
	}
	return sizes, nil
}

// readRows reads n rows of some bytes. It reads piece by piece, in case the header is damaged.
func readRows(r io.Reader, file string, n, width int) ([]byte, error) {
	all, err := io.ReadAll(io.LimitReader(r, int64(n)*int64(width)))
	if err == nil && len(all) < n*width {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("pictures: %s: there are %d of the %d rows that the header says: the file is cut short: %w",
			file, len(all)/width, n, err)
	}
	return all, atEnd(file, r)
}

// atEnd is an error unless the whole file has been read; reading to the end makes a decompressor check its checksum.
func atEnd(file string, r io.Reader) error {
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("pictures: %s: there are bytes after the last row that the header says: the file is damaged, or "+
			"of another kind", file)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("pictures: %s: %w", file, err)
	}
	return nil
}
