package bayes_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/internal/plugin"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// plain evaluates particle j of a posterior on one raw row by loops over numbers.
func plain(t *testing.T, p *bayes.Posterior, row []float64) func(j int) []float64 {
	t.Helper()
	h0 := make([]float64, len(row))
	for k, v := range row {
		h0[k] = (v - p.Origin().Features.Mean[k]) / p.Origin().Features.StdDev[k]
	}
	parameter := map[string][]float64{}
	perParticle := map[string]bool{}
	for _, slot := range p.Bound().Slots {
		values, stochastic, err := p.Parameter(slot.Name)
		if err != nil {
			t.Fatal(err)
		}
		parameter[slot.Name], perParticle[slot.Name] = values, stochastic
	}
	return func(j int) []float64 {
		of := func(name string) []float64 {
			values := parameter[name]
			if !perParticle[name] {
				return values
			}
			size := len(values) / p.Particles()
			return values[j*size : (j+1)*size]
		}
		h := h0
		for layer := 1; layer <= 3; layer++ {
			w, b := of(fmt.Sprintf("layer%d/weights", layer)), of(fmt.Sprintf("layer%d/biases", layer))
			next := make([]float64, len(b))
			for o := range next {
				next[o] = b[o] + floats.Dot(w[o*len(h):(o+1)*len(h)], h)
				if layer < 3 {
					next[o] = math.Tanh(next[o])
				}
			}
			h = next
		}
		return h
	}
}

// 700 particles on 1100 rows need several chunks (but for the second model), two blocks, and padding in the last:
// outputs and weights are those of plain loops, but for the particle without weight, which is not evaluated. In smaller
// blocks they are the same. Where there are two engines, each has the model with all parameters stochastic, and of the
// others the first is XLA's.
func TestPredict(t *testing.T) {
	const particles, alive, rows = 700, 699, 1100
	x := mat.NewDense(rows, features, wave(rows*features, .37))
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		tolerance := 1e-11
		if dtype == compute.Float32 {
			tolerance = 2e-5
		}
		for i, m := range predicted {
			if !predicts(t, engine, i) {
				continue
			}
			p := newPosterior(t, m.model, m.outputs, particles, dtype).On(engine)
			prediction := predict(t, p, x)
			if prediction.Particles != alive || prediction.Rows != rows || prediction.Width != p.Bound().Width ||
				prediction.Task() != m.model.Likelihood.Task() {
				t.Fatalf("%s: %d particles, %d rows, width %d, %v", m.name, prediction.Particles, prediction.Rows, prediction.Width,
					prediction.Task())
			}
			var got, want []float64
			for n := range rows {
				if n > 20 && n%100 != 99 { // the first rows, and some of each block
					continue
				}
				f := plain(t, p, x.RawRowView(n))
				for j := range alive {
					width := prediction.Width
					at := (j*rows + n) * width
					got, want = append(got, prediction.Outputs[at:at+width]...), append(want, f(j)...)
				}
			}
			computetest.Near(t, m.name+": outputs", got, want, tolerance)

			weights := wave(particles, 5)[:alive]
			sum := floats.LogSumExp(weights)
			for j := range weights {
				weights[j] = math.Exp(weights[j] - sum)
			}
			computetest.Near(t, m.name+": weights", prediction.Weights, weights, 1e-12)
			if !reflect.DeepEqual(prediction.Target, p.Origin().Target) {
				t.Errorf("%s: target %v, want %v", m.name, prediction.Target, p.Origin().Target)
			}

			few := mat.NewDense(10, features, x.RawMatrix().Data[:10*features])
			from, blocks := 0, []int{}
			for part, err := range p.PredictBatches(context.Background(), few, 4) {
				if err != nil {
					t.Fatal(err)
				}
				for j := range alive {
					width := part.Width
					for i := range part.Rows * width {
						if a, b := part.Outputs[j*part.Rows*width+i], prediction.Outputs[(j*rows+from)*width+i]; math.Abs(
							a-b) > tolerance*(1+math.Abs(b)) {
							t.Fatalf("%s: particle %d, output %d of block %d is %v in blocks of 4, %v in one of 1024",
								m.name, j, i, len(blocks), a, b)
						}
					}
				}
				from, blocks = from+part.Rows, append(blocks, part.Rows)
			}
			if !slices.Equal(blocks, []int{4, 4, 2}) {
				t.Errorf("%s: blocks of %v rows", m.name, blocks)
			}
		}
	})
}

