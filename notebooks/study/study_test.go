package study

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/viz"
)

// TestCatalogue: every table and figure of results that the papers have is there, once.
func TestCatalogue(t *testing.T) {
	want := map[string]string{ // by paper: numbers as printed in its captions, without tables of settings
		"pmcnet": "table2 table3 table6 table7 table9 table10 table11 table12 fig1 fig2 fig3 fig4 fig5 fig6 fig7 fig8 fig9 " +
			"fig10 fig11 floored evidence",
		"ohsmc":  "table1 table2 table3 table4 table8 fig1 fig2 fig3 fig4 fig5 fig6 fig7",
		"gohsmc": "table1 table2 table3 table4 table5 table6 table7 table10 table11 fig1 fig2 fig3 fig4 fig5 fig6 fig7",
		"fbnn":   "tableA1 tableA2 fig1 fig2 fig3 fig4 fig5 fig6 fig7 theorems",
		"pbnn":   "fig1 fig2 fig3 fig4",
		// of no paper
		"practice": "tables splits airfoil bike gal",
	}
	got := map[string][]string{}
	for _, s := range All() {
		paper, name, _ := strings.Cut(s.ID, ".")
		got[paper] = append(got[paper], name)
		if s.Paper() != paper || s.Title == "" {
			t.Errorf("%s: paper %q, title %q", s.ID, s.Paper(), s.Title)
		}
		if s.Note == "" {
			t.Errorf("%s: no note of what is reduced", s.ID)
		}
		if found, err := Find(s.ID); err != nil || found.ID != s.ID {
			t.Errorf("Find(%q) = %q, %v", s.ID, found.ID, err)
		}
	}
	for paper, names := range want {
		if g := strings.Join(got[paper], " "); g != names {
			t.Errorf("%s:\n got %s\nwant %s", paper, g, names)
		}
	}
	if len(got) != len(want) || len(Papers) != len(want) {
		t.Errorf("%d papers in the catalogue, %d with a title, want %d", len(got), len(Papers), len(want))
	}
	if _, err := Find("ohsmc.table99"); err == nil || !strings.Contains(err.Error(), "ohsmc.table99") ||
		!strings.Contains(err.Error(), "ohsmc.table8") || len(err.Error()) > 200 {
		t.Errorf("error %v for an unknown study, want one that names it and the nearest", err)
	}
}

func float(x float64) *float64 { return &x }

var table = []Cell{
	{"s", "yacht", "OHSMC", "NLPD", .92151, .0004, 10, float(.92), nil, 60, ""},
	{"s", "yacht", "OHSMC", "RMSE", .1042, .0071, 10, float(.11), float(.013), 60, ""},
	{"s", "naval", "OHSMC", "MSE", 9.9e-6, math.NaN(), 1, nil, nil, 1234.56, ""},
}

