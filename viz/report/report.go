// Package report writes what a careful analyst looks at before a posterior's predictions are used: one HTML page that
// stands alone. It says first whether to trust them, and why; then come scores, calibration, residuals, what each
// feature does, the rows that fit worst, the training and its diagnostics.
package report

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/effect"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/viz"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Report is the material of a page.
type Report struct {
	Posterior *bayes.Posterior
	// Rows judge the posterior: with targets, and not trained on.
	Rows *dataset.Dataset
	// Train is the training part, whose range the curves have. If nil, Rows are used, and the page says so.
	Train *dataset.Dataset
	// Result of the fit, for its warnings and how training went; nil if it is not at hand.
	Result *fit.Result
}

const (
	figureWidth = 520
	mostEffects = 20 // features listed
	mostCurves  = 6
	worstRows   = 10
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "error": func(v float64) string { return rounded(v, 2) },
	"moved": func(v float64, e effect.Effect) string { return number(v, e.To-e.From) },
}).Parse(pageText))

// number has four digits, or more where the standard deviation asks for them, or all before the point.
func number(v, stdDev float64) string { return rounded(v, dataset.Digits(v, stdDev, 4)) }

// rounded has the given number of digits, or all before the point, and no exponent unless it is very large or small.
func rounded(v float64, digits int) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case v == math.Trunc(v) && size < 1e9:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size < 1e-4 || size >= 1e9:
		return strconv.FormatFloat(v, 'g', digits, 64)
	default:
		return strconv.FormatFloat(v, 'f', max(0, digits-1-int(math.Floor(math.Log10(size)))), 64)
	}
}

// content is all that page.html reads.
type content struct {
	Title   string
	Made    string
	Verdict Verdict
	Rows    int
	Seen    int // of which the target is not Censored
	Task    string
	Target  string

	Calibration, Residuals, Training []picture
	Curves                           []picture
	Effects                          []effect.Effect
	MoreEffects                      int
	EffectOn                         string
	TrainKnown                       bool
	Worst                            []worst
	Done                             []string
	Diagnostics                      []named
	Facts                            []named
}

type picture struct {
	Source template.URL
	Alt    string
}

type worst struct {
	Row                  int
	Target, Predicted    string
	Interval, LogDensity string
}

type named struct{ Name, Value string }

// Write writes the page. Nothing is written if it fails. What the data call their columns and classes is shown as text,
// whatever it is.
func (v Verdict) Write(ctx context.Context, to io.Writer) error {
	c, err := v.report.content(ctx, v)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	var text strings.Builder
	if err := page.Execute(&text, c); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = io.WriteString(to, text.String())
	return err
}

// predict checks the report's parts, and predicts its rows.
func (r *Report) predict(ctx context.Context) (p bayes.Prediction, err error) {
	if r.Posterior == nil {
		return p, errors.New("report: the posterior is nil: check the error of the function that made it")
	}
	for _, part := range []struct {
		what string
		rows *dataset.Dataset
	}{{"Rows", r.Rows}, {"Train", r.training()}} {
		if part.rows == nil {
			return p, fmt.Errorf("report: %s are nil: give rows with targets that the posterior was not trained on", part.what)
		}
		if err := part.rows.Validate(); err != nil {
			return p, fmt.Errorf("report: %s: %w", part.what, err)
		}
		o := r.Posterior.Origin()
		if err := part.rows.SameOrder(o.FeatureNames, o.TargetNames, o.Classes); err != nil {
			return p, fmt.Errorf("report: %s: %w", part.what, err)
		}
	}
	if r.Rows.Rows() < 2 {
		return p, errors.New("report: Rows has one row, which judges nothing: give more")
	}
	if p, err = r.Posterior.Predict(ctx, r.Rows.X); err != nil {
		return p, fmt.Errorf("report: %w", err)
	}
	if p, err = p.OfRows(r.Rows); err != nil {
		return p, fmt.Errorf("report: %w", err)
	}
	if err := p.ValidateTarget(r.Rows.Y); err != nil {
		return p, fmt.Errorf("report: %w", err)
	}
	return p, nil
}

func (r *Report) training() *dataset.Dataset {
	if r.Train != nil {
		return r.Train
	}
	return r.Rows
}

func (r *Report) content(ctx context.Context, v Verdict) (c content, err error) {
	o, p := r.Posterior.Origin(), v.prediction
	c = content{
		Title: fmt.Sprintf("%s: predictions of %s", o.Provenance.Data, strings.Join(o.TargetNames, ", ")),
		Made:  time.Now().Format("2 January 2006"), Rows: r.Rows.Rows(), Seen: r.Rows.Seen(), Task: p.Task().String(),
		Target: strings.Join(o.TargetNames, ", "), TrainKnown: r.Train != nil, Verdict: v,
	}
	if err := r.pictures(p, &c); err != nil {
		return c, err
	}
	if err := r.effects(ctx, &c); err != nil {
		return c, err
	}
	if c.Worst, err = r.worst(ctx, p); err != nil {
		return c, err
	}
	r.ran(&c)
	return c, nil
}

// wide is the frame of all figures, which stand side by side.
var wide = viz.Frame{Width: figureWidth}

