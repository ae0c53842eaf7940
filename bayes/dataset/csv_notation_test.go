package dataset

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/gonum/mat"
)

// wide is a text in UTF-16 with its byte order mark.
func wide(text string, order binary.AppendByteOrder) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune("\uFEFF" + text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// Tables as programs write them are read as they are meant.
func TestReadCSVAsWritten(t *testing.T) {
	ab := []string{"a", "b"}
	num := []float64{1, 2, 4, 5}
	for _, tt := range []struct {
		name, text string
		opts       CSVOptions
		features   []string
		x, y       []float64
	}{
		{"an index of pandas", ",a,b,y\n0,1,2,3\n1,4,5,6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"an index of R", "\"\",\"a\",\"b\",\"y\"\n\"1\",1,2,3\n\"2\",4,5,6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"names of rows", ",a,b,y\nMazda,1,2,3\nDatsun,4,5,6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"an index with holes", ",a,b,y\n0,1,2,3\n7,4,5,6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"an unnamed column that is ignored", ",a,b,y\nu,1,2,3\nu,4,5,6\n", CSVOptions{Ignore: []string{"0"}}, ab, num,
			[]float64{3, 6}},
		{"empty columns", "a,,b,y,,\n1,,2,3,,\n4,,5,6,,\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"empty rows", "a,b,y\n,,\n1,2,3\n,,\n4,5,6\n,,\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"Excel's first line", "sep=|\r\na|b|y\r\n1|2|3\r\n4|5|6\r\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"Excel's first line, and a delimiter", "sep=;\na;b;y\n1;2;3\n4;5;6\n", CSVOptions{Delimiter: ';'}, ab, num,
			[]float64{3, 6}},
		{"semicolons are found", "a;b;y\n1;2;3\n4;5;6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"tabs are found", "a\tb\ty\n1\t2\t3\n4\t5\t6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"commas, and semicolons in a name", "\"a;b\",y\n1,2\n", CSVOptions{}, []string{"a;b"}, []float64{1}, []float64{2}},
		{"UTF-16", wide("a\tb\ty\n1\t2\t3\n4\t5\t6\n", binary.LittleEndian), CSVOptions{}, ab, num, []float64{3, 6}},
		{"Latin 1", "\xe9,b,y\n1,2,3\n4,5,6\n", CSVOptions{Encoding: charmap.ISO8859_1}, []string{"é", "b"}, num,
			[]float64{3, 6}},
		{"UTF-16, the other order", wide("é,b,y\n1,2,3\n4,5,6\n", binary.BigEndian), CSVOptions{}, []string{"é", "b"}, num,
			[]float64{3, 6}},
		{"a decimal comma", "a;b;y\n1,5;2;3\n-4,25;1.005,5;6\n", CSVOptions{Decimal: ','}, ab,
			[]float64{1.5, 2, -4.25, 1005.5}, []float64{3, 6}},
		{"a decimal comma without a header", "1,5;2,5;3,5\n4;5;6\n", CSVOptions{Decimal: ',', NoHeader: true},
			[]string{"x0", "x1"}, []float64{1.5, 2.5, 4, 5}, []float64{3.5, 6}},
		{"thousands", "a,b,y\n\"1,234.5\",2 000 000,3\n\"-12,000\",5'000,6\n", CSVOptions{Decimal: '.'}, ab,
			[]float64{1234.5, 2e6, -12000, 5000}, []float64{3, 6}},
		{"percentages", "a,b,y\n10%,2,3\n12.5 %,5,6\n", CSVOptions{}, ab, []float64{10, 2, 12.5, 5}, []float64{3, 6}},
		{"true and false", "a,b,y\nTRUE,2,3\nfalse,5,6\n", CSVOptions{}, ab, []float64{1, 2, 0, 5}, []float64{3, 6}},
		{"a typographic minus", "a,b,y\n−1,2,3\n4,−5.5,6\n", CSVOptions{}, ab, []float64{-1, 2, 4, -5.5}, []float64{3, 6}},
		{"true and True are one category", "c,y\nTrue,3\ntrue,6\nno,9\n", CSVOptions{Categorical: []string{"c"}},
			[]string{"c=True", "c=no"}, []float64{1, 0, 1, 0, 0, 1}, []float64{3, 6, 9}},
		{"NA is a category", "c,y\nNA,3\nb,6\n", CSVOptions{Categorical: []string{"c"}, MissingTokens: []string{""}},
			[]string{"c=NA", "c=b"}, []float64{1, 0, 0, 1}, []float64{3, 6}},
		{"all columns of text", "c,b,d,y\nu,2,,3\n3,5,w,6\n", CSVOptions{Categorical: []string{EveryText},
			Missing: MissingMean}, []string{"c=3", "c=u", "b", "d=w"},
			[]float64{0, 1, 2, 1, 1, 0, 5, 1}, []float64{3, 6}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadCSV(strings.NewReader(tt.text), tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			want := mat.NewDense(len(tt.y), len(tt.features), tt.x)
			if strings.Join(got.Features, "|") != strings.Join(tt.features, "|") || !mat.Equal(got.X, want) {
				t.Errorf("%q %v, want %q %v", got.Features, mat.Formatted(got.X), tt.features, mat.Formatted(want))
			}
			for i, y := range tt.y {
				if len(got.Y) != len(tt.y) || got.Y[i] != y || got.Target != "y" && !tt.opts.NoHeader {
					t.Errorf("target %s %v, want %v", got.Target, got.Y, tt.y)
				}
			}
		})
	}
}

// What may mean two things, or is no feature, is refused with its place and what to do.
func TestReadCSVAsWrittenErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		opts       CSVOptions
		want       []string
	}{
		{"an index that is none", ",a,y\n1,1,2\n1,3,4\n", CSVOptions{}, []string{"row 1 (line 3)", "column 0", `"1" twice`}},
		{"an index that is none, later", ",a,y\n0,1,2\n5,3,4\n0,3,4\n", CSVOptions{}, []string{"row 2", `"0" twice`}},
		{"no name", "a,,y\n1,u,2\n", CSVOptions{}, []string{"column 1", "no name", `"u"`, `"1" in Ignore`}},
		{"no name at all", ",,\n1,2,3\n", CSVOptions{}, []string{"no name", "NoHeader"}},
		{"no name, categorical", "a,,y\n1,u,2\n", CSVOptions{Categorical: []string{"1"}}, []string{"without a name"}},
		{"a decimal comma", "a;y\n1;2\n1,5;2\n", CSVOptions{}, []string{"row 1 (line 3)", `"1,5"`, "Decimal"}},
		{"thousands, or a decimal comma", "a,y\n\"1,234\",2\n", CSVOptions{}, []string{`"1,234"`, "Decimal"}},
		{"wrong groups", "a,y\n\"12,34\",2\n", CSVOptions{Decimal: '.'}, []string{`"12,34"`, "Categorical"}},
		{"a decimal point for a comma", "a;y\n1.5;2\n", CSVOptions{Decimal: ','}, []string{`"1.5"`}},
		{"an unknown mark", "a;y\n1.5;2\n", CSVOptions{Decimal: ';'}, []string{"decimal mark", "';'"}},
		{"the delimiter as the mark", "a,y\n1,2\n", CSVOptions{Delimiter: ',', Decimal: ','}, []string{"delimiter ','"}},
		{"percentages and numbers", "a,y\n10%,2\n.1,3\n", CSVOptions{},
			[]string{"row 1", `".1" is a number`, "a percentage"}},
		{"true and numbers", "a,y\n2,2\nTRUE,3\n", CSVOptions{}, []string{"row 1", `"TRUE" is true or false`, "a number"}},
		{"true as the target of a regression", "a,y\n2,true\n", CSVOptions{}, []string{`"true"`, "BinaryClassification"}},
		{"a date", "d,y\n2020-01-31,2\n", CSVOptions{}, []string{`"d"`, `"2020-01-31" is a date`, "Ignore", "month"}},
		{"a date as a category", "d,y\n31.1.2020,2\n", CSVOptions{Categorical: []string{"d"}}, []string{"is a date"}},
		{"a date among all text", "d,y\n1/31/2020 10:30,2\n", CSVOptions{Categorical: []string{EveryText}},
			[]string{"is a date"}},
		{"a footer", "a,y\n1,2\nTotal,2\n", CSVOptions{}, []string{"row 1 (line 3)", `"Total"`, "footer"}},
		{"NA in a category", "c,y\nNA,2\n", CSVOptions{Categorical: []string{"c"}}, []string{`"NA"`, "MissingTokens"}},
		{"semicolons, and a short row", "a;b;y\n1;2;3\n1;2\n", CSVOptions{}, []string{"row 1 (line 3)", "3 are needed"}},
		{"a line after Excel's first", "sep=;\na;y\nu;2\n", CSVOptions{}, []string{"row 0 (line 3)", `"u"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadCSV(strings.NewReader(tt.text), tt.opts)
			wantError(t, err, tt.want...)
		})
	}
}
