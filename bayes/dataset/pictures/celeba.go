package pictures

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
	dir, err := s.place(context.Background())
	if err != nil {
		return parts, err
	}
	attributes, err := s.open(dir, s.files[0])
	if err != nil {
		return parts, err
	}
	defer func() { err = errors.Join(err, attributes.Close()) }()
	partition, err := s.open(dir, s.files[1])
	if err != nil {
		return parts, err
	}
	defer func() { err = errors.Join(err, partition.Close()) }()
	all, pictures, err := readAttributes(attributes)
	if err != nil {
		return parts, fmt.Errorf("pictures: %s: %w", attributes.Name(), err)
	}
	all.Source = "Liu, Luo, Wang and Tang 2015; " + s.page
	all.Licence = "for non-commercial research only (the makers' page)"
	rows, err := readPartition(partition, pictures)
	if err != nil {
		return parts, fmt.Errorf("pictures: %s: %w", partition.Name(), err)
	}
	if parts.Train, err = all.Subset(rows[0]); err == nil {
		if parts.Validation, err = all.Subset(rows[1]); err == nil {
			parts.Test, err = all.Subset(rows[2])
		}
	}
	return parts, err
}

// readAttributes reads the table of attributes: a line with the number of pictures, one with the names of the
// attributes, and one for each picture with its name and its attributes.
func readAttributes(r io.Reader) (all *dataset.Dataset, pictures []string, err error) {
	lines := bufio.NewScanner(r)
	lines.Scan()
	count := strings.TrimSpace(lines.Text())
	lines.Scan()
	attributes := strings.Fields(lines.Text())
	target := slices.Index(attributes, celebaTarget)
	if target < 0 || len(attributes) < 2 {
		return nil, nil, fmt.Errorf("line 2 is %.100q: it must name attributes, %s among them", lines.Text(), celebaTarget)
	}
	var x, y []float64
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 1+len(attributes) {
			return nil, nil, fmt.Errorf("line %d has %d fields: it must have the picture's name and %d attributes",
				len(y)+3, len(fields), len(attributes))
		}
		pictures = append(pictures, fields[0])
		for k, field := range fields[1:] {
			if field != "1" && field != "-1" {
				return nil, nil, fmt.Errorf("line %d: %s is %q: it must be -1 or 1", len(y)+3, attributes[k], field)
			}
			v := 1.
			if field == "-1" {
				v = -1
			}
			if k != target {
				x = append(x, v)
			} else {
				y = append(y, max(v, 0))
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, err
	}
	if n, err := strconv.Atoi(count); err != nil || n != len(y) || n == 0 {
		return nil, nil, fmt.Errorf("there are %d pictures, and line 1, their number, is %.100q: the file is cut short or "+
			"another one", len(y), count)
	}
	return &dataset.Dataset{Name: "celeba", Title: "CelebA, attributes", Task: dataset.BinaryClassification,
		Target: celebaTarget, Classes: []string{"other hair", "blond"}, Features: slices.Delete(attributes, target, target+1),
		X: mat.NewDense(len(y), len(attributes)-1, x), Y: y}, pictures, nil
}

// readPartition reads which pictures are for training (0), for validation (1) and for the test (2): a line for each,
// with its name and the number.
func readPartition(r io.Reader, pictures []string) (rows [3][]int, err error) {
	lines := bufio.NewScanner(r)
	i := 0
	for ; lines.Scan(); i++ {
		fields := strings.Fields(lines.Text())
		part := -1
		if len(fields) == 2 && i < len(pictures) && fields[0] == pictures[i] {
			part = slices.Index([]string{"0", "1", "2"}, fields[1])
		}
		if part < 0 {
			return rows, fmt.Errorf("line %d is %.100q: it must be a picture's name, in the order of the %d lines of "+
				"attributes, and 0, 1 or 2", i+1, lines.Text(), len(pictures))
		}
		rows[part] = append(rows[part], i)
	}
	if err := lines.Err(); err != nil {
		return rows, err
	}
	if i != len(pictures) {
		return rows, fmt.Errorf("there are %d lines, and %d pictures with attributes: the file is cut short", i,
			len(pictures))
	}
	return rows, nil
}
