package study

import (
	"context"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
)

// Table 8 of Zhao et al. 2024 (appendix C): a net d-50-20-5-C, GELU, third layer stochastic with prior N(0, I), noise
// variance 1, on splits 60/30/10, 200 epochs. Scores are in standardised units; the paper's RMSE is the mean over
// particles of each particle's own (particle RMSE).

// table8Row is one data set of the table.
type table8Row struct {
	data  string
	batch int
	large bool // 40 epochs, the first attempt of each method but OHSMC only
}

var table8 = []table8Row{
	{"boston", 50, false},
	{"concrete", 50, false},
	{"energy", 50, false},
	{"kin8nm", 50, true},
	{"naval", 50, true},
	{"yacht", 20, false},
	{"power", 50, true},
	{"australian", 50, false},
	{"breast_cancer", 50, false},
	{"ionosphere", 20, false},
	{"glass", 20, false},
	{"satellite", 50, true},
}

// table8Version is part of the key of kept results: it changes when the code gives other numbers for the same settings.
const table8Version = 4

// table8Paper has the repetitions and epochs of the paper.
var table8Paper = extent{reps: 10, epochs: 200}

// table8Compared are the methods that the paper compares, and those that could overturn what it says of them.
var table8Compared = []string{"MAP-HMC", "OHSMC", "SGSMC-HMC", "SWAG", "SWAG, paper's settings",
	"SWAG, authors' program", "VB", "MAP", "deep ensemble"}

// extent is our default for a method: on the small sets as many splits as in the paper for those compared, but half for
// SGSMC-HMC, which costs as much as all others.
func (row table8Row) extent(method string) extent {
	compared := slices.Contains(table8Compared, method)
	switch {
	case row.large && compared:
		return extent{3, 40}
	case row.large:
		return extent{1, 40}
	case method == "SGSMC-HMC":
		return extent{5, table8Paper.epochs}
	case compared:
		return table8Paper
	}
	return extent{2, table8Paper.epochs}
}

// contenders are those of all sets; on the small ones, before the methods that the paper does not have, also SWAG with
// the paper's settings, and by the authors' program.
func (row table8Row) contenders(trainRows int) []contender {
	all := contenders(trainRows)
	if row.large {
		return all
	}
	return slices.Insert(all, paperMethods, contender{"SWAG, paper's settings",
		[]attempt{{Method: baseline.SWAG{Collect: 200, Rank: 50, Samples: 1000}, Rate: .01}}}, authorsSWAG(200, 50))
}

// table8Trials returns the trials of all contenders on each data set; the repetition is the seed of the split and of
// the method.
func table8Trials(o Options) ([]*trial, error) {
	var all []*trial
	for _, row := range table8 {
		some := must(row.trials(o))
		all = append(all, some...)
	}
	return all, nil
}

func (row table8Row) trials(o Options) ([]*trial, error) {
	data := must(load(row.data))
	reduced := row.large && !o.Full
	model := table8Model(data.Task)
	b := newBench(model, row.batch, o.extent(row.extent(""), table8Paper).epochs, o.say)
	first := must(data.Split(table8Split, 0))
	var all []*trial
	hash := data.Hash()
	for _, c := range row.contenders(first.Train.Rows()) {
		if reduced && c.name != "OHSMC" {
			c.attempts = c.attempts[:1]
		}
		key := Key{Study: "ohsmc.table8", Data: row.data, Method: c.name, Settings: map[string]any{
			"version": table8Version, "model": model, "data": hash, "batch": row.batch, "epochs": b.epochs,
			"split": table8Split, "attempts": c.attempts,
		}}
		run := func(ctx context.Context, repetition int) (Result, error) {
			parts := must(data.Split(table8Split, uint64(repetition)))
			return b.scores(ctx, c, parts, uint64(repetition))
		}
		all = append(all, &trial{Key: key, reps: o.extent(row.extent(c.name), table8Paper).reps, run: run,
			paper: c.paper("ohsmc.table8", row.data)})
	}
	return all, nil
}

// table3Trials returns the part of Table 8's trials that the paper's Table 3 has, with the same kept results.
func table3Trials(o Options) ([]*trial, error) {
	all, err := table8Trials(o)
	all = slices.DeleteFunc(all, func(t *trial) bool { return reportedIn("ohsmc.table3", t.Data) == nil })
	for _, t := range all {
		t.paper = contender{name: t.Method}.paper("ohsmc.table3", t.Data)
		t.extraMethod = t.paper == nil
	}
	return all, err
}

// table8Split is the paper's.
var table8Split = dataset.Fractions{Train: .6, Validation: .3, Test: .1}

// table8Model is the paper's net for a task.
func table8Model(task dataset.Task) bayes.Model {
	m := bayes.Model{
		Network:    nn.MLP{Hidden: []int{50, 20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1},
		Prior:      bayes.Normal{StdDev: 1},
		Stochastic: bayes.Layers(3),
	}
	switch task {
	case dataset.BinaryClassification:
		m.Likelihood = bayes.Bernoulli{}
	case dataset.Classification:
		m.Likelihood = bayes.Categorical{}
	}
	return m
}
