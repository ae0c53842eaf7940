package dataset

import "context"

// Standardise is a source with standardised features and, for a regression, targets, as a run takes it.
func Standardise(ctx context.Context, s Source, regression bool) (of Source, features, targets Scaler, err error) {
	found, err := Examine(ctx, s, 0, nil)
	if err != nil {
		return nil, features, targets, err
	}
	features, targets = found.Features, found.Targets
	if !regression {
		targets = NoScaler(s.Targets())
	}
	return found.Scaled(s, features, targets), features, targets, nil
}

// ErrMissingCategory is of a category without a column, ErrOrder of another order.
var (
	ErrMissingCategory = errMissingCategory
	ErrOrder           = errOrder
)
