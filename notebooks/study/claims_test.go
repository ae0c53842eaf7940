package study

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What the claims compare is computed by the studies, and recorded of those rows that are recorded.
func TestClaims(t *testing.T) {
	records := must(OpenRecords(filepath.Join("..", "..")))
	for _, s := range records.shown {
		known := map[[2]string]bool{}
		for _, one := range must(must(Find(s.study)).trials(Options{})) {
			known[[2]string{one.Data, one.Method}] = true
		}
		for _, c := range s.claims {
			for _, d := range c.differences {
				for _, side := range []string{d.left, d.right} {
					list := strings.TrimPrefix(strings.TrimPrefix(side, "lowest of "), "highest of ")
					for name := range strings.SplitSeq(list, "; ") {
						name, data, other := strings.Cut(name, " @ ")
						if !other {
							data = d.data
						}
						if _, err := strconv.ParseFloat(name, 64); err != nil && name != "paper" && !known[[2]string{data, name}] {
							t.Errorf("claim %q: %s has no %q on %q", c.text, s.study, name, data)
						}
					}
				}
			}
		}
	}
}

// A verdict goes by the difference, its error, and the paper's.
func TestVerdicts(t *testing.T) {
	cell := func(data, method string, ours, se, paper, paperSE float64) recordedCell {
		c := recordedCell{Data: data, Method: method, Metric: "NLPD", Ours: finite(&ours), SE: finite(&se), Reps: 10}
		c.Paper, c.PaperSE = finite(&paper), finite(&paperSE)
		if c.SE == nil {
			c.Reps = 1
		}
		return c
	}
	none := math.NaN()
	record := recorded{Study: "ohsmc.table1", Cells: []recordedCell{
		cell("a", "one", 1, .03, 1, .01), cell("a", "two", 1.2, .04, 1.3, .02), cell("a", "three", 1.05, .04, 1.06, none),
		cell("a", "four", 1.02, .04, 1.5, none), cell("a", "once", 2, none, 2, none),
		cell("a", "bare", 1.01, .04, none, none),
		cell("a", "exact", 1.1, none, none, none), cell("b", "one", 3, .03, 1, .01), cell("b", "two", 2, .04, none, none),
		cell("c", "one", 3, .03, 1, .01), cell("c", "two", 2, .04, none, none),
		cell("b", "four", 2, .04, none, none),
	}}
	for line, want := range map[string]verdict{
		"NLPD | a | one < two": holds, "NLPD | a | two > one": holds, "NLPD | a | one > two": contradicted,
		"NLPD | a | one < three": cannotJudge, "NLPD | a | one < four": notFound, "NLPD | a | one < bare": notFound,
		"NLPD | a | one < once": cannotJudge, "NLPD | a | one < lowest of two; three": cannotJudge,
		"NLPD | a | one < highest of two; three": holds, "NLPD | a | one ~ two within .4": holds,
		"NLPD | a | one < two by .05": holds, "NLPD | a | two > one by .5": contradicted,
		"NLPD | a | one ~ two within .05": contradicted, "NLPD | a | one ~ paper within .1": holds,
		"NLPD | a | one > .9": holds, "NLPD | a | one < exact": holds,
		"NLPD | a | one < one @ b": holds, "NLPD | a; b | one < two": inPart, "NLPD | a; b; c | one < two": contradicted,
		"NLPD | a; b | one < four": contradicted, "NLPD | a; a; b | one < four": notFound,
	} {
		all := must(readClaims("@ ohsmc.table1\nclaim x | y\nby " + line))
		c := all[0].claims[0]
		some, err := c.outcomes(record)
		if got := c.judge(some); got != want || err != nil {
			t.Errorf("%s: %s, want %s (%v); %+v", line, got, want, err, some)
		}
	}
	// By pairs, .1 ± .01, the difference is known ten times better than by the means.
	record.Rows = []rowRecord{{Data: "a", Method: "one", Each: map[string][]string{"NLPD": {"1", "2", "3"}}},
		{Data: "a", Method: "three", Each: map[string][]string{"NLPD": {"1.1", "2.12", "3.08"}}}}
	some := must(readClaims("@ ohsmc.table1\nclaim x | y\nby NLPD | a | one < three"))[0].claims[0]
	all := must(some.outcomes(record))
	if row := some.row(record, "z"); row[2] != "-0.100 ± 0.012 (3)" || all[0].verdict != holds {
		t.Errorf("%q, %+v", row, all)
	}
	for text, want := range map[string]string{
		"note x": "first", "@ ohsmc.table9": "no study", "@ ohsmc.table1\nclaim x": "WHAT | WHERE",
		"@ ohsmc.table1\nnotes x": "see, show", "@ ohsmc.table1\nclaim x | y\nby NLPD | a | b ~ c": "METRIC | DATA",
	} {
		if _, err := readClaims(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	verdicts := []string{}
	for _, s := range must(OpenRecords(filepath.Join("..", ".."))).shown {
		for _, c := range s.claims {
			if len(c.differences) == 0 && c.cannot == "" {
				verdicts = append(verdicts, c.text)
			}
		}
	}
	if len(verdicts) > 0 {
		t.Errorf("claims with neither differences nor a reason: %q", verdicts)
	}
}
