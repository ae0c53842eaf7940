package study

import (
	_ "embed" // for the studies' texts
	"strings"
)

// catalogue has every table and figure of results in the papers, paper by paper, tables first, and those of ours that
// are marked as such. Tables that only list settings are not in it: pmcnet 1, 4, 5, 8; ohsmc 5, 6, 7, 9; gohsmc 8, 9;
// fbnn 1, 2. Their titles and notes are in studies.txt.
var catalogue = withTexts([]Experiment{
	{ID: "pmcnet.table2", trials: pmcnetTrials(pmcControls, []string{pmcPaper, pmcTempered, pmcAnnealed}),
		metrics: controlMetrics},
	{ID: "pmcnet.table3", trials: ablationTrials, metrics: controlMetrics},
	{ID: "pmcnet.table6", trials: pmcnetTrials([]string{"ionosphere"}, pmcRivals),
		metrics: append([]string{"prior scale"}, controlMetrics...)},
	{ID: "pmcnet.table7", trials: pmcnetTrials([]string{"wine", "glass"}, pmcRivals), metrics: severalMetrics},
	{ID: "pmcnet.table9", trials: pmcnetTrials([]string{"MNIST-C", "SVHN-G", "CIFAR10"}, pmcDeep),
		metrics: severalMetrics[:len(severalMetrics)-1]},
	{ID: "pmcnet.table10", trials: pmcnetTrials([]string{"protein", "naval"}, pmcDeep), metrics: deepMetrics},
	{ID: "pmcnet.table11", trials: timedTrials},
	{ID: "pmcnet.table12", trials: pmcnetTrials([]string{"MNIST-C"}, pmcDeep), metrics: timeMetrics},
	{ID: "pmcnet.fig1", trials: pmcnetTrials(pmcControls, []string{pmcPaper, pmcTempered}), metrics: rocMetrics,
		draw: pmcnetFigure(2, drawEnvelopes)},
	{ID: "pmcnet.fig2", trials: ablationTrials, metrics: rocMetrics,
		draw: pmcnetFigure(2, drawEnvelopes)},
	{ID: "pmcnet.fig3", trials: ablationTrials, metrics: rocMetrics,
		draw: pmcnetFigure(1, drawIterations)},
	{ID: "pmcnet.fig4", trials: pmcnetTrials([]string{"ionosphere"}, pmcRivals), metrics: rocMetrics,
		draw: pmcnetFigure(1, drawROC)},
	{ID: "pmcnet.fig5", trials: pmcnetTrials([]string{"ionosphere"}, []string{pmcPaper, pmcTempered, pmcAnnealed}),
		metrics: rocMetrics, draw: pmcnetFigure(1, drawOutputs)},
	{ID: "pmcnet.fig6", trials: pmcnetTrials([]string{"wine", "glass"}, pmcRivals),
		metrics: []string{"accuracy of the mean"}, draw: pmcnetFigure(1, drawConfusion)},
	{ID: "pmcnet.fig7", trials: pmcnetTrials([]string{"wine"}, []string{pmcPaper, pmcTempered}), metrics: rocMetrics,
		draw: pmcnetFigure(1, drawIterations)},
	{ID: "pmcnet.fig8", trials: pmcnetTrials([]string{"glass"}, []string{pmcPaper, pmcTempered}), metrics: rocMetrics,
		draw: pmcnetFigure(1, drawIterations)},
	{ID: "pmcnet.fig9", trials: pmcnetTrials([]string{"MNIST-C"}, pmcDeep), metrics: []string{"accuracy of the mean"},
		draw: pmcnetFigure(1, drawConfusion)},
	{ID: "pmcnet.fig10", trials: pmcnetTrials([]string{"protein"}, pmcDeep), metrics: []string{"MSE of the mean"},
		draw: pmcnetFigure(1, drawErrors)},
	{ID: "pmcnet.fig11", trials: pmcnetTrials([]string{"naval"}, pmcDeep), metrics: []string{"MSE of the mean"},
		draw: pmcnetFigure(1, drawErrors)},
	{ID: "pmcnet.floored", trials: pmcnetTrials([]string{"control 1600", "ionosphere", "glass"}, flooredMethods()),
		metrics: flooredMetrics},
	{ID: "pmcnet.evidence", trials: evidenceTrials, cells: evidenceCells},
	{ID: "ohsmc.table1", trials: sinTanh.trials},
	{ID: "ohsmc.table2", trials: twoMoons.trials},
	{ID: "ohsmc.table3", trials: table3Trials},
	{ID: "ohsmc.table4", trials: table4Trials},
	{ID: "ohsmc.table8", trials: table8Trials},
	{ID: "ohsmc.fig1", trials: crescentRuns, draw: crescentFig1},
	{ID: "ohsmc.fig2", trials: crescentMethods, metrics: []string{}, draw: crescentFig2},
	{ID: "ohsmc.fig3", trials: sinTanh.first, metrics: []string{}, draw: sinTanh.figure},
	{ID: "ohsmc.fig4", trials: twoMoons.first, metrics: []string{}, draw: twoMoons.figure},
	{ID: "ohsmc.fig5", trials: crescentFlow, metrics: []string{}, draw: crescentFig5},
	{ID: "ohsmc.fig6", trials: sinTanh.several, metrics: []string{}, draw: sinTanh.figure},
	{ID: "ohsmc.fig7", trials: twoMoons.several, metrics: []string{}, draw: twoMoons.figure},
	{ID: "gohsmc.table1", trials: regressionTrials, metrics: []string{"ESS", "NLPD", "test loss"}},
	{ID: "gohsmc.table2", trials: pictureTrials(guidedDigits), metrics: pictureMetrics},
	{ID: "gohsmc.table3", trials: pictureTrials(guidedFashion), metrics: pictureMetrics},
	{ID: "gohsmc.table4", trials: pictureTrials(guidedCIFAR), metrics: pictureMetrics},
	{ID: "gohsmc.table5", trials: detectionTrials, metrics: detectionMetrics},
	{ID: "gohsmc.table6", trials: regressionTrials, metrics: []string{"seconds"}},
	{ID: "gohsmc.table7", trials: pictureTrials(guidedDigits, guidedFashion), metrics: []string{"seconds"}},
	{ID: "gohsmc.table10", trials: equalPictureTrials(guidedDigits), metrics: equalMetrics, bySeconds: true},
	{ID: "gohsmc.table11", trials: equalPictureTrials(guidedFashion), metrics: equalMetrics, bySeconds: true},
	{ID: "gohsmc.fig1", trials: printedTrials, metrics: []string{}, draw: lossPanels},
	{ID: "gohsmc.fig2", trials: pictureTrials(guidedDigits), metrics: []string{}, draw: picturePanels("epoch")},
	{ID: "gohsmc.fig3", trials: pictureTrials(guidedFashion), metrics: []string{}, draw: picturePanels("epoch")},
	{ID: "gohsmc.fig4", trials: pictureTrials(guidedCIFAR), metrics: []string{}, draw: picturePanels("epoch")},
	{ID: "gohsmc.fig5", trials: detectionTrials, metrics: []string{}, draw: drawDetection},
	{ID: "gohsmc.fig6", trials: equalPictureTrials(guidedDigits), metrics: []string{}, draw: picturePanels("seconds")},
	{ID: "gohsmc.fig7", trials: equalPictureTrials(guidedFashion), metrics: []string{},
		draw: picturePanels("seconds")},
	{ID: "fbnn.tableA1", trials: fbnnTrials(true), cells: fbnnCells("fbnn.tableA1", regressionMetrics)},
	{ID: "fbnn.tableA2", trials: fbnnTrials(false), cells: fbnnCells("fbnn.tableA2", classMetrics)},
	{ID: "fbnn.fig1", trials: mixtureTrials, draw: mixtureFigure},
	{ID: "fbnn.fig2", trials: fbnnTrials(true), cells: fbnnCells("fbnn.fig2", []string{"MSE"}),
		draw: fbnnBars("fbnn.fig2", "MSE")},
	{ID: "fbnn.fig3", trials: fbnnTrials(false), cells: fbnnCells("fbnn.fig3", []string{"accuracy"}),
		draw: fbnnBars("fbnn.fig3", "accuracy")},
	{ID: "fbnn.fig4", trials: fbnnBoth, cells: fbnnCells("fbnn.fig4", []string{speedUp}),
		draw: fbnnBars("fbnn.fig4", speedUp)},
	{ID: "fbnn.fig5", trials: planeTrials, draw: emulatedPlane},
	{ID: "fbnn.fig6", trials: fbnnOf(true, nil, bandMethods...), metrics: []string{"MSE", "coverage of f"},
		draw: alongFeature},
	{ID: "fbnn.fig7", trials: fbnnOf(false, []string{"simulated classification", "adult"}, frequencyMethods...),
		metrics: []string{"accuracy", "ECE"}, draw: equalFrequency},
	{ID: "fbnn.theorems", trials: theoremTrials, draw: drawTheorems},
	{ID: "pbnn.fig1", trials: lineTrials, draw: penaltyFig1},
	{ID: "pbnn.fig2", trials: waveTrials("pbnn.fig2", penaltyFull, penaltyFive, penaltyNaive, penaltyTen),
		draw: penaltyWave},
	{ID: "pbnn.fig3", trials: reliabilityTrials(reliabilityWave, reliabilityDigits),
		draw: reliabilityFigure(reliabilityWave, reliabilityDigits)},
	{ID: "pbnn.fig4",
		trials: waveTrials("pbnn.fig4", penaltySGLD(1e-4, 1), penaltySGLD(1e-6, 1), penaltySGLD(1e-6, slowTimes),
			penaltyTempers, penaltyFive),
		draw: penaltyWave},
	{ID: "practice.tables", trials: practiceTrials(1, practiceMethods, confirming),
		cells: practiceCells("practice.tables"), plot: ranksFigure, plotted: rankMetric, bySeconds: true},
	{ID: "practice.splits", trials: practiceTrials(5, practiceMethods[:3], confirming),
		cells: practiceCells("practice.splits"), plot: ranksFigure, plotted: rankMetric, bySeconds: true},
	{ID: "practice.airfoil", trials: benchmarkTrials("airfoil", 5, growing(30, 60, 120, 240)),
		metrics: benchmarkMetrics, plot: secondsFigure, plotted: oneNormalMetric, bySeconds: true},
	{ID: "practice.bike", trials: benchmarkTrials("bikesharing", 1, growing(300, 1200)), metrics: benchmarkMetrics,
		plot: secondsFigure, plotted: oneNormalMetric, bySeconds: true},
	{ID: "practice.gal", trials: galTrials, metrics: galMetrics, bySeconds: true},
})

//go:embed studies.txt
var studiesText string

// withTexts fills in titles and notes.
func withTexts(all []Experiment) []Experiment {
	var shared []string // by studies: names in braces, each with its text
	texts := map[string][2]string{}
	for block := range strings.SplitSeq(strings.TrimSpace(studiesText), "\n\n") {
		head, note, _ := strings.Cut(block, "\n")
		note = strings.NewReplacer(shared...).Replace(strings.ReplaceAll(note, "\n", " "))
		if id, title, study := strings.Cut(head, ": "); study {
			texts[id] = [2]string{title, note}
		} else if strings.HasPrefix(head, "{") {
			shared = append(shared, head, note)
		}
	}
	for i := range all {
		all[i].Title, all[i].Note = texts[all[i].ID][0], texts[all[i].ID][1]
	}
	return all
}
