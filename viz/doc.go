// Package viz draws the figures that answer the questions one asks of a Bayesian neural network and of the particle
// sampler that trained it.
//
//	Where is the model sure, and is it right to be? (one feature)     Along, PredictiveBand
//	Where does a classifier decide, and how surely? (two features)    DecisionMap
//	Did training converge, did it overfit, which step is kept?        TrainingCurvesOf
//	Do the particles degenerate, how often are they resampled?        ESSCurve
//	How far off are predictions, do their intervals cover?            PredictedVsTrueOf
//	Can the confidence of a classifier be trusted?                    Reliability
//	Can the intervals of a regression be trusted, at all levels?      CalibrationCurveOf
//	How do methods compare in one number?                             Bars
//	Do the particles represent the target density?                    ParticleScatter
//
// Each takes plain slices, or the result of a run, its posterior or a [bayes.Prediction] of that, and a [Frame] or an
// options struct whose zero value works. It returns a [Figure] that Show displays in a GoNB notebook, Save writes as
// .png or .svg, and PNG and SVG render to memory. [Grid] puts several side by side.
//
//	fig, err := viz.PredictiveBand(x, mean, stdDev, viz.BandOptions{TrainX: trainX, TrainY: trainY})
//	if err != nil { ... }
//	err = fig.Show() // in a notebook; elsewhere fig.Save("band.png")
//
// # Reading them
//
// Curves and points that differ in colour also differ in line pattern, width or shape. The colours are the set of Okabe
// and Ito, which colour-blind readers can tell apart; [Trace].Style keeps the look of a method over several figures.
// The legend is above the axes, never over data, and has every colour of the picture. A band's ground is grey beyond
// the data. Give units in the axis labels: Frame.XLabel "position [m]".
//
// # Long and broken input
//
// Of a long curve the least and the greatest of neighbouring points are drawn, of many points some, so that 10^5 values
// look the same and the file stays small; a figure that selects points says so. Values that are NaN, infinite or beyond
// 1e100 in magnitude are left out, with the rest of their row, and the line below the title counts them; a field has no
// such values. Input without any finite value is an error.
package viz
