package viz_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/metric"
	"gobnn/viz"
)

var figuresFlag = flag.String("figures", "", "folder to write every figure of the gallery into, for looking at them")

// specimen is one figure over synthetic data and what must be seen of it.
type specimen struct {
	name  string
	make  func() (*viz.Figure, error)
	texts []string // in the SVG
}

func gallery() []specimen {
	return []specimen{
		{"band", band, []string{"Predictive mean", "mean", "±1 sd", "±2 sd", "±3 sd", "particles", "true function",
			"training data", "position [m]", "force [N]"}},
		{"decision", decision, []string{"Predictive probability", "crescent", "moon", "level 0.5",
			"predicted probability of class 1", "feature 1", "feature 2"}},
		{"training", training, []string{"training loss", "running means of 36", "validation NLPD [nats per row]",
			"best: ", "step", "greatest values are cut off"}},
		{"ess", ess, []string{"Effective sample size", "ESS", "unique ancestors", "J = 1000", "particles",
			"step"}},
		{"predicted", predicted, []string{"inside the 90 % interval", "outside", "predicted = true", "true target",
			"predicted target"}},
		{"predicted_long", predictedLong, []string{"intervals of 299 of the 45730 rows"}},
		{"reliability", reliability, []string{"Reliability, ECE = 0.0", "accuracy", "gap to mean confidence",
			"perfect calibration", "confidence", "rows"}},
		{"confusion", confusion, []string{"Confusion", "predicted class", "true class", "41", "7", "3.5",
			"setosa", "versicolor, of the coast"}},
		{"bars", barsOfThree, []string{"mean squared error", "oak", "fir", "elm", "published", "not finite", "2.25"}},
		{"calibration", calibration, []string{"nominal level", "observed coverage", "95 % of calibrated models, 308 rows"}},
		{"particles", particles, []string{"1000 particles, ESS", "50 % of the mass", "90 % of the mass", "99 % of the mass",
			"coordinate 1"}},
		{"particles_many", particlesMany, []string{"100000 particles, of which 3000 are drawn"}},
		{"traces_log", tracesLog, []string{"0.001", "1000", "method a", "method c", "seconds of a fit"}},
		{"grid_shared", gridShared, []string{"penalty", "naive", "heavy tails", "skewness", "passes"}},
		{"grid", gridOfFour, []string{"Predictive mean", "Effective sample size", "Calibration", "Training"}},
	}
}

func source() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func truth(x float64) float64 { return x*math.Sin(1.4*x) + 0.3*x }

func band() (*viz.Figure, error) {
	rng := source()
	var x, mean, sd, tx, ty []float64
	for i := range 200 {
		v := -4 + 8.5*float64(i)/199
		x = append(x, v)
		gap := math.Max(0, math.Abs(v)-2.6)
		sd = append(sd, 0.25+0.5*gap+0.35*math.Exp(-6*(v-0.4)*(v-0.4)))
		mean = append(mean, truth(v)*math.Exp(-0.15*gap*gap))
	}
	for range 60 {
		v := -2.6 + 5.2*rng.Float64()
		if v > 0.1 && v < 0.8 {
			continue
		}
		tx, ty = append(tx, v), append(ty, truth(v)+0.25*rng.NormFloat64())
	}
	draws := make([][]float64, 8)
	for k := range draws {
		a, b, phase := rng.NormFloat64(), rng.NormFloat64(), 6*rng.Float64()
		for i := range x {
			draws[k] = append(draws[k], mean[i]+sd[i]*0.7*(a*math.Sin(x[i]+phase)+b*math.Cos(0.5*x[i]-phase)))
		}
	}
	return viz.PredictiveBand(x, mean, sd, viz.BandOptions{
		Frame:  viz.Frame{XLabel: "position [m]", YLabel: "force [N]"},
		TrainX: tx, TrainY: ty, True: truth,
	}.Drawn(draws...))
}

