package study

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// The file notebooks/results/claims.txt says how studies are shown in the pages of results, and what the papers claim:
//
//	@ ohsmc.table8             the study that the lines below are of
//	see ohsmc.table3           its cells are shown there
//	show NLPD; ECE             the metrics that are shown; else those that the paper has
//	note Two sentences.        below the verdicts; further lines go on
//	claim What it says | where it says so
//	  by NLPD | boston; yacht | OHSMC < SWAG
//	  cannot 100 particles, not 1000
//
// A claim is decided by the differences that follow it, each of two numbers of a metric on each of the data sets. A
// side is a method, with "@ data" where it is of another data set, or "lowest of A; B" or "highest of A; B"; the right
// one may be a number, or "paper", the paper's number of the left one. What is called "exact" has no error. "<" and ">"
// say which is lower, "> B by .1" by more than that, "~ B within .02" that they differ by no more. After "cannot"
// stands why the claim cannot be judged by what is computed.

// shownAs is what the file says of a study.
type shownAs struct {
	study, see, note string
	metrics          []string
	claims           []*claim
}

// named are the sides of all claims.
func (s shownAs) named() (text string) {
	for _, c := range s.claims {
		for _, d := range c.differences {
			text += d.left + "; " + d.right + "\n"
		}
	}
	return text
}

// claim is a statement of a paper, and what decides it.
type claim struct {
	text, place, cannot string
	differences         []difference
}

// difference compares two numbers.
type difference struct {
	metric, data string
	left, right  string
	relation     string // "<", ">" or "~"
	margin       float64
}

// A verdict says what becomes of a claim.
type verdict string

const (
	holds        verdict = "holds"
	inPart       verdict = "holds in part"
	notFound     verdict = "not found"
	contradicted verdict = "contradicted"
	cannotJudge  verdict = "cannot be judged at this size"
)

var relations = regexp.MustCompile(`^(.+) \| (.+) \| (.+?) (?:([<>]) (.+?)(?: by ([\d.]+))?|(~) (.+) within ([\d.]+))$`)

// readClaims reads the file, study by study.
func readClaims(text string) (all []*shownAs, err error) {
	var of *shownAs
	var last *claim
	for number, line := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		said, place, isClaim := strings.Cut(rest, " | ")
		found := relations.FindStringSubmatch(rest)
		switch {
		case word == "" || word == "#":
		case word == "@":
			of, last = &shownAs{study: rest}, nil
			all = append(all, of)
			_, err = Find(rest)
		case of == nil:
			err = errors.New(`want the line "@ ID" of a study first`)
		case word == "see":
			of.see = rest
		case word == "show":
			of.metrics = strings.Split(rest, "; ")
		case word == "note":
			of.note = strings.TrimSpace(of.note + " " + rest)
		case word == "claim" && isClaim:
			last = &claim{text: said, place: place}
			of.claims = append(of.claims, last)
		case word == "by" && last != nil && found != nil:
			margin, _ := strconv.ParseFloat(found[6]+found[9], 64) // of "<" and ">" there may be none
			for data := range strings.SplitSeq(found[2], "; ") {
				last.differences = append(last.differences,
					difference{found[1], data, found[3], found[5] + found[8], found[4] + found[7], margin})
			}
		case word == "cannot" && last != nil:
			last.cannot = rest
		default:
			err = errors.New("want see, show, note, claim WHAT | WHERE, and then by METRIC | DATA | A < B, > or ~ B within " +
				"NUMBER, or cannot")
		}
		if err != nil {
			return nil, fmt.Errorf("claims.txt, line %d, %q: %w", number+1, line, err)
		}
	}
	return all, nil
}

// quantity is a mean with its standard error, NaN where it is not known.
type quantity struct{ value, se float64 }

// outcome is a difference, ours and the paper's.
type outcome struct {
	ours, paper quantity
	n           int  // our repetitions, the fewer of both sides
	claimed     bool // the paper's goes in the claim's direction
	verdict     verdict
}

