package viz

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/diag"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ForestRow is an estimate with its intervals.
type ForestRow struct {
	Name                 string
	Mean                 float64
	Lower, Upper         float64 // of the wide interval
	LowerHalf, UpperHalf float64 // of the narrow interval, with half of the mass; both 0: none
	RHat, ESS            float64 // 0 or NaN: not known
	// Group, such as a layer: rows of one group stand together in one colour; empty: none.
	Group string
}

// ForestOptions are the options of [Forest] and [ForestOf].
type ForestOptions struct {
	Frame
	// Mass of the wide intervals, within (0, 1); 0: 0.94. The narrow ones have half of the mass.
	Mass float64
	// Layers lets ForestOf show a row for each layer instead of one for each parameter: all its numbers together, with
	// the worst R-hat and ESS among them.
	Layers bool
	// MaxRows is the largest number of rows drawn; 0: 40. If there are more parameters, those with the largest R-hat are
	// shown, or, without R-hat, those with the widest intervals, and a note says so.
	MaxRows int
}

// Forest shows estimates below one another, each with two intervals and, where they are known, R-hat and ESS in columns
// at the right. An R-hat above diag.MaxRHat, or an ESS below diag.MinESS, is printed in red.
func Forest(rows []ForestRow, opt ForestOptions) (*Figure, error) {
	if opt.MaxRows == 0 {
		opt.MaxRows = 40
	}
	if opt.Mass == 0 {
		opt.Mass = defaultMass
	}
	if len(rows) == 0 || opt.MaxRows < 1 || !(opt.Mass > 0 && opt.Mass < 1) {
		return nil, fmt.Errorf("viz: forest of %d rows, MaxRows %d, Mass %v: there must be rows, and a mass between 0 and 1",
			len(rows), opt.MaxRows, opt.Mass)
	}
	diagnosed, err := checkForest(rows)
	if err != nil {
		return nil, err
	}
	shown := mostTelling(rows, opt.MaxRows)
	frame, err := opt.fill("Estimates", "value", "", 640, max(240, 110+22*len(shown)))
	if err != nil {
		return nil, err
	}
	p := &panel{title: frame.Title}
	if len(shown) < len(rows) {
		p.note(fmt.Sprintf("%d of %d rows: those with the largest R-hat, or else the widest intervals", len(shown),
			len(rows)))
	}
	var ends []float64
	for _, r := range shown {
		ends = append(ends, r.Lower, r.Upper, r.Mean) // a heavy tail has its mean outside
	}
	x := spanOf(ends).widen(.03)
	width := x.hi - x.lo
	inner := x
	if diagnosed { // the columns take a quarter of the axes
		x.hi += width / 3
	}
	a := newAxes(frame.XLabel, frame.YLabel, x, span{-.7, float64(len(shown)) + .45})
	a.plot.X.Tick.Marker = until{inner.hi, niceTicks{6}}
	a.add(gridLines{})
	var ticks []plot.Tick
	var groups []string
	var first, narrow *line // of the legend
	var mean *dots
	for i, r := range shown {
		at := float64(len(shown) - 1 - i)
		ticks = append(ticks, plot.Tick{Value: at, Label: r.Name})
		group := slices.Index(groups, r.Group)
		if group < 0 {
			group, groups = len(groups), append(groups, r.Group)
		}
		wide, half, dot := r.marks(at, group)
		a.add(wide)
		if r.narrow() {
			a.add(half)
			narrow = cmp.Or(narrow, half)
		}
		a.add(dot)
		if i == 0 {
			first, mean = wide, dot
		}
		if diagnosed {
			rHat, ess := known(r.RHat), known(r.ESS)
			a.add(&forestText{x: inner.hi + .11*width, y: at, text: decimals(rHat, 3), bad: rHat > diag.MaxRHat},
				&forestText{x: inner.hi + .25*width, y: at, text: decimals(ess, 0), bad: ess < diag.MinESS})
		}
	}
	p.entry(fmt.Sprintf("%s %% interval", number(100*opt.Mass)), first)
	if narrow != nil {
		p.entry(fmt.Sprintf("%s %%", number(50*opt.Mass)), narrow)
	}
	p.entry("mean", mean)
	if len(groups) > 1 { // whose colours differ
		for k, group := range groups {
			wide, _, dot := ForestRow{}.marks(0, k)
			p.entry(group, wide, dot)
		}
	}
	if diagnosed {
		top := float64(len(shown)) - .1
		a.add(&forestText{x: inner.hi + .11*width, y: top, text: "R-hat"}, &forestText{x: inner.hi + .25*width, y: top,
			text: "ESS"})
	}
	a.plot.Y.Tick.Marker = plot.ConstantTicks(ticks)
	a.framed()
	p.axes = []*axes{a}
	return newFigure(frame, p)
}