func decision() (*viz.Figure, error) {
	rng := source()
	lattice, err := viz.NewLattice(-1.8, 2.8, 90, -1.4, 1.9, 70)
	if err != nil {
		return nil, err
	}
	field := lattice.Fill(func(x, y float64) float64 {
		return 1 / (1 + math.Exp(4*(y-0.25)-5*math.Sin(1.6*(x-0.5))*math.Exp(-0.1*x*x)*-1))
	})
	var px, py []float64
	var classes []int
	for i := range 160 {
		t := math.Pi * rng.Float64()
		x, y := math.Cos(t), math.Sin(t)
		if i%2 == 1 {
			x, y = 1-x, 0.5-y
		}
		px, py, classes = append(px, x+0.13*rng.NormFloat64()), append(py, y+0.13*rng.NormFloat64()), append(classes, i%2)
	}
	return viz.DecisionMap(field, viz.DecisionOptions{PointsX: px, PointsY: py, Classes: classes,
		ClassNames: []string{"crescent", "moon"}})
}

func curves(rng *rand.Rand, steps int) (loss, valid viz.Series) {
	for i := range steps {
		t := float64(i)
		loss.Value = append(loss.Value, 900*math.Exp(-t/18)+3*math.Exp(-t/400)+0.8+0.25*rng.NormFloat64())
		if i%20 == 19 {
			valid.Step = append(valid.Step, t+1)
			valid.Value = append(valid.Value, 2.2*math.Exp(-t/300)+0.85+0.25*math.Pow(t/float64(steps), 3)+
				0.02*rng.NormFloat64())
		}
	}
	return loss, valid
}

func training() (*viz.Figure, error) {
	loss, valid := curves(source(), 1800)
	return viz.TrainingCurves(loss, valid, viz.Frame{})
}

func ess() (*viz.Figure, error) {
	rng := source()
	var value, unique []float64
	level := 1000.0
	for range 300 {
		level *= 0.90 + 0.08*rng.Float64()
		value = append(value, level)
		if level < 500 {
			unique = append(unique, level*0.62+15*rng.NormFloat64())
			level = 1000
			continue
		}
		unique = append(unique, 1000)
	}
	return viz.ESSCurve(viz.Series{Value: value}, viz.ESSOptions{UniqueAncestors: unique, Particles: 1000})
}

func regression(n int) (t, m, lo, hi []float64) {
	rng := source()
	for range n {
		v := 60 * math.Pow(rng.Float64(), 2.5)
		sd := 0.8 + 0.08*v
		p := v + sd*rng.NormFloat64()
		t, m, lo, hi = append(t, v), append(m, p), append(lo, p-1.645*sd), append(hi, p+1.645*sd)
	}
	return t, m, lo, hi
}

func predicted() (*viz.Figure, error) {
	t, m, lo, hi := regression(100)
	return viz.PredictedVsTrue(t, m, lo, hi, viz.Frame{})
}

func predictedLong() (*viz.Figure, error) {
	t, m, lo, hi := regression(45730)
	return viz.PredictedVsTrue(t, m, lo, hi, viz.Frame{})
}

func reliability() (*viz.Figure, error) {
	rng := source()
	var bins []metric.Bin
	for i := range 10 {
		b := metric.Bin{Lower: float64(i) / 10, Upper: float64(i+1) / 10, Count: i * i * 9}
		b.Confidence = b.Lower + 0.06
		b.Accuracy = math.Min(1, 0.05+0.85*b.Confidence+0.05*rng.NormFloat64())
		bins = append(bins, b)
	}
	return viz.Reliability(bins, viz.Frame{})
}

func barsOfThree() (*viz.Figure, error) {
	return viz.Bars([]string{"oak", "fir", "elm"}, []float64{2.25, 140, math.Inf(1)}, viz.BarOptions{
		Frame: viz.Frame{XLabel: "mean squared error"}, Marks: []float64{3, math.NaN(), 1}, MarkName: "published", Most: 5,
	})
}

func confusion() (*viz.Figure, error) {
	return viz.Confusion([][]float64{{41, 0, 0}, {7, 20, 3.5}, {0, 0, 0}},
		[]string{"setosa", "versicolor, of the coast", "virginica"}, viz.Frame{})
}

