package study

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The file notebooks/results/claims.txt says how studies are shown in the pages of results, and what the papers claim:
//
//	@ ohsmc.table8             the study that the lines below are of
//	see ohsmc.table3           its cells are shown there
//	show NLPD; ECE             the metrics that are shown; else those that the paper has
//	note Two sentences.        below the verdicts; lines that follow with two spaces go on
//	claim What it says | where it says so
//	  NLPD | boston; yacht | OHSMC < SWAG
//	  cannot 100 particles, not 1000
//
// A claim is decided by the differences that follow it, each of two numbers of a metric on each of the data sets; "*"
// are all data sets. A side is a method, with "@ data" where it is of another data set; the right one may be a number,
// "paper", which is the paper's number of the left one, or, as the left, "lowest of A; B" or "highest of A; B"; what is
// called "exact" has no error. "<" and ">" say which is lower; "~ B within
// .02" that they differ by no more. Another study's metric has its ID before a colon. After "cannot" stands why the
// claim cannot be judged by what is computed.

// shownAs is what the file says of a study.
type shownAs struct {
	study, see, note string
	metrics          []string
	claims           []claim
}

// claim is a statement of a paper, and what decides it.
type claim struct {
	text, place, cannot string
	differences         []difference
}

// difference compares two numbers.
type difference struct {
	study, metric, data string
	left, right         string
	relation            string // "<", ">" or "~"
	margin              float64
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

var relations = regexp.MustCompile(`^(.+?) ([<>~]) (.+?)(?: within (\S+))?$`)

// readClaims reads the file, study by study.
func readClaims(text string) (all []shownAs, err error) {
	var last *string // that a line goes on with
	for number, line := range strings.Split(text, "\n") {
		fault := func(want string) error {
			return fmt.Errorf("claims.txt, line %d, %q: want %s", number+1, line, want)
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		further := strings.HasPrefix(line, "  ")
		switch {
		case word == "" || strings.HasPrefix(line, "#"):
			last = nil
			continue
		case word == "@":
			if _, err := Find(rest); err != nil {
				return nil, fault("the ID of a study")
			}
			all = append(all, shownAs{study: rest})
			continue
		case len(all) == 0:
			return nil, fault("the line \"@ ID\" of a study first")
		}
		of := &all[len(all)-1]
		switch {
		case further && last != nil:
			*last += " " + strings.TrimSpace(line)
			continue
		case further && len(of.claims) > 0:
			c := &of.claims[len(of.claims)-1]
			if word == "cannot" {
				c.cannot = rest
				continue
			}
			some, ok := readDifferences(of.study, strings.TrimSpace(line))
			if !ok {
				return nil, fault("METRIC | DATA | A < B, > or ~ B within NUMBER")
			}
			c.differences = append(c.differences, some...)
			continue
		}
		last = nil
		switch word {
		case "see":
			of.see = rest
		case "show":
			of.metrics = strings.Split(rest, "; ")
		case "note":
			of.note, last = rest, &of.note
		case "claim":
			said, place, ok := strings.Cut(rest, " | ")
			if !ok {
				return nil, fault("claim WHAT | WHERE")
			}
			of.claims = append(of.claims, claim{text: said, place: place})
		default:
			return nil, fault("see, show, note or claim")
		}
	}
	return all, nil
}

// readDifferences reads a line, which may be of several data sets.
func readDifferences(study, line string) (all []difference, ok bool) {
	parts := strings.Split(line, " | ")
	if len(parts) != 3 {
		return nil, false
	}
	found := relations.FindStringSubmatch(parts[2])
	if found == nil || (found[2] == "~") != (found[4] != "") {
		return nil, false
	}
	margin, err := strconv.ParseFloat(found[4], 64)
	if found[4] != "" && !(err == nil && margin > 0) {
		return nil, false
	}
	metric := parts[0]
	if other, own, cut := strings.Cut(metric, ": "); cut {
		study, metric = other, own
	}
	for data := range strings.SplitSeq(parts[1], "; ") {
		all = append(all, difference{study: study, metric: metric, data: data, left: found[1], right: found[3],
			relation: found[2], margin: margin})
	}
	return all, true
}

// quantity is a mean with its standard error, which is NaN where it is not known, and 0 of what has none.
type quantity struct {
	value, se float64
	n         int
}

// outcome is a difference, ours and the paper's; reps are the fewer of both sides.
type outcome struct {
	ours, paper quantity
	claimed     bool // the paper's goes in the claim's direction
	verdict     verdict
}

// z is by how many standard errors of both ours is above the paper's; NaN where there is none.
func (o outcome) z() float64 {
	se := math.Hypot(o.ours.se, known(finite(&o.paper.se)))
	if math.IsNaN(o.paper.se) {
		se = o.ours.se
	}
	return (o.ours.value - o.paper.value) / se
}

// outcomes are those of a difference, of each data set where it is of all of them.
func (d difference) outcomes(records *Records) (all []outcome, err error) {
	i := slices.IndexFunc(records.studies, func(s recorded) bool { return s.Study == d.study })
	if i < 0 {
		return nil, fmt.Errorf("nothing is recorded of %s", d.study)
	}
	cells := slices.DeleteFunc(slices.Clone(records.studies[i].Cells), func(c recordedCell) bool {
		return c.Metric != d.metric
	})
	sets := []string{d.data}
	if d.data == "*" {
		sets = distinct(cells, func(c recordedCell) string { return c.Data })
	}
	for _, data := range sets {
		left, err := side(cells, data, d.left, d)
		if err != nil {
			return nil, err
		}
		right, err := side(cells, data, d.right, d)
		if err != nil {
			return nil, err
		}
		all = append(all, d.judge(left, right, records.studies[i].paired(d.metric, left, right)))
	}
	return all, nil
}

// paired are the differences of two methods' repetitions, which have data and seeds of their numbers in common; nil
// where these are not recorded.
func (s recorded) paired(metric string, left, right recordedCell) (all []float64) {
	each := func(c recordedCell) []string {
		i := slices.IndexFunc(s.Rows, func(r rowRecord) bool { return r.Data == c.Data && r.Method == c.Method })
		if i < 0 || left.Data != right.Data {
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
func side(cells []recordedCell, data, name string, d difference) (recordedCell, error) {
	zero := 0.
	if value, err := strconv.ParseFloat(name, 64); err == nil {
		return recordedCell{Ours: &value, SE: &zero, Paper: &value, Reps: math.MaxInt}, nil
	}
	if name == "paper" {
		left, err := side(cells, data, d.left, d)
		if left.PaperSE == nil {
			left.PaperSE = &zero
		}
		return recordedCell{Ours: left.Paper, SE: left.PaperSE, Paper: left.Paper, Reps: math.MaxInt}, err
	}
	for _, end := range []string{"lowest of ", "highest of "} {
		list, ok := strings.CutPrefix(name, end)
		if !ok {
			continue
		}
		ahead := func(a, b *float64) bool { return b == nil || a != nil && (*a < *b) == (end == "lowest of ") }
		var best recordedCell
		for method := range strings.SplitSeq(list, "; ") {
			c, err := side(cells, data, method, d)
			if err != nil {
				return c, err
			}
			paper := c
			if !ahead(c.Paper, best.Paper) {
				paper = best
			}
			if ahead(c.Ours, best.Ours) {
				best = c
			}
			best.Paper, best.PaperSE = paper.Paper, paper.PaperSE
		}
		return best, nil
	}
	if method, other, ok := strings.Cut(name, " @ "); ok {
		name, data = method, other
	}
	for _, c := range cells {
		if c.Data == data && c.Method == name {
			if name == "exact" {
				c.SE = &zero
			}
			return c, nil
		}
	}
	return recordedCell{}, fmt.Errorf("%s, %s: nothing is recorded of %q on %q", d.study, d.metric, name, data)
}

// judge compares the two sides. A difference in the claim's direction of two standard errors holds, one in the other
// contradicts it. Where ours is smaller, the claim is not found if the paper's difference is two errors of both away,
// and cannot be judged if it is not: more repetitions would tell. Without an error of ours nothing can be judged.
func (d difference) judge(left, right recordedCell, paired []float64) outcome {
	minus := func(a, b, aSE, bSE *float64) quantity {
		return quantity{value: known(a) - known(b), se: math.Hypot(orZero(aSE), orZero(bSE))}
	}
	out := outcome{ours: minus(left.Ours, right.Ours, left.SE, right.SE),
		paper: minus(left.Paper, right.Paper, left.PaperSE, right.PaperSE)}
	out.ours.n = min(left.Reps, right.Reps)
	if left.SE == nil || right.SE == nil {
		out.ours.se = math.NaN()
	}
	if len(paired) > 1 {
		out.ours.value, out.ours.se = meanSE(paired)
		out.ours.n = len(paired)
	}
	if left.PaperSE == nil && right.PaperSE == nil {
		out.paper.se = math.NaN()
	}
	towards := func(x float64) float64 { // above 0 in the claim's direction
		switch d.relation {
		case "<":
			return -x
		case "~":
			return d.margin - math.Abs(x)
		}
		return x
	}
	out.claimed = towards(out.paper.value) >= 0
	switch z := towards(out.ours.value) / out.ours.se; {
	case math.IsNaN(z):
		out.verdict = cannotJudge
	case z >= 2:
		out.verdict = holds
	case z <= -2:
		out.verdict = contradicted
	case math.Abs(out.z()) < 2:
		out.verdict = cannotJudge
	default: // also where the paper has no number
		out.verdict = notFound
	}
	return out
}

// judge puts the outcomes of a claim together: it holds in part where some hold; where none does it is contradicted if
// one is, and not found if one is not.
func (c claim) judge(all []outcome) verdict {
	count := map[verdict]int{}
	for _, o := range all {
		count[o.verdict]++
	}
	switch {
	case c.cannot != "" || len(all) == 0:
		return cannotJudge
	case count[holds] == len(all):
		return holds
	case count[holds] > 0:
		return inPart
	case count[contradicted] > 0:
		return contradicted
	case count[notFound] > 0:
		return notFound
	}
	return cannotJudge
}

// outcomes are those of all differences. One without a record is an error, beside the others.
func (c claim) outcomes(records *Records) (all []outcome, err error) {
	for _, d := range c.differences {
		some, fault := d.outcomes(records)
		if fault != nil {
			err = errors.Join(err, fmt.Errorf("claim %q: %w", c.text, fault))
		}
		all = append(all, some...)
	}
	return all, err
}

// claimed are the metrics of a study that claims are about.
func (r *Records) claimed(study string) (metrics []string) {
	for _, s := range r.shown {
		for _, c := range s.claims {
			for _, d := range c.differences {
				if d.study == study && !slices.Contains(metrics, d.metric) {
					metrics = append(metrics, d.metric)
				}
			}
		}
	}
	return metrics
}

// row is the claim in the table of its paper; detail is where its study is shown.
func (c claim) row(records *Records, detail string) []string {
	all, err := c.outcomes(records)
	paper, ours, z := summary(all)
	if err != nil {
		ours = strings.TrimPrefix(ours+"; not all is recorded", "; ") // TestClaims says what
	}
	if c.cannot != "" {
		ours = strings.TrimPrefix(ours+"; "+c.cannot, "; ")
	}
	return []string{c.text + " (" + c.place + ")", paper, ours, z, "**" + string(c.judge(all)) + "**", detail}
}

// summary is what the paper says, what we find, and z: of one difference these, of several how many are as claimed.
func summary(all []outcome) (paper, ours, z string) {
	var zs []float64
	count := map[verdict]int{}
	fewest, most := math.MaxInt, 0
	for _, o := range all {
		count[o.verdict]++
		fewest, most = min(fewest, o.ours.n), max(most, o.ours.n)
		if v := o.z(); finite(&v) != nil {
			zs = append(zs, v)
		}
	}
	n := fmt.Sprint(fewest)
	if most > fewest {
		n += " to " + fmt.Sprint(most)
	}
	switch {
	case len(all) == 0:
		return "", "", ""
	case len(all) == 1:
		paper, ours = all[0].paper.String(), all[0].ours.String()
	default:
		claimed, known := 0, 0
		for _, o := range all {
			if !math.IsNaN(o.paper.value) {
				known++
			}
			if o.claimed {
				claimed++
			}
		}
		if paper = "-"; known > 0 {
			paper = fmt.Sprintf("%d of %d", claimed, known)
		}
		ours = fmt.Sprintf("%d of %d", count[holds], len(all))
		if count[contradicted] > 0 {
			ours += fmt.Sprintf(", %d against", count[contradicted])
		}
	}
	if len(zs) > 0 {
		z = fmt.Sprintf("%.1f", slices.Min(zs))
		if high := fmt.Sprintf("%.1f", slices.Max(zs)); high != z {
			z += " to " + high
		}
	}
	return paper, ours + " (" + n + ")", z
}

// String is the number with its error.
func (e quantity) String() string {
	if math.IsNaN(e.value) {
		return "-"
	}
	c := Cell{Ours: e.value, SE: e.se}
	format := strings.Replace(c.decimals(), "%", "%+", 1)
	text := fmt.Sprintf(format, e.value)
	if e.se > 0 {
		text += " ± " + fmt.Sprintf(c.decimals(), e.se)
	}
	return text
}
