package pictures

import (
	"bytes"
	"fmt"
	"slices"

	"gobnn/bayes/dataset"
)

var svhn = source{
	folder: "svhn",
	page:   "http://ufldl.stanford.edu/housenumbers/",
	get:    "train_32x32.mat and test_32x32.mat, of the cropped digits and for non-commercial use only,",
	files: []file{
		{"train_32x32.mat", 182040794, "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"},
		{"test_32x32.mat", 64275384, "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"},
	},
}

// SVHN gives the 73257 pictures for training and the 26032 for the test of the Street View House Numbers (Netzer et al.
// 2011): digits, 32 x 32 in colour, X [N, 3072]. The third part, 531131 easier pictures, is not read. The files are not
// downloaded: the error of a first call says which they are and where they belong.
func SVHN() (train, test *dataset.Dataset, err error) { return readSVHN(svhn) }

func readSVHN(s source) (train, test *dataset.Dataset, err error) {
	dir, err := s.place()
	if err != nil {
		return nil, nil, err
	}
	if train, err = s.digits(dir, s.files[0]); err == nil {
		test, err = s.digits(dir, s.files[1])
	}
	if err != nil {
		return nil, nil, err
	}
	train.Title, test.Title = "Street View House Numbers, training part", "Street View House Numbers, test part"
	return train, test, nil
}

// digits reads a file of digits: pictures X, [32, 32, 3, N], and labels y, [N, 1], from 1 to 10, which is the digit 0.
func (s source) digits(dir string, f file) (*dataset.Dataset, error) {
	all, err := s.read(dir, f)
	if err != nil {
		return nil, err
	}
	variables, err := readMAT(bytes.NewReader(all))
	if err != nil {
		return nil, fmt.Errorf("pictures: %s: %w", f.name, err)
	}
	x, y := variables["X"], variables["y"]
	n := len(y.values)
	if !slices.Equal(x.sizes, []int{side, side, colours, n}) || !slices.Equal(y.sizes, []int{n, 1}) {
		return nil, fmt.Errorf("pictures: %s has X %v and y %v: X must be [32 32 3 N] and y [N 1]", f.name, x.sizes,
			y.sizes)
	}
	labels := make([]float64, n)
	for i, digit := range y.values {
		labels[i] = float64(digit % 10)
	}
	// MATLAB's first index is the fastest: a picture is its red, its green and its blue, column by column.
	var row [colourBytes]byte
	for picture := range slices.Chunk(x.values, colourBytes) {
		copy(row[:], picture)
		for k := range side * side {
			for channel := range colours {
				picture[k*colours+channel] = row[channel*side*side+k%side*side+k/side]
			}
		}
	}
	d := inColour("svhn", x.values, labels)
	for digit := range 10 {
		d.Classes = append(d.Classes, fmt.Sprint(digit))
	}
	d.Source = "Netzer, Wang, Coates, Bissacco, Wu and Ng 2011; " + s.page
	d.Licence = "for non-commercial use only (the makers' page)"
	return d, nil
}
