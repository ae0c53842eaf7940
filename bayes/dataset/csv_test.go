package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/gonum/mat"
)

// ab is what many tables have in another notation.
const ab = "a|b: 1 2 = 3, 4 5 = 6"

// content is a table's in one line: the features, each row's numbers, after = those of targets, and the classes.
func content(d *Dataset) string {
	text := strings.Join(d.Features, "|") + ":"
	for i := range d.Rows() {
		if i > 0 {
			text += ","
		}
		for _, v := range mat.Row(nil, i, d.X) {
			text += fmt.Sprint(" ", v)
		}
		if k := len(d.TargetNames()); len(d.Y) > 0 {
			text += " = " + strings.Trim(fmt.Sprint(d.Y[i*k:(i+1)*k]), "[]")
		}
	}
	if d.Classes != nil {
		text += " of " + strings.Join(d.Classes, "|")
	}
	return text
}

// Tables are read as their writers meant them.
func TestReadCSV(t *testing.T) {
	for _, c := range []readCase{
		{"plain", "a,b,y\n1,2,3\n4,5,6\n", CSVOptions{}, ab},
		{"no end of line, CRLF, byte order mark", "\uFEFFa,b,y\r\n1,2,3\r\n4,5,6", CSVOptions{}, ab},
		{"quotes, spaces, empty lines, exponents", "\"a\", b ,y\n\n 1, \"2\",3e0\n4,+5,0.6e1\n\n", CSVOptions{}, ab},
		{"semicolons", "a;b;y\n1;2;3\n4;5;6\n", CSVOptions{Delimiter: ';'}, ab},
		{"tabs", "a\tb\ty\n1\t2\t3\n4\t5\t6\n", CSVOptions{Delimiter: '\t'}, ab},
		{"no header", "1,2,3\n4,5,6\n", CSVOptions{NoHeader: true}, "x0|x1: 1 2 = 3, 4 5 = 6"},
		{"target by name", "y,a,b\n3,1,2\n6,4,5\n", CSVOptions{Target: "y"}, ab},
		{"target by index", "y,a,b\n3,1,2\n6,4,5\n", CSVOptions{Target: "0"}, ab},
		{"target from the end", "a,y,b\n1,3,2\n4,6,5\n", CSVOptions{Target: "-2"}, ab},
		{"one of Targets", "y,a,b\n3,1,2\n6,4,5\n", CSVOptions{Targets: []string{"y"}}, ab},
		{"several targets", "b,v,a,u\n2,7,1,3\n5,8,4,6\n", CSVOptions{Targets: []string{"u", "1"}},
			"b|a: 2 1 = 3 7, 5 4 = 6 8"},
		{"several targets, rows dropped", "u,v,a\n3,,1\n3,7,1\n?,7,1\n6,8,2\n",
			CSVOptions{Targets: []string{"u", "v"}, Missing: MissingDropRow}, "a: 1 = 3 7, 2 = 6 8"},
		{"a name before an index", "a,b,0\n1,2,3\n4,5,6\n", CSVOptions{Target: "0"}, ab},
		{"ignored column", "id,a,b,y\nu,1,2,3\n,4,5,6\n", CSVOptions{Ignore: []string{"id"}}, ab},
		{"labels, sorted", "a,b,y\n1,2,yes\n4,5,no\n", CSVOptions{Task: BinaryClassification},
			"a|b: 1 2 = 1, 4 5 = 0 of no|yes"},
		{"labels, as numbers", "a,y\n1,10\n4,9\n2,2\n", CSVOptions{Task: Classification},
			"a: 1 = 2, 4 = 1, 2 = 0 of 2|9|10"},
		{"long codes, equal as floats", "a,y\n1,9007199254740993\n4,9007199254740992\n", CSVOptions{Task: Classification},
			"a: 1 = 1, 4 = 0 of 9007199254740992|9007199254740993"},
		{"codes, of which one is no number", "a,y\n1,1\n4,01\n2,b\n", CSVOptions{Task: Classification},
			"a: 1 = 1, 4 = 0, 2 = 2 of 01|1|b"},
		{"codes with underscores", "well,y\n1_10,1\n11_0,2\n1_1,3\n", CSVOptions{Categorical: []string{"well"}},
			"well=11_0|well=1_1|well=1_10: 0 0 1 = 1, 1 0 0 = 2, 0 1 0 = 3"},
		{"names with underscores", "1_1,1_2,1_10\n1,2,3\n4,5,6\n", CSVOptions{}, "1_1|1_2: 1 2 = 3, 4 5 = 6"},
		{"long codes as categories", "id,y\n9007199254740993,1\n9007199254740992,2\n",
			CSVOptions{Categorical: []string{"id"}}, "id=9007199254740992|id=9007199254740993: 0 1 = 1, 1 0 = 2"},
		{"long codes ignored", "id,a,y\n9007199254740993,1,2\n9007199254740992,3,4\n", CSVOptions{Ignore: []string{"id"}},
			"a: 1 = 2, 3 = 4"},
		{"long numbers written alike", "a,y\n9007199254740993,1\n9007199254740993,2\n9007199254740996,3\n", CSVOptions{},
			"a: 9.007199254740992e+15 = 1, 9.007199254740992e+15 = 2, 9.007199254740996e+15 = 3"},
		{"numbers with leading zeros alike", "hour,y\n07,1\n10,2\n07,3\n0.70,4\n.7,5\n", CSVOptions{},
			"hour: 7 = 1, 10 = 2, 7 = 3, 0.7 = 4, 0.7 = 5"},
		{"categories with leading zeros", "zip,y\n01234,1\n1234,2\n01234,3\n", CSVOptions{Categorical: []string{"zip"}},
			"zip=01234|zip=1234: 1 0 = 1, 0 1 = 2, 1 0 = 3"},
		{"whole categories with a point", "c,y\n2.0,1\n10,2\n2,3\n10.00,4\n-1.,5\n",
			CSVOptions{Categorical: []string{"c"}},
			"c=-1.|c=2.0|c=10: 0 1 0 = 1, 0 0 1 = 2, 0 1 0 = 3, 0 0 1 = 4, 1 0 0 = 5"},
		{"whole classes with a point", "a,y\n1,0\n2,1\n3,1.0\n4,b\n", CSVOptions{Task: Classification},
			"a: 1 = 0, 2 = 1, 3 = 1, 4 = 2 of 0|1|b"},
		{"given classes with a point", "a,y\n1,1\n2,0.0\n",
			CSVOptions{Task: Classification, Classes: []string{"1.0", "0"}}, "a: 1 = 0, 2 = 1 of 1.0|0"},
		{"a number for a token of a category", "c,y\n1,1\n-999.0,2\n2,3\n",
			CSVOptions{Missing: MissingDropRow, MissingTokens: []string{"-999"}, Categorical: []string{"c"}},
			"c=1|c=2: 1 0 = 1, 0 1 = 3"},
		{"labels, in a given order", "a,b,y\n1,2,yes\n4,5,no\n",
			CSVOptions{Task: Classification, Classes: []string{"yes", "maybe", "no"}},
			"a|b: 1 2 = 0, 4 5 = 2 of yes|maybe|no"},
		{"categories", "colour,b,y\nred,2,3\nblue,5,6\nred,7,8\n", CSVOptions{Categorical: []string{"colour"}},
			"colour=blue|colour=red|b: 0 1 2 = 3, 1 0 5 = 6, 0 1 7 = 8"},
		{"drop", "a,c,y\n1,u,3\nNA,u,3\n1,?,3\n2,v,\n4,w,6\n",
			CSVOptions{Missing: MissingDropRow, Categorical: []string{"c"}}, "a|c=u|c=w: 1 1 0 = 3, 4 0 1 = 6"},
		{"mean", "a,c,y\n1,u,3\nnan,u,3\n1,,3\n4,w,6\n", CSVOptions{Missing: MissingMean, Categorical: []string{"c"}},
			"a|c=u|c=w: 1 1 0 = 3, 2 1 0 = 3, 1 0.6666666666666666 0.3333333333333333 = 3, 4 0 1 = 6"},
		{"mean of large numbers", "a,y\n1e150,1\nNaN,2\n1e150,3\n", CSVOptions{Missing: MissingMean},
			"a: 1e+150 = 1, 1e+150 = 2, 1e+150 = 3"},
		{"own tokens", "a,b,y\n1,2,3\n-999,5,6\n", CSVOptions{Missing: MissingMean, MissingTokens: []string{"-999"}},
			"a|b: 1 2 = 3, 1 5 = 6"},
		{"a number for a token", "a,b,y\n1,2,3\n-999.0,5,6\n4,-999.,7\n",
			CSVOptions{Missing: MissingDropRow, MissingTokens: []string{"-999"}}, "a|b: 1 2 = 3"},
		{"no tokens: a category of its own", "c,b,y\n?,2,3\nu,5,6\n",
			CSVOptions{MissingTokens: []string{}, Categorical: []string{"0"}}, "c=?|c=u|b: 1 0 2 = 3, 0 1 5 = 6"},
		{
			"a row that is dropped has no fault", "a,b,y\n1,2,3\nTotal,,7\n4,5,6\n", CSVOptions{Missing: MissingDropRow}, ab,
		},
		{
			"a target and exposures", "b,y,a,t\n2,3,1,1\n5,6,4,2\n", CSVOptions{Target: "y", Exposure: "t", Task: TaskByTarget},
			"b|a: 2 1 = 3, 5 4 = 6",
		},

		// As programs write tables.
		{"an index of pandas", ",a,b,y\n0,1,2,3\n1,4,5,6\n", CSVOptions{}, ab},
		{"an index of R", "\"\",\"a\",\"b\",\"y\"\n\"1\",1,2,3\n\"2\",4,5,6\n", CSVOptions{}, ab},
		{"names of rows", ",a,b,y\nMazda,1,2,3\nDatsun,4,5,6\n", CSVOptions{}, ab},
		{"an index with holes", ",a,b,y\n0,1,2,3\n7,4,5,6\n", CSVOptions{}, ab},
		{"an unnamed column that is ignored", ",a,b,y\nu,1,2,3\nu,4,5,6\n", CSVOptions{Ignore: []string{"0"}}, ab},
		{"empty columns", "a,,b,y,,\n1,,2,3,,\n4,,5,6,,\n", CSVOptions{}, ab},
		{"empty rows", "a,b,y\n,,\n1,2,3\n,,\n4,5,6\n,,\n", CSVOptions{}, ab},
		{"semicolons are found", "a;b;y\n1;2;3\n4;5;6\n", CSVOptions{}, ab},
		{"tabs are found", "a\tb\ty\n1\t2\t3\n4\t5\t6\n", CSVOptions{}, ab},
		{"bars are found", "a | b | y\n1 | 2 | 3\n4 | 5 | 6\n", CSVOptions{}, ab},
		{"runs of spaces are found", " a   b  y\n 1   2  3\n 4   5  6  \n", CSVOptions{}, ab},
		{"names with spaces", "\"a\" b y\n1 2 3\n4 5 6\n", CSVOptions{}, ab},
		{"R's write.table", "\"a\" \"b\" \"y\"\n\"1\" 1 2 3\n\"2\" 4 5 6\n", CSVOptions{}, ab},
		{"R's header, and names", "a,b,y\nMazda,1,2,3\nFiat,4,5,6\n", CSVOptions{Target: "y"}, ab},
		{"a comma at each end but the header's", "a,b,y\n1,2,3,\n4,5,6,\n", CSVOptions{}, ab},
		{"lines of comments", "# from, the\n#\na,b,y\n1,2,3\n4,5,6\n", CSVOptions{}, ab},
		{"no header, and a comment", "# a,b,y\n1,2,3\n4,5,6\n", CSVOptions{NoHeader: true}, "x0|x1: 1 2 = 3, 4 5 = 6"},
		{"commas, and semicolons in a name", "\"a;b\",y\n1,2\n", CSVOptions{}, "a;b: 1 = 2"},
		{"UTF-16", wide("a\tb\ty\n1\t2\t3\n4\t5\t6\n", binary.LittleEndian), CSVOptions{}, ab},
		{"Latin 1", "\xe9,b,y\n1,2,3\n4,5,6\n", CSVOptions{Encoding: charmap.ISO8859_1}, "é|b: 1 2 = 3, 4 5 = 6"},
		{"UTF-16, the other order", wide("é,b,y\n1,2,3\n4,5,6\n", binary.BigEndian), CSVOptions{},
			"é|b: 1 2 = 3, 4 5 = 6"},
		{"a decimal comma", "a;b;y\n1,5;2;3\n-4,25;1.005,5;6\n", CSVOptions{Decimal: ','},
			"a|b: 1.5 2 = 3, -4.25 1005.5 = 6"},
		{"a decimal comma without a header", "1,5;2,5;3,5\n4;5;6\n", CSVOptions{Decimal: ',', NoHeader: true},
			"x0|x1: 1.5 2.5 = 3.5, 4 5 = 6"},
		{"thousands", "a,b,y\n\"1,234.5\",2 000 000,3\n\"-12,000\",5'000,6\n", CSVOptions{Decimal: '.'},
			"a|b: 1234.5 2e+06 = 3, -12000 5000 = 6"},
		{"percentages", "a,b,y\n10%,2,3\n12.5 %,5,6\n", CSVOptions{}, "a|b: 10 2 = 3, 12.5 5 = 6"},
		{"true and false", "a,b,y\nTRUE,2,3\nfalse,5,6\n", CSVOptions{}, "a|b: 1 2 = 3, 0 5 = 6"},
		{"a typographic minus", "a,b,y\n−1,2,3\n4,−5.5,6\n", CSVOptions{}, "a|b: -1 2 = 3, 4 -5.5 = 6"},
		{"true and True are one category", "c,y\nTrue,3\ntrue,6\nno,9\n", CSVOptions{Categorical: []string{"c"}},
			"c=True|c=no: 1 0 = 3, 1 0 = 6, 0 1 = 9"},
		{"NA is a category", "c,y\nNA,3\nb,6\n", CSVOptions{Categorical: []string{"c"}, MissingTokens: []string{""}},
			"c=NA|c=b: 1 0 = 3, 0 1 = 6"},
		{"all columns of text", "c,b,d,y\nu,2,,3\n3,5,w,6\n",
			CSVOptions{Categorical: []string{EveryText}, Missing: MissingMean}, "c=3|c=u|b|d=w: 0 1 2 1 = 3, 1 0 5 1 = 6"},
	} {
		c.test(t)
	}
}

