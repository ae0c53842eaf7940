package study

// built are the studies that can be run: state, note and code of a catalogue entry.
var built = map[string]Study{
	"pmcnet.table2": pmcnetTable("pmcnet.table2", controlNote, pmcControls, []string{pmcPaper, pmcTempered, pmcAnnealed},
		controlMetrics),
	"pmcnet.table3": pmcnetTable("pmcnet.table3", controlNote, pmcControls[2:], pmcVariants, controlMetrics),
	"pmcnet.table6": pmcnetTable("pmcnet.table6", sharedNote, []string{"ionosphere"}, pmcRivals,
		append([]string{"prior scale"}, controlMetrics...)),
	"pmcnet.table7":  pmcnetTable("pmcnet.table7", sharedNote, []string{"wine", "glass"}, pmcRivals, severalMetrics),
	"pmcnet.table10": pmcnetTable("pmcnet.table10", deepNote, []string{"protein", "naval"}, pmcDeep, deepMetrics),
	"pmcnet.table11": {State: Reduced, Run: pmcnetSeconds, Note: secondsNote},
	"pmcnet.floored": pmcnetTable("pmcnet.floored", flooredNote, []string{"control 1600", "ionosphere", "glass"},
		flooredMethods(), flooredMetrics),
	"pmcnet.evidence": {State: Reduced, Run: runEvidence, Note: evidenceNote, AnyNetwork: true},
	"pmcnet.calibration": figure("pmcnet.calibration", "not in the paper; Gal's first two splits (-full: all 20), a "+
		"network of 10 tanh units whose noise is learnt, SMC with 200 particles and at most 5 moves a temperature (-full: "+
		"2000 and 100) and no bridge, with which it has not converged where it warns; NLPD in the target's units; seconds "+
		"of a fit that is compiled; OHSMC's first layer is stochastic; \"on the front\" is 1 where no other method is at "+
		"once faster and better", frontFigure),
	"pmcnet.fig1": pmcnetFigure("pmcnet.fig1", "of the first network; "+controlNote, pmcControls,
		[]string{pmcPaper, pmcTempered}, rocMetrics, 2, drawEnvelopes),
	"pmcnet.fig2": pmcnetFigure("pmcnet.fig2", "of the first network; "+controlNote, pmcControls[2:], pmcVariants,
		rocMetrics, 2, drawEnvelopes),
	"pmcnet.fig3": pmcnetFigure("pmcnet.fig3", controlNote, pmcControls[2:], pmcVariants, rocMetrics, 2, drawIterations),
	"pmcnet.fig4": pmcnetFigure("pmcnet.fig4", "of the first repetition, on the right ours beside PMCnet; "+sharedNote,
		[]string{"ionosphere"}, pmcRivals, rocMetrics, 2, drawROC),
	"pmcnet.fig5": pmcnetFigure("pmcnet.fig5", "the rows whose predictive mean is nearest to .1, .4, .6 and .9, in the "+
		"first repetition; "+sharedNote, []string{"ionosphere"}, []string{pmcPaper, pmcTempered, pmcAnnealed}, rocMetrics, 2,
		drawOutputs),
	"pmcnet.fig6": pmcnetFigure("pmcnet.fig6", "of the weighted predictive mean, in the first repetition; "+sharedNote,
		[]string{"wine", "glass"}, pmcRivals, []string{"accuracy of the mean"}, 3, drawConfusion),
	"pmcnet.fig7": pmcnetFigure("pmcnet.fig7", sharedNote, []string{"wine"}, []string{pmcPaper, pmcTempered},
		rocMetrics, 2, drawIterations),
	"pmcnet.fig8": pmcnetFigure("pmcnet.fig8", sharedNote, []string{"glass"}, []string{pmcPaper, pmcTempered},
		rocMetrics, 2, drawIterations),
	"pmcnet.fig10": pmcnetFigure("pmcnet.fig10", deepNote, []string{"protein"}, pmcDeep, []string{"MSE of the mean"}, 1,
		drawErrors),
	"pmcnet.fig11": pmcnetFigure("pmcnet.fig11", deepNote, []string{"naval"}, pmcDeep, []string{"MSE of the mean"}, 1,
		drawErrors),
	"fbnn.tableA1": fbnnTable("fbnn.tableA1", fbnnNoteA1, true),
	"fbnn.fig1": figure("fbnn.fig1", "20 000 draws of a chain that begins in the middle (-full: the paper's 200 000), of "+
		"which 2000 are drawn over the outlines of the mixture; pCN's prior is N(0, 3^2)", mixtureFigure),
	"fbnn.fig2": fbnnBars("fbnn.fig2", fbnnBarsNote, "MSE", []bool{true}),
	"fbnn.fig3": fbnnBars("fbnn.fig3", fbnnBarsNote, "accuracy", []bool{false}),
	"fbnn.fig4": fbnnBars("fbnn.fig4", fbnnBarsNote, speedUp, []bool{true, false}),
	"fbnn.fig5": figure("fbnn.fig5", "on Boston (-data wine: another), not the simulated set, over the plane of "+
		"the pairs' two leading components; below Phi = -log p(y | theta) along the emulated chain in paper mode and "+
		"along the default's, which the paper does not show", emulatedPlane),
	"fbnn.fig6": figure("fbnn.fig6", "the interval is of f, without the noise; all lines are running means over an "+
		"eighth of the test rows; from the repetitions of fbnn.tableA1", alongFeature),
	"fbnn.fig7": figure("fbnn.fig7", "from the repetitions of fbnn.tableA2, ten bins of as many rows",
		equalFrequency),
	"fbnn.tableA2": fbnnTable("fbnn.tableA2", fbnnNoteA2, false),
	"ohsmc.table8": {State: Reduced, Run: runTable8, Note: "validated once an epoch, not after each batch; " +
		lessDraws + "; kin8nm, naval, power and satellite train for 40 epochs, not 200, are repeated 3 times, not 10, and " +
		"are not tuned, unless -full asks for all of it"},
	"ohsmc.table1": {State: Reduced, Run: sinTanh.table, Note: syntheticNote},
	"ohsmc.table2": {State: Reduced, Run: twoMoons.table, Note: syntheticNote},
	"ohsmc.table3": {State: Reduced, Run: runTable3, Note: "from the repetitions of ohsmc.table8, reduced as " +
		"those; the paper's standard errors are its standard deviations over the root of 10"},
	"ohsmc.table4": {State: Reduced, Run: runTable4, Note: table4Note},
	"ohsmc.calibration": figure("ohsmc.calibration", "from the repetitions of ohsmc.table8, reduced as those; of each "+
		"method all classifications together, and all regressions, whose noise is fixed at 1, where -data does not pick some",
		calibrationPage),
	"ohsmc.fig1": figure("ohsmc.fig1", "SGSMC's random walk goes by the particles' spread, where the paper's has "+
		"a variance of 0.001; SMC, which the paper leaves out, with one move before each datum and 200 particles",
		crescentFig1),
	"ohsmc.fig2": figure("ohsmc.fig2", "SGSMC's random walk goes by the particles' spread; "+lessDraws,
		crescentFig2),
	"ohsmc.fig3":    figure("ohsmc.fig3", asInPaper, sinTanh.figure(1)),
	"ohsmc.fig4":    figure("ohsmc.fig4", asInPaper, twoMoons.figure(1)),
	"ohsmc.fig6":    figure("ohsmc.fig6", asInPaper, sinTanh.figure(5)),
	"ohsmc.fig7":    figure("ohsmc.fig7", asInPaper, twoMoons.figure(5)),
	"ohsmc.fig5":    figure("ohsmc.fig5", "OHSMC alone, as panels at six epochs", crescentFig5),
	"gohsmc.table1": {State: Reduced, Run: runRegressionLoss, Note: regressionNote},
	"gohsmc.table6": {State: Reduced, Run: runRegressionSeconds, Note: "on the CPU or GPU that computes here, the " +
		"paper's on an A100; of the fit that is kept, with a validation an epoch, compiled beforehand but for SGHMC's " +
		"chains; " + regressionNote},
	"gohsmc.table10": {State: Reduced, Run: runEqualSeconds, Note: equalNote},
	"gohsmc.fig1": figure("gohsmc.fig1", "without SGHMC and NUTS, whose chains are not validated; "+regressionNote,
		regressionFig1),
	"gohsmc.fig6": figure("gohsmc.fig6", equalNote, regressionFig6),
	"pbnn.fig1":   figure("pbnn.fig1", penaltyNote, penaltyFig1),
	"pbnn.fig2":   figure("pbnn.fig2", penaltyNote, penaltyFig2),
	"pbnn.fig3":   figure("pbnn.fig3", reliabilityNote, penaltyFig3),
	"pbnn.fig4": figure("pbnn.fig4", "SGLD at eta 1e-4 and 1e-6; the penalty's step is chosen by the warm-up, "+
		"not 0.1; "+penaltyNote, penaltyFig4),
}

