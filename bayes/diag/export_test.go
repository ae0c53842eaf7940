package diag

import "gobnn/bayes"

// RHatParts are the R-hat of the draws and of their distances from the median.
func (c *Chains) RHatParts(parameter int) (bulk, folded float64) {
	w := newWorkspace(c)
	w.load(parameter)
	return w.rhat()
}

// KHatParts are the k-hats of the left and of the right tail.
func (c *Chains) KHatParts(parameter int) (left, right float64) {
	w := newWorkspace(c)
	w.load(parameter)
	return w.kHat(w.ess(Tail))
}

// KHat is that of the weights of independent draws.
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
