package study

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/pictures"

	"gonum.org/v1/gonum/mat"
)

// The simulated sets of the paper are scikit-learn's make_regression and make_classification with 5 000 000 rows of
// 1000 features. These are made the same way, with fewer rows.
const (
	simulatedRows, simulatedMore = 2000, 20_000
	simulatedFeatures            = 1000
	informative                  = 10 // of the features
)

// simulatedParts splits the rows of a generator into a training part and a test part of one fifth.
func simulatedParts(
	generate func(rng *rand.Rand, rows int) *dataset.Dataset,
) func(repetition int, full bool) (dataset.Parts, error) {
	return func(repetition int, full bool) (dataset.Parts, error) {
		rows := simulatedRows
		if full {
			rows = simulatedMore
		}
		all := generate(rand.New(rand.NewPCG(uint64(repetition), 14)), rows)
		return all.Split(dataset.Fractions{Train: .8, Test: .2}, uint64(repetition))
	}
}

// simulateRegression is y = X w + noise, with normal features and w uniform on (0, 100) for the informative ones. The
// noise is a tenth of y's variance: make_regression has none by default, with which the paper's mean squared error of
// .71 would say that nothing was learnt.
func simulateRegression(rng *rand.Rand, rows int) *dataset.Dataset {
	d, x := blank("simulated regression", rows)
	d.Task, d.Y = dataset.Regression, make([]float64, rows)
	var w [informative]float64
	size := 0.
	for k := range w {
		w[k] = 100 * rng.Float64()
		size += w[k] * w[k]
	}
	for i := range rows {
		for k := range simulatedFeatures {
			v := rng.NormFloat64()
			x.Set(i, k, v)
			if k < informative {
				d.Y[i] += v * w[k] / math.Sqrt(size)
			}
		}
		d.Y[i] += math.Sqrt(.1) * rng.NormFloat64()
	}
	return d
}

// simulateClasses has two clusters a class, at corners of a cube in the informative features, each of normals with a
// covariance of its own; the other features are noise, and a hundredth of the labels is drawn at random.
func simulateClasses(rng *rand.Rand, rows int) *dataset.Dataset {
	d, x := blank("simulated classification", rows)
	d.Task, d.Classes, d.Y = dataset.BinaryClassification, []string{"0", "1"}, make([]float64, rows)
	var corner [4][informative]float64
	var mix [4][informative][informative]float64
	for c := range corner {
		for k := range informative {
			corner[c][k] = 2*float64(rng.IntN(2)) - 1
			for l := range informative {
				mix[c][k][l] = 2*rng.Float64() - 1
			}
		}
	}
	for i := range rows {
		c := rng.IntN(len(corner))
		d.Y[i] = float64(c % 2)
		if rng.Float64() < .01 {
			d.Y[i] = float64(rng.IntN(2))
		}
		var z [informative]float64
		for k := range z {
			z[k] = rng.NormFloat64()
		}
		for k := range simulatedFeatures {
			v := rng.NormFloat64()
			if k < informative {
				v = corner[c][k]
				for l := range z {
					v += mix[c][k][l] * z[l]
				}
			}
			x.Set(i, k, v)
		}
	}
	return d
}

// blank is a data set whose features, x, are to be filled in.
func blank(name string, rows int) (d *dataset.Dataset, x *mat.Dense) {
	x = mat.NewDense(rows, simulatedFeatures, nil)
	d = &dataset.Dataset{Name: name, X: x, Target: "y"}
	for k := range simulatedFeatures {
		d.Features = append(d.Features, fmt.Sprintf("x%d", k+1))
	}
	return d, x
}

// The paper's simulated regression itself has 5 000 000 rows of 1000 features, 40 GB, which are read in blocks. By
// default there are fewer.
const (
	inBlocks                 = " in blocks"
	streamedFew, streamedAll = 10_000, 5_000_000
	streamedTests            = 2000    // rows of the test part, which come
	streamedMost             = 1 << 40 // after all that a training part may have
)

// streamedRows returns rows of a generator, with the noise of simulateRegression.
func streamedRows(repetition, rows int) dataset.Source {
	return dataset.Simulated{
		N: rows, Features: simulatedFeatures, Noise: math.Sqrt(.1), Seed: uint64(repetition),
	}
}

