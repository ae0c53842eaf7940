package study

import (
	"context"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
)

// Table 8 of Zhao et al. 2024 (appendix C): a net d-50-20-5-C, GELU, third layer stochastic with prior N(0, I), noise variance 1, on
// splits 60/30/10, 200 epochs. Scores are in standardised units; the paper's RMSE is the mean over particles of each particle's own (particle RMSE).

// table8Row is one data set of the table, and what the paper reports.
type table8Row struct {
	data  string
	batch int
	large bool // 40 epochs, the first attempt only, and repeated three times
	paper map[string][]float64
}

var table8 = []table8Row{
	{"boston", 50, false, map[string][]float64{"MAP-HMC": {1.04, .54}, "OHSMC": {1.00, .40}, "SGSMC-HMC": {1.01, .42}, "SWAG": {1.02, .45}, "VB": {1.01, .43}}},
	{"concrete", 50, false, map[string][]float64{"MAP-HMC": {1.00, .42}, "OHSMC": {.97, .33}, "SGSMC-HMC": {.98, .35}, "SWAG": {.99, .39}, "VB": {.97, .34}}},
	{"energy", 50, false, map[string][]float64{"MAP-HMC": {.94, .24}, "OHSMC": {.92, .09}, "SGSMC-HMC": {.92, .14}, "SWAG": {.95, .25}, "VB": {.93, .19}}},
	{"kin8nm", 50, true, map[string][]float64{"MAP-HMC": {.96, .29}, "OHSMC": {.95, .27}, "SGSMC-HMC": {.95, .28}, "SWAG": {1.10, .54}, "VB": {.95, .27}}},
	{"naval", 50, true, map[string][]float64{"MAP-HMC": {.94, .10}, "OHSMC": {.92, .05}, "SWAG": {1.05, .46}, "VB": {.91, .04}}}, // SGSMC-HMC diverged
	{"yacht", 20, false, map[string][]float64{"MAP-HMC": {.95, .27}, "OHSMC": {.92, .11}, "SGSMC-HMC": {.93, .18}, "SWAG": {.95, .25}, "VB": {.94, .20}}},
	{"power", 50, true, map[string][]float64{"MAP-HMC": {.95, .25}, "OHSMC": {.94, .24}, "SGSMC-HMC": {.94, .24}, "SWAG": {.96, .29}, "VB": {.94, .24}}},
	{"australian", 50, false, map[string][]float64{"MAP-HMC": {.36, .09, .85}, "OHSMC": {.37, .09, .85}, "SGSMC-HMC": {.36, .09, .85}, "SWAG": {.36, .09, .86}, "VB": {.34, .10, .83}}},
	{"breast_cancer", 50, false, map[string][]float64{"MAP-HMC": {.12, .04, .95}, "OHSMC": {.14, .03, .96}, "SGSMC-HMC": {.12, .03, .96}, "SWAG": {.14, .06, .95}, "VB": {.11, .04, .96}}},
	{"ionosphere", 20, false, map[string][]float64{"MAP-HMC": {.21, .09, .90}, "OHSMC": {.21, .08, .90}, "SGSMC-HMC": {.24, .08, .92}, "SWAG": {.36, .14, .84}, "VB": {.28, .10, .89}}},
	{"glass", 20, false, map[string][]float64{"MAP-HMC": {1.14, .27, .58}, "OHSMC": {1.13, .29, .62}, "SGSMC-HMC": {1.25, .26, .56}, "SWAG": {1.36, .26, .58}, "VB": {1.79, .22, .51}}},
	{"satellite", 50, true, map[string][]float64{"MAP-HMC": {.28, .04, .90}, "OHSMC": {.27, .03, .89}, "SGSMC-HMC": {.84, .10, .79}, "SWAG": {.35, .07, .85}, "VB": {.28, .03, .90}}},
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

// table8Version is part of the key of what is kept: another one where the code gives other numbers for the same settings.
const table8Version = 2

// The repetitions and epochs that a data set gets where none are asked for: the paper's, and fewer for the large ones.
const (
	table8Reps        = 10
	table8LargeReps   = 3
	table8Epochs      = 200
	table8LargeEpochs = 40
)

// runTable8 is the table, data set by data set.
func runTable8(ctx context.Context, o Options) ([]Cell, error) {
	var known []string
	for _, row := range table8 {
		known = append(known, row.data)
	}
	sets, err := o.Select(known)
	if err != nil {
		return nil, err
	}
	methods, err := o.SelectMethods(contenderNames())
	if err != nil {
		return nil, err
	}
	store, err := OpenStore(o)
	if err != nil {
		return nil, err
	}
	var cells []Cell
	for _, row := range table8 {
		if !slices.Contains(sets, row.data) {
			continue
		}
		more, err := row.run(ctx, o, store, methods)
		cells = append(cells, more...)
		if err != nil {
			return cells, err
		}
	}
	return cells, nil
}

// run repeats one data set, method by method; the repetition is the seed of the split and of the method.
func (row table8Row) run(ctx context.Context, o Options, store *Store, methods []string) ([]Cell, error) {
	data, err := dataset.Load(row.data)
	if err != nil {
		return nil, err
	}
	reps, epochs := table8Reps, table8Epochs
	if row.large {
		reps, epochs = table8LargeReps, table8LargeEpochs
		o.say("%s: %d repetitions, not %d, of %d epochs, not %d, unless -reps and -epochs ask for others; no method is tuned",
			row.data, reps, table8Reps, epochs, table8Epochs)
	}
	if o.Reps > 0 {
		reps = o.Reps
	}
	if o.Epochs > 0 {
		epochs = o.Epochs
	}
	model := table8Model(data.Task)
	b := newBench(model, row.batch, epochs, o.say)
	defer b.close()
	first, err := data.Split(table8Split, 0)
	if err != nil {
		return nil, err
	}
	var cells []Cell
	for _, c := range contenders(first.Train.Rows()) {
		if !slices.Contains(methods, c.name) {
			continue
		}
		if row.large {
			c.attempts = c.attempts[:1]
		}
		key := Key{Study: "ohsmc.table8", Data: row.data, Method: c.name, Settings: map[string]any{
			"version": table8Version, "model": model, "data": data.Hash(), "batch": row.batch, "epochs": epochs,
			"split": table8Split, "attempts": c.attempts,
		}}
		results, err := store.Repeat(ctx, key, reps, func(ctx context.Context, repetition int) (map[string]float64, error) {
			parts, err := data.Split(table8Split, uint64(repetition))
			if err != nil {
				return nil, err
			}
			return b.scores(ctx, c, parts, uint64(repetition))
		})
		cells = append(cells, Cells(key, results, row.reported(c.name))...)
		if err != nil {
			return cells, err
		}
	}
	return cells, nil
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
