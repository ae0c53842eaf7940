package diag

import "gobnn/bayes"

// KHat is the k-hat of the weights of independent draws.
func KHat(logWeights []float64) (float64, error) {
	w, err := bayes.NewLogWeights(logWeights)
	if err != nil {
		return 0, err
	}
	s, err := PSIS(w, 1)
	return s.KHat, err
}

var (
	ErrNonFinite = errNonFinite
	ErrOtherRows = errOtherRows
)