// streamedTest returns further rows of the same generator, beyond all rows of the training part.
func streamedTest(repetition int, _ bool) (dataset.Parts, error) {
	d := &dataset.Dataset{Name: "simulated regression" + inBlocks, Task: dataset.Regression, Target: "y"}
	for k := range simulatedFeatures {
		d.Features = append(d.Features, fmt.Sprintf("x%d", k+1))
	}
	x, y := make([]float64, streamedTests*simulatedFeatures), make([]float64, streamedTests)
	all := streamedRows(repetition, streamedMost+streamedTests)
	err := all.Read(context.Background(), streamedMost, x, y)
	d.X, d.Y = mat.NewDense(streamedTests, simulatedFeatures, x), y
	return dataset.Parts{Test: d}, err
}

// The number of rows of the training and of the test part, for sets that are cut to their first rows.
const (
	firstRows, firstTest = 2000, 2000
	adultRows, adultTest = 32_561, 16_281 // with -full
	digitsRows           = 20_000         // likewise
)

// adultParts returns the parts of adult, with a column for each of the original's 14: categories are numbered.
func adultParts(_ int, full bool) (parts dataset.Parts, err error) {
	defer caught(&err)
	parts = must(dataset.MustLoad("adult").PublishedSplit(dataset.Official, 0))
	train, test := firstRows, firstTest
	if full {
		train, test = adultRows, adultTest
	}
	return dataset.Parts{Train: numbered(firstOf(parts.Train, train)), Test: numbered(firstOf(parts.Test, test))}, nil
}

// firstOf returns the first rows of a data set.
func firstOf(d *dataset.Dataset, rows int) *dataset.Dataset {
	some := make([]int, min(rows, d.Rows()))
	for i := range some {
		some[i] = i
	}
	return must(d.Subset(some))
}

// numbered has one column in place of those that a category was made into: the number of the category.
func numbered(d *dataset.Dataset) *dataset.Dataset {
	out := &dataset.Dataset{Name: d.Name + " in numbers", Title: d.Title, Source: d.Source, Licence: d.Licence,
		Task: d.Task, Target: d.Target, Classes: d.Classes, Y: d.Y}
	to, number := make([]int, len(d.Features)), make([]float64, len(d.Features))
	for k, name := range d.Features {
		column, _, categorical := strings.Cut(name, "=")
		to[k] = slices.Index(out.Features, column)
		if to[k] < 0 {
			to[k] = len(out.Features)
			out.Features = append(out.Features, column)
		}
		if categorical && k > 0 && to[k] == to[k-1] {
			number[k] = number[k-1] + 1
		} else if !categorical {
			number[k] = 1
		}
	}
	x := mat.NewDense(d.Rows(), len(out.Features), nil)
	out.X = x
	for i := range d.Rows() {
		for k, v := range mat.Row(nil, i, d.X) {
			if v != 0 {
				x.Set(i, to[k], x.At(i, to[k])+v*number[k])
			}
		}
	}
	return out
}

// publishedParts returns the first rows of the official parts; of the training part more with -full, and of the test
// part then all.
func publishedParts(load loader, more int) func(repetition int, full bool) (dataset.Parts, error) {
	return func(_ int, full bool) (parts dataset.Parts, err error) {
		defer caught(&err)
		parts.Train, parts.Test, err = load()
		failOn(err)
		train, test := firstRows, firstTest
		if full {
			train, test = more, parts.Test.Rows()
		}
		return dataset.Parts{Train: firstOf(parts.Train, train), Test: firstOf(parts.Test, test)}, nil
	}
}

// attributes are CelebA's attributes, of which the target is whether the hair is blond.
func attributes() (train, test *dataset.Dataset, err error) {
	parts, err := pictures.CelebA()
	return parts.Train, parts.Test, err
}

// broughtParts returns rows of a file that the user has brought: a CSV with a header, whose last column is the target.
func broughtParts(
	name, file, what string, task dataset.Task,
) func(repetition int, full bool) (dataset.Parts, error) {
	return func(repetition int, full bool) (parts dataset.Parts, err error) {
		defer caught(&err)
		folder := os.Getenv("GOBNN_DATA")
		path := filepath.Join(folder, file)
		if _, err := os.Stat(path); folder == "" || err != nil {
			return dataset.Parts{}, fmt.Errorf("data set %q is not part of the project: bring %s as %s, a CSV with a header "+
				"whose last column is the target, in the folder that GOBNN_DATA names (it is %q)", name, what, file, folder)
		}
		all := must(dataset.OpenCSV(path, dataset.CSVOptions{Task: task}))
		all.Name = name
		if !full {
			all = firstOf(all, firstRows+firstTest)
		}
		return all.Split(dataset.Fractions{Train: .5, Test: .5}, uint64(repetition))
	}
}
