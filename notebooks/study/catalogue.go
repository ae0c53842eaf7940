package study

// catalogue has every table and figure of results in the papers, paper by paper, tables first, and those of ours that
// are marked as such. Tables that only list settings are not in it: pmcnet 1, 4, 5, 8; ohsmc 5, 6, 7, 9; gohsmc 8, 9;
// fbnn 1, 2.
var catalogue = []Experiment{
	{ID: "pmcnet.table2", Title: "control set: scores of PMCnet for 50, 400 and 1600 training rows",
		Note: controlNote, trials: pmcnetTrials(pmcControls, []string{pmcPaper, pmcTempered, pmcAnnealed}),
		metrics: controlMetrics},
	{ID: "pmcnet.table3", Title: "control set, 1600 rows: PMCnet and its variants", Note: controlNote,
		trials: pmcnetTrials(pmcControls[2:], pmcVariants), metrics: controlMetrics},
	{ID: "pmcnet.table6", Title: "Ionosphere: scores of all methods", Note: sharedNote,
		trials:  pmcnetTrials([]string{"ionosphere"}, pmcRivals),
		metrics: append([]string{"prior scale"}, controlMetrics...)},
	{ID: "pmcnet.table7", Title: "Wine and Glass: scores of all methods", Note: sharedNote,
		trials: pmcnetTrials([]string{"wine", "glass"}, pmcRivals), metrics: severalMetrics},
	{ID: "pmcnet.table9", Title: "MNIST-C, SVHN-G and CIFAR10: scores of all methods", Note: rotatedNote,
		trials:  pmcnetTrials([]string{"MNIST-C", "SVHN-G", "CIFAR10"}, pmcDeep),
		metrics: severalMetrics[:len(severalMetrics)-1]},
	{ID: "pmcnet.table10", Title: "Protein and Naval: mean squared error of all methods", Note: deepNote,
		trials: pmcnetTrials([]string{"protein", "naval"}, pmcDeep), metrics: deepMetrics},
	{ID: "pmcnet.table11", Title: "Ionosphere: seconds of training and of prediction", Note: secondsNote,
		trials: timedTrials},
	{ID: "pmcnet.table12", Title: "MNIST-C: seconds of training and of prediction",
		Note:   "on the CPU or GPU that computes here, the paper's on a V100; " + rotatedNote,
		trials: pmcnetTrials([]string{"MNIST-C"}, pmcDeep), metrics: timeMetrics},
	{ID: "pmcnet.fig1", Title: "control set: ROC curves with 80, 95 and 99 % envelopes for 50, 400 and 1600 rows",
		Note: "of the first network; " + controlNote, trials: pmcnetTrials(pmcControls, []string{pmcPaper, pmcTempered}),
		metrics: rocMetrics, draw: pmcnetFigure(2, drawEnvelopes)},
	{ID: "pmcnet.fig2", Title: "control set: ROC curves of the five variants",
		Note: "of the first network; " + controlNote, trials: pmcnetTrials(pmcControls[2:], pmcVariants),
		metrics: rocMetrics, draw: pmcnetFigure(2, drawEnvelopes)},
	{ID: "pmcnet.fig3", Title: "control set: AUC and accuracy against iteration, five variants", Note: controlNote,
		trials: pmcnetTrials(pmcControls[2:], pmcVariants), metrics: rocMetrics, draw: pmcnetFigure(2, drawIterations)},
	{ID: "pmcnet.fig4", Title: "Ionosphere: ROC curves of all methods",
		Note:   "of the first repetition, on the right ours beside PMCnet; " + sharedNote,
		trials: pmcnetTrials([]string{"ionosphere"}, pmcRivals), metrics: rocMetrics, draw: pmcnetFigure(2, drawROC)},
	{ID: "pmcnet.fig5", Title: "Ionosphere: sampled outputs on four test examples with a fitted beta density",
		Note: "the rows whose predictive mean is nearest to .1, .4, .6 and .9, in the first repetition; " +
			sharedNote,
		trials: pmcnetTrials([]string{"ionosphere"}, []string{pmcPaper, pmcTempered, pmcAnnealed}), metrics: rocMetrics,
		draw: pmcnetFigure(2, drawOutputs)},
	{ID: "pmcnet.fig6", Title: "Wine and Glass: confusion matrices of all methods",
		Note:   "of the weighted predictive mean, in the first repetition; " + sharedNote,
		trials: pmcnetTrials([]string{"wine", "glass"}, pmcRivals), metrics: []string{"accuracy of the mean"},
		draw: pmcnetFigure(3, drawConfusion)},
	{ID: "pmcnet.fig7", Title: "Wine: AUC and accuracy against iteration", Note: sharedNote,
		trials: pmcnetTrials([]string{"wine"}, []string{pmcPaper, pmcTempered}), metrics: rocMetrics,
		draw: pmcnetFigure(2, drawIterations)},
	{ID: "pmcnet.fig8", Title: "Glass: AUC and accuracy against iteration", Note: sharedNote,
		trials: pmcnetTrials([]string{"glass"}, []string{pmcPaper, pmcTempered}), metrics: rocMetrics,
		draw: pmcnetFigure(2, drawIterations)},
	{ID: "pmcnet.fig9", Title: "MNIST-C: confusion matrices of all methods",
		Note:   "of the weighted predictive mean, in the first repetition; " + rotatedNote,
		trials: pmcnetTrials([]string{"MNIST-C"}, pmcDeep), metrics: []string{"accuracy of the mean"},
		draw: pmcnetFigure(3, drawConfusion)},
	{ID: "pmcnet.fig10", Title: "Protein: box and violin plots of the squared errors", Note: deepNote,
		trials: pmcnetTrials([]string{"protein"}, pmcDeep), metrics: []string{"MSE of the mean"},
		draw: pmcnetFigure(1, drawErrors)},
	{ID: "pmcnet.fig11", Title: "Naval: box and violin plots of the squared errors", Note: deepNote,
		trials: pmcnetTrials([]string{"naval"}, pmcDeep), metrics: []string{"MSE of the mean"},
		draw: pmcnetFigure(1, drawErrors)},
	{ID: "pmcnet.floored",
		Title: "what the authors' program computes: floored weights beside honest ones (not in the paper)", Note: flooredNote,
		trials:  pmcnetTrials([]string{"control 1600", "ionosphere", "glass"}, flooredMethods()),
		metrics: flooredMetrics},
	{ID: "pmcnet.evidence",
		Title: "log evidence of networks on Boston, the benchmark of Javid et al. 2020 (not in the paper)",
		Note:  evidenceNote, trials: evidenceTrials, cells: evidenceCells},
	{ID: "ohsmc.table1", Title: "1-d regression: NLPD and RMSE of five methods", Note: syntheticNote,
		trials: sinTanh.trials},
	{ID: "ohsmc.table2", Title: "two moons: NLPD, ECE and accuracy of five methods", Note: syntheticNote,
		trials: twoMoons.trials},
	{ID: "ohsmc.table3", Title: "yacht, energy, satellite, ionosphere: a part of Table 8",
		Note: "from the repetitions of ohsmc.table8, reduced as those, satellite's to three of 40 epochs; the paper's " +
			"standard errors are its standard deviations over the root of 10",
		trials: table3Trials},
	{ID: "ohsmc.table4", Title: "MNIST: NLPD, ECE and accuracy of OHSMC, SWAG and VB", Note: table4Note,
		trials: table4Trials},
	{ID: "ohsmc.table8",
		Title: "UCI: NLPD and RMSE on seven regressions, NLPD, ECE and accuracy on five classifications",
		Note:  table8Note, trials: table8Trials},
	{ID: "ohsmc.fig1", Title: "crescent: traces of psi",
		Note: "eight repetitions, with observations of their own, where the paper shows one; SGSMC's random walk goes " +
			"by the particles' spread, where the paper's has a variance of 0.001; SMC, which the paper leaves out, with " +
			"one move before each datum and 200 particles",
		trials: crescentRuns, draw: crescentFig1},
	{ID: "ohsmc.fig2", Title: "crescent: samples over the true density, one panel a method",
		Note: "the observations of figure 1's second repetition; SGSMC's random walk goes by the particles' spread; " +
			lessDraws, trials: crescentMethods,
		metrics: []string{}, draw: crescentFig2},
	{ID: "ohsmc.fig3", Title: "1-d regression: predictive draws", Note: asInPaper, draw: sinTanh.figure(1)},
	{ID: "ohsmc.fig4", Title: "two moons: sampled decision lines", Note: asInPaper, draw: twoMoons.figure(1)},
	{ID: "ohsmc.fig5", Title: "crescent: flow of posterior samples and psi over epochs",
		Note: "OHSMC alone, as panels at six epochs, in figure 1's second repetition", trials: crescentFlow,
		metrics: []string{}, draw: crescentFig5},
	{ID: "ohsmc.fig6", Title: "1-d regression: predictive draws for five seeds", Note: asInPaperFew,
		draw: sinTanh.figure(5)},
	{ID: "ohsmc.fig7", Title: "two moons: sampled decision lines for five seeds", Note: asInPaperFew,
		draw: twoMoons.figure(5)},
	{ID: "gohsmc.table1", Title: "red wine and California housing: test loss by batch size", Note: regressionTableNote,
		trials: regressionTrials, metrics: []string{"ESS", "NLPD", "test loss"}},
	{ID: "gohsmc.table2", Title: "MNIST: test loss and accuracy by batch size", Note: digitsNote,
		trials: pictureTrials(guidedDigits), metrics: pictureMetrics},
	{ID: "gohsmc.table3", Title: "FashionMNIST: test loss and accuracy by batch size", Note: fashionNote,
		trials: pictureTrials(guidedFashion), metrics: pictureMetrics},
	{ID: "gohsmc.table4", Title: "CIFAR10: test loss and accuracy", Note: cifarNote, trials: pictureTrials(guidedCIFAR),
		metrics: pictureMetrics},
	{ID: "gohsmc.table5", Title: "detection of FashionMNIST among MNIST: accuracy, F1, AUROC", Note: detectionNote,
		trials: detectionTrials, metrics: detectionMetrics},
	{ID: "gohsmc.table6", Title: "red wine and California housing: seconds of training",
		Note: "on the CPU or GPU that computes here, the paper's on an A100; of the fit that is kept, with a " +
			"validation an epoch, compiled beforehand but for SGHMC's chains; " + regressionNote,
		trials: regressionTrials, metrics: []string{"seconds"}},
	{ID: "gohsmc.table7", Title: "MNIST and FashionMNIST: seconds of training", Note: "on the CPU or GPU that computes " +
		"here, the paper's on an A100; as Tables 2 and 3", trials: pictureTrials(guidedDigits, guidedFashion),
		metrics: []string{"seconds"}},
	{ID: "gohsmc.table10", Title: "MNIST: test loss and accuracy at equal runtime", Note: digitsNote,
		trials: equalPictureTrials(guidedDigits), metrics: equalMetrics},
	{ID: "gohsmc.table11", Title: "FashionMNIST: test loss and accuracy at equal runtime", Note: fashionNote,
		trials: equalPictureTrials(guidedFashion), metrics: equalMetrics},
	{ID: "gohsmc.fig1", Title: "red wine and California housing: validation loss against epoch",
		Note: "the paper's settings, the same for both proposals; SGHMC's loss is that of its draws so far, along chains " +
			"that begin where as many epochs of training end; " + regressionNote, trials: printedTrials,
		metrics: []string{}, draw: lossPanels},
	{ID: "gohsmc.fig2", Title: "MNIST: validation loss and accuracy against epoch", Note: digitsNote,
		trials: pictureTrials(guidedDigits), metrics: []string{}, draw: picturePanels("epoch")},
	{ID: "gohsmc.fig3", Title: "FashionMNIST: validation loss and accuracy against epoch", Note: fashionNote,
		trials: pictureTrials(guidedFashion), metrics: []string{}, draw: picturePanels("epoch")},
	{ID: "gohsmc.fig4", Title: "CIFAR10: validation loss and accuracy against epoch", Note: cifarNote,
		trials: pictureTrials(guidedCIFAR), metrics: []string{}, draw: picturePanels("epoch")},
	{ID: "gohsmc.fig5", Title: "detection of FashionMNIST among MNIST: ROC curves", Note: detectionNote,
		trials: detectionTrials, metrics: []string{}, draw: drawDetection},
	{ID: "gohsmc.fig6", Title: "MNIST: validation loss and accuracy for a fixed runtime", Note: digitsNote,
		trials: equalPictureTrials(guidedDigits), metrics: []string{}, draw: picturePanels("seconds")},
	{ID: "gohsmc.fig7", Title: "FashionMNIST: validation loss and accuracy for a fixed runtime", Note: fashionNote,
		trials: equalPictureTrials(guidedFashion), metrics: []string{}, draw: picturePanels("seconds")},
	{ID: "fbnn.tableA1", Title: "regression: MSE, coverage, seconds, ESS and speed-up of all methods",
		Note: fbnnNoteA1, trials: fbnnTrials(true), cells: fbnnCells("fbnn.tableA1", regressionMetrics)},
	{ID: "fbnn.tableA2", Title: "classification: accuracy, ECE, seconds, ESS and speed-up of all methods",
		Note: fbnnNoteA2, trials: fbnnTrials(false), cells: fbnnCells("fbnn.tableA2", classMetrics)},
	{ID: "fbnn.fig1", Title: "mixture of 25 Gaussians: the target, SGHMC and pCN",
		Note: "200 000 draws, as in the paper, of a chain that begins in the middle, of which every hundredth is drawn " +
			"over the outlines of the mixture; pCN's prior is N(0, 3^2)",
		trials: mixtureTrials, draw: mixtureFigure},
	{ID: "fbnn.fig2", Title: "regression: MSE by method and data set", Note: fbnnBarsNote, trials: fbnnTrials(true),
		cells: fbnnCells("fbnn.fig2", []string{"MSE"}), draw: fbnnBars("fbnn.fig2", "MSE")},
	{ID: "fbnn.fig3", Title: "classification: accuracy by method and data set", Note: fbnnBarsNote,
		trials: fbnnTrials(false), cells: fbnnCells("fbnn.fig3", []string{"accuracy"}),
		draw: fbnnBars("fbnn.fig3", "accuracy")},
	{ID: "fbnn.fig4", Title: "speed-up by method and data set", Note: fbnnBarsNote, trials: fbnnBoth,
		cells: fbnnCells("fbnn.fig4", []string{speedUp}), draw: fbnnBars("fbnn.fig4", speedUp)},
	{ID: "fbnn.fig5", Title: "true and emulated log-likelihood over two principal components",
		Note: "on the simulated set (-data boston: another), over the plane of the pairs' two leading " +
			"components; below Phi = -log p(y | theta) along the emulated chain in paper mode and along the default's, which " +
			"the paper does not show",
		trials: planeTrials, draw: emulatedPlane},
	{ID: "fbnn.fig6", Title: "predictive mean and 95 % interval along the first principal component, BNN and FBNN",
		Note: "running means over an eighth of the test rows, of f with its 95 % interval, without the noise, of the " +
			"targets with their mean's; from the repetitions of fbnn.tableA1",
		trials: fbnnOf(true, nil, bandMethods...), metrics: []string{"MSE", "coverage of f"}, draw: alongFeature},
	{ID: "fbnn.fig7", Title: "reliability diagrams with bins of equal frequency",
		Note:    "from the repetitions of fbnn.tableA2, ten bins of as many rows",
		trials:  fbnnOf(false, []string{"simulated classification", "adult"}, frequencyMethods...),
		metrics: []string{"accuracy", "ECE"}, draw: equalFrequency},
	{ID: "fbnn.theorems",
		Title: "Theorems 3.1 to 3.3: the error of the posterior against the emulator's (not a figure of the paper)",
		Note: "logistic regression of two weights with the posterior on a grid, emulators from 10 to 320 pairs, one hidden " +
			"layer of 32 tanh units", trials: theoremTrials, draw: drawTheorems},
	{ID: "pbnn.fig1",
		Title: "Bayesian linear regression from mini-batches of 2: with penalty, without, and the exact answer",
		Note:  penaltyNote, trials: lineTrials, draw: penaltyFig1},
	{ID: "pbnn.fig2", Title: "1-d regression: full BNN, penalty BNN at n = 5 and 10, naive mini-batches",
		Note: penaltyNote, trials: waveTrials("pbnn.fig2", penaltyFull, penaltyFive, penaltyNaive, penaltyTen),
		draw: penaltyWave},
	{ID: "pbnn.fig3", Title: "reliability diagrams: regression and MNIST", Note: reliabilityNote,
		trials: reliabilityTrials(reliabilityWave, reliabilityDigits),
		draw:   reliabilityFigure(reliabilityWave, reliabilityDigits)},
	{ID: "pbnn.fig4", Title: "1-d regression: SGLD at two step sizes, tempered BNN, penalty BNN",
		Note:   "SGLD at eta 1e-4 and 1e-6; the penalty's step is chosen by the warm-up, not 0.1; " + penaltyNote,
		trials: waveTrials("pbnn.fig4", penaltySGLD(1e-4), penaltySGLD(1e-6), penaltyTempers, penaltyFive),
		draw:   penaltyWave},
	{ID: "practice.tables", Title: "what methods give who sets nothing: nine tables on which nothing was chosen",
		Note: "the first split; " + practiceNote, trials: practiceTrials(1, practiceMethods, confirming),
		cells: practiceCells("practice.tables"), draw: practiceFigure},
	{ID: "practice.splits", Title: "the default method, ten networks and other packages on the nine tables",
		Note: "five splits; " + practiceNote, trials: practiceTrials(5, practiceMethods[:3], confirming),
		cells: practiceCells("practice.splits"), draw: practiceFigure},
	{ID: "practice.airfoil", Title: "airfoil, a benchmark of Bayesian networks: scores against seconds",
		Note:   benchmarkNote,
		trials: benchmarkTrials("airfoil", 5, growing(30, 60, 120, 240)), metrics: benchmarkMetrics, draw: secondsFigure},
	{ID: "practice.bike", Title: "bike sharing, a benchmark of Bayesian networks: scores against seconds",
		Note: benchmarkNote, trials: benchmarkTrials("bikesharing", 1, growing(300, 1200)), metrics: benchmarkMetrics,
		draw: secondsFigure},
	{ID: "practice.gal", Title: "Gal's splits of nine UCI sets: the default method and ten networks", Note: galNote,
		trials: galTrials, metrics: galMetrics},
}

