package bayes

import (
	"context"
	"fmt"

	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
)

// Extractor is a Network with a fixed stage before its layers, such as package nn/onnx makes of a file: the stage makes
// features of rows, and nothing of it is learnt. So fit.Fit evaluates it once for each row, and fits the rest to the
// features as to any table; the posterior evaluates it for each row that it predicts.
type Extractor interface {
	nn.Network // what is behind the features: of its Layers(inputs, outputs) the inputs are features
	// Features is their number, F, of rows of so many numbers.
	Features(inputs int) (int, error)
	// Extract makes the features, [N, F], of rows, [N, inputs]; progress, if not nil, is told how many are done.
	Extract(ctx context.Context, rows mat.Matrix, progress func(done int)) (*mat.Dense, error)
	// Behind is the model of the features, with a network that is no Extractor.
	Behind(model Model) (Model, error)
}

// Extractor is what makes the features of rows before the posterior's network; nil: the rows are these.
func (p *Posterior) Extractor() Extractor { return p.origin.Extractor }

// Behind is the posterior for rows like those that it was trained on, of which the extractor made the features.
func (p *Posterior) Behind(e Extractor, trained *dataset.Dataset) *Posterior {
	other := *p
	other.origin = p.Origin()
	other.origin.Extractor, other.origin.FeatureNames = e, trained.Features
	other.origin.Provenance.DataHash, other.origin.Provenance.Trained = trained.Hash(), trained.RowSet()
	return &other
}

// OfFeatures is the posterior for rows of features; it is the same one if it has no Extractor.
func (p *Posterior) OfFeatures() *Posterior {
	if p.origin.Extractor == nil {
		return p
	}
	other := *p
	other.origin = p.Origin()
	other.origin.Extractor, other.origin.FeatureNames = nil, nil
	return &other
}

// extracted calls each with the features of so many rows at a time.
func (p *Posterior) extracted(ctx context.Context, x mat.Matrix, rows int, each func(features *mat.Dense) error) error {
	total, dims := x.Dims()
	for from := 0; from < total; from += rows {
		part := part{x, from, min(rows, total-from), dims}
		features, err := p.origin.Extractor.Extract(ctx, part, nil)
		if err != nil {
			return fmt.Errorf("bayes: rows %d to %d: %w", from, from+part.rows-1, err)
		}
		if err := each(features); err != nil {
			return err
		}
	}
	return nil
}

// part is some rows of a matrix, one after another.
type part struct {
	mat.Matrix
	from, rows, columns int
}

func (p part) Dims() (rows, columns int) { return p.rows, p.columns }
func (p part) At(i, j int) float64       { return p.Matrix.At(p.from+i, j) }
func (p part) T() mat.Matrix             { return mat.Transpose{Matrix: p} }
