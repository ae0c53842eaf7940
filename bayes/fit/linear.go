package fit

import (
	"math"

	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// The linear model that a fit is held against is that of the first linearRows rows, or of fewer where many features
// would take it longer than a second; it needs linearPerFeature rows a feature.
const (
	linearRows       = 20_000
	linearWork       = 1 << 29 // rows times features squared
	linearPerFeature = 2
)

// linear is a linear model in closed form: least squares with normal noise, or linear discriminant analysis, which
// takes the rows of each class as normal with one covariance. Its coefficients are of standardised features, with a
// N(0, noise^2) prior, since columns may repeat each other, as categories do.
type linear struct {
	task          dataset.Task
	scale         []float64     // of a feature, [d]: its standard deviation
	means         [][]float64   // of the features by class, or of all rows, [C][d], over their scale
	share         []float64     // of the rows that are of each class, [C]
	scatter       *mat.Cholesky // of the features within the classes, [d, d], and 1 on its diagonal
	rows          float64
	coefficients  mat.Dense // [d, C or K]
	centre, noise []float64 // of a target: its mean and the standard deviation about the model, [K]
}

// newLinear fits the model; nil where the rows are too few for it.
func newLinear(train *dataset.Dataset) *linear {
	d, classes, targets := train.Dims(), 1, train.Outputs()
	if train.Task != dataset.Regression {
		classes, targets = len(train.Classes), 0
	}
	n := min(train.Rows(), linearRows, linearWork/max(1, d*d))
	if n < linearPerFeature*(d+classes) {
		return nil
	}
	l := &linear{task: train.Task, scale: make([]float64, d), means: make([][]float64, classes),
		share: make([]float64, classes), rows: float64(n)}
	x, class := mat.NewDense(n, d, nil), make([]int, n)
	column := make([]float64, n)
	for f := range d {
		for i := range column {
			column[i] = train.X.At(i, f)
		}
		if l.scale[f] = stat.PopStdDev(column, nil); !(l.scale[f] > 0) {
			l.scale[f] = math.Inf(1) // a constant says nothing
		}
		floats.Scale(1/l.scale[f], column)
		x.SetCol(f, column)
	}
	for k := range classes {
		l.means[k] = make([]float64, d)
	}
	for i := range n {
		if classes > 1 {
			class[i] = int(train.Y[i])
		}
		l.share[class[i]]++
		floats.Add(l.means[class[i]], x.RawRowView(i))
	}
	for k := range classes {
		floats.Scale(1/max(1, l.share[k]), l.means[k])
		l.share[k] = (l.share[k] + 1) / float64(n+classes) // a class without rows is not impossible
	}
	for i := range n {
		floats.Sub(x.RawRowView(i), l.means[class[i]])
	}
	scatter := mat.NewSymDense(d, nil)
	scatter.SymOuterK(1, x.T())
	for f := range d {
		scatter.SetSym(f, f, scatter.At(f, f)+1)
	}
	l.scatter = &mat.Cholesky{}
	if !l.scatter.Factorize(scatter) {
		return nil
	}
	if classes > 1 {
		means := mat.NewDense(d, classes, nil)
		for k, m := range l.means {
			means.SetCol(k, m)
		}
		means.Scale(l.rows, means)
		return l.solved(means)
	}
	y := mat.NewDense(n, targets, nil)
	for k := range targets {
		t := train.TargetColumn(k)[:n]
		l.centre = append(l.centre, stat.Mean(t, nil))
		for i, v := range t {
			y.Set(i, k, v-l.centre[k])
		}
	}
	var moments, fitted mat.Dense
	moments.Mul(x.T(), y)
	if l.solved(&moments) == nil {
		return nil
	}
	fitted.Mul(x, &l.coefficients)
	y.Sub(y, &fitted)
	for k := range targets {
		l.noise = append(l.noise, mat.Norm(y.ColView(k), 2)/math.Sqrt(l.rows-float64(d)-1))
	}
	return l
}

// solved sets the coefficients to those of the moments [d, C or K]; nil where the features repeat each other so much
// that these have no sense.
func (l *linear) solved(moments *mat.Dense) *linear {
	if err := l.scatter.SolveTo(&l.coefficients, moments); err != nil {
		return nil
	}
	return l
}

// logDensity is log p(y_n | x_n) of each row, of all targets together, in the target's own units.
func (l *linear) logDensity(rows *dataset.Dataset) []float64 {
	d, out := len(l.scale), make([]float64, rows.Rows())
	x, solved := mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
	for i := range out {
		for f, s := range l.scale {
			x.SetVec(f, rows.X.At(i, f)/s-l.means[0][f])
		}
		var predicted mat.VecDense
		predicted.MulVec(l.coefficients.T(), x)
		if l.task != dataset.Regression {
			out[i] = l.discriminant(predicted.RawVector().Data)[int(rows.Y[i])]
			continue
		}
		_ = l.scatter.SolveVecTo(solved, x) // whose condition solved has judged
		wider := math.Sqrt(1 + 1/l.rows + mat.Dot(x, solved))
		for k := range l.noise {
			out[i] += distuv.Normal{Mu: l.centre[k] + predicted.AtVec(k), Sigma: l.noise[k] * wider}.LogProb(
				rows.Y[i*len(l.noise)+k])
		}
	}
	return out
}

// discriminant are the log probabilities of the classes, of x' S^-1 m_k for each, where x is centred at m_0 and S is
// the covariance within the classes.
func (l *linear) discriminant(products []float64) []float64 {
	for k, m := range l.means {
		half := 0.
		for f, v := range m {
			half += (v - 2*l.means[0][f]) * l.coefficients.At(f, k) / 2
		}
		products[k] += math.Log(l.share[k]) - half
	}
	floats.AddConst(-floats.LogSumExp(products), products)
	return products
}
