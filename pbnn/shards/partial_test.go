package shards

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/pbnn"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// A partial network over shards: four processes that have loaded the trained posterior give the draws of four shards in
// this one, to the bit; its chains begin at the posterior's particles, and predictions are in the data's units. A shard
// of another posterior, or none, is refused.
func TestPartialNetworkOverShards(t *testing.T) {
	engine := computetest.Go(t)
	model := bayes.Model{Network: nn.MLP{Hidden: []int{6}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Stochastic: bayes.Layers(2)}
	modeOf := func(epochs int) *bayes.Posterior {
		trained, err := fit.Fit(context.Background(), model, baseline.MAP{Training: baseline.Training{Epochs: epochs}},
			dataset.Parts{Train: line(140)}, run.Settings{Seed: 2, DType: compute.Float64, Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		return trained.Posterior
	}
	trained := modeOf(30)
	file := filepath.Join(t.TempDir(), "trained")
	if err := trained.Save(file); err != nil {
		t.Fatal(err)
	}
	from := func(trained *bayes.Posterior, i int) Shard {
		shard, err := NewFrom(trained, partOfLine(i), compute.Float64, engine)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { shard.Close() }) //nolint:errcheck // it is local
		return shard
	}
	var inThis, apart []Shard
	for i := range shardsOfLine {
		inThis = append(inThis, from(trained, i))
		shard, _ := process(t, i, file)
		apart = append(apart, shard)
	}
	for _, proposal := range proposals {
		sampler, settings := overShards(t)
		sampler.Proposal, sampler.StepSize = proposal, .1
		want, err := FitFrom(context.Background(), trained, sampler, inThis, settings)
		if err != nil {
			t.Fatal(err)
		}
		got, err := FitFrom(context.Background(), trained, sampler, apart, settings)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(flat(t, got), flat(t, want)) {
			t.Errorf("%s: the draws over processes differ from those in one", proposal)
		}
		if want.Acceptance < .1 || want.Acceptance > .99 || want.Posterior.Bound().W == 0 {
			t.Errorf("%s: acceptance %v, %d shared numbers", proposal, want.Acceptance, want.Posterior.Bound().W)
		}
		data := line(140)
		prediction, err := want.Posterior.Predict(context.Background(), data.X)
		if err != nil {
			t.Fatal(err)
		}
		rmse, err := metric.RMSE(prediction, data.Y)
		if err != nil {
			t.Fatal(err)
		}
		if _, sd := stat.MeanStdDev(data.Y, nil); !(rmse.Value < .7*sd) {
			t.Errorf("%s: RMSE %v, the targets' standard deviation %v", proposal, rmse, sd)
		}
	}
	sampler, settings := overShards(t)
	for name, shard := range map[string]Shard{"another posterior's": from(modeOf(3), 1),
		"one without": here(t, bayesianLine(), 1)} {
		if _, err := FitFrom(context.Background(), trained, sampler, []Shard{inThis[0], shard},
			settings); !errors.Is(err, ErrShard) || !says(err, "shard 1 has") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := Fit(context.Background(), model, sampler, inThis, settings); err == nil ||
		!says(err, "fit.From") {
		t.Errorf("shared parameters without a trained posterior: error %v", err)
	}
	if _, err := New(model, partOfLine(0), compute.Float64, engine); err == nil ||
		!says(err, "NewFrom") {
		t.Errorf("a shard with shared parameters without a trained posterior: error %v", err)
	}
	if _, err := FitFrom(context.Background(), nil, sampler, inThis, settings); err == nil ||
		!says(err, "no trained posterior") {
		t.Errorf("no posterior: error %v", err)
	}
}

// Langevin's gradient over shards is that of the whole data, where mini-batches hold all rows of each, and it is NaN
// where the log-likelihood is.
func TestShardGradients(t *testing.T) {
	whole := line(140)
	phi := []float64{.3, -.2, .8, 1, 2, -1, 1e200, 0, 0} // the last one's log-likelihood overflows, but not its gradient
	var sums [6]float64
	for i := range shardsOfLine {
		rows := 20 + 10*i
		q := Request{Seed: 1, Shard: i, Batches: 2, BatchSize: rows, Chains: 3, From: phi}
		answer, err := here(t, bayesianLine(), i).Gradients(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for k := range sums {
			sums[k] += answer.Values[k] / 2
		}
		if !math.IsNaN(answer.Values[6]) || !math.IsNaN(answer.Values[8]) {
			t.Errorf("shard %d: the gradient where the log-likelihood overflows is %v", i, answer.Values[6:])
		}
	}
	var want [6]float64
	for j := range 2 {
		for i, y := range whole.Y {
			x := append(mat.Row(nil, i, whole.X), 1)
			residual := y
			for k, v := range x {
				residual -= phi[3*j+k] * v
			}
			for k, v := range x {
				want[3*j+k] += residual * v / (noiseStdDev * noiseStdDev)
			}
		}
	}
	computetest.Near(t, "gradients", sums[:], want[:], 1e-9)
}

// The rows of the gradients are others than those of the differences: a difference over a step so short that it is the
// gradient's, of one row of 20, is that of the gradient's own row seldom.
func TestShardGradientsHaveRowsOfTheirOwn(t *testing.T) {
	const short = 1e-6
	shard, same := here(t, bayesianLine(), 0), 0
	for move := range 20 {
		q := Request{Move: move, Batches: 1, BatchSize: 1, Chains: 1, From: []float64{.1, .2, .3},
			To: []float64{.1, .2, .3 + short}}
		difference, err := shard.Differences(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		gradient, err := shard.Gradients(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(difference.Values[0]/short-gradient.Values[2]) < 1e-3 {
			same++
		}
	}
	if same > 7 {
		t.Errorf("%d of 20 by the same row", same)
	}
}

// Langevin asks for gradients where the chains are, and then, by the same rows, where they have proposed, beside the
// differences between the two. What it proposes with steps so long that the noise is nothing beside the drift, h^2/2
// times the gradient, shows that gradient: of the log-posterior of all rows, as mini-batches hold them all.
func TestShardLangevinAsks(t *testing.T) {
	const rows, h = 20, 1e7
	_, settings := overShards(t)
	settings.WarmUp, settings.Draws = 1, 2
	asks := &listening{Shard: here(t, bayesianLine(), 0)}
	sampler := pbnn.Metropolis{Target: pbnn.TargetFull{}, BatchSize: rows, Batches: 2, Proposal: pbnn.Langevin,
		StepSize: h}
	if _, err := Fit(context.Background(), bayesianLine(), sampler, []Shard{asks}, settings); !errors.Is(err,
		mcmc.ErrStuck) {
		t.Fatal(err)
	}
	if len(asks.gradients) != 6 || len(asks.differences) != 3 {
		t.Fatalf("%d and %d questions", len(asks.gradients), len(asks.differences))
	}
	part := partOfLine(0)
	for step, q := range asks.differences {
		here, there := asks.gradients[2*step], asks.gradients[2*step+1]
		if here.Move != 2*step || there.Move != here.Move || q.Move != here.Move+1 || !slices.Equal(q.From, here.From) ||
			!slices.Equal(q.To, there.From) {
			t.Errorf("step %d: questions %+v, %+v, %+v", step, here, there, q)
		}
		var got, want []float64
		for j := range settings.Chains {
			phi := q.From[3*j : 3*j+3]
			gradient := []float64{-phi[0], -phi[1], -phi[2]} // of the prior
			for i, y := range part.Y {
				x := append(mat.Row(nil, i, part.X), 1)
				for k, v := range x {
					gradient[k] += (y - phi[0]*x[0] - phi[1]*x[1] - phi[2]) * v / (noiseStdDev * noiseStdDev)
				}
			}
			for k, g := range gradient {
				got, want = append(got, (q.To[3*j+k]-phi[k])/(h*h/2)), append(want, g)
			}
		}
		computetest.Near(t, "gradient", got, want, 1e-5)
	}
}

// listening is a shard that keeps the questions.
type listening struct {
	Shard
	mu                     sync.Mutex
	gradients, differences []Request
}

func (a *listening) Gradients(ctx context.Context, q Request) (Answer, error) {
	a.mu.Lock()
	a.gradients = append(a.gradients, q)
	a.mu.Unlock()
	return a.Shard.Gradients(ctx, q)
}

func (a *listening) Differences(ctx context.Context, q Request) (Answer, error) {
	a.mu.Lock()
	a.differences = append(a.differences, q)
	a.mu.Unlock()
	return a.Shard.Differences(ctx, q)
}
