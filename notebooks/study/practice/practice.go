// Package practice holds tables that no setting of this project was chosen on before they came, and what other packages
// score on them. Half of the tables are there to choose defaults by, the other half to confirm that the choice was
// right. Published benchmarks are neither: that of MILE's package (airfoil, bikesharing), and Gal's splits of nine
// sets.
package practice

import (
	"compress/bzip2"
	"embed"
	"fmt"

	"gobnn/bayes/dataset"
)

// The tables are bzip2 of CSV: a header, features first, target last. data/SOURCES.md tells where each is from.
//
//go:embed data/*.bz2
var files embed.FS

// Table is a table of the studies.
type Table struct {
	Name string
	Task dataset.Task
	// Half is what the table is for.
	Half Half
	// Text lists its columns of text, which become one-hot.
	Text []string
	// Published has the splits of a reported table.
	Published dataset.SplitSource
}

// Half is what a table is for. The halves were drawn by lot, within regressions and within classifications, before
// anything was fitted to a table.
type Half string

const (
	Choose   Half = "choose"   // settings may be chosen by it
	Confirm  Half = "confirm"  // they may not
	Reported Half = "reported" // nor by it: it is embedded in package dataset, and has published splits
)

// Splits are the seeds of a table's splits.
var Splits = []uint64{1, 2, 3}

// Tables lists the regressions and then the classifications of each half, and last the benchmarks.
var Tables = []Table{
	{Name: "cars", Half: Choose},
	{Name: "deliveries", Half: Choose, Text: []string{"day"}},
	{Name: "diabetes", Half: Choose},
	{Name: "epa", Half: Choose, Text: []string{
		"mfr_name", "air_aspir_method_desc", "transmission", "drive_sys", "fuel_usage", "class"}},
	{Name: "meats", Half: Choose},
	{Name: "nhefs", Half: Choose},
	{Name: "credit", Half: Choose, Task: dataset.BinaryClassification, Text: []string{
		"status", "history", "purpose", "savings", "employed", "personal", "debtors", "property", "plans", "housing", "job",
		"telephone", "foreign"}},
	{Name: "digits", Half: Choose, Task: dataset.Classification},
	{Name: "hpc", Half: Choose, Task: dataset.Classification, Text: []string{"protocol", "day"}},
	{Name: "ames", Half: Confirm, Text: []string{
		"ms_zoning", "neighborhood", "bldg_type", "house_style", "overall_cond", "foundation", "heating_qc", "central_air",
		"functional", "garage_finish", "sale_condition"}},
	{Name: "biomass", Half: Confirm},
	{Name: "checks", Half: Confirm},
	{Name: "cpus", Half: Confirm},
	{Name: "penguins", Half: Confirm, Text: []string{"species", "island", "sex"}},
	{Name: "sacramento", Half: Confirm, Text: []string{"city", "type"}},
	{Name: "contraceptive", Half: Confirm, Task: dataset.Classification},
	{Name: "taxi", Half: Confirm, Task: dataset.BinaryClassification, Text: []string{"company", "local", "dow", "month"}},
	{Name: "vehicle", Half: Confirm, Task: dataset.Classification},
	{Name: "airfoil", Half: Reported, Published: dataset.BDE},
	{Name: "bikesharing", Half: Reported, Published: dataset.BDE},
	{Name: "boston", Half: Reported, Published: dataset.Gal},
	{Name: "concrete", Half: Reported, Published: dataset.Gal},
	{Name: "energy", Half: Reported, Published: dataset.Gal},
	{Name: "kin8nm", Half: Reported, Published: dataset.Gal},
	{Name: "naval", Half: Reported, Published: dataset.Gal},
	{Name: "power", Half: Reported, Published: dataset.Gal},
	{Name: "protein", Half: Reported, Published: dataset.Gal},
	{Name: "wine_red", Half: Reported, Published: dataset.Gal},
	{Name: "yacht", Half: Reported, Published: dataset.Gal},
}

// Load reads the table.
func (t Table) Load() (*dataset.Dataset, error) {
	if t.Half == Reported {
		return dataset.Load(t.Name)
	}
	f, err := files.Open("data/" + t.Name + ".csv.bz2")
	if err != nil {
		return nil, fmt.Errorf("practice: %w", err)
	}
	defer f.Close()
	d, err := dataset.ReadCSV(bzip2.NewReader(f), dataset.CSVOptions{
		Task: t.Task, Categorical: t.Text, MissingTokens: []string{},
	})
	if err != nil {
		return nil, fmt.Errorf("practice: %s: %w", t.Name, err)
	}
	d.Name = t.Name
	return d, nil
}

// Split loads the table and cuts it by the seed: 60 % to train, 20 % to validate, 20 % to test. Of a reported table the
// test rows are the published ones, of Gal's splits those of number seed-1, and the seed draws a tenth of the others to
// validate.
func (t Table) Split(seed uint64) (dataset.Parts, error) {
	d, err := t.Load()
	if err != nil {
		return dataset.Parts{}, err
	}
	if t.Half != Reported {
		return d.Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, seed)
	}
	number := 0
	if t.Published == dataset.Gal {
		number = int(seed) - 1
	}
	published, err := d.PublishedSplit(t.Published, number)
	if err != nil {
		return dataset.Parts{}, err
	}
	parts, err := published.Train.Split(dataset.Fractions{Train: .9, Validation: .1}, seed)
	parts.Test = published.Test
	return parts, err
}