// pictures of the predictions beside the targets.
func (r *Report) pictures(p bayes.Prediction, c *content) error {
	if p.Task() != dataset.Regression {
		bins, err := metric.ReliabilityDiagram(p, r.Rows.Y) // the bins of the table's ECE
		if err != nil {
			return err
		}
		fig, err := viz.Reliability(bins, wide)
		if c.Calibration, err = shown(c.Calibration, fig, err, "Accuracy against confidence"); err != nil {
			return err
		}
		fig, err = confusion(p, r.Rows)
		c.Residuals, err = shown(c.Residuals, fig, err, "Predicted against true classes")
		return err
	}
	for k, name := range r.Rows.TargetNames() {
		one, err := p.Of(k)
		if err != nil {
			return err
		}
		y := r.Rows.TargetColumn(k)
		fig, err := viz.CalibrationCurveOf(one, y, wide)
		if c.Calibration, err = shown(c.Calibration, fig, err, "Calibration of "+name); err != nil {
			return err
		}
		if p.Censored != nil { // the rows that were seen are the shortest, and have their residuals
			continue
		}
		fig, err = viz.PredictedVsTrueOf(y, one, viz.Frame{XLabel: "true " + name, YLabel: "predicted " + name,
			Width: figureWidth})
		if c.Residuals, err = shown(c.Residuals, fig, err, "Predicted against true "+name); err != nil {
			return err
		}
		if fig, err = residuals(one, y, name); err != nil {
			return err
		}
		if c.Residuals, err = shown(c.Residuals, fig, nil, "Residuals of "+name); err != nil {
			return err
		}
	}
	return nil
}

// residuals draws the residuals of a target in predictive standard deviations, against the prediction.
func residuals(p bayes.Prediction, y []float64, name string) (*viz.Figure, error) {
	mean, err := p.Mean()
	if err != nil {
		return nil, err
	}
	stdDev, err := p.StdDev()
	if err != nil {
		return nil, err
	}
	z := make([]float64, len(y))
	for i := range z {
		z[i] = (y[i] - mean[i]) / stdDev[i]
	}
	ends := []float64{slices.Min(mean), slices.Max(mean)}
	return viz.PredictiveBand(ends, []float64{0, 0}, []float64{1, 1}, viz.BandOptions{
		Frame: viz.Frame{Title: "Residuals, in predictive standard deviations", XLabel: "predicted " + name,
			YLabel: "residual", Width: figureWidth},
		TrainX: mean, TrainY: z, TrainLabel: "rows",
	})
}

func confusion(p bayes.Prediction, rows *dataset.Dataset) (*viz.Figure, error) {
	labels, err := p.Labels()
	if err != nil {
		return nil, err
	}
	counts := make([][]float64, len(rows.Classes))
	for i := range counts {
		counts[i] = make([]float64, len(rows.Classes))
	}
	for i, label := range labels {
		counts[int(rows.Y[i])][label]++
	}
	return viz.Confusion(counts, rows.Classes, viz.Frame{Width: figureWidth, Height: figureWidth})
}

// shown appends a figure as an <img>, so that no label can run script.
func shown(all []picture, fig *viz.Figure, err error, alt string) ([]picture, error) {
	if err != nil {
		return nil, err
	}
	png, err := fig.PNG() // whose texts look alike on every machine
	if err != nil {
		return nil, err
	}
	source := "data:image/png;base64," + base64.StdEncoding.EncodeToString(png)
	return append(all, picture{template.URL(source), alt}), nil
}

// effects of the features on the first target, or on the class that the features change most.
func (r *Report) effects(ctx context.Context, c *content) error {
	data := r.training()
	if _, pictures := data.X.(*dataset.Pixels); pictures {
		return nil
	}
	c.EffectOn = data.TargetNames()[0]
	classes := r.Posterior.Origin().Classes
	var on []int
	for output := range max(1, len(classes)) {
		if len(classes) != 2 || output == 1 { // the other class's has the other sign
			on = append(on, output)
		}
	}
	each, err := effect.OfEach(ctx, r.Posterior, data, on)
	if err != nil {
		return err
	}
	for i, all := range each {
		if len(all) > 0 && (len(c.Effects) == 0 || math.Abs(all[0].Change) > math.Abs(c.Effects[0].Change)) {
			c.Effects = all
			if len(classes) > 0 {
				c.EffectOn = classes[on[i]]
			}
		}
	}
	opt := viz.AlongOptions{BandOptions: viz.BandOptions{Frame: wide}, Data: data}
	if len(classes) > 0 {
		opt.Class = c.EffectOn
	}
	for _, e := range c.Effects {
		if len(c.Curves) == mostCurves {
			break
		}
		values := mat.Col(nil, slices.Index(data.Features, e.Feature), data.X)
		slices.Sort(values)
		if len(slices.Compact(values)) <= 2 || len(data.TargetNames()) > 1 {
			continue // the table says it: a category, or a flag
		}
		fig, err := viz.Along(ctx, r.Posterior, e.Feature, opt)
		if c.Curves, err = shown(c.Curves, fig, err, "Prediction along "+e.Feature); err != nil {
			return err
		}
	}
	if more := len(c.Effects) - mostEffects; more > 0 {
		c.Effects, c.MoreEffects = c.Effects[:mostEffects], more
	}
	return nil
}

