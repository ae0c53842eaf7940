package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"gonum.org/v1/gonum/mat"
)

func TestReadCSV(t *testing.T) {
	num := mat.NewDense(2, 2, []float64{1, 2, 4, 5})
	ab, y := []string{"a", "b"}, []float64{3, 6}
	tests := []struct {
		name, text string
		opts       CSVOptions
		features   []string
		x          *mat.Dense
		y          []float64
		classes    []string
	}{
		{"plain", "a,b,y\n1,2,3\n4,5,6\n", CSVOptions{}, ab, num, y, nil},
		{"no end of line, CRLF, byte order mark", "\uFEFFa,b,y\r\n1,2,3\r\n4,5,6", CSVOptions{}, ab, num, y, nil},
		{"quotes, spaces, empty lines, exponents", "\"a\", b ,y\n\n 1, \"2\",3e0\n4,+5,0.6e1\n\n",
			CSVOptions{}, ab, num, y, nil},
		{"semicolons", "a;b;y\n1;2;3\n4;5;6\n", CSVOptions{Delimiter: ';'}, ab, num, y, nil},
		{"tabs", "a\tb\ty\n1\t2\t3\n4\t5\t6\n", CSVOptions{Delimiter: '\t'}, ab, num, y, nil},
		{"no header", "1,2,3\n4,5,6\n", CSVOptions{NoHeader: true}, []string{"x0", "x1"}, num, y, nil},
		{"target by name", "y,a,b\n3,1,2\n6,4,5\n", CSVOptions{Target: "y"}, ab, num, y, nil},
		{"target by index", "y,a,b\n3,1,2\n6,4,5\n", CSVOptions{Target: "0"}, ab, num, y, nil},
		{"target from the end", "a,y,b\n1,3,2\n4,6,5\n", CSVOptions{Target: "-2"}, ab, num, y, nil},
		{"one of Targets", "y,a,b\n3,1,2\n6,4,5\n", CSVOptions{Targets: []string{"y"}}, ab, num, y, nil},
		{"several targets", "b,v,a,u\n2,7,1,3\n5,8,4,6\n", CSVOptions{Targets: []string{"u", "1"}},
			[]string{"b", "a"}, mat.NewDense(2, 2, []float64{2, 1, 5, 4}), []float64{3, 7, 6, 8}, nil},
		{"several targets, rows dropped", "u,v,a\n3,,1\n3,7,1\n?,7,1\n6,8,2\n",
			CSVOptions{Targets: []string{"u", "v"}, Missing: MissingDropRow}, []string{"a"},
			mat.NewDense(2, 1, []float64{1, 2}), []float64{3, 7, 6, 8}, nil},
		{"a name before an index", "a,b,0\n1,2,3\n4,5,6\n", CSVOptions{Target: "0"}, ab, num, y, nil},
		{"ignored column", "id,a,b,y\nu,1,2,3\n,4,5,6\n", CSVOptions{Ignore: []string{"id"}}, ab, num, y, nil},
		{
			"labels, sorted", "a,b,y\n1,2,yes\n4,5,no\n", CSVOptions{Task: BinaryClassification}, ab, num, []float64{1, 0},
			[]string{"no", "yes"},
		},
		{
			"labels, as numbers", "a,y\n1,10\n4,9\n2,2\n", CSVOptions{Task: Classification}, []string{"a"},
			mat.NewDense(3, 1, []float64{1, 4, 2}),
			[]float64{2, 1, 0}, []string{"2", "9", "10"},
		},
		{
			"long codes, equal as floats", "a,y\n1,9007199254740993\n4,9007199254740992\n", CSVOptions{Task: Classification},
			[]string{"a"}, mat.NewDense(2, 1, []float64{1, 4}), []float64{1, 0},
			[]string{"9007199254740992", "9007199254740993"},
		},
		{
			"codes, of which one is no number", "a,y\n1,1\n4,01\n2,b\n", CSVOptions{Task: Classification}, []string{"a"},
			mat.NewDense(3, 1, []float64{1, 4, 2}), []float64{1, 0, 2}, []string{"01", "1", "b"},
		},
		{
			"codes with underscores", "well,y\n1_10,1\n11_0,2\n1_1,3\n", CSVOptions{Categorical: []string{"well"}},
			[]string{"well=11_0", "well=1_1", "well=1_10"}, mat.NewDense(3, 3, []float64{0, 0, 1, 1, 0, 0, 0, 1, 0}),
			[]float64{1, 2, 3}, nil,
		},
		{
			"names with underscores", "1_1,1_2,1_10\n1,2,3\n4,5,6\n", CSVOptions{}, []string{"1_1", "1_2"}, num, y, nil,
		},
		{
			"long codes as categories", "id,y\n9007199254740993,1\n9007199254740992,2\n",
			CSVOptions{Categorical: []string{"id"}}, []string{"id=9007199254740992", "id=9007199254740993"},
			mat.NewDense(2, 2, []float64{0, 1, 1, 0}), []float64{1, 2}, nil,
		},
		{
			"long codes ignored", "id,a,y\n9007199254740993,1,2\n9007199254740992,3,4\n",
			CSVOptions{Ignore: []string{"id"}}, []string{"a"}, mat.NewDense(2, 1, []float64{1, 3}), []float64{2, 4}, nil,
		},
		{
			"long numbers written alike", "a,y\n9007199254740993,1\n9007199254740993,2\n9007199254740996,3\n",
			CSVOptions{}, []string{"a"}, mat.NewDense(3, 1, []float64{1 << 53, 1 << 53, 1<<53 + 4}), []float64{1, 2, 3}, nil,
		},
		{
			"numbers with leading zeros alike", "hour,y\n07,1\n10,2\n07,3\n0.70,4\n.7,5\n", CSVOptions{}, []string{"hour"},
			mat.NewDense(5, 1, []float64{7, 10, 7, .7, .7}), []float64{1, 2, 3, 4, 5}, nil,
		},
		{
			"categories with leading zeros", "zip,y\n01234,1\n1234,2\n01234,3\n", CSVOptions{Categorical: []string{"zip"}},
			[]string{"zip=01234", "zip=1234"}, mat.NewDense(3, 2, []float64{1, 0, 0, 1, 1, 0}), []float64{1, 2, 3}, nil,
		},
		{
			"whole categories with a point", "c,y\n2.0,1\n10,2\n2,3\n10.00,4\n-1.,5\n", CSVOptions{Categorical: []string{"c"}},
			[]string{"c=-1.", "c=2.0", "c=10"},
			mat.NewDense(5, 3, []float64{0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0}), []float64{1, 2, 3, 4, 5}, nil,
		},
		{
			"whole classes with a point", "a,y\n1,0\n2,1\n3,1.0\n4,b\n", CSVOptions{Task: Classification},
			[]string{"a"}, mat.NewDense(4, 1, []float64{1, 2, 3, 4}), []float64{0, 1, 1, 2}, []string{"0", "1", "b"},
		},
		{
			"given classes with a point", "a,y\n1,1\n2,0.0\n", CSVOptions{Task: Classification, Classes: []string{"1.0", "0"}},
			[]string{"a"}, mat.NewDense(2, 1, []float64{1, 2}), []float64{0, 1}, []string{"1.0", "0"},
		},
		{
			"a number for a token of a category", "c,y\n1,1\n-999.0,2\n2,3\n", CSVOptions{Missing: MissingDropRow,
				MissingTokens: []string{"-999"}, Categorical: []string{"c"}}, []string{"c=1", "c=2"},
			mat.NewDense(2, 2, []float64{1, 0, 0, 1}), []float64{1, 3}, nil,
		},
		{
			"labels, in a given order", "a,b,y\n1,2,yes\n4,5,no\n", CSVOptions{Task: Classification,
				Classes: []string{"yes", "maybe", "no"}}, ab, num,
			[]float64{0, 2}, []string{"yes", "maybe", "no"},
		},
		{
			"categories", "colour,b,y\nred,2,3\nblue,5,6\nred,7,8\n", CSVOptions{Categorical: []string{"colour"}},
			[]string{"colour=blue", "colour=red", "b"},
			mat.NewDense(3, 3, []float64{0, 1, 2, 1, 0, 5, 0, 1, 7}), []float64{3, 6, 8}, nil,
		},
		{
			"drop", "a,c,y\n1,u,3\nNA,u,3\n1,?,3\n2,v,\n4,w,6\n", CSVOptions{Missing: MissingDropRow,
				Categorical: []string{"c"}}, []string{"a", "c=u", "c=w"},
			mat.NewDense(2, 3, []float64{1, 1, 0, 4, 0, 1}), y, nil, // v is only in a row that is dropped
		},
		{
			"mean", "a,c,y\n1,u,3\nnan,u,3\n1,,3\n4,w,6\n", CSVOptions{Missing: MissingMean, Categorical: []string{"c"}},
			[]string{"a", "c=u", "c=w"},
			mat.NewDense(4, 3, []float64{1, 1, 0, 2, 1, 0, 1, 2. / 3, 1. / 3, 4, 0, 1}), []float64{3, 3, 3, 6}, nil,
		},
		{
			"mean of large numbers", "a,y\n1e150,1\nNaN,2\n1e150,3\n", CSVOptions{Missing: MissingMean}, []string{"a"},
			mat.NewDense(3, 1, []float64{1e150, 1e150, 1e150}), []float64{1, 2, 3}, nil,
		},
		{
			"own tokens", "a,b,y\n1,2,3\n-999,5,6\n", CSVOptions{Missing: MissingMean, MissingTokens: []string{"-999"}}, ab,
			mat.NewDense(2, 2, []float64{1, 2, 1, 5}), y, nil,
		},
		{
			"a number for a token", "a,b,y\n1,2,3\n-999.0,5,6\n4,-9.99e2,7\n", CSVOptions{Missing: MissingDropRow,
				MissingTokens: []string{"-999"}}, ab, mat.NewDense(1, 2, []float64{1, 2}), []float64{3}, nil,
		},
		{
			"no tokens: a category of its own", "c,b,y\n?,2,3\nu,5,6\n",
			CSVOptions{MissingTokens: []string{}, Categorical: []string{"0"}}, []string{"c=?", "c=u", "b"},
			mat.NewDense(2, 3, []float64{1, 0, 2, 0, 1, 5}), y, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := ReadCSV(strings.NewReader(tt.text), tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Validate(); err != nil {
				t.Error(err)
			}
			if !slices.Equal(d.Features, tt.features) || !mat.EqualApprox(d.X, tt.x, 1e-15) {
				t.Errorf("got features %q\n%v", d.Features, mat.Formatted(d.X))
			}
			if !slices.Equal(d.Y, tt.y) || !slices.Equal(d.Classes, tt.classes) {
				t.Errorf("got Y %v of %q", d.Y, d.Classes)
			}
		})
	}
}