func calibration() (*viz.Figure, error) {
	var nominal, observed []float64
	for i := 1; i < 20; i++ {
		q := float64(i) / 20
		nominal, observed = append(nominal, q), append(observed, math.Pow(q, 1.25))
	}
	return viz.CalibrationCurve(nominal, observed, 308, viz.Frame{})
}

func banana(x, y float64) float64 { return -0.5*x*x/1.5 - 2*math.Pow(y-0.5*x*x+1, 2) }

func particles() (*viz.Figure, error) { return cloud(1000, true) }

func particlesMany() (*viz.Figure, error) { return cloud(100000, false) }

func cloud(n int, weighted bool) (*viz.Figure, error) {
	rng := source()
	lattice, err := viz.NewLattice(-4.4, 4.4, 160, -3.3, 8.5, 160)
	if err != nil {
		return nil, err
	}
	var x, y, w []float64
	for range n {
		u := 1.2247 * rng.NormFloat64()
		v := 0.5*u*u - 1 + 0.5*rng.NormFloat64()
		x, y = append(x, u), append(y, v)
		w = append(w, math.Exp(1.2*rng.NormFloat64()))
	}
	if !weighted {
		w = nil
	}
	return viz.ParticleScatter(x, y, viz.ParticleOptions{Weights: w, LogDensity: lattice.Fill(banana)})
}

// gridShared has one legend, one range of each axis, and names of rows and columns.
func gridShared() (*viz.Figure, error) {
	var figures []*viz.Figure
	rng := source()
	for k := range 6 {
		traces := []viz.Trace{{Name: "penalty"}, {Name: "naive"}}
		for i := range 5 {
			for m := range traces {
				at := math.Pow(2, float64(i))
				traces[m].Step = append(traces[m].Step, at)
				traces[m].Value = append(traces[m].Value, (1+3*float64(m))/math.Sqrt(at)+.2*rng.NormFloat64()+.1*float64(k))
			}
		}
		fig, err := viz.Traces(traces, viz.TraceOptions{Frame: viz.Frame{XLabel: "passes",
			YLabel: "error [standard deviations]", Width: 460, Height: 360}})
		if err != nil {
			return nil, err
		}
		figures = append(figures, fig)
	}
	return viz.Grid(viz.GridOptions{Columns: 3, SharedX: true, SharedY: true, RowNames: []string{"normal", "heavy tails"},
		ColumnNames: []string{"mean", "variance", "skewness"}}, figures...)
}

func gridOfFour() (*viz.Figure, error) {
	var figures []*viz.Figure
	for _, f := range []func() (*viz.Figure, error){band, ess, training, calibration} {
		fig, err := f()
		if err != nil {
			return nil, err
		}
		figures = append(figures, fig)
	}
	return viz.Grid(viz.GridOptions{Columns: 2}, figures...)
}

// TestGalleryFiles writes the gallery where -figures says.
func TestGalleryFiles(t *testing.T) {
	if *figuresFlag == "" {
		t.Skip("no -figures folder")
	}
	for _, s := range gallery() {
		fig := computetest.Must(s.make())
		for _, ext := range []string{".png", ".svg"} {
			path := filepath.Join(*figuresFlag, s.name+ext)
			if err := fig.Save(path); err != nil {
				t.Fatal(err)
			}
			info := computetest.Must(os.Stat(path))
			t.Logf("%s: %d kB", path, info.Size()/1000)
		}
	}
}

// tracesLog has three methods at the same places.
func tracesLog() (*viz.Figure, error) {
	var traces []viz.Trace
	for k, name := range []string{"method a", "method b", "method c"} {
		t := viz.Trace{Name: name}
		for i := range 7 {
			at := math.Pow(10, float64(i)/2)
			v := math.Pow(10, -float64(i)/2+.2*float64(k))
			t.Step, t.Value = append(t.Step, at), append(t.Value, v)
		}
		traces = append(traces, t)
	}
	return viz.Traces(traces, viz.TraceOptions{LogY: true, Frame: viz.Frame{XLabel: "seconds of a fit",
		YLabel: "error"}})
}