// worst are the rows whose targets have the lowest density.
func (r *Report) worst(ctx context.Context, p bayes.Prediction) (all []worst, err error) {
	logs, err := p.LogDensity(r.Rows.Y)
	if err != nil {
		return nil, err
	}
	order := make([]int, len(logs))
	floats.ArgsortStable(slices.Clone(logs), order)
	order = order[:min(len(order), worstRows)]
	for _, i := range order {
		all = append(all, worst{Row: r.Rows.OriginalRow(i), LogDensity: fmt.Sprintf("%.2f", logs[i])})
	}
	if p.Task() == dataset.Regression {
		return all, r.predicted(ctx, all, order)
	}
	probabilities, err := p.Probabilities()
	if err != nil {
		return nil, err
	}
	labels, err := p.Labels()
	if err != nil {
		return nil, err
	}
	for n, i := range order {
		w := &all[n]
		truth, most := int(r.Rows.Y[i]), labels[i]
		w.Target = r.Rows.Classes[truth]
		w.Predicted = fmt.Sprintf("%s, with %.1f %%", r.Rows.Classes[most], 100*probabilities[i][most])
		w.Interval = fmt.Sprintf("%.2g %%", 100*probabilities[i][truth])
	}
	return all, nil
}

// predicted fills in the targets of a regression and what is predicted for them, of the rows in this order.
func (r *Report) predicted(ctx context.Context, all []worst, order []int) error {
	rows, err := r.Rows.Subset(order) // intervals of all would take long
	if err != nil {
		return err
	}
	p, err := r.Posterior.Predict(ctx, rows.X)
	if err != nil {
		return err
	}
	if p, err = p.OfRows(rows); err != nil {
		return err
	}
	mean, err := p.Mean()
	if err != nil {
		return err
	}
	stdDev, err := p.StdDev()
	if err != nil {
		return err
	}
	lower, upper, err := p.Interval(level)
	if err != nil {
		return err
	}
	for n := range all {
		w := &all[n]
		for k := range p.Columns() {
			at := n*p.Columns() + k
			if k > 0 {
				w.Target, w.Predicted, w.Interval = w.Target+", ", w.Predicted+", ", w.Interval+", "
			}
			if rows.Censored != nil && rows.Censored[n] {
				w.Target += "above "
			}
			w.Target += number(rows.Y[at], stdDev[at])
			w.Predicted += number(mean[at], stdDev[at])
			w.Interval += number(lower[at], stdDev[at]) + " to " + number(upper[at], stdDev[at])
		}
	}
	return nil
}

// ran adds how the posterior was found.
func (r *Report) ran(c *content) {
	o := r.Posterior.Origin()
	from := o.Provenance
	fact := func(name, text string, args ...any) {
		c.Facts = append(c.Facts, named{name, fmt.Sprintf(text, args...)})
	}
	fact("Method", "%s, %s", from.Algorithm, from.Status)
	if from.Approximation != "" {
		fact("Draws", "%s", from.Approximation)
	}
	m := r.Posterior.Model()
	fact("Network", "%+v", m.Network)
	fact("Likelihood", "%T", m.Likelihood)
	fact("Particles", "%d", r.Posterior.Particles())
	fact("Trained on", "%d rows of %s, %d features; SHA-256 %.12s", from.Rows, from.Data, len(o.FeatureNames),
		from.DataHash)
	fact("Seed", "%d", from.Seed)
	fact("Made", "%s", from.Created.UTC().Format("2006-01-02 15:04 UTC"))
	for _, name := range slices.Sorted(maps.Keys(from.Versions)) {
		fact(name, "%s", from.Versions[name])
	}
	diagnostic := func(name string, value float64) {
		if !math.IsNaN(value) {
			c.Diagnostics = append(c.Diagnostics, named{name, fmt.Sprintf("%.4g", value)})
		}
	}
	diagnostics := r.Posterior.Diagnostics()
	for _, name := range slices.Sorted(maps.Keys(diagnostics)) {
		diagnostic(name, diagnostics[name])
	}
	if r.Result == nil {
		return
	}
	if d, err := diag.Of(r.Result); err == nil {
		diagnostic("R-hat of the chains, the largest of all parameters", d.RHat)
		diagnostic("effective sample size of the particles", d.ESS)
		diagnostic("k-hat of the weights", d.KHat)
	}
	fact("Seconds", "%.1f", r.Result.Elapsed.Seconds())
	for _, d := range r.Result.Details {
		if done, ok := d.(fmt.Stringer); ok {
			c.Done = append(c.Done, done.String())
		}
	}
	if len(r.Result.Curve(fit.LossCurve).Steps) > 0 || len(r.Result.Curve(fit.ValidationCurve).Steps) > 0 {
		fig, err := viz.TrainingCurvesOf(r.Result, wide)
		if all, err := shown(nil, fig, err, "Training"); err == nil { // curves of NaN alone cannot be drawn
			c.Training = all
		}
	}
}