// syntheticNote is the note of the tables on synthetic data.
const syntheticNote = printedSettings + "10 repetitions, not 100, and " + fewMoves + " (-full: both as in the " +
	"paper); the paper's standard errors are its standard deviations divided by the root of its 100 repetitions; " +
	"-methods adds methods that it does not have, the better of two settings on the validation part"

// What the studies of the paper's synthetic data are, and the notes of its figures of one seed and of five.
const (
	printedSettings = "the paper's settings, not tuned, and validated after each batch; "
	fewMoves        = "SGSMC-HMC has 3 moves before each datum, not 10"

	asInPaper    = printedSettings + "the points are test rows; SWAG's 200 iterates are the ends of as many further epochs"
	asInPaperFew = asInPaper + "; " + fewMoves + " (-full: 10)"
)

const table8Note = "each method takes the better of two settings on the validation part, where the paper has two for " +
	"OHSMC alone; validated once an epoch, not after each batch; MAP-HMC and SGSMC-HMC have four chains of 100 draws " +
	"after 50, not one of 1000 after 2000, SGSMC-HMC 100 particles and one move before each datum, scaled by their " +
	"spread, not 1000 and ten of variance .05, VB 10 draws a step and SWAG a rank of 20 with half as many iterates as " +
	"epochs, not 100, 50 and 200, both 100 particles, not 1000; kin8nm, naval, power and satellite train for 40 epochs, " +
	"not 200, are repeated at most three times, not ten, and have one setting but for OHSMC, unless -full asks for all; " +
	"the paper's standard errors are its standard deviations over the root of 10"