type readCase struct {
	name, text string
	opts       CSVOptions
	want       string // content
}

func (c readCase) test(t *testing.T) {
	t.Helper()
	d, err := ReadCSV(strings.NewReader(c.text), c.opts)
	if err != nil {
		t.Errorf("%s: %v", c.name, err)
		return
	}
	if got := content(d); got != c.want {
		t.Errorf("%s: %s, want %s", c.name, got, c.want)
	}
	if err := d.Validate(); d.Y != nil && err != nil {
		t.Errorf("%s: %v", c.name, err)
	} else if d.Y == nil && (err == nil || !strings.Contains(err.Error(), "Y is empty")) {
		t.Errorf("%s: a target that is not known: %v", c.name, err)
	}
	like := c.opts.Like
	if like == nil {
		return
	}
	if !slices.Equal(d.Features, like.Features) || !slices.Equal(d.TargetNames(), like.TargetNames()) ||
		!slices.Equal(d.Classes, like.Classes) || d.Task != like.Task || d.Name != "csv" {
		t.Errorf("%s: got %+v", c.name, d)
	}
	if err := d.SameOrder(like.Features, like.TargetNames(), like.Classes); err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
}

type refusedCase struct {
	name, text string
	opts       CSVOptions
	want       []string // of the error's text
	is         error    // wrapped
}