// predicts says whether an engine is tested with a model of `predicted`: XLA compiles long.
func predicts(t *testing.T, engine *compute.Engine, model int) bool {
	switch {
	case len(computetest.Engines(t)) == 1:
		return true
	case engine.IsXLA():
		return model == 0 || model == 2
	}
	return model > 0
}

func TestPredictErrors(t *testing.T) {
	p := newPosterior(t, predicted[0].model, 1, 3, compute.Float32)
	x := mat.NewDense(5, features, wave(5*features, .37))
	with := func(value float64) *mat.Dense {
		y := mat.DenseCopyOf(x)
		y.Set(3, 1, value)
		return y
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		x    *mat.Dense
		want error
		says []string
	}{
		{"a feature too few", context.Background(), mat.NewDense(5, 2, nil), nil, []string{"[5, 2]", "3 features", "depth"}},
		{"nothing", context.Background(), &mat.Dense{}, nil, []string{"[0, 0]"}},
		{"NaN", context.Background(), with(math.NaN()), nil, []string{"row 3", `"speed"`, "NaN"}},
		{"-Inf", context.Background(), with(math.Inf(-1)), nil, []string{"row 3", `"speed"`, "-Inf"}},
		{"nil", context.Background(), nil, nil, []string{"x is nil"}},
		{"cancelled", cancelled, x, context.Canceled, []string{"row 0 of 5"}},
	} {
		prediction, err := p.Predict(c.ctx, c.x)
		if prediction.Outputs != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %d outputs, error %v", c.name, len(prediction.Outputs), err)
		}
		computetest.WantError(t, c.name, err, c.says...)
	}
	draws := computetest.Must(p.Draws())
	unnamed := p.Origin()
	unnamed.FeatureNames = nil
	_, err := remade(t, p.Bound(), draws, unnamed).Predict(context.Background(), with(math.NaN()))
	computetest.WantError(t, "NaN without names", err, "row 3, column 1")
	for _, err := range p.PredictBatches(context.Background(), x, 0) {
		computetest.WantError(t, "blocks of 0 rows", err, "0 rows")
	}

	ctx, cancel := context.WithCancel(context.Background()) // between blocks
	defer cancel()
	blocks, last := 0, error(nil)
	for _, err := range p.PredictBatches(ctx, x, 2) {
		if last = err; err == nil {
			blocks++
		}
		cancel()
	}
	if blocks != 1 || !errors.Is(last, context.Canceled) || !strings.Contains(last.Error(), "row 2 of 5") {
		t.Errorf("cancelled in the first block: %d blocks, error %v", blocks, last)
	}
	for range p.PredictBatches(context.Background(), x, 2) {
		break // a loop may end early
	}
}

// Pictures of another size, or with other channels, than those in training are an error, which does not list all
// pixels.
func TestPredictOtherPictures(t *testing.T) {
	const height, width = 8, 14
	bound := computetest.Must(bayes.Model{
		Network:    nn.CNN{Height: height, Width: width, Convolutions: []nn.Conv{{Filters: 1, Pool: 4}}},
		Likelihood: bayes.Bernoulli{}, Stochastic: bayes.All(),
	}.Bind(height*width, 1))
	origin := bayes.Origin{Engine: computetest.Go(t)}
	for pixel := range height * width {
		origin.FeatureNames = append(origin.FeatureNames, fmt.Sprintf("%d,%d", pixel/width, pixel%width))
	}
	p := remade(t, bound, bayes.Draws{Phi: compute.Floats(compute.Float32, wave(2*bound.D, 1.7), 2, bound.D),
		LogWeights: []float64{0, 0}}, origin)
	predict(t, p, dataset.NewPixels(make([]byte, 3*height*width), height*width))
	for _, x := range []mat.Matrix{
		mat.NewDense(2, height*height, nil), mat.NewDense(2, 3*height*width, nil),
		dataset.NewPixels(make([]byte, 2*height*width), 2*height*width),
	} {
		rows, columns := x.Dims()
		_, err := p.Predict(context.Background(), x)
		computetest.WantError(t, "other pictures", err, fmt.Sprintf("shape [%d, %d]", rows, columns),
			"112 features [0,0 0,1 0,2] and 109 more", "height, width and channels")
	}
}

