package fbnn

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// unread is a source that must not be read.
type unread struct {
	dataset.Simulated
	t *testing.T
}

func (u unread) Read(context.Context, int, []float64, []float64) error {
	u.t.Error("a row is read before what is wrong is said")
	return errors.New("read")
}

// twisted is a source with other targets, and a NaN.
type twisted struct {
	dataset.Simulated
	y func(row int) float64
	x int // row with a NaN; 0: none
}

func (s twisted) Read(ctx context.Context, from int, x, y []float64) error {
	err := s.Simulated.Read(ctx, from, x, y)
	for i := range y {
		y[i] = s.y(from + i)
		if s.x > 0 && from+i == s.x {
			x[i*s.Features+1] = math.NaN()
		}
	}
	return err
}

// What cannot be had of rows in blocks is refused before any is read, and what is wrong with them with its row.
func TestSourceBadInput(t *testing.T) {
	model := func(l bayes.Likelihood) bayes.Model {
		return bayes.Model{Network: nn.MLP{Hidden: []int{3}}, Likelihood: l, Prior: bayes.Normal{StdDev: 1},
			Stochastic: bayes.All()}
	}
	many := unread{dataset.Simulated{N: 5_000_000, Features: 40}, t}
	few := dataset.Simulated{N: 100, Features: 4}
	odd := func(row int) float64 { return float64(row % 2) }
	var readings atomic.Int64
	twice := func(row int) float64 { return float64(readings.Add(1) % 7) } // another target at each reading
	for name, c := range map[string]struct {
		likelihood bayes.Likelihood
		a          fit.Method
		source     dataset.Source
		settings   run.Settings
		is         error
		says       []string
	}{
		"all rows in each move": {
			a: CES{Calibration: mcmc.PreconditionedCrankNicolson{}}, source: many,
			says: []string{"CES.Calibration is mcmc.PreconditionedCrankNicolson", "5000000 rows", "mcmc.SGHMC"},
		},
		"a batch of several blocks": {
			a: CES{BatchSize: 5000}, source: many, says: []string{"CES.BatchSize is 5000", "at most 4096"},
		},
		"outputs of all rows": {
			likelihood: bayes.Bernoulli{}, source: many,
			says: []string{"CES.Emulates", "5000000 rows", "take fbnn.LogLikelihood"},
		},
		"changing rows": {source: twisted{few, twice, 0}, says: []string{"the source has changed", "the same row"}},
		"NaN":           {source: twisted{few, odd, 70}, says: []string{"row 70, column 1", "NaN"}},
		"no class": {
			likelihood: bayes.Bernoulli{}, a: CES{Emulates: LogLikelihood},
			source: twisted{few, func(int) float64 { return 0 }, 0},
			is:     dataset.ErrMissingClass, says: []string{"class 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.a == nil {
				c.a = CES{}
			}
			if c.likelihood == nil {
				c.likelihood = bayes.Gaussian{StdDev: .5}
			}
			c.settings.Engine = computetest.Go(t)
			_, err := fit.Fit(t.Context(), model(c.likelihood), c.a, dataset.Parts{Source: c.source}, c.settings)
			if c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("error %v, want %v", err, c.is)
			}
			fittest.Refused(t, name, err, c.says...)
		})
	}
}

// An emulator goes on from its checkpoint only with the pairs that it learns from: other blocks make other pairs, also
// where they stand in one folder.
func TestSourceEmulatorOfItsPairs(t *testing.T) {
	model, parts, _ := regression()
	a := CES{Pairs: 20, PairsWarmUp: 20, Draws: 60, BatchSize: 5, Uncorrected: true}
	a.Regressor = Network{Epochs: 20}
	fit := func(blockRows int, checkpoint string) []float64 {
		ReadAtOnce(t, blockRows)
		r := fitted(t, model, a, dataset.Parts{Source: dataset.RowsOf(parts.Train)}, run.Settings{
			Engine: computetest.Go(t), DType: compute.Float64, Checkpoint: checkpoint,
		})
		return []float64{r.HeldOut.R2, r.HeldOut.Phi, r.Truth.Emulated}
	}
	checkpoint := t.TempDir() + "/run-*"
	fit(8, checkpoint)
	if got, want := fit(15, checkpoint), fit(15, ""); !slices.Equal(got, want) {
		t.Errorf("beside the checkpoints of other blocks the emulator's errors are %v, want %v", got, want)
	}
}