func (c refusedCase) test(t *testing.T) {
	t.Helper()
	t.Run(c.name, func(t *testing.T) {
		_, err := ReadCSV(strings.NewReader(c.text), c.opts)
		wantError(t, err, append(c.want, "dataset: ")...)
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%v does not wrap %v", err, c.is)
		}
	})
}

// What may mean two things, or nothing, is refused with its place and what to do.
func TestReadCSVRefuses(t *testing.T) {
	var many strings.Builder
	for i := range maxCategories + 1 {
		many.WriteString("u" + strings.Repeat("v", i) + ",1\n")
	}
	for _, c := range []refusedCase{
		{"empty", "", CSVOptions{}, []string{"file is empty"}, nil},
		{"header alone", "a,b,y\n", CSVOptions{}, []string{"header but no rows"}, nil},
		{"short row", "a,b,y\n1,2,3\n\n4,5\n", CSVOptions{}, []string{"row 1 (line 4)", "2 fields", "3 are needed"}, nil},
		{"text", "age,b,y\n1,2,3\nabc,5,6\n", CSVOptions{}, []string{"row 1 (line 3)", `"age"`, `"abc"`, "Categorical"},
			nil},
		{"text as target", "a,b,y\n1,2,yes\n", CSVOptions{}, []string{"row 0 (line 2)", `"y"`, `"yes"`, "Task"}, nil},
		{"infinite", "a,b,y\n1,-Inf,3\n", CSVOptions{}, []string{"line 2", `"b"`, `"-Inf" is not a finite number`}, nil},
		{"too large", "a,b,y\n1,2,1e999\n", CSVOptions{}, []string{"line 2", `"y"`, `"1e999" is not a finite number`},
			nil},
		{"squares too large", "a,b,y\n1,2,3\n1,1e200,3\n", CSVOptions{},
			[]string{"row 1 (line 3)", `"b"`, "1e+200", "unit"}, nil},
		{"data for a header", "5.1,3.5,setosa\n4.9,3,setosa\n6,2,virginica\n", CSVOptions{Task: Classification},
			[]string{`"setosa"`, "set CSVOptions.NoHeader"}, nil},
		{"header in Latin-1", "a,h\xf6he,y\n1,2,3\n", CSVOptions{}, []string{"column 1", `"h\xf6he"`, "iconv"}, nil},
		{"label in Latin-1", "a,y\n1,u\n2,\xe9t\xe9\n", CSVOptions{Task: Classification},
			[]string{"row 1 (line 3)", `"y"`, `"\xe9t\xe9"`, "iconv"}, nil},
		{"NaN that is no token", "a,b,y\n1,NaN,3\n", CSVOptions{MissingTokens: []string{"?"}},
			[]string{`"b"`, `"NaN" is not a finite number`}, nil},
		{"missing", "a,b,y\n1,,3\n", CSVOptions{}, []string{"row 0 (line 2)", `"b"`, "missing", "MissingDropRow"}, nil},
		{"missing target and mean", "a,b,y\n1,2,NA\n", CSVOptions{Missing: MissingMean},
			[]string{`"y"`, "target is missing"}, nil},
		{"all dropped", "a,b,y\n1,,3\n,2,3\n", CSVOptions{Missing: MissingDropRow}, []string{"2 rows", "dropped"}, nil},
		{"no mean", "a,b,y\n1,,3\n1,,3\n", CSVOptions{Missing: MissingMean}, []string{`"b"`, "no value at all"}, nil},
		{"name twice", "a,a,y\n1,2,3\n", CSVOptions{}, []string{"columns 0 and 1", `"a"`}, nil},
		{"header of numbers", "1,2,3\n4,5,6\n", CSVOptions{}, []string{"all numbers", "NoHeader"}, nil},
		{"unknown target", "a,b,y\n1,2,3\n", CSVOptions{Target: "z"}, []string{"Target", `"z"`, `"a" "b" "y"`}, nil},
		{"target out of range", "a,b,y\n1,2,3\n", CSVOptions{Target: "3"}, []string{"no column 3", "0 to 2"}, nil},
		{"Target and Targets", "a,u,v\n1,2,3\n", CSVOptions{Target: "u", Targets: []string{"u", "v"}},
			[]string{"Target", `"u" "v"`, "one of them"}, nil},
		{"a target twice", "a,u,v\n1,2,3\n", CSVOptions{Targets: []string{"u", "1"}}, []string{"Targets", `"u"`, "twice"},
			nil},
		{"several labels", "a,u,v\n1,2,3\n", CSVOptions{Targets: []string{"u", "v"}, Task: Classification},
			[]string{"classification", "2 targets", "regression"}, nil},
		{"all are targets", "u,v\n2,3\n", CSVOptions{Targets: []string{"u", "v"}}, []string{"no feature", `["u" "v"]`},
			nil},
		{"unknown ignored", "a,b,y\n1,2,3\n", CSVOptions{Ignore: []string{"z"}}, []string{"Ignore", `"z"`}, nil},
		{"target ignored", "a,b,y\n1,2,3\n", CSVOptions{Ignore: []string{"y"}}, []string{"Ignore", "target", `"y"`}, nil},
		{"both lists", "a,b,y\n1,2,3\n", CSVOptions{Categorical: []string{"a"}, Ignore: []string{"0"}},
			[]string{"Ignore", `"a"`, "already"}, nil},
		{"no feature", "a^b^y\n1^2^3\n", CSVOptions{}, []string{"no feature", "delimiter"}, nil},
		{"one class", "a,y\n1,u\n2,u\n", CSVOptions{Task: Classification}, []string{`"y"`, "nothing to classify",
			`"u"`}, nil},
		{"one class written in two ways", "a,y\n1,0\n2,1.5\n3,1.50\n4,2\n", CSVOptions{Task: Classification},
			[]string{`"y"`, `"1.5" and "1.50"`, "one number"}, nil},
		{"underscore", "well,y\n3,0\n1_10,1\n", CSVOptions{},
			[]string{"row 1 (line 3)", `"well"`, `"1_10"`, "Categorical"}, nil},
		{"hexadecimal", "a,y\n0x1p3,1\n", CSVOptions{}, []string{`"a"`, `"0x1p3"`, "Categorical"}, nil},
		{"long codes", "id,y\n9007199254740993,0\n1,1\n9007199254740992,1\n", CSVOptions{},
			[]string{"row 2 (line 4)", `"id"`, `"9007199254740992"`, `"9007199254740993"`, "2^53",
				"Categorical or CSVOptions.Ignore"}, nil},
		{"long codes as the target", "a,id\n1,9007199254740993\n2,9007199254740992\n", CSVOptions{},
			[]string{`"id"`, `"9007199254740992"`, "set CSVOptions.Task to Classification"}, nil},
		{"leading zeros after none", "zip,y\n1234,0\n,3\n01234,1\n", CSVOptions{Missing: MissingDropRow},
			[]string{"row 2 (line 4)", `"zip"`, `"01234"`, `"1234"`, "one number", "Categorical or CSVOptions.Ignore"}, nil},
		{"leading zeros before none", "zip,y\n01234,0\n01234,0\n1234.0,1\n", CSVOptions{},
			[]string{"row 2 (line 4)", `"1234.0"`, `"01234"`, "write both alike"}, nil},
		{"three classes", "a,y\n1,u\n2,v\n3,w\n", CSVOptions{Task: BinaryClassification},
			[]string{`"y"`, "has 3", "CSVOptions.Task"}, nil},
		{"unlisted class", "a,y\n1,u\n2,v\n", CSVOptions{Task: Classification, Classes: []string{"u", "w"}},
			[]string{"line 3", `"v"`, `Classes ["u" "w"]`, "list it"}, nil},
		{"class listed twice", "a,y\n1,u\n", CSVOptions{Task: Classification, Classes: []string{"u", "u"}},
			[]string{"Classes", `"u"`, "twice", "each once"}, nil},
		{"classes of a regression", "a,y\n1,2\n", CSVOptions{Classes: []string{"u", "v"}},
			[]string{"Classes", "regression"}, nil},
		{"too many categories", "c,y\n" + many.String(), CSVOptions{Categorical: []string{"c"}},
			[]string{"line 1002", `"c"`, "text 1001", "Ignore"}, nil},
		{"too many classes", "c,y\n" + many.String(), CSVOptions{Target: "c", Task: Classification},
			[]string{"line 1002", "text 1001", "Regression"}, nil},
		{"open quote", "a,b,y\n1,\"2,3\n", CSVOptions{}, []string{"line 2", "quote"}, nil},
		{"delimiter", "a,b,y\n1,2,3\n", CSVOptions{Delimiter: '"'}, []string{"delimiter"}, nil},
		{"task", "a,y\n1,2\n", CSVOptions{Task: 5}, []string{"Task(5)"}, nil},
		{"policy", "a,y\n1,2\n", CSVOptions{Missing: 9}, []string{"Missing(9)"}, nil},
		{"an index as the target", ",a,y\n0,1,2\n", CSVOptions{Target: "0"}, []string{"Target", `"0"`, "no name"}, nil},
		{
			"all that is wrong with the options", "a,a,y\n1,2,3\n", CSVOptions{Target: "z", Ignore: []string{"u"}},
			[]string{"several things", "columns 0 and 1", `Target: there is no column "z"`,
				`Ignore: there is no column "u"`}, nil,
		},
		{
			"all that is wrong with the table", "a,a,y\n1,2,3\n4,x,5\n6,7\n", CSVOptions{},
			[]string{"several things", "columns 0 and 1", "row 2 (line 4) has 2 fields", `row 1 (line 3), column "a"`}, nil,
		},

		// As programs write tables.
		{"an index that is none", ",a,y\n1,1,2\n1,3,4\n", CSVOptions{},
			[]string{"row 1 (line 3)", "column 0", `"1" twice`}, nil},
		{"no name", "a,,y\n1,u,2\n", CSVOptions{}, []string{"column 1", "no name", `"u"`, `"1" in CSVOptions.Ignore`}, nil},
		{"no name at all", ",,\n1,2,3\n", CSVOptions{}, []string{"no name", "NoHeader"}, nil},
		{"no name, categorical", "a,,y\n1,u,2\n", CSVOptions{Categorical: []string{"1"}}, []string{"without a name"},
			nil},
		{"a decimal comma", "a;y\n1;2\n1,5;2\n", CSVOptions{}, []string{"row 1 (line 3)", `"1,5"`, "Decimal"}, nil},
		{"thousands, or a decimal comma", "a,y\n\"1,234\",2\n", CSVOptions{}, []string{`"1,234"`, "Decimal"}, nil},
		{"wrong groups", "a,y\n\"12,34\",2\n", CSVOptions{Decimal: '.'}, []string{`"12,34"`, "Categorical"}, nil},
		{"a decimal point for a comma", "a;y\n1.5;2\n", CSVOptions{Decimal: ','}, []string{`"1.5"`}, nil},
		{"an unknown mark", "a;y\n1.5;2\n", CSVOptions{Decimal: ';'}, []string{"decimal mark", "';'"}, nil},
		{"the delimiter as the mark", "a,y\n1,2\n", CSVOptions{Delimiter: ',', Decimal: ','}, []string{"delimiter ','"},
			nil},
		{"percentages and numbers", "a,y\n10%,2\n.1,3\n", CSVOptions{},
			[]string{"row 1", `".1" is a number`, "a percentage"}, nil},
		{"true and numbers", "a,y\n2,2\nTRUE,3\n", CSVOptions{}, []string{"row 1", `"TRUE" is true or false`, "a number"},
			nil},
		{"true as the target of a regression", "a,y\n2,true\n", CSVOptions{}, []string{`"true"`, "BinaryClassification"},
			nil},
		{"a date", "d,y\n2020-01-31,2\n", CSVOptions{}, []string{`"d"`, `"2020-01-31" is a date`, "Ignore", "month"},
			nil},
		{"a date as a category", "d,y\n31.1.2020,2\n", CSVOptions{Categorical: []string{"d"}}, []string{"is a date"},
			nil},
		{"a footer", "a,y\n1,2\nTotal,2\n", CSVOptions{}, []string{"row 1 (line 3)", `"Total"`, "footer"}, nil},
		{"NA in a category", "c,y\nNA,2\n", CSVOptions{Categorical: []string{"c"}}, []string{`"NA"`, "MissingTokens"},
			nil},
		{"a title", "Report of 2020\na,b,y\n1,2,3\n4,5,6\n", CSVOptions{},
			[]string{"line 1", "Report of 2020", "no header"}, nil},
		{"a count of rows", "2\na,b,y\n1,2,3\n4,5,6\n", CSVOptions{}, []string{"line 1", "no header", "counts the rows"},
			nil},
		{"counts of rows and columns", "2,2\na,b,c,y\n1,2,3,4\n", CSVOptions{}, []string{`["2" "2"]`, "counts the rows"},
			nil},
		{"a count at the end", "a,b,y\n1,2,3\n4,5,6\n(2 rows)\n", CSVOptions{},
			[]string{"row 2 (line 4) has 1 fields", "(2 rows)", "take it out"}, nil},
		{"a rule below the header", "a|b|y\n-+-+-\n1|2|3\n", CSVOptions{},
			[]string{"row 0 (line 2) has 1 fields", "-+-+-"}, nil},
		{"a field more, which is no name", "a,y\n1,5,2\n1,7,3\n", CSVOptions{},
			[]string{"row 1 (line 3)", `"1", is no name of a row`, "header"}, nil},
		{"numbers for names", "0,1,2\n1,2,3\n", CSVOptions{}, []string{"all numbers", "a letter before each"}, nil},
		{"an .xlsx", "PK\x03\x04\x14", CSVOptions{}, []string{"workbook", "save its sheet as CSV"}, nil},
		{"a Parquet file", "PAR1\x15", CSVOptions{}, []string{"a Parquet file", "package parquet"}, nil},
		{"a name that is nearly there", "weight,colour,y\n1,2,3\n", CSVOptions{Ignore: []string{"wieght"}},
			[]string{`did you mean ["weight"]?`}, nil},
		{"semicolons, and a short row", "a;b;y\n1;2;3\n1;2\n", CSVOptions{}, []string{"row 1 (line 3)", "3 are needed"},
			nil},
		{"a header as a comment", "# a b y\n1 2 3\n4 5 6\n", CSVOptions{}, []string{"all numbers", "NoHeader"}, nil},
	} {
		c.test(t)
	}
}

