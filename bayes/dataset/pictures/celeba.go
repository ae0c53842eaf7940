package pictures

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/mat"
)

var celeba = source{
	folder: "celeba",
	page:   "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
	get: "list_attr_celeba.txt (folder Anno) and list_eval_partition.txt (folder Eval), for non-commercial research " +
		"only,",
	files: []file{
		{"list_attr_celeba.txt", 26721026, "f0e5da289d5ccf75ffe8811132694922b60f2af59256ed362afa03fefba324d0"},
		{"list_eval_partition.txt", 2836386, "fc955bcb3ef8fbdf7d5640d9a8693a8431b5f2ee291a5c1449a1549e7e073fe7"},
	},
}

// celebaTarget is the attribute that CelebA has as target.
const celebaTarget = "Blond_Hair"

// CelebA gives the attributes, and no pictures, of CelebA (Liu, Luo, Wang and Tang 2015), 202599 pictures of faces: X
// [N, 39], each 1 where the picture has the attribute and else -1, as in the publisher's file. The target is whether
// the hair is blond, as in FBNN's paper. The parts are the official ones, of 162770, 19867 and 19962 pictures. The
// files are not downloaded: the error of a first call says which they are and where they belong.
func CelebA() (dataset.Parts, error) { return readCelebA(celeba) }

func readCelebA(s source) (parts dataset.Parts, err error) {
	dir, err := s.place()
	if err != nil {
		return parts, err
	}
	attributes, err := s.read(dir, s.files[0])
	if err != nil {
		return parts, err
	}
	partition, err := s.read(dir, s.files[1])
	if err != nil {
		return parts, err
	}
	all, err := readAttributes(attributes)
	if err != nil {
		return parts, fmt.Errorf("pictures: %s: %w", s.files[0].name, err)
	}
	all.Source = "Liu, Luo, Wang and Tang 2015; " + s.page
	all.Licence = "for non-commercial research only (the makers' page)"
	// A line for each picture has its name, and 0 for training, 1 for validation or 2 for the test.
	var rows [3][]int
	for row, line := range strings.Split(strings.TrimSuffix(string(partition), "\n"), "\n") {
		_, text, _ := strings.Cut(strings.TrimSuffix(line, "\r"), " ")
		part, err := strconv.Atoi(text)
		if err != nil || part < 0 || part > 2 {
			return parts, fmt.Errorf("pictures: %s: line %d is %.100q: it must be a name, and 0, 1 or 2", s.files[1].name,
				row+1, line)
		}
		rows[part] = append(rows[part], row)
	}
	for part, to := range []**dataset.Dataset{&parts.Train, &parts.Validation, &parts.Test} {
		if *to, err = all.Subset(rows[part]); err != nil {
			return parts, err
		}
	}
	return parts, nil
}

// readAttributes reads the table of attributes: a line with the number of pictures, one with the names of the
// attributes, and one for each picture with its name and its attributes, -1 or 1.
func readAttributes(file []byte) (*dataset.Dataset, error) {
	lines := strings.Split(strings.TrimSuffix(string(file), "\n"), "\n")
	if len(lines) < 3 {
		return nil, errors.New("it has no line of names and lines of pictures")
	}
	attributes := strings.Fields(lines[1])
	target := slices.Index(attributes, celebaTarget)
	var x, y []float64
	for _, line := range lines[2:] {
		fields := strings.Fields(line)
		if target < 0 || len(fields) != 1+len(attributes) {
			return nil, fmt.Errorf("line %d has %d fields: it must have the picture's name and %d attributes, %s among them",
				len(y)+3, len(fields), len(attributes), celebaTarget)
		}
		for k, field := range fields[1:] {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d, %s: %w", len(y)+3, attributes[k], err)
			}
			if k != target {
				x = append(x, v)
			} else {
				y = append(y, max(v, 0))
			}
		}
	}
	return &dataset.Dataset{Name: "celeba", Title: "CelebA, attributes", Task: dataset.BinaryClassification,
		Target: celebaTarget, Classes: []string{"other hair", "blond"}, Features: slices.Delete(attributes, target, target+1),
		X: mat.NewDense(len(y), len(attributes)-1, x), Y: y}, nil
}
