package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// SplitSource names the publication that a split is from.
type SplitSource int

const (
	// Gal is the train/test splits, 90/10, of Hernández-Lobato and Adams (2015) as Gal and Ghahramani (2016) published
	// them: 20 of each UCI regression set, 5 of protein.
	Gal SplitSource = iota
	// PMCnet is the one train/validation/test split, 60/20/20, that came with PMCnet: glass, ionosphere, naval, protein.
	PMCnet
	// Javid are the ten train/test splits, 50/50, of boston for which Javid, Handley, Hobson and Lasenby (2020, arXiv
	// 2004.12211) report the evidences of networks.
	Javid
	// BDE is the one train/test split, 80/20, of airfoil and bikesharing in the benchmark of the package bde (Sommer and
	// others, 2025): scikit-learn's train_test_split with random_state 0.
	BDE
	// Official is the one train/test split that the set's makers published: adult, satellite.
	Official
)

// String names the source.
func (s SplitSource) String() string {
	if names := []string{"Gal", "PMCnet", "Javid", "BDE", "Official"}; s >= 0 && int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("SplitSource(%d)", int(s))
}

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
	if index < 0 || index >= e.count(source) {
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

// count is the number of splits of that source.
func (e *entry) count(source SplitSource) int {
	if source == Official && e.train > 0 {
		return 1
	}
	return e.splits[source]
}

func (e *entry) splitList() string {
	var list []string
	for s := Gal; s <= Official; s++ {
		if n := e.count(s); n > 0 {
			list = append(list, fmt.Sprintf("%v, index 0 to %d", s, n-1))
		}
	}
	if list == nil {
		return "none published; take Split"
	}
	return strings.Join(list, "; ")
}

func (e *entry) splitRows(source SplitSource, index int) (rows [3][]int, err error) {
	if source == Official {
		for i := range e.rows {
			if i < e.train {
				rows[0] = append(rows[0], i)
			} else {
				rows[2] = append(rows[2], i)
			}
		}
		return rows, nil
	}
	folder := "data/splits_" + strings.ToLower(source.String())
	path, prefix := folder+"/"+e.name+"_split.csv.gz", ""
	if source == Gal || source == Javid {
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
		i := slices.Index([]string{"train", "val", "test"}, part)
		row, err := strconv.Atoi(text)
		if i < 0 || err != nil {
			return rows, fmt.Errorf("the embedded file is damaged: %q is no part,row", line)
		}
		rows[i] = append(rows[i], row)
	}
	if err := lines.Err(); err != nil {
		return rows, err
	}
	if rows[0] == nil {
		return rows, errors.New("the embedded file is damaged: it has no training rows")
	}
	return rows, nil
}