// z is by how many standard errors of both ours is above the paper's; NaN where there is none.
func (o outcome) z() float64 {
	return (o.ours.value - o.paper.value) / math.Hypot(o.ours.se, orZero(finite(&o.paper.se)))
}

// outcome compares the two sides, by pairs of repetitions where these are recorded: those of a number have data and
// seeds in common, and where they have not, pairs are as good as any. A difference in the claim's direction of two
// standard errors holds, one in the other contradicts it; of few repetitions it takes more, by Student's t. Where ours
// is smaller, the claim is not found if the paper's difference is two errors of both away, and cannot be judged if it
// is not: more repetitions would tell. Without an error of ours nothing can be judged.
func (d difference) outcome(s recorded) (out outcome, err error) {
	left, err := s.side(d, d.data, d.left)
	if err != nil {
		return out, err
	}
	right, err := s.side(d, d.data, d.right)
	if err != nil {
		return out, err
	}
	out.n = min(left.Reps, right.Reps)
	out.ours = quantity{left.Ours - right.Ours, math.Hypot(left.SE, right.SE)}
	if paired := s.paired(d.metric, left, right); len(paired) > 1 {
		out.n = len(paired)
		out.ours.value, out.ours.se = meanSE(paired)
	}
	out.paper = quantity{known(left.Paper) - known(right.Paper), math.NaN()}
	if left.PaperSE != nil || right.PaperSE != nil {
		out.paper.se = math.Hypot(orZero(left.PaperSE), orZero(right.PaperSE))
	}
	towards := func(x float64) float64 { // above 0 in the claim's direction
		return map[string]float64{"<": -x - d.margin, ">": x - d.margin, "~": d.margin - math.Abs(x)}[d.relation]
	}
	out.claimed = towards(out.paper.value) >= 0
	two := distuv.StudentsT{Sigma: 1, Nu: float64(max(1, out.n-1))}.Quantile(distuv.UnitNormal.CDF(2))
	switch z := towards(out.ours.value) / out.ours.se; {
	case math.IsNaN(z), math.Abs(z) < two && math.Abs(out.z()) < 2:
		out.verdict = cannotJudge
	case z >= two:
		out.verdict = holds
	case z <= -two:
		out.verdict = contradicted
	default: // also where the paper has no number
		out.verdict = notFound
	}
	return out, nil
}

// paired are the differences of two rows' repetitions; nil where these are not recorded.
func (s recorded) paired(metric string, left, right Cell) (all []float64) {
	each := func(c Cell) []string {
		i := slices.IndexFunc(s.Rows, func(r rowRecord) bool { return r.Data == c.Data && r.Method == c.Method })
		if i < 0 {
			return nil
		}
		return s.Rows[i].Each[metric]
	}
	a, b := each(left), each(right)
	for i := range min(len(a), len(b)) {
		x, _ := strconv.ParseFloat(a[i], 64) // it was written by FormatFloat
		y, _ := strconv.ParseFloat(b[i], 64)
		all = append(all, x-y)
	}
	return all
}

// side finds the cell of one side of a difference.
func (s recorded) side(d difference, data, name string) (Cell, error) {
	if value, err := strconv.ParseFloat(name, 64); err == nil {
		return Cell{Ours: value, Paper: &value, Reps: math.MaxInt}, nil
	}
	if name == "paper" {
		left, err := s.side(d, data, d.left)
		return Cell{Ours: known(left.Paper), SE: orZero(left.PaperSE), Paper: left.Paper, Reps: math.MaxInt}, err
	}
	if end, list, ok := strings.Cut(name, " of "); ok && (end == "lowest" || end == "highest") {
		best := Cell{Ours: math.NaN()}
		ahead := func(a, b float64) bool { return math.IsNaN(b) || !math.IsNaN(a) && (a < b) == (end == "lowest") }
		for method := range strings.SplitSeq(list, "; ") {
			c, err := s.side(d, data, method)
			if err != nil {
				return c, err
			}
			paper, paperSE := best.Paper, best.PaperSE
			if ahead(known(c.Paper), known(paper)) {
				paper, paperSE = c.Paper, c.PaperSE
			}
			if ahead(c.Ours, best.Ours) {
				best = c
			}
			best.Paper, best.PaperSE = paper, paperSE
		}
		return best, nil
	}
	if method, other, ok := strings.Cut(name, " @ "); ok {
		name, data = method, other
	}
	for _, c := range s.cells() {
		if c.Data == data && c.Method == name && c.Metric == d.metric {
			if name == "exact" {
				c.SE, c.Reps = 0, math.MaxInt
			}
			return c, nil
		}
	}
	return Cell{}, fmt.Errorf("%s, %s: nothing is recorded of %q on %q", s.Study, d.metric, name, data)
}

