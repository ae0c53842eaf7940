package dataset

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// wide is a text in UTF-16 with its byte order mark.
func wide(text string, order binary.AppendByteOrder) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune("\uFEFF" + text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// What may have been meant otherwise is said beside the table.
func TestNotes(t *testing.T) {
	text := "# x\n,zip,y\n0,01234,1\n1,50,2\n2,50,3\n"
	d := readLike(t, text, CSVOptions{})
	for _, want := range []string{"1 line at the beginning", "the first column, which has no name, is left out",
		`column "zip" is of numbers, such as "01234"`} {
		if text := d.String(); !strings.Contains(text, "note: ") || !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", text, want)
		}
	}
	if d := readLike(t, "zip,y\n12,1\n50,2\n", CSVOptions{}); d.Notes != nil {
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