// syntheticNote is that of the tables of made data.
const syntheticNote = "10 repetitions (-reps 100: the paper's); the paper's standard errors are its standard " +
	"deviations divided by the root of its 100 repetitions; -methods adds methods that it does not have; " + lessDraws

const asInPaper = "the paper's settings, not tuned; " + lessDraws
const regressionNote = "California housing trains for 40 epochs, not 200, and is repeated twice, not five times, " +
	"unless -full, or -epochs and -reps, ask for more"

const equalNote = "on red wine and California housing instead of MNIST: the paper's protocol, the random walk makes " +
	"its epochs and the others get its seconds; " +
	"NUTS trains with exact Langevin for half of them and samples at that psi for the other half; " + regressionNote

const penaltyNote = "data, network and prior are ours, since the paper names none; each chain begins at a mode of " +
	"its own; -epochs sets the draws of each chain"

const reliabilityNote = "the last layer is stochastic, as section 5.2 has it, over layers trained by MAP; the " +
	"regression on five data sets, and also in the gap of its rows; all layers stochastic as well, whose chains " +
	"still widen on MNIST when they end; ReLU and the epoch are chosen on a sixth of MNIST's training part; the " +
	"regression's data, the priors and the steps are ours; -epochs sets the draws of each chain"

const lessDraws = "MAP-HMC and SGSMC-HMC have fewer draws than in the paper"

