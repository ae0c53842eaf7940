package dataset

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// SplitSource names the publication that a split is from.
type SplitSource string

const (
	// Gal is the train/test splits, 90/10, of Hernández-Lobato and Adams (2015) as Gal and Ghahramani (2016) published
	// them: 20 of each UCI regression set, 5 of protein.
	Gal SplitSource = "Gal"
	// PMCnet is the one train/validation/test split, 60/20/20, that came with PMCnet: glass, ionosphere, naval, protein.
	PMCnet SplitSource = "PMCnet"
	// Javid are the ten train/test splits, 50/50, of boston for which Javid, Handley, Hobson and Lasenby (2020, arXiv
	// 2004.12211) report the evidences of networks.
	Javid SplitSource = "Javid"
	// BDE is the one train/test split, 80/20, of airfoil and bikesharing in the benchmark of the package bde (Sommer and
	// others, 2025): scikit-learn's train_test_split with random_state 0.
	BDE SplitSource = "BDE"
	// Official is the one train/test split that the set's makers published: adult, satellite.
	Official SplitSource = "Official"
)

// PublishedSplit is the split that a publication used for an embedded data set, with the rows of each part in the
// published order. index counts from 0: 0 to 19 for [Gal] (0 to 4 for protein), 0 to 9 for [Javid], 0 alone for the
// others. A split that does not exist is an error that names those that do; so is a data set that no longer has all its
// rows.
func (d *Dataset) PublishedSplit(source SplitSource, index int) (Parts, error) {
	e, err := find(d.Name)
	if err != nil {
		return Parts{},
			fmt.Errorf("dataset %s has no published splits: they belong to the embedded data sets (%s); take Split",
				d.Name, strings.Join(names(), ", "))
	}
	if d.Rows() != e.rows {
		return Parts{}, fmt.Errorf("dataset %s: a published split is of all %d rows, but there are %d: split the whole "+
			"data set", d.Name, e.rows, d.Rows())
	}
	if index < 0 || index >= e.splits[source] {
		return Parts{}, fmt.Errorf("dataset %s: there is no %v split %d; there is %s", d.Name, source, index, e.splitList())
	}
	if err := d.needTarget(); err != nil {
		return Parts{}, fmt.Errorf("dataset %s: %w", d.Name, err)
	}
	rows, err := e.splitRows(source, index)
	if err != nil {
		return Parts{}, fmt.Errorf("dataset %s: %v split %d: %w", d.Name, source, index, err)
	}
	return d.parts(rows)
}

func (e *entry) splitList() string {
	var list []string
	for _, s := range slices.Sorted(maps.Keys(e.splits)) {
		list = append(list, fmt.Sprintf("%v, index 0 to %d", s, e.splits[s]-1))
	}
	if list == nil {
		return "none published; take Split"
	}
	return strings.Join(list, "; ")
}

func (e *entry) splitRows(source SplitSource, index int) (rows [3][]int, err error) {
	if source == Official {
		all := inOrder(e.rows)
		return [3][]int{all[:e.train], nil, all[e.train:]}, nil
	}
	folder := "data/splits_" + strings.ToLower(string(source))
	path, prefix := folder+"/"+e.name+"_split.csv.gz", ""
	if e.splits[source] > 1 {
		path, prefix = folder+"/"+e.name+"_splits.csv.gz", strconv.Itoa(index)+","
	}
	r, err := openEmbedded(path)
	if err != nil {
		return rows, err
	}
	return readSplit(r, prefix)
}

// readSplit reads the lines "part,row" that follow the prefix, the split's own number where the file has several splits
// one after the other.
func readSplit(r io.Reader, prefix string) (rows [3][]int, err error) {
	lines := bufio.NewScanner(r)
	lines.Scan() // the header
	for lines.Scan() {
		line, ours := strings.CutPrefix(lines.Text(), prefix)
		if !ours {
			continue
		}
		part, text, _ := strings.Cut(line, ",")
		row, err := strconv.Atoi(text)
		if err != nil {
			return rows, err
		}
		i := slices.Index([]string{"train", "val", "test"}, part)
		rows[i] = append(rows[i], row)
	}
	return rows, lines.Err()
}
