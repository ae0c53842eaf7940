package pictures

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"os"
	"runtime"
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

// part is an element of a MATLAB file: type, size, data and padding.
func part(kind uint32, data []byte) []byte {
	all := binary.LittleEndian.AppendUint32(nil, kind)
	all = binary.LittleEndian.AppendUint32(all, uint32(len(data)))
	all = append(all, data...)
	if kind == matCompressed {
		return all
	}
	return append(all, make([]byte, -len(data)&7)...)
}

// array is a variable of a class, with values of a type.
func array(name string, class byte, kind uint32, values []byte, sizes ...uint32) []byte {
	var dims []byte
	for _, size := range sizes {
		dims = binary.LittleEndian.AppendUint32(dims, size)
	}
	flags := part(6, []byte{class, 0, 0, 0, 0, 0, 0, 0})
	return part(matArray, slices.Concat(flags, part(5, dims), part(1, []byte(name)), part(kind, values)))
}

// matFile is a MATLAB file of these elements.
func matFile(elements ...[]byte) []byte {
	header := []byte(strings.Repeat(" ", matHeader-4) + "\x00\x01IM")
	return append(header, slices.Concat(elements...)...)
}

func compressed(t *testing.T, element []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write(element); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return part(matCompressed, b.Bytes())
}

// opened has the compressed elements of a file uncompressed.
func opened(t *testing.T, all []byte) []byte {
	t.Helper()
	out := slices.Clone(all[:matHeader])
	for all = all[matHeader:]; len(all) > 0; {
		size := binary.LittleEndian.Uint32(all[4:8])
		z, err := zlib.NewReader(bytes.NewReader(all[8 : 8+size]))
		if err != nil {
			t.Fatal(err)
		}
		element, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		out, all = append(out, element...), all[8+size:]
	}
	return out
}

