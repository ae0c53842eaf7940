package pictures

import (
	"fmt"
	"slices"

	"gobnn/bayes/dataset"
)

// The pictures of CIFAR-10 and of SVHN are 32 x 32 pixels of three bytes.
const (
	side        = 32
	colours     = 3
	colourBytes = side * side * colours
)

// The first files are the training part, the last one is the test part.
var cifar = source{
	folder: "cifar-10-batches-bin",
	page:   "https://www.cs.toronto.edu/~kriz/cifar.html",
	url:    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
	files: []file{
		{"data_batch_1.bin", 30730000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
		{"data_batch_2.bin", 30730000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
		{"data_batch_3.bin", 30730000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
		{"data_batch_4.bin", 30730000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
		{"data_batch_5.bin", 30730000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
		{"test_batch.bin", 30730000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
	},
}

var cifarClasses = []string{
	"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
}

// CIFAR10 gives the 50000 pictures for training and the 10000 for the test of CIFAR-10 (Krizhevsky 2009): photographs
// of things and animals, 32 x 32 in colour, X [N, 3072], of ten classes. The package comment says where the files come
// from.
func CIFAR10() (train, test *dataset.Dataset, err error) { return readCIFAR(cifar) }

func readCIFAR(s source) (train, test *dataset.Dataset, err error) {
	dir, err := s.place()
	if err != nil {
		return nil, nil, err
	}
	last := len(s.files) - 1
	if train, err = s.batches(dir, s.files[:last]); err == nil {
		test, err = s.batches(dir, s.files[last:])
	}
	if err != nil {
		return nil, nil, err
	}
	train.Title, test.Title = "CIFAR-10, training part", "CIFAR-10, test part"
	return train, test, nil
}

// A batch is rows of 3073 bytes: the label, and the pixels' red, then their green, then their blue.
const batchRow = 1 + colourBytes

// batches joins batches, and makes neighbours of a pixel's channels.
func (s source) batches(dir string, files []file) (*dataset.Dataset, error) {
	var pixels []byte
	var y []float64
	for _, f := range files {
		all, err := s.read(dir, f)
		if err != nil {
			return nil, err
		}
		before := len(y)
		for row := range slices.Chunk(all, batchRow) {
			if len(row) < batchRow || row[0] >= byte(len(cifarClasses)) {
				return nil, fmt.Errorf("pictures: %s: row %d has %d bytes and the label %d: it must have %d bytes and a label "+
					"below %d", f.name, len(y)-before, len(row), row[0], batchRow, len(cifarClasses))
			}
			y = append(y, float64(row[0]))
			for k := range side * side {
				pixels = append(pixels, row[1+k], row[1+side*side+k], row[1+2*side*side+k])
			}
		}
	}
	d := inColour("cifar10", pixels, y)
	d.Classes = slices.Clone(cifarClasses)
	d.Source, d.Licence = "Krizhevsky 2009; "+s.page, "none stated by the makers, who ask to cite the report"
	return d, nil
}

// inColour is a set of pictures in colour.
func inColour(name string, pixels []byte, y []float64) *dataset.Dataset {
	return &dataset.Dataset{Name: name, Task: dataset.Classification, Target: "label", Y: y,
		X: dataset.NewPixels(pixels, colourBytes), Features: features(side, side, "red", "green", "blue")}
}

// features names the features of pictures: "row,column", or "row,column,channel" where channels have names.
func features(height, width int, channels ...string) []string {
	names := make([]string, 0, height*width*max(1, len(channels)))
	for i := range height * width {
		pixel := fmt.Sprintf("%d,%d", i/width, i%width)
		if channels == nil {
			names = append(names, pixel)
		}
		for _, channel := range channels {
			names = append(names, pixel+","+channel)
		}
	}
	return names
}