func TestReadCSVBrokenReader(t *testing.T) {
	broken := errors.New("the cable is out")
	_, err := ReadCSV(iotest.ErrReader(broken), CSVOptions{})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestOpenCSV(t *testing.T) {
	const text = "a,b,y\n1,2,3\n4,5,6\n"
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{write("mine.csv", []byte(text)), write("mine.csv.gz", zipped.Bytes()),
		write("mine.txt", zipped.Bytes())} {
		d, err := OpenCSV(path, CSVOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if d.Name != "mine" || d.Rows() != 2 || d.Y[1] != 6 {
			t.Errorf("%s: got %+v", path, d)
		}
	}
	_, err := OpenCSV(filepath.Join(folder, "none.csv"), CSVOptions{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	wantError(t, err, "none.csv")
	if d, err := OpenCSV(write("plain.csv.gz", []byte(text)), CSVOptions{}); err != nil || d.Rows() != 2 {
		t.Errorf("a name says that it is compressed, and it is not: %v, %v", d, err)
	}
	_, err = OpenCSV(write("cut.csv.gz", zipped.Bytes()[:zipped.Len()-6]), CSVOptions{})
	wantError(t, err, "cut.csv.gz", "EOF")
	_, err = OpenCSV(write("short.csv", []byte("a,b,y\n1,2\n")), CSVOptions{})
	wantError(t, err, "short.csv", "line 2")
}

// FuzzReadCSV: no text panics, what is read is valid, and is the same once more if it is read like itself.
func FuzzReadCSV(f *testing.F) {
	for _, text := range []string{"a,b,y\n1,2,3\n", "\uFEFFa;b\r\n\"1\";?\r\n", "1,2\n", "", "a\n", "\"",
		"c,y\nu,1\nv,2\n,3", "a,y\n1e308,x\n-1e308,z\nnan,x"} {
		for options := range uint8(4) {
			f.Add(text, options*21)
		}
	}
	f.Fuzz(func(t *testing.T, text string, options uint8) {
		opts := CSVOptions{NoHeader: options&1 != 0, Task: Task(options >> 1 & 3), Missing: Missing(options >> 3 & 3)}
		if options>>5&1 != 0 {
			opts.Categorical = []string{"0"}
		}
		if options>>6&1 != 0 {
			opts.Delimiter = ';'
		}
		if options>>7&1 != 0 {
			opts.MissingTokens = []string{}
		}
		d, err := ReadCSV(strings.NewReader(text), opts)
		if err != nil {
			return
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%q by %+v: %v", text, opts, err)
		}
		again, err := ReadCSV(strings.NewReader(text), CSVOptions{NoHeader: opts.NoHeader, Delimiter: opts.Delimiter,
			Missing: opts.Missing, MissingTokens: opts.MissingTokens, Like: d})
		if err != nil {
			if !strings.Contains(err.Error(), "rename one") { // "a=b=c" may be of the column "a" or of "a=b"
				t.Errorf("%q by %+v, like itself: %v", text, opts, err)
			}
			return
		}
		if !slices.Equal(again.Y, d.Y) || opts.Missing != MissingMean && again.Hash() != d.Hash() {
			t.Errorf("%q by %+v, like itself, is\n%v, not\n%v", text, opts, mat.Formatted(again.X), mat.Formatted(d.X))
		}
	})
}
