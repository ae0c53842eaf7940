package dataset

import (
	"context"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// Rows whose target is not known are counted, selected and put into another order of features, but whatever needs the
// target refuses them.
func TestUnknownTarget(t *testing.T) {
	d := small()
	d.Y = nil
	if d.Rows() != 2 || d.Outputs() != 1 || len(d.TargetColumn(0)) != 0 {
		t.Errorf("%d rows, %d outputs, targets %v", d.Rows(), d.Outputs(), d.TargetColumn(0))
	}
	sub, err := d.Subset([]int{1, 1, 0})
	if err != nil {
		t.Fatal(err)
	}
	if want := mat.NewDense(3, 3, []float64{4, 5, 6, 4, 5, 6, 1, 2, 3}); !mat.Equal(sub.X, want) || len(sub.Y) != 0 ||
		sub.Rows() != 3 || sub.OriginalRow(2) != 0 {
		t.Errorf("a subset is %v, Y %v", mat.Formatted(sub.X), sub.Y)
	}
	if known := small(); d.Hash() == known.Hash() {
		t.Error("the hash does not see whether the target is known")
	}

	wantUnknown := func(what string, err error) {
		t.Run(what, func(t *testing.T) { wantError(t, err, `target ["ill"] is not known`, "2 rows", "set Y") })
	}
	wantUnknown("Validate", d.Validate())
	wantUnknown("training part", Parts{Train: d}.Validate())
	wantUnknown("validation part", Parts{Train: small(), Validation: d}.Validate())
	if err := (Parts{Train: small(), Test: d}).Validate(); err != nil {
		t.Errorf("a test part, which is not trained on: %v", err)
	}
	_, err = d.Split(Fractions{Train: .5, Test: .5}, 0)
	wantUnknown("Split", err)
	_, err = Examine(context.Background(), RowsOf(d), 0, nil)
	wantUnknown("Examine", err)
	_, _, _, err = Standardise(context.Background(), RowsOf(d), false)
	wantUnknown("Standardise", err)

	yacht := *MustLoad("yacht")
	yacht.Y = nil
	_, err = yacht.PublishedSplit(Gal, 0)
	wantError(t, err, `["residuary_resistance"] is not known`)
}