// The data that a user must provide for some studies.
const (
	wantsCIFAR10  = "will need CIFAR-10, which is not part of the project"
	wantsPictures = "will need SVHN and CIFAR-10, which are not part of the project"
	wantsFBNN     = "five of its data sets (NACC Alzheimer, YearPredictionMSD, CelebA, SVHN, the largest simulations) " +
		"are not part of the project"
)

// catalogue has every table and figure of results in the papers, and a page of our own, marked as such. Tables that
// only list settings are not in it: pmcnet 1, 4, 5, 8; ohsmc 5, 6, 7, 9; gohsmc 8, 9; fbnn 1, 2.
var catalogue = []Study{
	{ID: "pmcnet.table2", Title: "control set: scores of PMCnet for 50, 400 and 1600 training rows"},
	{ID: "pmcnet.table3", Title: "control set, 1600 rows: PMCnet and its variants"},
	{ID: "pmcnet.table6", Title: "Ionosphere: scores of all methods"},
	{ID: "pmcnet.table7", Title: "Wine and Glass: scores of all methods"},
	{ID: "pmcnet.table9", Title: "MNIST-C, SVHN-G and CIFAR10: scores of all methods", Note: wantsPictures},
	{ID: "pmcnet.table10", Title: "Protein and Naval: mean squared error of all methods"},
	{ID: "pmcnet.table11", Title: "Ionosphere: seconds of training and of prediction"},
	{ID: "pmcnet.table12", Title: "MNIST-C: seconds of training and of prediction"},
	{ID: "pmcnet.fig1", Title: "control set: ROC curves with 80, 95 and 99 % envelopes for 50, 400 and 1600 rows"},
	{ID: "pmcnet.fig2", Title: "control set: ROC curves of the five variants"},
	{ID: "pmcnet.fig3", Title: "control set: AUC and accuracy against iteration, five variants"},
	{ID: "pmcnet.fig4", Title: "Ionosphere: ROC curves of all methods"},
	{ID: "pmcnet.fig5", Title: "Ionosphere: sampled outputs on four test examples with a fitted beta density"},
	{ID: "pmcnet.fig6", Title: "Wine and Glass: confusion matrices of all methods"},
	{ID: "pmcnet.fig7", Title: "Wine: AUC and accuracy against iteration"},
	{ID: "pmcnet.fig8", Title: "Glass: AUC and accuracy against iteration"},
	{ID: "pmcnet.fig9", Title: "MNIST-C: confusion matrices of all methods"},
	{ID: "pmcnet.fig10", Title: "Protein: box and violin plots of the squared errors"},
	{ID: "pmcnet.fig11", Title: "Naval: box and violin plots of the squared errors"},
	{ID: "pmcnet.floored",
		Title: "what the authors' program computes: floored weights beside honest ones (not in the paper)"},
	{ID: "pmcnet.evidence",
		Title: "log evidence of networks on Boston, the benchmark of Javid et al. 2020 (not in the paper)"},
	{ID: "pmcnet.calibration",
		Title: "UCI regressions: NLPD and coverage against seconds (not in the paper)"},

	{ID: "ohsmc.table1", Title: "1-d regression: NLPD and RMSE of five methods"},
	{ID: "ohsmc.table2", Title: "two moons: NLPD, ECE and accuracy of five methods"},
	{ID: "ohsmc.table3", Title: "yacht, energy, satellite, ionosphere: a part of Table 8"},
	{ID: "ohsmc.table4", Title: "MNIST: NLPD, ECE and accuracy of OHSMC, SWAG and VB"},
	{ID: "ohsmc.table8", Title: "UCI: NLPD and RMSE on seven regressions, NLPD, ECE and accuracy on five classifications"},
	{ID: "ohsmc.fig1", Title: "crescent: traces of psi"},
	{ID: "ohsmc.fig2", Title: "crescent: samples over the true density, one panel a method"},
	{ID: "ohsmc.fig3", Title: "1-d regression: predictive draws"},
	{ID: "ohsmc.fig4", Title: "two moons: sampled decision lines"},
	{ID: "ohsmc.fig5", Title: "crescent: flow of posterior samples and psi over epochs"},
	{ID: "ohsmc.fig6", Title: "1-d regression: predictive draws for five seeds"},
	{ID: "ohsmc.fig7", Title: "two moons: sampled decision lines for five seeds"},
	{ID: "ohsmc.calibration",
		Title: "UCI: calibration of all methods of Table 8, with panels of the ends (not in the paper)"},

	{ID: "gohsmc.table1", Title: "red wine and California housing: test loss by batch size"},
	{ID: "gohsmc.table2", Title: "MNIST: test loss and accuracy by batch size"},
	{ID: "gohsmc.table3", Title: "FashionMNIST: test loss and accuracy by batch size"},
	{ID: "gohsmc.table4", Title: "CIFAR10: test loss and accuracy", Note: wantsCIFAR10},
	{ID: "gohsmc.table5", Title: "detection of FashionMNIST among MNIST: accuracy, F1, AUROC"},
	{ID: "gohsmc.table6", Title: "red wine and California housing: seconds of training"},
	{ID: "gohsmc.table7", Title: "MNIST and FashionMNIST: seconds of training"},
	{ID: "gohsmc.table10", Title: "MNIST: test loss and accuracy at equal runtime"},
	{ID: "gohsmc.table11", Title: "FashionMNIST: test loss and accuracy at equal runtime"},
	{ID: "gohsmc.fig1", Title: "red wine and California housing: validation loss against epoch"},
	{ID: "gohsmc.fig2", Title: "MNIST: validation loss and accuracy against epoch"},
	{ID: "gohsmc.fig3", Title: "FashionMNIST: validation loss and accuracy against epoch"},
	{ID: "gohsmc.fig4", Title: "CIFAR10: validation loss and accuracy against epoch", Note: wantsCIFAR10},
	{ID: "gohsmc.fig5", Title: "detection of FashionMNIST among MNIST: ROC curves"},
	{ID: "gohsmc.fig6", Title: "MNIST: validation loss for a fixed runtime"},
	{ID: "gohsmc.fig7", Title: "FashionMNIST: validation loss for a fixed runtime"},

	{ID: "fbnn.tableA1", Title: "regression: MSE, coverage, seconds, ESS and speed-up of all methods", Note: wantsFBNN},
	{ID: "fbnn.tableA2", Title: "classification: accuracy, ECE, seconds, ESS and speed-up of all methods",
		Note: wantsFBNN},
	{ID: "fbnn.fig1", Title: "mixture of 25 Gaussians: the target, SGHMC and pCN"},
	{ID: "fbnn.fig2", Title: "regression: MSE by method and data set", Note: wantsFBNN},
	{ID: "fbnn.fig3", Title: "classification: accuracy by method and data set", Note: wantsFBNN},
	{ID: "fbnn.fig4", Title: "speed-up by method and data set", Note: wantsFBNN},
	{ID: "fbnn.fig5", Title: "true and emulated log-likelihood over two principal components"},
	{ID: "fbnn.fig6", Title: "predictive mean and 95 % interval along the first principal component, BNN and FBNN"},
	{ID: "fbnn.fig7", Title: "reliability diagrams with bins of equal frequency"},

	{ID: "pbnn.fig1",
		Title: "Bayesian linear regression from mini-batches of 2: with penalty, without, and the exact answer"},
	{ID: "pbnn.fig2", Title: "1-d regression: full BNN, penalty BNN at n = 5 and 10, naive mini-batches"},
	{ID: "pbnn.fig3", Title: "reliability diagrams: regression and MNIST"},
	{ID: "pbnn.fig4", Title: "1-d regression: SGLD at two step sizes, tempered BNN, penalty BNN"},
}
