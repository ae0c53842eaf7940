package study

import (
	"math"
	"slices"
)

// What the tables have of each row.
const (
	speedUp      = "speed-up"
	essOfSeconds = "least ESS a second"
)

// The metrics of the tables: first the paper's, then ours.
var (
	paperChainMetrics = []string{"seconds of a fit", "ESS, least", "ESS, median", "ESS, most", essOfSeconds, speedUp}
	ownChainMetrics   = []string{"Phi", "Phi of the prior", "emulated Phi", "ESS of f, least", "ESS of f, median",
		"full evaluations", "emulated evaluations", "least ESS in 1000 full evaluations", "second stage", "warnings"}
	regressionMetrics = slices.Concat([]string{"MSE", "coverage of f"}, paperChainMetrics,
		[]string{"coverage of y", "NLPD", "MSE" + ofNetwork, "NLPD" + ofNetwork}, ownChainMetrics)
	classMetrics = slices.Concat([]string{"accuracy", "ECE"}, paperChainMetrics,
		[]string{"gap to P(y = 1)", "NLPD", "accuracy" + ofNetwork, "NLPD" + ofNetwork}, ownChainMetrics)
)

// fbnnCells returns the cells of a table of these metrics, with speed-ups. As in the paper, a speed-up is the least
// effective sample size a second divided by BNN-SGHMC's. Its error is by the delta method, of two independent means.
func fbnnCells(id string, metrics []string) func(done []*trial) []Cell {
	return func(done []*trial) (cells []Cell) {
		for _, group := range byDataSet(done) {
			base, baseSE := math.NaN(), math.NaN()
			for _, t := range group {
				for _, c := range t.cells(id) {
					if t.Method == fbnnBaseline && c.Metric == essOfSeconds {
						base, baseSE = c.Ours, c.SE
					}
				}
			}
			for _, t := range group {
				some := t.cells(id)
				if i := slices.IndexFunc(some, func(c Cell) bool { return c.Metric == essOfSeconds }); i >= 0 && !math.IsNaN(base) {
					c := some[i]
					se := math.NaN()
					if t.Method != fbnnBaseline { // whose own is 1 by definition
						se = math.Hypot(c.SE, c.Ours*baseSE/base) / base
					}
					c.Metric, c.Ours, c.SE, c.Paper, c.PaperSE = speedUp, c.Ours/base, se, nil, nil
					if p, ok := t.paper[speedUp]; ok {
						c.Paper = &p.Value
					}
					some = append(some, c)
				}
				cells = append(cells, only(some, metrics)...)
			}
		}
		return cells
	}
}
