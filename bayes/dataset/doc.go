// Package dataset holds data sets and prepares them for training: the tabular and synthetic sets of the papers, a
// reader for your own CSV, splits, standardisation and mini-batches.
//
// A [Dataset] is a feature matrix X, [N, d], and a target Y, [N], both in raw units. For classification Y holds the
// index of the class in Classes. fmt.Println shows its size and first rows; [Dataset.Markdown] does so in a notebook.
//
// # Where data come from
//
//   - The embedded sets, in the binary: [Load] and [MustLoad] by name, such as "yacht" or "boston". Source and
//     licence are fields of the Dataset; data/SOURCES.md has them with their checksums.
//   - Pictures: package mnist has MNIST, package pictures reads Fashion-MNIST, CIFAR-10, SVHN and your own. Their bytes
//     are [Pixels].
//   - Your own table: [OpenCSV] or [ReadCSV], and Open of package parquet. For new rows to predict, often without the
//     target, CSVOptions.Like puts them into the columns of the table that the model was trained on.
//   - Synthetic: [Crescent], [SinTanh], [GappedWave].
//   - Data that do not fit in memory: a [Source], such as OpenSource of package parquet or [Simulated], gives the rows
//     block by block, to methods of packages baseline and fbnn.
//
// # Rows that are not alike
//
// Dataset.Weights lets rows count more or less, Exposure is what counts were counted over, and Censored marks targets
// that are only known to be above Y. Every method but the surrogates of package fbnn takes them, and Laplace weights
// alone.
//
// # Which split
//
//   - [Dataset.Split] shuffles by a seed and cuts by fractions: 0.6, 0.3, 0.1 is the protocol of the partial Bayesian
//     network papers. Repeat with the seeds 0, 1, 2, ... for a standard error. Take this if you don't know.
//   - [Dataset.SplitDistinct] keeps copies of a row in one part and spreads classes over the parts: for a table of your
//     own.
//   - [Dataset.PublishedSplit] gives the split of a publication, to compare with its numbers on the same rows. Where it
//     has no validation part, split the training part again: never choose anything on the test part.
//
// # Standardisation
//
// Methods fit scalers on the training part, apply them to all parts, and undo them in predictions. By hand:
//
//	features := dataset.FitScaler(parts.Train.X)
//	x, err := features.Apply(parts.Test.X)
//
// Fitting on the whole table before splitting leaks the test rows into training. Nothing in this package does so,
// except the reader's option [MissingMean] where CSVOptions.Like is not set.
//
// # Mini-batches
//
// [Batches] have every row once an epoch. A batch depends on seed and step alone, so that a resumed run sees the same
// batches. A ragged last batch is padded and masked, so that one compiled graph serves all steps.
package dataset