const regressionTableNote = "the paper's methods with its settings, where a step of .01 is a standard deviation and " +
	"the weights of random walk and Langevin are by the batch alone; the tuned, and all others, are the better of two " +
	"settings on the validation part, of random walk and Langevin also a step of .003 with N/M in the weights and the " +
	"drift; " + regressionNote

const regressionNote = "California housing trains for 40 epochs, not 200, and is repeated twice, not five times, " +
	"unless -full, or -epochs and -reps, ask for more"

const penaltyNote = "data, network and prior are ours, since the paper names none; each chain begins at a mode of " +
	"its own; -epochs sets the draws of each chain"

const reliabilityNote = "the last layer is stochastic, as section 5.2 has it, over layers trained by MAP; the " +
	"regression on five data sets, and also in the gap of its rows; all layers stochastic as well, whose chains " +
	"still widen on MNIST when they end; ReLU and the epoch are chosen on a sixth of MNIST's training part; the " +
	"regression's data, the priors and the steps are ours; -epochs sets the draws of each chain"

const lessDraws = "MAP-HMC and SGSMC-HMC have fewer draws than in the paper"

const bySeconds = "each method with its own defaults and the model that bayes.ModelFor proposes, the ten networks " +
	"50-20-5 with noise by the features, stopped after 60 s"

const practiceNote = "not in the papers; " + bySeconds + "; scores in units of the " +
	"training target's standard deviation; 'diverged' is no posterior in the time; other packages as recorded"

const galNote = "not in the papers; the first of the 20 splits (5 of protein); " + bySeconds + "; RMSE in units of " +
	"the training target's standard deviation; in brackets test NLLs of networks with one hidden layer of 50 by the " +
	"library uncertainty-baselines, of ten networks, and beside our default the least of its one network, ten " +
	"networks, VI and refined VI"

const benchmarkNote = "not in the papers; the benchmark of the package bde, whose own numbers, on ten cores, stand " +
	"in brackets; other packages as recorded; scores in standardised units"