// A posterior serves several goroutines, also while it is asked for others in batches.
func TestPredictConcurrently(t *testing.T) {
	p := newPosterior(t, predicted[0].model, 1, 3, compute.Float32)
	x := mat.NewDense(5, features, wave(5*features, .37))
	want := predict(t, p, x).Outputs
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for _, err := range p.PredictBatches(context.Background(), x, 2) {
				got, within := p.Predict(context.Background(), x)
				if err != nil || within != nil || !slices.Equal(got.Outputs, want) {
					t.Errorf("another goroutine got %v, %v, %v, want %v", got.Outputs, err, within, want)
				}
			}
		})
	}
	wait.Wait()
}

// Where particles need more chunks than a graph holds, 8 of them here, outputs are what they are in one chunk, as fewer
// rows at once need: one model on each engine, by the same graph.
func TestPredictInManyChunks(t *testing.T) {
	const particles, rows, few = 301, 1000, 3
	x := mat.NewDense(rows, features, wave(rows*features, .37))
	partitions := []bayes.Partition{bayes.All(), bayes.Layers(1)}
	engines := computetest.Engines(t)
	for i, engine := range engines {
		for _, stochastic := range partitions[i : 1+i+len(partitions)-len(engines)] {
			model := bayes.Model{
				Network:    nn.MLP{Hidden: []int{100}, Activation: nn.ReLU},
				Likelihood: bayes.Gaussian{StdDev: 1}, Stochastic: stochastic,
			}
			p := newPosterior(t, model, 1, particles, compute.Float32).On(engine)
			all := predict(t, p, x)
			some := predict(t, p, mat.NewDense(few, features, x.RawMatrix().Data[:few*features]))
			var got, want []float64
			for j := range particles - 1 { // the last has no weight
				got, want = append(got, all.Outputs[j*rows:][:few]...), append(want, some.Outputs[j*few:][:few]...)
			}
			computetest.Near(t, engine.Name(), got, want, 2e-5)
		}
	}
}

// What was compiled for a number of rows stays with the posterior, also for its copies on the same engine and for a few
// rows fewer.
func TestPredictCompilesOnce(t *testing.T) {
	engine := computetest.XLA(t, "the Go backend compiles nothing")
	p := newPosterior(t, predicted[0].model, 1, 50, compute.Float32).On(engine)
	for _, rows := range []int{6, 20, 300} {
		made := func(p *bayes.Posterior, rows int) int {
			loaded, compiled := plugin.Counts()
			predict(t, p, mat.NewDense(rows, features, wave(rows*features, .37)))
			nowLoaded, nowCompiled := plugin.Counts()
			return int(nowLoaded - loaded + nowCompiled - compiled)
		}
		first, again := made(p, rows), made(p.On(engine), rows)
		if rows < 256 {
			again += made(p, rows-1)
		}
		if first != 1 && runtime.GOOS == "linux" || again != 0 { // elsewhere none are counted
			t.Errorf("%d rows took %d programs, and again %d", rows, first, again)
		}
	}
}

