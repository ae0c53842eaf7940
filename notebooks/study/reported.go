package study

import (
	_ "embed" // for the papers' numbers
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Reported is a number of a paper's table.
type Reported struct {
	Value float64
	SE    float64 // its standard error; 0: unknown
}

// reportedText has the papers' tables as they are printed. An empty line separates the tables of two data sets.
//
//go:embed reported.txt
var reportedText string

// reportedIn returns what a paper's table has for a data set, by method and metric.
func reportedIn(table, data string) map[string]map[string]Reported {
	return reported[[2]string{table, data}]
}

var reported = readReported(reportedText)

// readReported reads the papers' tables, by table and data set.
func readReported(text string) map[[2]string]map[string]map[string]Reported {
	all := map[[2]string]map[string]map[string]Reported{}
	var head []string // of the table that is read
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "":
			head = nil
		case head == nil:
			head = append(strings.Split(line, " | "), "")
			all[[2]string(head)] = map[string]map[string]Reported{}
		default:
			method, numbers, _ := strings.Cut(line, ": ")
			all[[2]string(head)][method] = numbersOf(strings.Split(head[2], "; "), head[3], strings.Fields(numbers))
		}
	}
	return all
}

// numbersOf reads a method's numbers; over is what the deviations behind them are over.
func numbersOf(metrics []string, over string, texts []string) map[string]Reported {
	numbers := map[string]Reported{}
	for i, text := range texts {
		value, deviation, _ := strings.Cut(text, "±")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue // "-" is none
		}
		d, _ := strconv.ParseFloat(deviation, 64) // 0 of none
		name, percent := strings.CutSuffix(metrics[i], " [%]")
		if percent {
			v, d = v/100, d/100
		}
		var runs float64
		if _, err := fmt.Sscanf(over, "± over %g runs", &runs); err == nil {
			d /= math.Sqrt(runs)
		} else if over != "" { // it is a metric of its own
			if d > 0 {
				numbers[name+" std"] = Reported{Value: d}
			}
			d = 0
		}
		numbers[name] = Reported{v, d}
	}
	return numbers
}
