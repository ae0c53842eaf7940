package study

import (
	_ "embed" // for the printed tables
	"strconv"
	"strings"
)

// fbnnPrinted has tables A1 and A2 as they are printed. An empty line separates the data sets. Each has its name and a
// line for each method. The columns are mean squared error, or accuracy in per cent; coverage probability in per cent,
// or ECE; seconds; effective sample size, least, median and most; least effective draws a second; speed-up.
//
//go:embed fbnn_paper.txt
var fbnnPrinted string

// fbnnReported returns the paper's numbers for a data set, by method and metric. Its FBNN is ours in paper mode, its
// coverage probability the coverage of f.
func fbnnReported(data string) map[string]map[string]Reported {
	out := map[string]map[string]Reported{}
	quality, certainty, whole := "MSE", "coverage of f", [2]float64{1, 100}
	if !fbnnSetOf(data).regression() {
		quality, certainty, whole = "accuracy", "ECE", [2]float64{100, 1}
	}
	metrics := []string{quality, certainty, "seconds of a fit", "ESS, least", "ESS, median", "ESS, most",
		essOfSeconds, speedUp}
	_, rows, _ := strings.Cut("\n\n"+fbnnPrinted, "\n\n"+strings.TrimSuffix(data, inBlocks)+"\n")
	rows, _, _ = strings.Cut(rows, "\n\n")
	for line := range strings.Lines(rows) {
		method, numbers, found := strings.Cut(line, ": ")
		if !found {
			continue
		}
		if strings.HasPrefix(method, "FBNN") {
			method += inPaper
		}
		out[method] = map[string]Reported{}
		for k, text := range strings.Fields(numbers) {
			if v, err := strconv.ParseFloat(text, 64); err == nil { // "-" is none
				if k < len(whole) {
					v /= whole[k] // of a percentage
				}
				out[method][metrics[k]] = Reported{Value: v}
			}
		}
	}
	return out
}