func TestSVHNMade(t *testing.T) {
	for _, file := range [][]byte{three(t), opened(t, three(t))} {
		s, _ := written(t, svhn, file, three(t))
		train, test, err := readSVHN(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []*dataset.Dataset{train, test} {
			if err := d.Validate(); err != nil {
				t.Fatal(err)
			}
			if d.Rows() != 3 || !slices.Equal(d.Y, []float64{1, 0, 9}) || d.Classes[9] != "9" || d.Name != "svhn" ||
				d.Source == "" || !strings.Contains(d.Licence, "non-commercial") || d.Features[3*colours] != "0,3,red" {
				t.Errorf("%s", d)
			}
			for picture := range 3 {
				for j, b := range d.X.(*dataset.Pixels).Bytes(picture) {
					pixel := j / colours
					if want := level(picture, pixel/side, pixel%side, j%colours); b != want {
						t.Fatalf("picture %d has %d at %s, want %d", picture, b, d.Features[j], want)
					}
				}
			}
		}
		if train.Title == test.Title {
			t.Errorf("both parts are %q", test.Title)
		}
	}
}

func TestSVHNFaults(t *testing.T) {
	const double, chars, uint8s, storedDouble = 6, 4, 9, 9
	x := array("X", uint8s, matBytes, make([]byte, 2*colourBytes), side, side, colours, 2)
	y := array("y", double, matBytes, []byte{1, 10}, 2, 1)
	// y is of doubles, which MATLAB stores as bytes if it can.
	s, _ := written(t, svhn, matFile(compressed(t, x), y), matFile(y, x))
	if _, _, err := readSVHN(s); err != nil {
		t.Fatal(err)
	}
	whole := three(t)
	flipped := slices.Clone(whole)
	flipped[len(flipped)-1] ^= 1 // y's checksum
	for name, c := range map[string]struct {
		file  []byte
		wants []string
	}{
		"empty":             {nil, []string{"header"}},
		"cut in the header": {whole[:50], []string{"header"}},
		"no variable":       {whole[:matHeader], []string{"X []", "y []", "variables []"}},
		"cut in a tag":      {whole[:matHeader+5], []string{"cut short"}},
		"cut in X":          {whole[:matHeader+300], []string{"number 1", "cut short"}},
		"cut in y":          {whole[:len(whole)-9], []string{`"y"`, "cut short"}},
		"checksum":          {flipped, []string{`"y"`, "checksum"}},
		"cut in open X":     {matFile(x)[:1000], []string{`"X"`, "cut short"}},
		"cut padding":       {matFile(x, y)[:len(matFile(x, y))-2], []string{`"y"`, "cut short"}},
		"version 7.3":       {append(make([]byte, 124), "\x00\x02IM"...), []string{"level 5", `"\x00\x02IM"`}},
		"big-endian":        {append(make([]byte, 124), "\x01\x00MI"...), []string{"level 5"}},
		"a text":            {[]byte(strings.Repeat("label,pixel\n", 20)), []string{"level 5"}},
		"other variable":    {matFile(x, array("labels", uint8s, matBytes, []byte{1}, 1, 1)), []string{"y []", "[X labels]"}},
		"more labels": {matFile(x, array("y", uint8s, matBytes, []byte{1, 2, 3}, 3, 1)),
			[]string{"[32 32 3 2]", "[3 1]"}},
		"labels in a row": {matFile(x, array("y", uint8s, matBytes, []byte{1, 2}, 1, 2)), []string{"[1 2]", "[N 1]"}},
		"grey": {matFile(array("X", uint8s, matBytes, make([]byte, 2*side*side), side, side, 2), y),
			[]string{"[32 32 2]", "[32 32 3 N]"}},
		"label 0":  {matFile(x, array("y", uint8s, matBytes, []byte{1, 0}, 2, 1)), []string{"label 1 is 0"}},
		"label 11": {matFile(x, array("y", uint8s, matBytes, []byte{11, 1}, 2, 1)), []string{"label 0 is 11"}},
		"doubles":  {matFile(x, array("y", double, storedDouble, make([]byte, 16), 2, 1)), []string{`"y"`, "type 9"}},
		"sizes":    {matFile(x, array("y", uint8s, matBytes, []byte{1, 2, 3}, 2, 1)), []string{`"y"`, "3 bytes", "[2 1]"}},
		"huge sizes": {matFile(array("X", uint8s, matBytes, []byte{1}, 1<<31, 1<<31, 1<<31)),
			[]string{`"X"`, "1 bytes"}},
		"damaged part": {matFile(part(matArray, append([]byte{6, 0, 5, 0}, make([]byte, 12)...))),
			[]string{"5 bytes stand in four", "damaged"}},
		"huge part": {matFile(part(matArray, append([]byte{6, 0, 0, 0, 1, 0, 0, 0x80}, make([]byte, 8)...))),
			[]string{"2147483649 bytes", "damaged"}},
		"characters": {matFile(array("X", chars, matBytes, []byte{1}, 1, 1)), []string{`"X"`, "array of numbers"}},
		"no array":   {matFile(part(matBytes, []byte{1})), []string{"of type 2", "array"}},
		"no zlib":    {matFile(part(matCompressed, []byte("no zlib"))), []string{"number 1", "zlib"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := written(t, svhn, c.file, whole)
			_, _, err := readSVHN(s)
			refused(t, err, append(c.wants, dir)...)
		})
	}
}

// A part that declares 2 GB takes no more memory than the file has.
func TestSVHNDeclaredSize(t *testing.T) {
	file := matFile(part(matArray, append([]byte{6, 0, 0, 0, 0, 0, 0, 0x80}, make([]byte, 8)...)))
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	_, err := readMAT(bytes.NewReader(file))
	runtime.ReadMemStats(&end)
	refused(t, err, "cut short")
	if allocated := end.TotalAlloc - start.TotalAlloc; allocated > 1<<20 {
		t.Errorf("%d bytes were allocated for a file of %d", allocated, len(file))
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
