package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// decided are the options by which the values of a column say what it is.
var decided = CSVOptions{Task: TaskByTarget, Categorical: []string{EveryText}}

// among is a column of the numbers 1, 2, ... up to n, one of each, with texts in place of some.
func among(n int, texts map[int]string) []string {
	column := make([]string, n)
	for i := range column {
		column[i] = strconv.Itoa(i + 1)
		if text, is := texts[i]; is {
			column[i] = text
		}
	}
	return column
}

// All values of a column decide whether it is of numbers: the first has no more to say than another.
func TestWholeColumnDecides(t *testing.T) {
	const numbers, categories = true, false
	codes := func(n int) []string { return slices.Repeat([]string{"12", "12A", "13", "14B", "15"}, n) }
	nulls := slices.Concat([]string{"null"}, among(8, nil), []string{"null", "null"})
	half := slices.Concat([]string{"12A", "7"}, among(30, nil))
	for name, c := range map[string]struct {
		column []string
		is     bool
		bad    string // the text that is refused; none of a column that is read
	}{
		"numbers":                         {among(30, nil), numbers, ""},
		"a word first":                    {among(30, map[int]string{0: "null"}), numbers, "null"},
		"the same in the twelfth row":     {among(30, map[int]string{11: "null"}), numbers, "null"},
		"words for missing, many":         {nulls, numbers, "null"},
		"a dash first":                    {among(12, map[int]string{0: "-"}), numbers, "-"},
		"N/A first":                       {among(12, map[int]string{0: "N/A", 3: "N/A"}), numbers, "N/A"},
		"unknown last":                    {among(12, map[int]string{11: "Unknown"}), numbers, "Unknown"},
		"a bound first":                   {among(12, map[int]string{0: "<0.5", 2: "<0.5", 4: "<0.5"}), numbers, "<0.5"},
		"a bound with a comma":            {among(12, map[int]string{0: "< 0,5", 2: "< 0,5"}), numbers, "< 0,5"},
		"any word, in 5 %":                {among(40, map[int]string{7: "often", 30: "rarely"}), numbers, "often"},
		"any word, in a small table":      {among(8, map[int]string{0: "often"}), numbers, "often"},
		"a word that comes back":          {among(20, map[int]string{0: "no", 5: "no", 6: "no"}), numbers, "no"},
		"a code in 5 %":                   {half, numbers, "12A"},
		"a decimal comma in all":          {strings.Fields("1,5 2,5 3,5 1,5 2,5 3,5"), numbers, "1,5"},
		"a currency in all":               {strings.Fields("$1 $2 $3 $1 $2 $3"), numbers, "$1"},
		"not finite":                      {among(30, map[int]string{0: "inf"}), numbers, "inf"},
		"more numbers than categories":    {among(1500, map[int]string{0: "?!", 1400: "?!"}), numbers, "?!"},
		"codes, a number first":           {codes(4), categories, ""},
		"codes, a letter first":           {codes(4)[1:], categories, ""},
		"codes in a small table":          {strings.Fields("12 12A 12 13 14"), categories, ""},
		"texts":                           {strings.Fields("a b a b"), categories, ""},
		"texts and a word for missing":    {strings.Fields("null b a b"), categories, ""},
		"top-coded":                       {strings.Fields("0 1 2 3+ 0 1 2 3+"), categories, ""},
		"true, false and another":         {strings.Fields("True False maybe True"), categories, ""},
		"texts, of which few are numbers": {append(slices.Repeat([]string{"a"}, 40), "1", "2"), categories, ""},
	} {
		for _, target := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, target %v", name, target), func(t *testing.T) {
				text := "x;z;y\n"
				for i, value := range c.column {
					if target {
						text += fmt.Sprintf("%d;%d;%s\n", i%7, i%5, value)
					} else {
						text += fmt.Sprintf("%s;%d;%d\n", value, i%5, i)
					}
				}
				d, err := ReadCSV(strings.NewReader(text), decided)
				if c.bad != "" {
					cures := []string{strconv.Quote(c.bad), "MissingTokens", "Categorical"}
					if target {
						cures[2] = "Task"
					}
					if c.bad == "inf" || c.bad == "1,5" {
						cures = cures[:1]
					}
					wantError(t, err, append(cures, fmt.Sprintf("row %d", slices.Index(c.column, c.bad)))...)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := target && d.Task == Regression || !target && d.Features[0] == "x"; got != c.is {
					t.Errorf("of numbers: %v, want %v\n%v", got, c.is, d)
				}
			})
		}
	}
}

// A row of units is refused as such, and what else is wrong with the table is told in the same error, once a column.
func TestRowOfUnits(t *testing.T) {
	const units = "time,flow,town,output\ns,m3/h,-,kW\n0,1,a,4\n10,1,b,4\n20,x,a,5\n30,2,b,6\n40,2,,7\n50,2,,8\n"
	for name, opts := range map[string]CSVOptions{"decided": decided, "numbers": {Categorical: []string{"town"}}} {
		opts.Missing = MissingDropRow
		_, err := ReadCSV(strings.NewReader(strings.Replace(units, "x", "1", 1)), opts)
		t.Run(name, func(t *testing.T) {
			wantError(t, err, "row 0 (line 2)", `"s" "m3/h" "kW"`, "row of units", "take it out")
		})
	}
	_, err := ReadCSV(strings.NewReader("a,b,c,y\n1,2,,4\n1,2,3\nu,2,,4\nu,v,,4\nw,inf,1,4\n"), CSVOptions{})
	wantError(t, err, "several things must be mended", "row 1 (line 3) has 3 fields",
		`row 2 (line 4), column "a": cannot read "u"`,
		`nor can ["w"] (so in 2 more rows)`, `row 0 (line 2), column "c": the value is missing ("")`, "(so in 2 more rows)",
		`row 4 (line 6), column "b": "inf" is not a finite number`, `row 3 (line 5), column "b": cannot read "v"`)
}