func TestTables(t *testing.T) {
	const text = `data   method  metric        ours      ± SE  reps     paper      ± SE   seconds
yacht  OHSMC   NLPD        0.9215    0.0004    10    0.9200         -      60.0
               RMSE        0.1042    0.0071    10    0.1100    0.0130      60.0
naval  OHSMC   MSE       9.90e-06         -     1         -         -    1234.6
`
	if got := Text(table); got != text {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
}

func TestMatrix(t *testing.T) {
	paper, large := .92, -294.16
	cells := []Cell{
		{Data: "yacht", Method: "a|b", Metric: "NLPD", Ours: .9241, SE: .0012, Paper: &paper}, {Data: "yacht", Method: "a|b",
			Metric: "RMSE", Ours: 7},
		{Data: "yacht", Method: "VB", Metric: "NLPD", Ours: .5, SE: math.NaN()}, {Data: "glass", Method: "VB", Metric: "NLPD",
			Ours: math.Inf(1), SE: math.NaN(), Reps: 1}, {Data: "none", Method: "VB", Metric: "RMSE"},
		{Data: "boston", Method: "VB", Metric: "NLPD", Ours: -294.16456, SE: .0957},
		{Data: "boston", Method: "a|b", Metric: "NLPD", Ours: -294.16456, SE: math.NaN(), Paper: &large},
		{Data: "wine", Method: "VB", Metric: "NLPD", Ours: 5000, SE: 0},
		{Data: "wine", Method: "a|b", Metric: "NLPD", Ours: 245.3, SE: 3.2},
	}
	want := "| NLPD | a\\|b | VB |\n| --- | ---: | ---: |\n| yacht | 0.924 ± 0.001 (0.92) | 0.500 |\n| glass |  | " +
		"diverged |\n| Boston | -294.16 (-294.16) | -294.165 ± 0.096 |\n| wine | 245 ± 3 | 5000 ± 0 |\n"
	if got := Matrix(cells, "NLPD"); got != want {
		t.Errorf("Matrix:\n%s, want\n%s", got, want)
	}
	cells, want = nil, "| NLPD | yacht |\n| --- | ---: |\n"
	for i := range mostColumns + 1 { // too wide: methods are rows
		cells = append(cells, Cell{Data: "yacht", Method: fmt.Sprint("m", i), Metric: "NLPD", Ours: 2, SE: math.NaN()})
		want += fmt.Sprintf("| m%d | 2.000 |\n", i)
	}
	if got := Matrix(cells, "NLPD"); got != want {
		t.Errorf("Matrix:\n%s, want\n%s", got, want)
	}
}

// What is asked for comes first, then, with Full, the paper's, then the study's own.
func TestExtent(t *testing.T) {
	own, paper := extent{reps: 3, epochs: 40}, extent{reps: 10, epochs: 200}
	for _, c := range []struct {
		o    Options
		want extent
	}{
		{Options{}, own},
		{Options{Full: true}, paper},
		{Options{Full: true, Reps: 2}, extent{2, 200}},
		{Options{Epochs: 7}, extent{3, 7}},
	} {
		if got := c.o.extent(own, paper); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.o, got, c.want)
		}
	}
}

// A figure is saved in the format that is asked for; another one is an error before anything is computed.
func TestFigureFormat(t *testing.T) {
	drawn := 0
	none := func(Options) ([]*trial, error) { return nil, nil }
	s := Experiment{ID: "x.fig1", trials: none, draw: func(context.Context, Options, []*trial) (*viz.Figure, error) {
		drawn++
		return viz.Traces([]viz.Trace{{Name: "a", Series: viz.Series{Value: []float64{1, 2}}}}, viz.TraceOptions{})
	}}
	dir := t.TempDir()
	for _, format := range append([]string{""}, FigureFormats...) {
		o := Options{FigureDir: dir, FigureFormat: format}
		if _, err := s.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		path, err := o.FigureFile("x.fig1")
		if _, missing := os.Stat(path); err != nil || missing != nil || filepath.Ext(path) != "."+cmp.Or(format, "png") {
			t.Errorf("as %q it is %s: %v, %v", format, path, err, missing)
		}
	}
	before := drawn
	if _, err := s.Run(t.Context(), Options{FigureDir: dir, FigureFormat: "jpeg"}); err == nil ||
		!strings.Contains(err.Error(), "jpeg") || drawn != before {
		t.Errorf("as jpeg: %v, drawn %d times more", err, drawn-before)
	}
}

// ran are the cells of the experiment called id.
func ran(t *testing.T, id string, o Options) ([]Cell, error) {
	t.Helper()
	e := must(Find(id))
	return e.Run(t.Context(), o)
}

// Studies that are of the same repetitions have them from one another: none is computed twice.
func TestViews(t *testing.T) {
	keys := func(id string) map[string]bool {
		e := must(Find(id))
		all := map[string]bool{}
		for _, one := range must(e.trials(Options{})) {
			all[fmt.Sprint(one.Study, one.Data, one.Method, meaning(must(json.Marshal(one.Settings))))] = true
		}
		return all
	}
	for view, of := range map[string]string{"pmcnet.fig3": "pmcnet.table3", "pmcnet.fig4": "pmcnet.table6",
		"pmcnet.table12": "pmcnet.table9", "ohsmc.table3": "ohsmc.table8", "gohsmc.table6": "gohsmc.table1",
		"gohsmc.fig1": "gohsmc.table1", "gohsmc.fig2": "gohsmc.table2", "gohsmc.fig7": "gohsmc.table11",
		"fbnn.fig2": "fbnn.tableA1", "fbnn.fig6": "fbnn.tableA1", "fbnn.fig7": "fbnn.tableA2"} {
		whole := keys(of)
		for key := range keys(view) {
			if !whole[key] {
				t.Errorf("%s computes what %s does not have: %s", view, of, key)
			}
		}
	}
}
