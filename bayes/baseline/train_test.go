package baseline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// goEngine is the Go backend, for tests of what no compiler changes.
func goEngine(t testing.TB) *compute.Engine {
	t.Helper()
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// line is y = 1.5 x_1 - x_2 + 0.5 + N(0, 0.3^2), with correlated features.
func line(rows int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := mat.NewDense(rows, 2, nil), make([]float64, rows)
	for n := range y {
		a := rng.NormFloat64()
		b := .6*a + .8*rng.NormFloat64()
		x.SetRow(n, []float64{a, b})
		y[n] = 1.5*a - b + .5 + .3*rng.NormFloat64()
	}
	return &dataset.Dataset{Name: "line", Task: dataset.Regression, Features: []string{"a", "b"}, Target: "y", X: x, Y: y}
}

// small is a partial network that trains in a moment.
var small = bayes.Model{Network: nn.MLP{Hidden: []int{5, 3}, Activation: nn.Tanh},
	Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.Layers(2)}

func split3(t testing.TB, data *dataset.Dataset) dataset.Parts {
	t.Helper()
	p, err := data.Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fitted(t testing.TB, model bayes.Model, method fit.Method, parts dataset.Parts, settings Settings) *Result {
	t.Helper()
	result, err := Fit(context.Background(), model, method, parts, settings)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// numbers are all parameters of a posterior.
func numbers(t testing.TB, p *bayes.Posterior) []float64 {
	t.Helper()
	var all []float64
	for _, slot := range p.Bound().Slots {
		v, _, err := p.Parameter(slot.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v...)
	}
	return all
}

// Every method fits every task, in both types, and says what it did; its posterior predicts 100 particles or as many as
// it should, and comes back from a file.
func TestMethods(t *testing.T) {
	kernel := mcmc.HMC{StepSize: .02, Steps: 3}
	for _, c := range []struct {
		method    fit.Method
		particles int
	}{
		{MLE{}, 1}, {MAP{}, 1}, {Ensemble{Members: 3}, 3}, {SAE{Chains: 2, Members: 3}, 6},
		{Dropout{}, 100}, {SWAG{}, 100}, {VI{}, 100}, {VI{ZeroMean: true}, 100},
		{Laplace{}, 100}, {MAPHMC{Chains: mcmc.Chains{Kernel: kernel, Chains: 2, Draws: 5, WarmUp: 5}}, 10}, {SGLD{}, 100},
		{SGHMC{}, 100},
	} {
		for i, data := range []*dataset.Dataset{line(60), classes(60, 2), classes(60, 3)} {
			model := small
			model.Likelihood = []bayes.Likelihood{bayes.Gaussian{Learn: true}, bayes.Bernoulli{}, bayes.Categorical{}}[i]
			t.Run(fmt.Sprintf("%s/%v", nameOf(c.method), data.Task), func(t *testing.T) {
				parts := split3(t, data)
				result := fitted(t, model, c.method, parts, Settings{
					Epochs: 4, BatchSize: 8, Engine: goEngine(t), DType: []compute.DType{compute.Float32, compute.Float64,
						compute.Float32}[i],
				})
				if result.Status != run.Completed || result.Posterior.Particles() != c.particles {
					t.Errorf("%s with %d particles, want completed with %d", result.Status, result.Posterior.Particles(), c.particles)
				}
				if len(result.Trace) != result.Steps || result.Steps < 20 || len(result.Validated) != 4 ||
					math.IsNaN(result.Best[0].NLPD) {
					t.Errorf("%d steps, %d records, %d validations, best %v",
						result.Steps, len(result.Trace), len(result.Validated), result.Best)
				}
				provenance := result.Posterior.Provenance()
				if provenance.DataHash != parts.Train.Hash() || provenance.Status != "completed" ||
					!strings.HasPrefix(provenance.Algorithm, "baseline: ") || len(provenance.Settings) == 0 {
					t.Errorf("provenance %+v", provenance)
				}
				var settings struct {
					Method struct {
						Settings struct{ Training Training }
					}
				}
				err := json.Unmarshal(provenance.Settings, &settings)
				if now := settings.Method.Settings.Training; err != nil || now.Epochs != 4 || now.BatchSize != 8 {
					t.Errorf("of the training the provenance says %+v, %v", now, err)
				}
				prediction, err := result.Posterior.Predict(t.Context(), parts.Test.X)
				if err != nil {
					t.Fatal(err)
				}
				if nlpd, err := metric.NLPD(prediction, parts.Test.Y); err != nil || math.IsNaN(nlpd.Value) ||
					prediction.Particles != c.particles {
					t.Errorf("NLPD %+v, %v, of %d particles", nlpd, err, prediction.Particles)
				}
				file := filepath.Join(t.TempDir(), "p.safetensors")
				if err := result.Posterior.Save(file); err != nil {
					t.Fatal(err)
				}
				loaded, err := bayes.Load(file)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(numbers(t, loaded), numbers(t, result.Posterior)) {
					t.Error("another posterior comes back from the file")
				}
			})
		}
	}
}

// Members of an ensemble differ, and each is what it would be alone, with its patience and its own best validation; the
// first is that of MAP with the same seed. In an ensemble of another size they are the same.
func TestMembersAreAlone(t *testing.T) {
	const within, dtype = 1e-9, compute.Float64
	engine := goEngine(t)
	parts := split3(t, line(60))
	settings := Settings{Epochs: 30, BatchSize: 8, ValidateEvery: 1, Patience: 2, Seed: 5, Engine: engine, DType: dtype,
		Optimiser: train.Adam{Schedule: train.Constant(.1)}}
	j, prepared := jobOf(t, small, MAP{}, parts, settings)
	const members = 3
	together, err := newPoints(j, prepared.Training, members, true)
	if err != nil {
		t.Fatal(err)
	}
	width := together.whole.D
	starts := computetest.Run(t, engine, func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
		return []*graph.Node{together.Initial(random.New(g, settings.Seed).Named("initial"))}
	})[0]
	all, _ := trained(t, j, prepared.Training, together, nil)
	differ := false
	for m := range members {
		alone, err := newPoints(j, prepared.Training, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		one, result := trained(t, j, prepared.Training, alone, starts[m*width:(m+1)*width])
		if one.Best[0].Step != all.Best[m].Step {
			t.Errorf("member %d is best after step %d, alone after %d", m, all.Best[m].Step, one.Best[0].Step)
		}
		differ = differ || result.Status == run.StoppedEarly && one.Steps < all.Steps
		computetest.Near(t, fmt.Sprint("member ", m), all.Theta[m*width:(m+1)*width], one.Theta, within)
		if m > 0 && math.Abs(all.Theta[0]-all.Theta[m*width]) < 1e-3 {
			t.Errorf("member %d is member 0", m)
		}
	}
	if !differ {
		t.Error("no member stopped before the others: the test does not see patience")
	}
	point := fitted(t, small, MAP{}, parts, settings)
	pair := fitted(t, small, Ensemble{Members: 2}, parts, settings)
	of := func(p *bayes.Posterior, member int) []float64 {
		v, stochastic, err := p.Parameter("layer1/weights")
		if err != nil {
			t.Fatal(err)
		}
		if !stochastic {
			return v
		}
		return v[member*10 : (member+1)*10]
	}
	computetest.Near(t, "MAP", of(point.Posterior, 0), all.Theta[:10], within)
	computetest.Near(t, "of two", of(pair.Posterior, 1), all.Theta[width:width+10], within)
}

// A draw of dropout scales all weights of a unit alike, by 0 or 1/(1-p), leaves biases, and draws other units in other
// layers.
func TestDropoutMasksUnits(t *testing.T) {
	model := small
	model.Stochastic = bayes.Layers(2, 3)
	result := fitted(t, model, Dropout{Rate: .4, Samples: 500}, dataset.Parts{Train: line(30)},
		Settings{Epochs: 1, Engine: goEngine(t)})
	weights, _, err := result.Posterior.Parameter("layer2/weights") // [500, 3, 5]
	if err != nil {
		t.Fatal(err)
	}
	dropped := 0
	for j := range 500 {
		for unit := range 5 {
			zero := weights[j*15+unit] == 0
			for out := range 3 {
				if (weights[j*15+out*5+unit] == 0) != zero {
					t.Fatalf("draw %d: unit %d is dropped for some of its weights", j, unit)
				}
			}
			if zero {
				dropped++
			}
		}
	}
	if z := (float64(dropped) - 2500*.4) / math.Sqrt(2500*.4*.6); math.Abs(z) > 4.5 { // false alarm 7e-6
		t.Errorf("%d of 2500 units are dropped, want a share of .4", dropped)
	}
	biases, _, err := result.Posterior.Parameter("layer2/biases")
	if err != nil {
		t.Fatal(err)
	}
	for j := range 500 {
		if !slices.Equal(biases[3*j:3*j+3], biases[:3]) {
			t.Fatalf("draw %d has other biases", j)
		}
	}
}

// One checkpoint of MAP serves the methods that begin with it, which do not train it again; another run is refused, or
// replaced where that is asked for.
func TestStartsFromMAP(t *testing.T) {
	parts := split3(t, line(60))
	settings := Settings{Epochs: 5, BatchSize: 8, Engine: goEngine(t),
		Checkpoint: filepath.Join(t.TempDir(), "map.safetensors")}
	trained := fitted(t, small, MAP{}, parts, settings)
	written, err := os.ReadFile(settings.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	settings.Progress = func(p run.Progress) {
		if p.Stage == "training" && p.Step < p.Steps {
			t.Error("MAP is trained again")
		}
	}
	fitted(t, small, Laplace{}, parts, settings)
	fitted(t, small, SWAG{}, parts, settings)
	if again := fitted(t, small, MAP{}, parts, settings); !slices.Equal(numbers(t, again.Posterior),
		numbers(t, trained.Posterior)) {
		t.Error("the checkpoint of MAP is another now")
	}
	for what, change := range map[string]func(*Settings, *dataset.Parts, *fit.Method){
		"seed":                        func(s *Settings, _ *dataset.Parts, _ *fit.Method) { s.Seed = 9 },
		"settings":                    func(s *Settings, _ *dataset.Parts, _ *fit.Method) { s.Epochs = 6 },
		"data":                        func(_ *Settings, p *dataset.Parts, _ *fit.Method) { p.Validation = p.Test },
		"settings, of another method": func(_ *Settings, _ *dataset.Parts, m *fit.Method) { *m = MLE{} },
	} {
		s, p, m := settings, parts, fit.Method(MAP{})
		s.Progress = nil
		change(&s, &p, &m)
		if _, err := Fit(t.Context(), small, m, p, s); !errors.Is(err, run.ErrOtherRun) ||
			!strings.Contains(err.Error(), "other "+strings.Split(what, ",")[0]) {
			t.Errorf("another %s: %v", what, err)
		}
		s.Replace, s.Checkpoint = true, filepath.Join(t.TempDir(), "copy")
		if err := os.WriteFile(s.Checkpoint, written, 0o644); err != nil {
			t.Fatal(err)
		}
		if result := fitted(t, small, m, p, s); result.Status != run.Completed {
			t.Errorf("replacing another %s: %s", what, result.Status)
		}
	}
}

// A validation part whose NLPD overflows chooses nothing: the parameters are those of a training without it, and the
// result says so.
func TestWarnsOfValidation(t *testing.T) {
	model, parts := small, split3(t, line(60))
	model.Likelihood = bayes.Gaussian{StdDev: .01}
	settings := Settings{Epochs: 3, BatchSize: 8, Engine: goEngine(t)}
	want := fitted(t, model, MAP{}, dataset.Parts{Train: parts.Train}, settings)
	far := *parts.Validation
	far.Y = slices.Clone(far.Y)
	far.Y[0] = 9e17
	parts.Validation = &far
	r := fitted(t, model, MAP{}, parts, settings)
	if !slices.Equal(numbers(t, r.Posterior), numbers(t, want.Posterior)) {
		t.Error("the parameters are not the last")
	}
	if !strings.Contains(strings.Join(r.Warnings, "\n"), "of 1 members 1 never had a finite NLPD") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// Patience without a validation part stops nothing, and the result says so; with one it does not.
func TestWarnsOfPatience(t *testing.T) {
	parts := split3(t, line(60))
	for _, c := range []struct {
		method fit.Method
		parts  dataset.Parts
		warns  bool
	}{
		{MAP{}, dataset.Parts{Train: parts.Train}, true}, {MAP{}, parts, false},
	} {
		r := fitted(t, small, c.method, c.parts, Settings{Epochs: 3, Patience: 2, Engine: goEngine(t)})
		if got := strings.Join(r.Warnings, "\n"); strings.Contains(got, "Training.Patience is 2") != c.warns {
			t.Errorf("%s: warnings %q", nameOf(c.method), got)
		}
	}
}

// A second stage goes on from the training that it follows. With another validation part, which chooses other
// parameters of the training, nothing of the first run's second stage is taken, although their checkpoints are in one
// folder.
func TestSecondStageIsOfItsTraining(t *testing.T) {
	parts := split3(t, line(60))
	other := dataset.Parts{Train: parts.Train, Validation: parts.Test}
	for _, method := range []fit.Method{
		SWAG{Collect: 3}, SAE{Chains: 2, Members: 2},
		MAPHMC{Chains: mcmc.Chains{Kernel: mcmc.HMC{StepSize: .02, Steps: 3}, Chains: 2, Draws: 5, WarmUp: 5}},
	} {
		settings := Settings{Epochs: 30, BatchSize: 8, ValidateEvery: 1, Engine: goEngine(t)}
		want := fitted(t, small, method, other, settings)
		settings.Checkpoint = filepath.Join(t.TempDir(), "run-*")
		first := fitted(t, small, method, parts, settings)
		second := fitted(t, small, method, other, settings)
		if first.Best[0].Step == second.Best[0].Step {
			t.Errorf("%s: both trainings are best at step %d: the test sees nothing", nameOf(method), first.Best[0].Step)
		}
		if !slices.Equal(numbers(t, second.Posterior), numbers(t, want.Posterior)) {
			t.Errorf("%s: with checkpoints of another run beside it the posterior is another", nameOf(method))
		}
	}
}

// What is compiled is compiled once for other seeds, splits of the same sizes and learning rates.
func TestCompiledOnce(t *testing.T) {
	engine := goEngine(t)
	settings := Settings{Epochs: 3, BatchSize: 8, Engine: engine}
	var compiled [2]int
	for i, rate := range []float64{.01, .03} {
		settings.Seed, settings.Optimiser.Schedule.Rate = uint64(i), rate
		for _, method := range []fit.Method{
			MAP{}, VI{}, SWAG{},
			MAPHMC{Chains: mcmc.Chains{Kernel: mcmc.HMC{StepSize: .01, Steps: 3}, Draws: 2, WarmUp: 2}}, SGLD{StepSize: .01},
		} {
			data := line(60)
			for n := range data.Y {
				data.Y[n] += rate // other rows each time
			}
			fitted(t, small, method, split3(t, data), settings)
		}
		compiled[i] = engine.Compiled()
	}
	if compiled[1] != compiled[0] {
		t.Errorf("%d programs were compiled again", compiled[1]-compiled[0])
	}
}
