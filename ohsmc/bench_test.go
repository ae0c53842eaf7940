package ohsmc

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/mat"
)

// BenchmarkStep is one step of OHSMC on a net 13-50-20-5-1 whose third layer is stochastic, with batches of 50 of 300
// rows: resampling, random walk, weights, gradient and Adam, in float32. The time is that of a call and of reading
// its record.
func BenchmarkStep(b *testing.B) { computetest.Bench(b, benchmarkStep) }

func benchmarkStep(b *testing.B, _ *compute.Engine) {
	for _, particles := range computetest.Cases(100, 1000, 10_000, 100_000, 200_000) {
		b.Run(fmt.Sprintf("J=%d", particles), func(b *testing.B) {
			r := benchmarkRun(b, nil, Settings{Particles: particles}, false)
			for b.Loop() {
				if err := r.Step(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkValidatedStep is a step and the validation after it, on 150 rows.
func BenchmarkValidatedStep(b *testing.B) { computetest.Bench(b, benchmarkValidatedStep) }

func benchmarkValidatedStep(b *testing.B, _ *compute.Engine) {
	r := benchmarkRun(b, nil, Settings{}, true)
	for b.Loop() {
		if err := r.Step(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHost is what the host does in a step: a step of two particles on one row.
func BenchmarkHost(b *testing.B) { computetest.Bench(b, benchmarkHost) }

func benchmarkHost(b *testing.B, _ *compute.Engine) {
	r := benchmarkRun(b, nil, Settings{Particles: 2, BatchSize: 1}, false)
	for b.Loop() {
		if err := r.Step(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkRun(b *testing.B, algorithm fit.Method, settings Settings, validate bool) *steps {
	return benchmarkRunOf(b, algorithm, settings, []int{50, 20, 5}, bayes.Layers(3), validate)
}

func benchmarkRunOf(
	b *testing.B, algorithm fit.Method, settings Settings, hidden []int, stochastic bayes.Partition, validate bool,
) *steps {
	parts := dataset.Parts{Train: noise(300)}
	if validate {
		parts.Validation = noise(150)
	}
	return benchmarkTraining(b, bayes.Model{
		Network:    nn.MLP{Hidden: hidden, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1},
		Stochastic: stochastic,
	}, algorithm, parts, settings)
}

// benchmarkTraining has made its first step, which compiles.
func benchmarkTraining(
	b *testing.B, model bayes.Model, algorithm fit.Method, parts dataset.Parts, settings Settings,
) *steps {
	engine, err := settings.Engine.Or()
	if err != nil {
		b.Fatal(err)
	}
	settings.Engine = engine
	settings.Epochs = 1 << 20 // more than any benchmark makes
	r, err := begun(model, algorithm, parts, settings)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.close)
	if err := r.Step(); err != nil {
		b.Fatal(err)
	}
	b.Log(engine, r.core.Target.Plan)
	return r
}

// BenchmarkConvolution is a step of OHSMC on the paper's network for MNIST, whose first convolution is stochastic, with
// batches of made-up pictures, in float32.
func BenchmarkConvolution(b *testing.B) { computetest.Bench(b, benchmarkConvolution) }

func benchmarkConvolution(b *testing.B, engine *compute.Engine) {
	particles, filters := 100, []int{32, 64}
	if testing.Short() {
		particles, filters = 2, []int{2, 2}
	}
	for _, batch := range computetest.Cases(20, 100) {
		b.Run(fmt.Sprintf("J=%d/B=%d", particles, batch), func(b *testing.B) {
			r := benchmarkTraining(b, bayes.Model{
				Network: nn.CNN{Height: side, Width: side, Hidden: []int{256},
					Convolutions: []nn.Conv{{Filters: filters[0], Pool: 2}, {Filters: filters[1], Pool: 2}}},
				Likelihood: bayes.Categorical{},
				Stochastic: bayes.Layers(1),
				Scaling:    bayes.Scaling{KeepFeatures: true},
			}, nil, dataset.Parts{Train: pictures(5 * batch)}, Settings{
				Engine: engine, Particles: particles, BatchSize: batch, Optimiser: train.Adam{Schedule: train.Constant(.002)},
			})
			for b.Loop() {
				if err := r.Step(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLeNet5 is a step of OHSMC on LeNet-5, whose first convolution is stochastic, with batches of 100 made-up
// pictures, and then the validation on 10 000: J = 100 particles are to fit 3 GiB. It reports the most memory that the
// process has had so far, so run it alone.
func BenchmarkLeNet5(b *testing.B) { computetest.Bench(b, benchmarkLeNet5) }

func benchmarkLeNet5(b *testing.B, engine *compute.Engine) {
	particles, batch, validated := 100, 100, 10_000
	if testing.Short() {
		particles, batch, validated = 2, 10, 10
	}
	r := benchmarkTraining(b, bayes.Model{
		Network: nn.LeNet5(side, side, 1), Likelihood: bayes.Categorical{}, Stochastic: bayes.Layers(1),
		Scaling: bayes.Scaling{KeepFeatures: true},
	}, nil, dataset.Parts{Train: pictures(batch), Validation: pictures(validated)}, Settings{
		Engine: engine, Particles: particles, BatchSize: batch, Optimiser: train.Adam{Schedule: train.Constant(.002)},
	})
	for b.Loop() {
		if err := r.Step(); err != nil {
			b.Fatal(err)
		}
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil { // Linux
		var kibibytes int
		if _, peak, found := strings.Cut(string(status), "VmHWM:"); found {
			fmt.Sscan(peak, &kibibytes) //nolint:errcheck // it is 0 then
		}
		b.ReportMetric(float64(kibibytes)/1024, "peak-MiB")
	}
}

// side is the number of pixels along each side of a picture.
const side = 28

// pictures are of ten classes, at random, with pixels between 0 and 1.
func pictures(rows int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(1, 2))
	d := &dataset.Dataset{Name: "pictures", Task: dataset.Classification, Target: "class",
		X: mat.NewDense(rows, side*side, nil), Y: make([]float64, rows)}
	for k := range side * side {
		d.Features = append(d.Features, fmt.Sprintf("%d,%d", k/side, k%side))
	}
	for c := range 10 {
		d.Classes = append(d.Classes, fmt.Sprint(c))
	}
	for i := range rows {
		for k := range side * side {
			d.X.(*mat.Dense).Set(i, k, rng.Float64())
		}
		d.Y[i] = float64(i % len(d.Classes))
	}
	return d
}

// noise is a regression without a signal, as the programs that these benchmarks are compared with have it.
func noise(rows int) *dataset.Dataset {
	const dims = 13
	rng := rand.New(rand.NewPCG(1, 2))
	d := &dataset.Dataset{Name: "noise", Task: dataset.Regression, Target: "y", X: mat.NewDense(rows, dims, nil),
		Y: make([]float64, rows)}
	for k := range dims {
		d.Features = append(d.Features, fmt.Sprintf("x%d", k))
	}
	for i := range rows {
		for k := range dims {
			d.X.(*mat.Dense).Set(i, k, rng.NormFloat64())
		}
		d.Y[i] = rng.NormFloat64()
	}
	return d
}

// BenchmarkSMC is a step of SGSMC on yacht's net, 6-50-20-5-1 with a stochastic third layer: 1000 particles, 20 data,
// 10 random-walk Metropolis moves before each.
func BenchmarkSMC(b *testing.B) { computetest.Bench(b, benchmarkSMC) }

func benchmarkSMC(b *testing.B, _ *compute.Engine) {
	r := benchmarkRun(b, SMC{}, Settings{BatchSize: 20}, false)
	for b.Loop() {
		if err := r.Step(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGuided compares a guided step with each proposal: 1000 particles of the net of BenchmarkStep, and 100 of
// 13-50-20-1 whose first layer is stochastic.
func BenchmarkGuided(b *testing.B) { computetest.Bench(b, benchmarkGuided) }

func benchmarkGuided(b *testing.B, _ *compute.Engine) {
	for _, c := range computetest.Cases([]struct {
		name      string
		algorithm Guided
	}{
		{"random walk", Guided{Proposal: RandomWalk{}}},
		{"Langevin, paper's form", Guided{Proposal: Langevin{PaperForm: true}}},
		{"Langevin", Guided{Proposal: Langevin{}}},
		{"Langevin, adapted", Guided{Proposal: Langevin{}, Adapt: .574}},
		{"HMC", Guided{Proposal: HMC{Steps: 5}}},
	}...) {
		for _, net := range computetest.Cases([]struct {
			hidden           []int
			layer, particles int
		}{{[]int{50, 20, 5}, 3, 1000}, {[]int{50, 20}, 1, 100}}...) {
			b.Run(fmt.Sprintf("%s/layer %d", c.name, net.layer), func(b *testing.B) {
				r := benchmarkRunOf(b, c.algorithm, Settings{Particles: net.particles}, net.hidden, bayes.Layers(net.layer), false)
				for b.Loop() {
					if err := r.Step(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
