package pictures

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"

	"gobnn/bayes/dataset"
)

var fashion = source{
	folder: "fashion-mnist",
	page:   "https://github.com/zalandoresearch/fashion-mnist",
	url:    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
	files: []file{
		{"train-images-idx3-ubyte.gz", 26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
		{"train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
		{"t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
		{"t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
	},
}

var fashionClasses = []string{
	"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
}

// FashionMNIST gives the 60000 pictures for training and the 10000 for the test of Fashion-MNIST (Xiao, Rasul and
// Vollgraf 2017): articles of clothing, 28 x 28 in grey, X [N, 784], of ten classes. The package comment says where the
// files come from.
func FashionMNIST() (train, test *dataset.Dataset, err error) { return readFashion(fashion) }

func readFashion(s source) (train, test *dataset.Dataset, err error) {
	dir, err := s.place()
	if err != nil {
		return nil, nil, err
	}
	if train, err = s.idx(dir, s.files[0], s.files[1]); err == nil {
		test, err = s.idx(dir, s.files[2], s.files[3])
	}
	if err != nil {
		return nil, nil, err
	}
	train.Title, test.Title = "Fashion-MNIST, training part", "Fashion-MNIST, test part"
	for _, d := range []*dataset.Dataset{train, test} {
		d.Name, d.Licence = "fashion_mnist", "MIT"
		d.Source = "Xiao, Rasul and Vollgraf 2017, Zalando SE; " + s.page
		d.Classes = slices.Clone(fashionClasses)
	}
	return train, test, nil
}

// idx reads compressed files of pictures and of labels.
func (s source) idx(dir string, images, labels file) (*dataset.Dataset, error) {
	var unpacked [2]io.Reader
	for i, f := range []file{images, labels} {
		all, err := s.read(dir, f)
		if err != nil {
			return nil, err
		}
		if unpacked[i], err = gzip.NewReader(bytes.NewReader(all)); err != nil {
			return nil, fmt.Errorf("pictures: %s: %w", f.name, err)
		}
	}
	d, err := ReadIDX(unpacked[0], unpacked[1])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", images.name, labels.name, err)
	}
	return d, nil
}
