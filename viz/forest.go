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

// estimate is a row of a forest.
type estimate struct {
	name                 string
	mean                 float64
	lower, upper         float64 // of the wide interval
	lowerHalf, upperHalf float64 // of the narrow interval, with half of the mass
	rHat, ess            float64 // an R-hat of NaN is not known
	group                string  // the layer: rows of one group have one colour
}

// forestRows is how many rows a forest has at most.
const forestRows = 40

// drawForest draws estimates below one another.
func drawForest(rows []estimate, frame Frame) (*Figure, error) {
	if len(rows) == 0 {
		return nil, fmt.Errorf("viz: forest of a posterior without stochastic parameters: nothing to draw")
	}
	shown := mostTelling(rows, forestRows)
	frame, err := frame.fill("Estimates", "value", "", 640, max(240, 110+22*len(shown)))
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
		ends = append(ends, r.lower, r.upper, r.mean) // a heavy tail has its mean outside
	}
	x := spanOf(ends).widen(.03)
	width := x.hi - x.lo
	inner := x
	x.hi += width / 3 // R-hat and ESS take a quarter of the axes
	a := newAxes(frame.XLabel, frame.YLabel, x, span{-.7, float64(len(shown)) + .45})
	a.plot.X.Tick.Marker = until{inner.hi, niceTicks{6}}
	a.add(gridLines{})
	var ticks []plot.Tick
	var groups []string
	var first, narrow *line // of the legend
	var mean *dots
	for i, r := range shown {
		at := float64(len(shown) - 1 - i)
		ticks = append(ticks, plot.Tick{Value: at, Label: r.name})
		group := slices.Index(groups, r.group)
		if group < 0 {
			group, groups = len(groups), append(groups, r.group)
		}
		wide, half, dot := r.marks(at, group)
		a.add(wide)
		a.add(half, dot)
		if i == 0 {
			first, narrow, mean = wide, half, dot
		}
		a.add(&forestText{x: inner.hi + .11*width, y: at, text: decimals(r.rHat, 3), bad: r.rHat > diag.MaxRHat},
			&forestText{x: inner.hi + .25*width, y: at, text: decimals(r.ess, 0), bad: r.ess < diag.MinESS})
	}
	p.entry(fmt.Sprintf("%s %% interval", number(100*hdiMass)), first)
	p.entry(fmt.Sprintf("%s %%", number(50*hdiMass)), narrow)
	p.entry("mean", mean)
	if len(groups) > 1 { // whose colours differ
		for k, group := range groups {
			wide, _, dot := estimate{}.marks(0, k)
			p.entry(group, wide, dot)
		}
	}
	top := float64(len(shown)) - .1
	a.add(&forestText{x: inner.hi + .11*width, y: top, text: "R-hat"}, &forestText{x: inner.hi + .25*width, y: top,
		text: "ESS"})
	a.plot.Y.Tick.Marker = plot.ConstantTicks(ticks)
	a.framed()
	p.axes = []*axes{a}
	return newFigure(frame, p)
}

// marks are the row's intervals and its mean at a height of the axes, in the style of a group.
func (r estimate) marks(at float64, group int) (wide, half *line, mean *dots) {
	styles := []struct {
		line  draw.LineStyle
		shape shape
	}{{stroke(blue, 1.4), circle}, {stroke(vermillion, 1.4), square}, {stroke(green, 1.4), triangle},
		{stroke(purple, 1.4), diamond}}
	style := styles[group%len(styles)]
	wide = &line{xs: []float64{r.lower, r.upper}, ys: []float64{at, at}, style: style.line}
	half = &line{xs: []float64{r.lowerHalf, r.upperHalf}, ys: []float64{at, at}, style: style.line}
	half.style.Width = 4
	mean = &dots{xs: []float64{r.mean}, ys: []float64{at}, shape: style.shape, radius: 3, fill: white,
		edge: draw.LineStyle{Color: style.line.Color, Width: 1.4}}
	return wide, half, mean
}

// mostTelling keeps, in their order, at most the given number of rows: those with the largest R-hat, or without one the
// widest.
func mostTelling(rows []estimate, most int) []estimate {
	if len(rows) <= most {
		return rows
	}
	score := func(r estimate) (float64, float64) {
		if !(r.rHat > 0) {
			return math.Inf(-1), r.upper - r.lower
		}
		return r.rHat, r.upper - r.lower
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
	shown := make([]estimate, most)
	for i, at := range order {
		shown[i] = rows[at]
	}
	return shown
}

// Forest shows a posterior's stochastic parameters below one another, or its layers, each with all of its numbers
// together and the worst R-hat and ESS among them. Each has its highest-density intervals of 94 and 47 %, and at the
// right R-hat and ESS, in red above diag.MaxRHat or below diag.MinESS. They are those of [diag.Chains]; of weighted
// particles, which are no chains, the ESS is that of the weights and R-hat is not known. Of more than 40 parameters
// those with the largest R-hat are shown, or, without R-hat, those with the widest intervals, and a note says so.
func Forest(p *bayes.Posterior, layers bool, frame Frame) (*Figure, error) {
	if p == nil || p.Bound() == nil {
		return nil, fmt.Errorf("viz: forest of a posterior that is nil or empty: check the error of the function that " +
			"made it")
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
	var rows []estimate
	var names []string
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
			names = append(names, layer)
		}
		size := slot.Size()
		for i := range size {
			own := make([]float64, p.Particles())
			for j := range own {
				own[j] = draws[j*size+i]
			}
			pooled[layer] = append(pooled[layer], own...)
			r := estimate{name: slot.Name, group: layer, rHat: math.NaN(), ess: weights.EffectiveSampleSize()}
			if size > 1 {
				r.name = fmt.Sprintf("%s[%d]", slot.Name, i)
			}
			if summary.Rows != nil {
				s := summary.Rows[slot.Offset+i]
				r.name, r.rHat, r.ess = s.Name, s.RHat, min(s.BulkESS, s.TailESS)
			}
			if err := r.summarise(own, weights); err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	if !layers {
		return drawForest(rows, frame)
	}
	var out []estimate
	for _, layer := range names {
		r := estimate{name: layer, group: layer, rHat: math.NaN(), ess: math.Inf(1)}
		for _, own := range rows {
			if own.group == layer {
				r.ess = min(r.ess, own.ess)
				if !(own.rHat <= r.rHat) { // also where r's is NaN
					r.rHat = own.rHat
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
		if err := r.summarise(pooled[layer], all); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return drawForest(out, frame)
}

// summarise fills in the mean and the intervals, which are highest-density ones.
func (r *estimate) summarise(values []float64, w bayes.LogWeights) (err error) {
	if r.lower, r.upper, err = diag.HDI(values, w, hdiMass); err == nil {
		r.lowerHalf, r.upperHalf, err = diag.HDI(values, w, hdiMass/2)
	}
	if err != nil {
		return fmt.Errorf("viz: forest of %s: %w", r.name, err)
	}
	// The shortest interval of half the mass may lie at another mode than the other's end.
	r.lower, r.upper = min(r.lower, r.lowerHalf), max(r.upper, r.upperHalf)
	for j, v := range values {
		if weight := math.Exp(w.At(j)); weight > 0 {
			r.mean += weight * v
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
