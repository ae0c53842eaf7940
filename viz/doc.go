// Package viz draws the figures that answer the questions one asks of a Bayesian neural network and of the particle
// sampler that trained it.
//
//	Where is the model sure, and is it right to be? (one feature)     PredictiveBand
//	Where does a classifier decide, and how surely? (two features)    DecisionMap
//	Did training converge, did it overfit, which step is kept?        TrainingCurves
//	Do the particles degenerate, how often are they resampled?        ESSCurve
//	How far off are predictions, do their intervals cover?            PredictedVsTrue
//	Is the confidence of a classifier to be believed?                 Reliability
//	Are the intervals of a regression to be believed, at all levels?  CalibrationCurve
//	How do methods compare in one number?                             Bars
//	Do the particles represent the density they should?               ParticleScatter
//	Where does one parameter lie, weighted draws too?                 Marginal
//	Where do all lie, and which have not converged?                   Forest
//	How do parameters hang together?                                  Pairs
//	Do chains agree, and do their energies mix?                       TraceRank, Energy
//	Are there enough draws?                                           ESSEvolution
//	Do data drawn from the model look like those seen?                PredictiveCheck
//	Is it right about rows that it has not seen?                      LOOPIT, PIT
//	Which rows decide the posterior?                                  KHats
//
// Each takes plain slices, or, where its name ends in Of, the [bayes.Prediction] of a posterior, and an options struct
// whose zero value works. It returns a [Figure] that Show displays in a GoNB notebook, Save writes as .png, .svg or
// .pdf, and PNG, SVG and PDF render to memory. [Grid] puts several side by side; [Figure.WithFontSize] makes text
// larger or smaller.
//
//	fig, err := viz.PredictiveBand(x, mean, stdDev, viz.BandOptions{TrainX: trainX, TrainY: trainY})
//	if err != nil { ... }
//	err = fig.Show() // in a notebook; elsewhere fig.Save("band.png")
//
// # Reading them
//
// What differs in colour also differs in line pattern, width or shape of the points; the colours are Okabe and Ito's,
// which colour-blind readers tell apart. The legend stands above the axes, never over data. Axis labels take units from
// the caller: Frame.XLabel "position [m]".
//
// # Long and broken input
//
// Lines are thinned to the least and the greatest value in each pixel column and points to one in each of a fine grid's
// cells, so that 10^5 values neither look different nor make a large file; figures that merge or choose for this say
// so. Values that are NaN, infinite or beyond 1e100 in magnitude are left out, with the rest of their row, and the line
// below the title counts them; input with nothing finite is an error.
package viz
