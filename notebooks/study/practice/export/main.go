// Export writes to standard output, as JSON, what peers.py needs of each table: its task, its columns of text, and the
// rows of the parts of each split, numbered from 0 in the table's file.
package main

import (
	"encoding/json"
	"log"
	"os"

	"gobnn/bayes/dataset"
	"gobnn/notebooks/study/practice"
)

type table struct {
	Name, Task string
	Reported   bool
	Text       []string
	Splits     map[uint64]map[string][]int // by seed, then by part
}

func main() {
	var all []table
	for _, t := range practice.Tables {
		out := table{t.Name, t.Task.String(), t.Half == practice.Reported, append([]string{}, t.Text...),
			map[uint64]map[string][]int{}}
		for _, seed := range practice.Splits {
			parts, err := t.Split(seed)
			if err != nil {
				log.Fatal(err)
			}
			out.Splits[seed] = map[string][]int{
				"train": rows(parts.Train), "validation": rows(parts.Validation), "test": rows(parts.Test)}
		}
		all = append(all, out)
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		log.Fatal(err)
	}
}

func rows(d *dataset.Dataset) []int {
	rows := make([]int, d.Rows())
	for i := range rows {
		rows[i] = d.OriginalRow(i)
	}
	return rows
}
