package metric

// newCRPS returns the continuous ranked probability score, the mean over rows of
//
//	integral (F(x) - 1{x >= y})^2 dx = E|X - y| - E|X - X'| / 2
//
// where F is the predictive distribution function, of the mixture of all particles, and X and X' are independent draws
// of it (Gneiting and Raftery 2007, eq. 20 and 21), for regression, in the target's units. Lower is better; of a point
// it is the absolute error. Unlike the NLPD it weighs a target far outside by its distance only. It is computed to
// within 0.01 %.
func newCRPS() *measure {
	s := &integral{}
	return &measure{name: "CRPS", tasks: regressionOnly, scorer: &rowMean{score: s.score}}
}
