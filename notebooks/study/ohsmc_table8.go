package study

import (
	"context"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
)

// Table 8 of Zhao et al. 2024 (appendix C): a net d-50-20-5-C, GELU, third layer stochastic with prior N(0, I), noise
// variance 1, on splits 60/30/10, 200 epochs. Scores are in standardised units; the paper's RMSE is the mean over
// particles of each particle's own (particle RMSE).

// table8Row is one data set of the table, and what the paper reports.
type table8Row struct {
	data  string
	batch int
	large bool // 40 epochs, the first attempt only, and repeated three times
	paper map[string][]float64
}

var table8 = []table8Row{
	{"boston", 50, false, map[string][]float64{"MAP-HMC": {1.04, .54}, "OHSMC": {1.00, .40}, "SGSMC-HMC": {1.01, .42},
		"SWAG": {1.02, .45}, "VB": {1.01, .43}}},
	{"concrete", 50, false, map[string][]float64{"MAP-HMC": {1.00, .42}, "OHSMC": {.97, .33}, "SGSMC-HMC": {.98, .35},
		"SWAG": {.99, .39}, "VB": {.97, .34}}},
	{"energy", 50, false, map[string][]float64{"MAP-HMC": {.94, .24}, "OHSMC": {.92, .09}, "SGSMC-HMC": {.92, .14},
		"SWAG": {.95, .25}, "VB": {.93, .19}}},
	{"kin8nm", 50, true, map[string][]float64{"MAP-HMC": {.96, .29}, "OHSMC": {.95, .27}, "SGSMC-HMC": {.95, .28},
		"SWAG": {1.10, .54}, "VB": {.95, .27}}},
	// SGSMC-HMC diverged
	{"naval", 50, true, map[string][]float64{"MAP-HMC": {.94, .10}, "OHSMC": {.92, .05}, "SWAG": {1.05, .46},
		"VB": {.91, .04}}},
	{"yacht", 20, false, map[string][]float64{"MAP-HMC": {.95, .27}, "OHSMC": {.92, .11}, "SGSMC-HMC": {.93, .18},
		"SWAG": {.95, .25}, "VB": {.94, .20}}},
	{"power", 50, true, map[string][]float64{"MAP-HMC": {.95, .25}, "OHSMC": {.94, .24}, "SGSMC-HMC": {.94, .24},
		"SWAG": {.96, .29}, "VB": {.94, .24}}},
	{"australian", 50, false, map[string][]float64{"MAP-HMC": {.36, .09, .85}, "OHSMC": {.37, .09, .85},
		"SGSMC-HMC": {.36, .09, .85}, "SWAG": {.36, .09, .86}, "VB": {.34, .10, .83}}},
	{"breast_cancer", 50, false, map[string][]float64{"MAP-HMC": {.12, .04, .95}, "OHSMC": {.14, .03, .96},
		"SGSMC-HMC": {.12, .03, .96}, "SWAG": {.14, .06, .95}, "VB": {.11, .04, .96}}},
	{"ionosphere", 20, false, map[string][]float64{"MAP-HMC": {.21, .09, .90}, "OHSMC": {.21, .08, .90},
		"SGSMC-HMC": {.24, .08, .92}, "SWAG": {.36, .14, .84}, "VB": {.28, .10, .89}}},
	{"glass", 20, false, map[string][]float64{"MAP-HMC": {1.14, .27, .58}, "OHSMC": {1.13, .29, .62},
		"SGSMC-HMC": {1.25, .26, .56}, "SWAG": {1.36, .26, .58}, "VB": {1.79, .22, .51}}},
	{"satellite", 50, true, map[string][]float64{"MAP-HMC": {.28, .04, .90}, "OHSMC": {.27, .03, .89},
		"SGSMC-HMC": {.84, .10, .79}, "SWAG": {.35, .07, .85}, "VB": {.28, .03, .90}}},
}

// reported are the paper's numbers for a method, by metric.
func (row table8Row) reported(method string) map[string]Reported {
	metrics := []string{"NLPD", "particle RMSE"}
	if len(row.paper[method]) == 3 {
		metrics = []string{"NLPD", "ECE", "accuracy"}
	}
	out := map[string]Reported{}
	for i, value := range row.paper[method] {
		out[metrics[i]] = Reported{Value: value}
	}
	return out
}

// table8Version is part of the key of kept results: it changes when the code gives other numbers for the same settings.
const table8Version = 3

// The repetitions and epochs of the paper, and our default for the large data sets.
var (
	table8Extent      = extent{reps: 10, epochs: 200}
	table8LargeExtent = extent{reps: 3, epochs: 40}
)

// runTable8 is the table, data set by data set.
func runTable8(ctx context.Context, o Options) ([]Cell, error) {
	return table8Cells(ctx, o, "ohsmc.table8", nil)
}

// table8Cells are the scores of all repetitions as cells of a study; reported, if not nil, replaces Table 8's numbers,
// by data set and method.
func table8Cells(
	ctx context.Context, o Options, study string, reported map[string]map[string]map[string]Reported,
) ([]Cell, error) {
	var cells []Cell
	err := eachOfTable8(ctx, o, func(key Key, paper map[string]Reported, results []Result) error {
		if reported != nil {
			paper = reported[key.Data][key.Method]
		}
		key.Study = study
		cells = append(cells, Cells(key, results, paper)...)
		return nil
	})
	return cells, err
}

