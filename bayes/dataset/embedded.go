package dataset

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"strings"
)

// The files are gzip of CSV: a header, features first, target last, rows in the order of their source. data/SOURCES.md
// tells where each is from and has its checksum.
//
//go:embed data
var files embed.FS

// entry describes an embedded set.
type entry struct {
	name, title     string
	source, licence string
	task            Task
	rows            int
	target          string   // if not the last column
	ignore          []string // columns left out
	categorical     []string // columns made one-hot; "?" is a category then
	classes         []string // better names for the labels, in the order of their index
	files           []string // if not name.csv.gz alone
	train           int      // rows of the official training part, the first ones; 0 = there is no official split
	splits          splits   // beside it
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

// Label is a data set's name for figures and tables, such as "red wine" for wine_red and "Boston" for boston. For other
// names it is the name with spaces in place of underscores.
func Label(name string) string {
	if label, ok := labels[name]; ok {
		return label
	}
	return strings.ReplaceAll(name, "_", " ")
}

// labels are the names that are not written as words of a sentence are.
var labels = map[string]string{
	"wine_red": "red wine", "boston": "Boston", "california": "California", "australian": "Australian", "adult": "Adult",
	"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "cifar10": "CIFAR-10", "svhn": "SVHN", "celeba": "CelebA",
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

// mustLoad is load for the constructors; it panics, which only a damaged binary can cause.
func mustLoad(name string) *Dataset {
	d, err := Load(name)
	if err != nil {
		panic(err)
	}
	return d
}

func (e *entry) load() (*Dataset, error) {
	names := e.files
	if names == nil {
		names = []string{e.name}
	}
	var parts []io.Reader
	for i, name := range names {
		r, err := openEmbedded("data/" + name + ".csv.gz")
		if err != nil {
			return nil, fmt.Errorf("dataset %s: %w", e.name, err)
		}
		if i > 0 { // keep one header only
			if _, err := r.ReadString('\n'); err != nil {
				return nil, fmt.Errorf("dataset %s: %w", e.name, err)
			}
		}
		parts = append(parts, r)
	}
	d, err := ReadCSV(io.MultiReader(parts...), CSVOptions{
		Name: e.name, Target: e.target, Task: e.task, Ignore: e.ignore, Categorical: e.categorical, MissingTokens: []string{},
	})
	if err != nil {
		return nil, err
	}
	d.Title, d.Source, d.Licence = e.title, e.source, cmp.Or(e.licence, ccBy4)
	if e.classes != nil {
		d.Classes = append([]string(nil), e.classes...)
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

// Boston is Boston housing: 506 x 13, the median value of homes in 1000 USD.
func Boston() *Dataset { return mustLoad("boston") }

// Energy is UCI's energy efficiency: 768 x 8, the heating load (the first of its two targets), kWh/m².
func Energy() *Dataset { return mustLoad("energy") }

// Power is UCI's combined cycle power plant: 9568 x 4, the net hourly output in MW.
func Power() *Dataset { return mustLoad("power") }

// WineRed is UCI's red wine quality: 1599 x 11, the score of 0 to 10 as a regression. 240 of its rows are duplicates,
// as in the original.
func WineRed() *Dataset { return mustLoad("wine_red") }

// Yacht is UCI's yacht hydrodynamics: 308 x 6, the residuary resistance per unit weight of displacement.
func Yacht() *Dataset { return mustLoad("yacht") }

// Ionosphere is UCI's ionosphere radar returns: 351 x 33 (the constant column v2 is left out), class 1, good, in 225.
func Ionosphere() *Dataset { return mustLoad("ionosphere") }

// Wine is UCI's wine: 178 x 13, three cultivars.
func Wine() *Dataset { return mustLoad("wine") }

// Adult is UCI's adult (census income): 48842 rows, 6 numbers and 8 categorical columns made one-hot to 108 features, a
// missing value ("?") being a category of its own; class 1, above 50 000 USD a year, in 11687. It has an [Official]
// split, 32561 / 16281.
func Adult() *Dataset { return mustLoad("adult") }
