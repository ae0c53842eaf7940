package shards

import (
	"context"
	"errors"

	"gobnn/bayes/dataset"
)

// errShard says that a shard's model, or the order of its columns or classes, differs from the others', that two shards
// have the same rows, or that a shard's rows have changed during a run.
var errShard = errors.New("shards: a shard does not fit")

// Shard holds a part of the data's rows, which never leave it, and answers questions about them by sums over
// mini-batches. Its methods may be called by several goroutines at once. New has the rows in this process; Dial reaches
// a shard in another.
type Shard interface {
	// Describe returns the shard's model, the names of its columns and classes, and the number and hash of its rows.
	Describe(ctx context.Context) (Description, error)
	// Differences draws M mini-batches of n of the shard's rows, without replacement, as a function of Seed, Shard and
	// Move alone. It returns, for each chain and mini-batch, the sum over the mini-batch of log p(y | x, To) - log p(y |
	// x, From): flat [J, M], not scaled by N_s/n. The same question has the same answer, bit for bit.
	Differences(ctx context.Context, q Request) (Answer, error)
	// Close frees what the shard holds, such as a connection. Fit does not call it.
	Close() error
}

// Description is a shard's model, which must be the same for all shards, and the identity of its rows.
type Description struct {
	Model           string // bayes.Model, as JSON
	Inputs, Outputs int
	DType           string
	Rows            int    // N_s
	Hash            string // of the rows, dataset.Dataset.Hash: a checkpoint resumes only with the same rows
	// The names of the features, targets and classes, in the order of the columns and labels. They must be the same for
	// all shards; lists that a shard leaves empty are not compared.
	Features, Targets, Classes []string
	Extras                     dataset.Extras // what the rows have beside features and targets, all shards the same
}

// Request is a question to a shard about one step of all chains.
type Request struct {
	Seed        uint64
	Shard, Move int
	Batches     int       // M
	BatchSize   int       // n, rows of this shard in each
	Chains      int       // J
	From, To    []float64 // flat [J, D]
}

// Answer is a shard's answer, with the identity of its rows, which must be those that it described at the start.
type Answer struct {
	Values []float64
	Rows   int
	Hash   string
}