// eachOfTable8 runs the repetitions that are asked for, unless they are kept, and calls visit with those of each data
// set and method and the paper's numbers. When the context ends or a repetition fails, it visits those that are done
// and returns the error.
func eachOfTable8(
	ctx context.Context, o Options, visit func(key Key, reported map[string]Reported, results []Result) error,
) error {
	var known []string
	for _, row := range table8 {
		known = append(known, row.data)
	}
	sets, methods, store, err := o.open(known, contenderNames())
	if err != nil {
		return err
	}
	for _, row := range table8 {
		if !slices.Contains(sets, row.data) {
			continue
		}
		if err := row.run(ctx, o, store, methods, visit); err != nil {
			return err
		}
	}
	return nil
}

// run repeats one data set, method by method; the repetition is the seed of the split and of the method.
func (row table8Row) run(
	ctx context.Context, o Options, store *Store, methods []string,
	visit func(key Key, reported map[string]Reported, results []Result) error,
) error {
	data, err := dataset.Load(row.data)
	if err != nil {
		return err
	}
	own, reduced := table8Extent, row.large && !o.Full
	if reduced {
		own = table8LargeExtent
		o.say("%s: %d repetitions, not %d, of %d epochs, not %d, unless -reps and -epochs ask for others; no method is "+
			"tuned; -full does it all",
			row.data, own.reps, table8Extent.reps, own.epochs, table8Extent.epochs)
	}
	e := o.extent(own, table8Extent)
	model := table8Model(data.Task)
	b := newBench(model, row.batch, e.epochs, o.say)
	defer b.close()
	first, err := data.Split(table8Split, 0)
	if err != nil {
		return err
	}
	for _, c := range contenders(first.Train.Rows()) {
		if !slices.Contains(methods, c.name) {
			continue
		}
		if reduced {
			c.attempts = c.attempts[:1]
		}
		key := Key{Study: "ohsmc.table8", Data: row.data, Method: c.name, Settings: map[string]any{
			"version": table8Version, "model": model, "data": data.Hash(), "batch": row.batch, "epochs": e.epochs,
			"split": table8Split, "attempts": c.attempts,
		}}
		results, err := store.Repeat(ctx, key, e.reps, func(ctx context.Context, repetition int) (Result, error) {
			parts, err := data.Split(table8Split, uint64(repetition))
			if err != nil {
				return Result{}, err
			}
			return b.scores(ctx, c, parts, uint64(repetition))
		})
		if failed := visit(key, row.reported(c.name), results); failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// table3 is the paper's Table 3: four of Table 8's data sets, with the standard deviations over ten repetitions that
// Table 8 leaves out, and two numbers that differ by .01 from Table 8's.
var table3 = map[string]map[string][4]float64{ // NLPD, its deviation, RMSE or ECE, its deviation
	"yacht": {"MAP-HMC": {.95, .01, .27, .04}, "OHSMC": {.92, 0, .11, .04}, "SGSMC-HMC": {.93, 0, .17, .02},
		"SWAG": {.95, .02, .25, .08}, "VB": {.94, 0, .20, .02}},
	"energy": {"MAP-HMC": {.94, 0, .24, .02}, "OHSMC": {.92, 0, .09, 0}, "SGSMC-HMC": {.92, 0, .14, .02},
		"SWAG": {.95, 0, .25, .02}, "VB": {.93, 0, .19, .03}},
	"satellite": {"MAP-HMC": {.28, .03, .04, 0}, "OHSMC": {.27, .03, .03, 0}, "SGSMC-HMC": {.84, .70, .10, .10},
		"SWAG": {.35, .07, .07, .03}, "VB": {.28, .04, .03, 0}},
	"ionosphere": {"MAP-HMC": {.21, .09, .09, .03}, "OHSMC": {.21, .13, .08, .03}, "SGSMC-HMC": {.24, .19, .08, .04},
		"SWAG": {.36, .12, .14, .05}, "VB": {.28, .16, .10, .05}},
}

// table3Data are its data sets, in its order; table3Methods its methods.
var (
	table3Data    = []string{"yacht", "energy", "satellite", "ionosphere"}
	table3Methods = []string{"MAP-HMC", "OHSMC", "SGSMC-HMC", "SWAG", "VB"}
)

// runTable3 is a part of Table 8, with the same kept results.
func runTable3(ctx context.Context, o Options) ([]Cell, error) {
	var err error
	if o.Data, err = o.Select(table3Data); err != nil {
		return nil, err
	}
	if len(o.Methods) == 0 {
		o.Methods = table3Methods
	}
	reported := map[string]map[string]map[string]Reported{}
	for _, row := range table8 {
		second := "particle RMSE"
		if len(row.paper["OHSMC"]) == 3 {
			second = "ECE"
		}
		reported[row.data] = map[string]map[string]Reported{}
		for method, v := range table3[row.data] {
			reported[row.data][method] = map[string]Reported{"NLPD": {v[0], v[1] / math.Sqrt(10)},
				second: {v[2], v[3] / math.Sqrt(10)}}
		}
	}
	return table8Cells(ctx, o, "ohsmc.table3", reported)
}

// table8Split is the paper's.
var table8Split = dataset.Fractions{Train: .6, Validation: .3, Test: .1}

// table8Model is the paper's net for a task.
func table8Model(task bayes.Task) bayes.Model {
	m := bayes.Model{
		Network:    nn.MLP{Hidden: []int{50, 20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1},
		Prior:      bayes.Normal{StdDev: 1},
		Stochastic: bayes.Layers(3),
	}
	switch task {
	case bayes.BinaryClassification:
		m.Likelihood = bayes.Bernoulli{}
	case bayes.Classification:
		m.Likelihood = bayes.Categorical{}
	}
	return m
}
