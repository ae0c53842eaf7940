package dataset

import (
	"bufio"
	"compress/gzip"
	"embed"
	"fmt"
	"slices"
	"strings"
)

// The files are gzip of CSV: a header, features first, target last, rows in the order of their source. data/SOURCES.md
// tells where each is from and has its checksum.
//
//go:embed data
var files embed.FS

// sources has a table of the files, where they are from and under which licence.
//
//go:embed data/SOURCES.md
var sources string

// entry describes an embedded set.
type entry struct {
	name, title string
	task        Task
	rows        int
	target      string   // if not the last column
	ignore      []string // columns left out
	categorical []string // columns made one-hot; "?" is a category then
	classes     []string // better names for the labels, in the order of their index
	train       int      // rows of the official training part, the first ones
	splits      splits
}

// splits are how many there are of each publication.
type splits map[SplitSource]int

// names lists the embedded data sets.
func names() []string {
	all := make([]string, len(registry))
	for i, e := range registry {
		all[i] = e.name
	}
	return all
}

// Load gives the embedded data set of that name, a fresh copy on each call. An unknown name is an error that lists the
// known ones.
func Load(name string) (*Dataset, error) {
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	return e.load()
}

func find(name string) (*entry, error) {
	for i := range registry {
		if registry[i].name == name {
			return &registry[i], nil
		}
	}
	return nil, fmt.Errorf("dataset: there is no embedded data set %q; there are %s; OpenCSV reads your own",
		name, strings.Join(names(), ", "))
}

// MustLoad is Load of a name that is known to be there; it panics where Load has an error.
func MustLoad(name string) *Dataset {
	d, err := Load(name)
	if err != nil {
		panic(err)
	}
	return d
}

func (e *entry) load() (*Dataset, error) {
	r, err := openEmbedded("data/" + e.name + ".csv.gz")
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", e.name, err)
	}
	d, err := ReadCSV(r, CSVOptions{Target: e.target, Task: e.task, Ignore: e.ignore, Categorical: e.categorical,
		MissingTokens: []string{}})
	if err != nil {
		return nil, err
	}
	d.Name, d.Title = e.name, e.title
	_, line, _ := strings.Cut(sources, "\n| "+e.name+".csv.gz | ")
	cells := strings.SplitN(line, " | ", 3)
	d.Source, d.Licence = cells[0], cells[1]
	if e.classes != nil {
		d.Classes = slices.Clone(e.classes)
	}
	return d, nil
}

// openEmbedded decompresses an embedded file. It is in memory, so nothing needs closing.
func openEmbedded(path string) (*bufio.Reader, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return bufio.NewReader(z), nil
}