// Predictions of 1000 rows for the first time, which compiles, and of a shape again: of 31 rows where the last layer
// but one is stochastic, as in the quickstart, and of one row where all are, as in a service.
func BenchmarkPredict(b *testing.B) {
	computetest.Bench(b, func(b *testing.B, engine *compute.Engine) {
		for _, c := range []struct {
			name            string
			stochastic      bayes.Partition
			particles, rows int
		}{
			{"first/J=200", bayes.All(), 200, 1000}, {"first/J=2000", bayes.All(), 2000, 1000},
			{"quickstart", bayes.Layers(3), 1000, 31}, {"service", bayes.All(), 1000, 1},
		} {
			b.Run(c.name, func(b *testing.B) {
				bound := computetest.Must(bayes.Model{
					Network: nn.MLP{Hidden: []int{50, 20, 5}, Activation: nn.GELU}, Likelihood: bayes.Gaussian{StdDev: 1},
					Stochastic: c.stochastic,
				}.Bind(6, 1))
				draws := bayes.Draws{
					Phi:        compute.Floats(compute.Float32, wave(c.particles*bound.D, 1.7), c.particles, bound.D),
					LogWeights: bayes.EqualLogWeights(c.particles),
				}
				if bound.W > 0 {
					draws.Psi = compute.Floats(compute.Float32, wave(bound.W, 2.3), bound.W)
				}
				p := computetest.Must(bayes.NewPosterior(bound, draws, bayes.Origin{Engine: engine}))
				x := mat.NewDense(c.rows, 6, wave(c.rows*6, .37))
				computetest.Must(p.Predict(b.Context(), x))
				for b.Loop() {
					if strings.HasPrefix(c.name, "first") {
						p = computetest.Must(bayes.NewPosterior(bound, draws, bayes.Origin{Engine: engine}))
					}
					computetest.Must(p.Predict(b.Context(), x))
				}
			})
		}
	})
}

// Features in other units than in training, or standardised twice, are named in the warnings of a prediction of many
// rows.
func TestPredictFarFeatures(t *testing.T) {
	p := newPosterior(t, predicted[0].model, 1, 3, compute.Float32)
	// training means and standard deviations
	mean, stdDev := []float64{1, -2, .5}, []float64{2, .5, 3}
	rows := func(n int, of func(feature int, z float64) float64) *mat.Dense {
		x, z := mat.NewDense(n, features, nil), wave(n*features, .37)
		for i := range n {
			for k := range features {
				x.Set(i, k, of(k, z[i*features+k]))
			}
		}
		return x
	}
	like := func(k int, z float64) float64 { return mean[k] + stdDev[k]*z }
	fahrenheit := func(k int, z float64) float64 {
		if k == 1 {
			return 32 + 1.8*like(k, z)
		}
		return like(k, z)
	}
	lost := rows(3, like)
	lost.Set(2, 1, mean[1]-200*stdDev[1]-.004)
	for name, c := range map[string]struct {
		x    *mat.Dense
		want []string
	}{
		"one row":        {lost, []string{`beyond all training rows in column "speed", such as row 2 with -102.004, 200`}},
		"as in training": {rows(50, like), nil},
		"in other units": {rows(50, fahrenheit), []string{`column "speed"`}},
		"beyond a block": {rows(1500, fahrenheit), []string{`column "speed"`}},
		"standardised":   {rows(50, func(_ int, z float64) float64 { return z }), []string{`column "speed"`}},
		"few rows":       {rows(9, fahrenheit), nil},
		"far": {rows(10, func(k int, z float64) float64 { return like(k, z+9) }),
			[]string{"depth", "speed", "load"}},
	} {
		got := predict(t, p, c.x).Warnings
		if len(got) != len(c.want) {
			t.Errorf("%s: warnings %q, want of %q", name, got, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: warning %q, want of %s", name, got[i], want)
			}
		}
	}
	raw := predicted[0].model // of which no means and standard deviations are known
	raw.Scaling.KeepFeatures = true
	bound := computetest.Must(raw.Bind(features, 1))
	draws := computetest.Must(p.Draws())
	if got := predict(t, remade(t, bound, draws, bayes.Origin{Engine: computetest.Go(t)}),
		rows(50, fahrenheit)).Warnings; len(got) != 0 {
		t.Errorf("features that are not standardised: warnings %q", got)
	}
}