// checkForest is an error if a row's numbers are not finite, its narrow interval is not within the wide one, or its
// R-hat or ESS is negative; diagnosed says whether any row has one of these two.
func checkForest(rows []ForestRow) (diagnosed bool, err error) {
	for _, r := range rows {
		for _, v := range []float64{r.Mean, r.Lower, r.Upper, r.LowerHalf, r.UpperHalf} {
			if !finite(v) {
				return false, fmt.Errorf("viz: forest row %q has %v: means and ends of intervals must be finite", r.Name, v)
			}
		}
		if r.Lower > r.Upper {
			return false, fmt.Errorf("viz: forest row %q: the interval is from %v to %v: it must not end before it begins",
				r.Name, r.Lower, r.Upper)
		}
		if r.narrow() && (r.Lower > r.LowerHalf || r.LowerHalf > r.UpperHalf || r.UpperHalf > r.Upper) {
			return false, fmt.Errorf("viz: forest row %q: [%v, %v] must hold [%v, %v]", r.Name, r.Lower, r.Upper, r.LowerHalf,
				r.UpperHalf)
		}
		if r.RHat < 0 || r.ESS < 0 {
			return false, fmt.Errorf("viz: forest row %q has RHat %v and ESS %v: neither is negative (NaN: not known)", r.Name,
				r.RHat, r.ESS)
		}
		diagnosed = diagnosed || r.RHat > 0 || r.ESS > 0
	}
	return diagnosed, nil
}

// known is an R-hat or an ESS, NaN if it is not known.
func known(v float64) float64 {
	if v > 0 {
		return v
	}
	return math.NaN()
}

// narrow says whether the row has a narrow interval.
func (r ForestRow) narrow() bool { return r.LowerHalf != 0 || r.UpperHalf != 0 }

// marks are the row's intervals and its mean at a height of the axes, in the style of a group.
func (r ForestRow) marks(at float64, group int) (wide, half *line, mean *dots) {
	styles := []struct {
		line  draw.LineStyle
		shape shape
	}{{stroke(blue, 1.4), circle}, {stroke(vermillion, 1.4), square}, {stroke(green, 1.4), triangle},
		{stroke(purple, 1.4), diamond}}
	style := styles[group%len(styles)]
	wide = &line{xs: []float64{r.Lower, r.Upper}, ys: []float64{at, at}, style: style.line}
	half = &line{xs: []float64{r.LowerHalf, r.UpperHalf}, ys: []float64{at, at}, style: style.line}
	half.style.Width = 4
	mean = &dots{xs: []float64{r.Mean}, ys: []float64{at}, shape: style.shape, radius: 3, fill: white,
		edge: draw.LineStyle{Color: style.line.Color, Width: 1.4}}
	return wide, half, mean
}

// mostTelling are at most so many rows, in their order: those with the largest R-hat, or without one the widest.
func mostTelling(rows []ForestRow, most int) []ForestRow {
	if len(rows) <= most {
		return rows
	}
	score := func(r ForestRow) (float64, float64) {
		if !(r.RHat > 0) {
			return math.Inf(-1), r.Upper - r.Lower
		}
		return r.RHat, r.Upper - r.Lower
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		ra, wa := score(rows[a])
		rb, wb := score(rows[b])
		return cmp.Or(cmp.Compare(rb, ra), cmp.Compare(wb, wa))
	})
	order = order[:most]
	slices.Sort(order)
	shown := make([]ForestRow, most)
	for i, at := range order {
		shown[i] = rows[at]
	}
	return shown
}

