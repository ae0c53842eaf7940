package dataset

import (
	"encoding/binary"
	"io"
	"slices"
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
		{"bars are found", "a | b | y\n1 | 2 | 3\n4 | 5 | 6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"runs of spaces are found", " a   b  y\n 1   2  3\n 4   5  6  \n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"names with spaces", "\"a\" b y\n1 2 3\n4 5 6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"R's write.table", "\"a\" \"b\" \"y\"\n\"1\" 1 2 3\n\"2\" 4 5 6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"R's header, and names", "a,b,y\nMazda,1,2,3\nFiat,4,5,6\n", CSVOptions{Target: "y"}, ab, num, []float64{3, 6}},
		{"a comma at each end but the header's", "a,b,y\n1,2,3,\n4,5,6,\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"lines of comments", "# from, the\n#\na,b,y\n1,2,3\n4,5,6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"a header as a comment", "# a b y\n1 2 3\n4 5 6\n", CSVOptions{}, ab, num, []float64{3, 6}},
		{"no header, and a comment", "# a,b,y\n1,2,3\n4,5,6\n", CSVOptions{NoHeader: true}, []string{"x0", "x1"}, num,
			[]float64{3, 6}},
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
		{"a title", "Report of 2020\na,b,y\n1,2,3\n4,5,6\n", CSVOptions{}, []string{"line 1", "Report of 2020", "no header"}},
		{"a count of rows", "2\na,b,y\n1,2,3\n4,5,6\n", CSVOptions{}, []string{"line 1", "no header", "counts the rows"}},
		{"counts of rows and columns", "2,2\na,b,c,y\n1,2,3,4\n", CSVOptions{}, []string{`["2" "2"]`, "counts the rows"}},
		{"a count at the end", "a,b,y\n1,2,3\n4,5,6\n(2 rows)\n", CSVOptions{},
			[]string{"row 2 (line 4) has 1 fields", "(2 rows)", "take it out"}},
		{"a rule below the header", "a|b|y\n-+-+-\n1|2|3\n", CSVOptions{}, []string{"row 0 (line 2) has 1 fields", "-+-+-"}},
		{"a field more, which is no name", "a,y\n1,5,2\n1,7,3\n", CSVOptions{},
			[]string{"row 1 (line 3)", `"1", is no name of a row`, "header"}},
		{"numbers for names", "0,1,2\n1,2,3\n", CSVOptions{}, []string{"all numbers", "a letter before each"}},
		{"an .xlsx", "PK\x03\x04\x14", CSVOptions{}, []string{"workbook", "save its sheet as CSV"}},
		{"a Parquet file", "PAR1\x15", CSVOptions{}, []string{"a Parquet file", "package parquet"}},
		{"zstd", "\x28\xb5\x2f\xfd", CSVOptions{}, []string{"compressed by zstd"}},
		{"a page", "<!DOCTYPE html>", CSVOptions{}, []string{"download the file itself"}},
		{"a name that is nearly there", "weight,colour,y\n1,2,3\n", CSVOptions{Ignore: []string{"wieght"}},
			[]string{`did you mean ["weight"]?`}},
		{"semicolons, and a short row", "a;b;y\n1;2;3\n1;2\n", CSVOptions{}, []string{"row 1 (line 3)", "3 are needed"}},
		{"a line after Excel's first", "sep=;\na;y\nu;2\n", CSVOptions{}, []string{"row 0 (line 3)", `"u"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadCSV(strings.NewReader(tt.text), tt.opts)
			wantError(t, err, tt.want...)
		})
	}
}

// A record without an end is an error before it fills the memory.
func TestReadCSVEndless(t *testing.T) {
	_, err := ReadCSV(io.MultiReader(strings.NewReader("a,y\n1,"), endless('9')), CSVOptions{})
	wantError(t, err, "16777216 bytes", "quote")
	_, err = ReadCSV(io.MultiReader(strings.NewReader("a,y\n1,\""), endless('\n')), CSVOptions{})
	wantError(t, err, "16777216 bytes", "quote")
	n, err := io.Copy(io.Discard, &unpacked{endless('\n'), 100})
	if wantError(t, err, "more than 4 GiB", "unpack it"); n != 100 {
		t.Errorf("%d bytes of a compressed file, of 100", n)
	}
}

// endless gives one byte again and again.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// What may have been meant otherwise is said beside the table.
func TestNotes(t *testing.T) {
	text := "# x\n,zip,answer,y\n0,01234,No,1\n1,50,NO,2\n2,50,yes,3\n"
	d := readLike(t, text, CSVOptions{Categorical: []string{"answer"}})
	for _, want := range []string{"1 line at the beginning", "the first column, which has no name, is left out",
		`column "zip" is of numbers, such as "01234"`, `column "answer" has ["NO" "No"], which differ in capital letters`} {
		if text := d.String(); !strings.Contains(text, "note: ") || !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", text, want)
		}
	}
	if d := readLike(t, "zip,answer,y\n12,No,1\n50,yes,2\n", CSVOptions{Categorical: []string{"answer"}}); d.Notes != nil {
		t.Errorf("notes %q of a table that needs none", d.Notes)
	}
}

// New rows must be written as in training: a percentage, or none.
func TestPercentagesLike(t *testing.T) {
	like := readLike(t, "discount,a,y\n10%,1,2\n20%,2,3\n", CSVOptions{})
	if !slices.Equal(like.Percentages, []string{"discount"}) {
		t.Errorf("percentages %q", like.Percentages)
	}
	if d := readLike(t, "a,discount\n1,50%\n", CSVOptions{Like: like}); d.X.At(0, 0) != 50 {
		t.Errorf("50%% is %v", d.X.At(0, 0))
	}
	for text, want := range map[string]string{
		"discount,a\n50%,1\n0.5,1\n": `row 1 (line 3), column "discount": "0.5" is a number, and in training the column ` +
			"had a percentage",
		"discount,a\n50%,1%\n": `row 0 (line 2), column "a": "1%" is a percentage, and in training the column had a ` +
			"number",
	} {
		_, err := ReadCSV(strings.NewReader(text), CSVOptions{Like: like})
		wantError(t, err, want)
	}
	_, err := FromColumns(1, []Column{numbers("discount", .1), numbers("a", 1)}, CSVOptions{Like: like})
	wantError(t, err, `column "discount"`, "in training the column had a percentage")
	old := *like
	old.Percentages = nil // of a file that does not know them
	if d := readLike(t, "discount,a\n.5,1\n", CSVOptions{Like: &old}); d.X.At(0, 0) != .5 {
		t.Errorf(".5 is %v", d.X.At(0, 0))
	}
}
