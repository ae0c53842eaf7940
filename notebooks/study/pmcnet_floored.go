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

const flooredNote = "not in the paper: the authors' program adds 1e-50 to exp(log pi - log q), which is all that " +
	"remains where all log w are below -115, by many rows as well as by many dimensions; \"ESS of the weights\" is of " +
	"those that the sampler goes by, ESS and k-hat of the honest ones; where each honest set has collapsed, the draws " +
	"scored are a handful; two repetitions, three on the control set (-full: 10)"