// count is the number of outcomes with a verdict.
func count(all []outcome, v verdict) (n int) {
	for _, o := range all {
		if o.verdict == v {
			n++
		}
	}
	return n
}

// judge puts the outcomes of a claim together: it holds in part where some hold, and no fewer than are contradicted;
// else it is contradicted if some are, and not found if one is not. One alone of three or more that is contradicted may
// be chance: by the rule's two errors it is so once in fifteen times.
func (c claim) judge(all []outcome) verdict {
	switch held, against := count(all, holds), count(all, contradicted); {
	case c.cannot != "" || len(all) == 0:
		return cannotJudge
	case held == len(all):
		return holds
	case held > 0 && held >= against:
		return inPart
	case against > 1, against > 0 && len(all) < 3:
		return contradicted
	case against > 0, count(all, notFound) > 0:
		return notFound
	}
	return cannotJudge
}

// outcomes are those of all differences. One without a record is an error, beside the others.
func (c claim) outcomes(s recorded) (all []outcome, err error) {
	for _, d := range c.differences {
		one, fault := d.outcome(s)
		if err = errors.Join(err, fault); fault == nil {
			all = append(all, one)
		}
	}
	return all, err
}

// row is the claim in the table of its paper: of one difference the numbers, of several how many are as claimed.
// detail is where its study is shown.
func (c claim) row(s recorded, detail string) []string {
	all, err := c.outcomes(s)
	var zs []float64
	var ns []int
	numbers, claimed := 0, 0
	for _, o := range all {
		ns = append(ns, o.n)
		if z := o.z(); finite(&z) != nil {
			zs = append(zs, z)
		}
		if !math.IsNaN(o.paper.value) {
			numbers++
		}
		if o.claimed {
			claimed++
		}
	}
	paper, ours, z, judged := "-", "", "", c.judge(all)
	if len(all) == 1 {
		paper, ours = all[0].paper.String(), all[0].ours.String()
	} else if len(all) > 1 {
		ours = fmt.Sprintf("%d of %d", count(all, holds), len(all))
		if against := count(all, contradicted); against > 0 {
			ours += fmt.Sprintf(", %d against", against)
		}
		if numbers > 0 {
			paper = fmt.Sprintf("%d of %d", claimed, numbers)
		}
	}
	if len(all) > 0 {
		ours += fmt.Sprintf(" (%s)", span(ns, "%d"))
	}
	if len(zs) > 0 {
		z = span(zs, "%.1f")
	}
	if err != nil { // what is missing could change it
		judged = c.judge(append(all, outcome{verdict: cannotJudge}))
		ours += "; not all is recorded"
	}
	if c.cannot != "" {
		ours += "; " + c.cannot
	}
	return []string{c.text + " (" + c.place + ")", paper, strings.TrimPrefix(ours, "; "), z, "**" + string(judged) + "**",
		detail}
}

// span is the range of values in words, or one number where both ends are the same.
func span[T cmp.Ordered](values []T, format string) string {
	low, high := fmt.Sprintf(format, slices.Min(values)), fmt.Sprintf(format, slices.Max(values))
	if low == high {
		return low
	}
	return low + " to " + high
}

// String is the number with its error.
func (q quantity) String() string {
	if math.IsNaN(q.value) {
		return "-"
	}
	text := Cell{Ours: q.value, SE: q.se}.text()
	if q.value > 0 {
		text = "+" + text
	}
	return text
}