// ForestOf is [Forest] of a posterior's stochastic parameters, or of its layers. R-hat and ESS are those of
// [diag.Chains]; of weighted particles, which are no chains, the ESS is that of the weights and R-hat is not known.
func ForestOf(p *bayes.Posterior, opt ForestOptions) (*Figure, error) {
	if p == nil || p.Bound() == nil {
		return nil, fmt.Errorf("viz: forest of a posterior that is nil or empty: check the error of the function that " +
			"made it")
	}
	if opt.Mass == 0 {
		opt.Mass = defaultMass
	}
	var summary diag.Summary
	if p.Chains() > 0 {
		chains, err := diag.NewForPosterior(p)
		if err != nil {
			return nil, fmt.Errorf("viz: forest: %w", err)
		}
		summary = chains.Summary()
	}
	weights := p.LogWeights()
	var rows []ForestRow
	var layers []string
	pooled := map[string][]float64{} // the draws of all of a layer's numbers, [parameters, J]
	for _, slot := range p.Bound().Slots {
		if !slot.Stochastic {
			continue
		}
		draws, _, err := p.Parameter(slot.Name)
		if err != nil {
			return nil, fmt.Errorf("viz: forest: %w", err)
		}
		layer, _, _ := strings.Cut(slot.Name, "/")
		if pooled[layer] == nil {
			layers = append(layers, layer)
		}
		size := slot.Size()
		for i := range size {
			own := make([]float64, p.Particles())
			for j := range own {
				own[j] = draws[j*size+i]
			}
			pooled[layer] = append(pooled[layer], own...)
			r := ForestRow{Name: slot.Name, Group: layer, RHat: math.NaN(), ESS: weights.EffectiveSampleSize()}
			if size > 1 {
				r.Name = fmt.Sprintf("%s[%d]", slot.Name, i)
			}
			if summary.Rows != nil {
				s := summary.Rows[slot.Offset+i]
				r.Name, r.RHat, r.ESS = s.Name, s.RHat, min(s.BulkESS, s.TailESS)
			}
			if err := r.summarise(own, weights, opt.Mass); err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	if !opt.Layers {
		return Forest(rows, opt)
	}
	var out []ForestRow
	for _, layer := range layers {
		r := ForestRow{Name: layer, Group: layer, RHat: math.NaN(), ESS: math.Inf(1)}
		for _, own := range rows {
			if own.Group == layer {
				r.ESS = min(r.ESS, own.ESS)
				if !(own.RHat <= r.RHat) { // also where r's is NaN
					r.RHat = own.RHat
				}
			}
		}
		repeated := make([]float64, len(pooled[layer]))
		for i := range repeated {
			repeated[i] = weights.At(i % weights.Len())
		}
		all, err := bayes.NewLogWeights(repeated)
		if err != nil {
			return nil, fmt.Errorf("viz: forest: %w", err)
		}
		if err := r.summarise(pooled[layer], all, opt.Mass); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return Forest(out, opt)
}

// summarise fills in the mean and the intervals, which are highest-density ones.
func (r *ForestRow) summarise(values []float64, w bayes.LogWeights, mass float64) (err error) {
	if r.Lower, r.Upper, err = diag.HDI(values, w, mass); err == nil {
		r.LowerHalf, r.UpperHalf, err = diag.HDI(values, w, mass/2)
	}
	if err != nil {
		return fmt.Errorf("viz: forest of %s: %w", r.Name, err)
	}
	// The shortest interval of half the mass may lie at another mode than the other's end.
	r.Lower, r.Upper = min(r.Lower, r.LowerHalf), max(r.Upper, r.UpperHalf)
	for j, v := range values {
		if weight := math.Exp(w.At(j)); weight > 0 {
			r.Mean += weight * v
		}
	}
	return nil
}

// until are the ticks up to a value.
type until struct {
	last float64
	plot.Ticker
}

func (u until) Ticks(lo, hi float64) []plot.Tick { return u.Ticker.Ticks(lo, min(hi, u.last)) }

// decimals is a number for a column; "–" if it is not known.
func decimals(v float64, digits int) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, v)
}

// forestText is a text centred at a point, red where it warns.
type forestText struct {
	x, y float64
	text string
	bad  bool
}

func (l *forestText) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := textStyle(tickSize, black)
	if l.bad {
		style = textStyle(tickSize, vermillion)
	}
	// Centred is the line of text, with room for descenders, which numbers do not have.
	c.FillText(style, vg.Point{X: x(l.x), Y: y(l.y) + style.Font.Size/4}, l.text)
}