// Several targets are named, and go through a split.
func TestReadCSVTargets(t *testing.T) {
	const text = "a,u,v\n1,2,3\n4,5,6\n7,8,9\n10,11,12\n"
	d, err := ReadCSV(strings.NewReader(text), CSVOptions{Targets: []string{"v", "u"}})
	if err != nil {
		t.Fatal(err)
	}
	if names := d.TargetNames(); !slices.Equal(names, []string{"v", "u"}) || d.Outputs() != 2 || d.Rows() != 4 {
		t.Errorf("%d rows of the targets %q", d.Rows(), names)
	}
	parts, err := d.Split(Fractions{Train: .5, Test: .5}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range mat.Col(nil, 0, parts.Test.X) {
		if u := parts.Test.TargetColumn(1)[i]; u != a+1 {
			t.Errorf("row with feature %v has target %v", a, u)
		}
	}
}

func TestReadCSVErrors(t *testing.T) {
	var many strings.Builder
	for i := range maxCategories + 1 {
		many.WriteString("u" + strings.Repeat("v", i) + ",1\n")
	}
	tests := []struct {
		name, text string
		opts       CSVOptions
		want       []string
	}{
		{"empty", "", CSVOptions{}, []string{"file is empty"}},
		{"empty but for a mark", "\uFEFF\n\n", CSVOptions{}, []string{"file is empty"}},
		{"header alone", "a,b,y\n", CSVOptions{}, []string{"header but no rows"}},
		{"short row", "a,b,y\n1,2,3\n\n4,5\n", CSVOptions{}, []string{"row 1 (line 4)", "2 fields", "3 are needed"}},
		{"long row", "a,b,y\n1,2,3,4\n", CSVOptions{}, []string{"row 0 (line 2)", "4 fields", "3 are needed"}},
		{"text", "age,b,y\n1,2,3\nabc,5,6\n", CSVOptions{}, []string{"row 1 (line 3)", `"age"`, `"abc"`, "Categorical"}},
		{"text as target", "a,b,y\n1,2,yes\n", CSVOptions{}, []string{"row 0 (line 2)", `"y"`, `"yes"`, "Task"}},
		{"infinite", "a,b,y\n1,-Inf,3\n", CSVOptions{}, []string{"line 2", `"b"`, `"-Inf" is not a finite number`}},
		{"too large", "a,b,y\n1,2,1e999\n", CSVOptions{}, []string{"line 2", `"y"`, `"1e999" is not a finite number`}},
		{"squares too large", "a,b,y\n1,2,3\n1,1e200,3\n", CSVOptions{}, []string{"row 1 (line 3)", `"b"`, "1e+200", "unit"}},
		{"data for a header", "5.1,3.5,setosa\n4.9,3,setosa\n6,2,virginica\n", CSVOptions{Task: Classification},
			[]string{`"setosa"`, "set NoHeader"}},
		{"header in Latin-1", "a,h\xf6he,y\n1,2,3\n", CSVOptions{}, []string{"column 1", `"h\xf6he"`, "iconv"}},
		{"label in Latin-1", "a,y\n1,u\n2,\xe9t\xe9\n", CSVOptions{Task: Classification},
			[]string{"row 1 (line 3)", `"y"`, `"\xe9t\xe9"`, "iconv"}},
		{"category in Latin-1", "a,y\n\xe9,1\n", CSVOptions{Categorical: []string{"a"}},
			[]string{"row 0 (line 2)", `"a"`, "iconv"}},
		{"NaN that is no token", "a,b,y\n1,NaN,3\n", CSVOptions{MissingTokens: []string{"?"}},
			[]string{`"b"`, `"NaN" is not a finite number`}},
		{"missing", "a,b,y\n1,,3\n", CSVOptions{}, []string{"row 0 (line 2)", `"b"`, "missing", "MissingDropRow"}},
		{"missing label", "a,b,y\n1,2,?\n", CSVOptions{Task: Classification}, []string{"row 0 (line 2)", `"y"`, "missing"}},
		{"missing target and mean", "a,b,y\n1,2,NA\n", CSVOptions{Missing: MissingMean},
			[]string{`"y"`, "target is missing"}},
		{"all dropped", "a,b,y\n1,,3\n,2,3\n", CSVOptions{Missing: MissingDropRow}, []string{"2 rows", "dropped"}},
		{"no mean", "a,b,y\n1,,3\n1,,3\n", CSVOptions{Missing: MissingMean}, []string{`"b"`, "no value at all"}},
		{"name twice", "a,a,y\n1,2,3\n", CSVOptions{}, []string{"columns 0 and 1", `"a"`}},
		{"no name", "a,,y\n1,2,3\n", CSVOptions{}, []string{"column 1", "no name"}},
		{"header of numbers", "1,2,3\n4,5,6\n", CSVOptions{}, []string{"all numbers", "NoHeader"}},
		{"unknown target", "a,b,y\n1,2,3\n", CSVOptions{Target: "z"}, []string{"Target", `"z"`, `"a" "b" "y"`}},
		{"target out of range", "a,b,y\n1,2,3\n", CSVOptions{Target: "3"}, []string{"no column 3", "0 to 2"}},
		{"target below range", "a,b,y\n1,2,3\n", CSVOptions{Target: "-4"}, []string{"no column -4"}},
		{"Target and Targets", "a,u,v\n1,2,3\n", CSVOptions{Target: "u", Targets: []string{"u", "v"}},
			[]string{"Target", `"u" "v"`, "one of them"}},
		{"a target twice", "a,u,v\n1,2,3\n", CSVOptions{Targets: []string{"u", "1"}}, []string{"Targets", `"u"`, "twice"}},
		{"unknown among targets", "a,u,v\n1,2,3\n", CSVOptions{Targets: []string{"u", "w"}}, []string{"Targets", `"w"`}},
		{"several labels", "a,u,v\n1,2,3\n", CSVOptions{Targets: []string{"u", "v"}, Task: Classification},
			[]string{"classification", "2 targets", "regression"}},
		{"all are targets", "u,v\n2,3\n", CSVOptions{Targets: []string{"u", "v"}}, []string{"no feature", `["u" "v"]`}},
		{"one of the targets is missing, mean", "a,u,v\n1,2,\n", CSVOptions{Targets: []string{"u", "v"},
			Missing: MissingMean}, []string{`"v"`, "target is missing"}},
		{"unknown categorical", "a,b,y\n1,2,3\n", CSVOptions{Categorical: []string{"z"}}, []string{"Categorical", `"z"`}},
		{"unknown ignored", "a,b,y\n1,2,3\n", CSVOptions{Ignore: []string{"z"}}, []string{"Ignore", `"z"`}},
		{"target ignored", "a,b,y\n1,2,3\n", CSVOptions{Ignore: []string{"y"}}, []string{"Ignore", "target", `"y"`}},
		{"both lists", "a,b,y\n1,2,3\n", CSVOptions{Categorical: []string{"a"}, Ignore: []string{"0"}},
			[]string{"Ignore", `"a"`, "already"}},
		{"no feature", "a^b^y\n1^2^3\n", CSVOptions{}, []string{"no feature", "delimiter"}},
		{"all ignored", "a,y\n1,2\n", CSVOptions{Ignore: []string{"a"}}, []string{"no feature"}},
		{"one class", "a,y\n1,u\n2,u\n", CSVOptions{Task: Classification}, []string{`"y"`, "single value", `"u"`}},
		{"one class written in two ways", "a,y\n1,0\n2,1.5\n3,1.50\n4,2\n", CSVOptions{Task: Classification},
			[]string{`"y"`, `"1.5" and "1.50"`, "one number"}},
		{"one category written in two ways", "a,y\n100,0\n1e2,1\n", CSVOptions{Categorical: []string{"a"}},
			[]string{`"a"`, `"100" and "1e2"`, "one number"}},
		{"underscore", "well,y\n3,0\n1_10,1\n", CSVOptions{}, []string{"row 1 (line 3)", `"well"`, `"1_10"`, "Categorical"}},
		{"underscore in the target", "a,y\n3,1_10\n", CSVOptions{}, []string{`"y"`, `"1_10"`, "Task"}},
		{"hexadecimal", "a,y\n0x1p3,1\n", CSVOptions{}, []string{`"a"`, `"0x1p3"`, "Categorical"}},
		{"infinity", "a,y\nInfinity,1\n", CSVOptions{}, []string{`"a"`, `"Infinity" is not a finite number`}},
		{"long codes", "id,y\n9007199254740993,0\n1,1\n9007199254740992,1\n", CSVOptions{}, []string{"row 2 (line 4)",
			`"id"`, `"9007199254740992"`, `"9007199254740993"`, "2^53", "Categorical or Ignore"}},
		{"long codes below 0", "id,y\n-9007199254740992,0\n-9007199254740993,1\n", CSVOptions{},
			[]string{`"-9007199254740993"`, `"-9007199254740992"`, "2^53"}},
		{"long codes as the target", "a,id\n1,9007199254740993\n2,9007199254740992\n", CSVOptions{},
			[]string{`"id"`, `"9007199254740992"`, "set Task to Classification"}},
		{"leading zeros after none", "zip,y\n1234,0\n,3\n01234,1\n", CSVOptions{Missing: MissingDropRow},
			[]string{"row 2 (line 4)", `"zip"`, `"01234"`, `"1234"`, "one number", "Categorical or Ignore"}},
		{"leading zeros before none", "zip,y\n01234,0\n01234,0\n1234.0,1\n", CSVOptions{},
			[]string{"row 2 (line 4)", `"1234.0"`, `"01234"`, "write both alike"}},
		{"three classes", "a,y\n1,u\n2,v\n3,w\n", CSVOptions{Task: BinaryClassification},
			[]string{`"y"`, "3 classes", "Classification"}},
		{"unlisted class", "a,y\n1,u\n2,v\n", CSVOptions{Task: Classification, Classes: []string{"u", "w"}},
			[]string{"line 3", `"v"`, `Classes ["u" "w"]`, "list it"}},
		{"class listed twice", "a,y\n1,u\n", CSVOptions{Task: Classification, Classes: []string{"u", "u"}},
			[]string{"Classes", `"u"`, "twice", "each once"}},
		{"classes of a regression", "a,y\n1,2\n", CSVOptions{Classes: []string{"u", "v"}}, []string{"Classes", "regression"}},
		{"too many categories", "c,y\n" + many.String(), CSVOptions{Categorical: []string{"c"}},
			[]string{"line 1002", `"c"`, "category 1001", "Ignore"}},
		{"too many classes", "c,y\n" + many.String(), CSVOptions{Target: "c", Task: Classification},
			[]string{"line 1002", "class 1001", "Regression"}},
		{"open quote", "a,b,y\n1,\"2,3\n", CSVOptions{}, []string{"line 2", "quote"}},
		{"delimiter", "a,b,y\n1,2,3\n", CSVOptions{Delimiter: '"'}, []string{"delimiter"}},
		{"delimiter no character", "a,b,y\n1,2,3\n", CSVOptions{Delimiter: 0xD800}, []string{"delimiter"}},
		{"task", "a,y\n1,2\n", CSVOptions{Task: 5}, []string{"Task(5)"}},
		{"policy", "a,y\n1,2\n", CSVOptions{Missing: 9}, []string{"Missing(9)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Name = "mine"
			_, err := ReadCSV(strings.NewReader(tt.text), tt.opts)
			wantError(t, err, append(tt.want, "dataset mine")...)
		})
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
	bzipped, err := base64.StdEncoding.DecodeString("" +
		"QlpoOTFBWSZTWe2GG+wAAAfZgAAQAAQ/ADAAACAgACGmgDQgGmmhVtXm8uQJBI8XckU4UJDthhvs")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{write("mine.csv", []byte(text)), write("mine.csv.gz", zipped.Bytes()),
		write("mine.csv.bz2", bzipped), write("mine.txt", zipped.Bytes())} {
		d, err := OpenCSV(path, CSVOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if d.Name != "mine" || d.Rows() != 2 || d.Y[1] != 6 {
			t.Errorf("%s: got %+v", path, d)
		}
	}
	_, err = OpenCSV(filepath.Join(folder, "none.csv"), CSVOptions{})
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

// Texts of one number have one form; texts of others, of which some are equal as float64, have others.
func TestExactly(t *testing.T) {
	forms := map[string]string{}
	for _, same := range [][]string{
		{"100", "1e2", "1E+02", "100.0", "+100", "0.1e3", "1000e-1"}, {"1.5", "1.50", "+1.5", "15e-1"},
		{"0", "-0", "0.00", ".0", "0e9"}, {"-100", "-1e2"}, {"10"}, {"1e-3", ".001"}, {"9007199254740993"},
		{"9007199254740992", "9007199254740992.0"}, {"0100"}, {"00100"}, {"1_00"}, {"0x1p3"}, {"inf"}, {"nan"}, {"u"}, {""},
		{"1e-9999999"}, {"1e-99999999999999999999"},
	} {
		for _, text := range same {
			form := exactly(text)
			if want := exactly(same[0]); form != want {
				t.Errorf("%q has the form %q, but %q has %q", text, form, same[0], want)
			}
			if other, twice := forms[form]; twice && other != same[0] {
				t.Errorf("%q and %q have both the form %q", text, other, form)
			}
			forms[form] = same[0]
		}
	}
}
