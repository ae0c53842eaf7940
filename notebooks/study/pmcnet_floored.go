package study

// flooredName is the name of a method with floored weights (pmcnet.Floored), those of the authors' program.
func flooredName(method string) string { return "floored " + method }

// flooredMethods returns the paper's algorithm and two of its variants, each with honest and with floored weights.
func flooredMethods() (names []string) {
	for _, m := range []string{pmcPaper, pmcGradFree, pmcDM} {
		names = append(names, m, flooredName(m))
	}
	return names
}

var flooredMetrics = []string{"ESS of the weights", "ESS", "k-hat", "accuracy", "AUC", "accuracy of the mean", "NLPD"}
