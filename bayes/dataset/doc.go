// Package dataset holds data sets and prepares them for training: the tabular and synthetic sets of the papers, a
// reader for your own CSV, splits, standardisation and mini-batches.
//
// A [Dataset] is a feature matrix X, [N, d], and a target Y, [N], both in raw units. For classification Y holds the
// index of the class in Classes. fmt.Println shows its size and first rows; [Dataset.Markdown] does so in a notebook.
//
// # Where data come from
//
//   - The embedded sets: a constructor each ([Yacht], [Boston], ...) or [Load] by name; [Names] lists them. They are in
//     the binary: no download, no network. Source and licence of each are fields of the Dataset; data/SOURCES.md has
//     them with their checksums.
//   - MNIST: package mnist (gobnn/bayes/dataset/mnist), which also reads other sets of images in MNIST's format.
//   - Your own table: [OpenCSV] or [ReadCSV]. New rows to predict, in a second file and often without the target: the
//     same with CSVOptions.Like, which puts them into the columns of the table that the model was trained on.
//   - Synthetic: [Crescent], [SinTanh], [TwoMoons].
//   - Data that do not fit in memory: a [Source], such as [Simulated], gives the rows block by block. [Standardise]
//     reads it once to fit the scalers. density.NewSourceProblem makes it an mcmc.Problem for mini-batch kernels, whose
//     mode and Hessian are computed from all rows. fbnn.FitSource fits a network to it.
//
// # Which split
//
//   - [Dataset.Split] shuffles by a seed and cuts by fractions: 0.6, 0.3, 0.1 is the protocol of the partial Bayesian
//     network papers. Repeat with the seeds 0, 1, 2, ... for a standard error. Take this if you don't know.
//   - [Dataset.PublishedSplit] gives the split of a publication, to compare with its numbers on the same rows: [Gal]'s
//     20 splits 90/10 of the UCI regression sets, [PMCnet]'s split, the [Official] one of adult and satellite. Gal's
//     and most official splits have no validation part: split the training part again, and never choose anything on the
//     test part.
//
// # Standardisation
//
// Fit on the training part, apply to all parts, undo for reporting:
//
//	features := dataset.FitScaler(parts.Train.X)
//	target := dataset.FitTargetScaler(parts.Train.Y, 1) // regression only
//	x, err := features.Apply(parts.Test.X)
//
// Fitting on the whole table before splitting leaks the test rows into training. Nothing in this package does so,
// except the reader's option [MissingMean] where CSVOptions.Like is not set.
//
// # Mini-batches
//
// [NewEpochBatches] visits every row once an epoch (take this if you don't know); [NewSampledBatches] draws each batch
// anew. Both are functions of seed and step alone, so that a resumed run sees the same batches as one that was not
// interrupted. The shape is always [M]: a ragged last batch is padded and masked, so one compiled graph serves all
// steps.
package dataset