// A feature that was constant in training, such as a category that all training rows lack, is named where it has
// another value, also by a posterior that was saved; a value that differs by rounding is the same.
func TestPredictNewValues(t *testing.T) {
	table, err := dataset.ReadCSV(strings.NewReader("km,colour,share,fare\n1,red,1,5\n2,blue,0.9999999999999999,7\n"+
		"3,red,1,9\n4,blue,1,11\n5,green,1,13\n6,red,1,15\n"), dataset.CSVOptions{Categorical: []string{"colour"}})
	if err != nil {
		t.Fatal(err)
	}
	train := computetest.Must(table.Subset([]int{0, 1, 2, 3}))
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}
	bound := computetest.Must(model.Bind(train.Dims(), 1))
	posterior := func(keep bool) *bayes.Posterior {
		model.Scaling.KeepFeatures = keep
		scale, target := model.Scalers(train)
		return remade(t, bound, bayes.Draws{Phi: compute.Floats(compute.Float64, wave(3*bound.D, 1.7), 3, bound.D),
			LogWeights: bayes.EqualLogWeights(3)},
			bayes.Origin{Engine: computetest.Go(t), Features: scale, Target: target, FeatureNames: train.Features})
	}
	path := filepath.Join(t.TempDir(), "p.safetensors")
	computetest.NoError(t, posterior(false).Save(path))
	loaded := computetest.Must(bayes.Load(path))
	loaded = loaded.On(computetest.Go(t))
	for _, p := range []*bayes.Posterior{posterior(false), loaded} {
		if got := predict(t, p, train.X).Warnings; len(got) != 0 {
			t.Errorf("training rows: warnings %q", got)
		}
		one := computetest.Must(table.Subset([]int{4}))
		for name, x := range map[string]mat.Matrix{"1 of the 1 rows": one.X, "1 of the 6 rows": table.X} {
			got := predict(t, p, x).Warnings
			if len(got) != 1 || !strings.Contains(got[0], name) ||
				!strings.Contains(got[0], `column "colour=green", such as 1`) {
				t.Errorf("%s have a new category: warnings %q", name, got)
			}
		}
	}
	many := mat.NewDense(2, train.Dims(), nil) // every feature differs, but those that varied in training
	many.Apply(func(_, k int, _ float64) float64 { return train.X.At(0, k) + 3 }, many)
	if got := predict(t, loaded, many).Warnings; len(got) != 1 || !strings.HasPrefix(got[0], "2 of the 2 rows") {
		t.Errorf("several features that were constant: warnings %q", got)
	}
	if got := predict(t, posterior(true), table.X).Warnings; len(got) != 0 {
		t.Errorf("of features that are not standardised nothing is known: warnings %q", got)
	}
	origin := loaded.Origin()
	origin.Features.Constant = origin.Features.Constant[1:]
	draws := computetest.Must(loaded.Draws())
	_, err = bayes.NewPosterior(bound, draws, origin)
	computetest.WantError(t, "a scaler of too few columns", err, "in Constant")
}

// deep is a line whose layer says that a row takes as much memory as a large picture in a deep network.
type deep struct{}

func (deep) Layers(in, out int) ([]nn.Layer, error) {
	return []nn.Layer{deepLayer{nn.Dense{Number: 1, In: in, Out: out}}}, nil
}

type deepLayer struct{ nn.Dense }

func (deepLayer) Stored(bool) int { return 1 << 20 }

// Rows are predicted so many at a time that one particle's activations take 512 MiB, and no prediction changes.
func TestPredictionsAreCut(t *testing.T) {
	const rows = 150
	x := mat.NewDense(rows, 1, nil)
	for i := range rows {
		x.Set(i, 0, float64(i))
	}
	var outputs [2][]float64
	for k, network := range []nn.Network{nn.MLP{}, deep{}} {
		bound, err := bayes.Model{Network: network, Likelihood: bayes.Gaussian{StdDev: 1}, Stochastic: bayes.All()}.Bind(1, 1)
		if err != nil {
			t.Fatal(err)
		}
		p := computetest.Must(bayes.NewPosterior(bound, bayes.Draws{
			Phi: compute.Floats(compute.Float32, []float64{1, 2, 3, 4}, 2, 2), LogWeights: bayes.EqualLogWeights(2),
		}, bayes.Origin{Engine: computetest.Go(t)}))
		parts := 0
		for part, err := range p.PredictBatches(t.Context(), x, rows) {
			if err != nil {
				t.Fatal(err)
			}
			if part.Rows > 64 && k == 1 || part.Rows != rows && k == 0 {
				t.Errorf("%T: %d rows at a time", network, part.Rows)
			}
			parts++
		}
		if want := []int{1, 3}[k]; parts != want {
			t.Errorf("%T: %d parts, want %d", network, parts, want)
		}
		outputs[k] = predict(t, p, x).Outputs
	}
	if !slices.Equal(outputs[0], outputs[1]) {
		t.Error("the parts predict otherwise than all rows at once")
	}
}
