package viz_test

import (
	"bytes"
	"compress/zlib"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
)

// In a PDF pictures stand upright, and all text is ASCII, which is all that its fonts have; the rest is drawn.
func TestPDFContent(t *testing.T) {
	pictures, outlines := 0, 0
	for _, s := range gallery() {
		fig := computetest.Must(s.make())
		pdf := computetest.Must(fig.PDF())
		page := content(t, pdf)
		for _, shown := range regexp.MustCompile(`(?s)\(((?:\\.|[^\\)])*)\) ?Tj`).FindAllStringSubmatch(page, -1) {
			if strings.ContainsFunc(shown[1], func(r rune) bool { return r > 126 || r < 32 }) {
				t.Errorf("%s: the text %q has letters that fonts of a PDF lack", s.name, shown[1])
			}
		}
		// The matrix of each picture, and what it stands in: [a b c d e f], of which d says which way up it is.
		upright := []float64{1}
		for _, line := range strings.Split(page, "\n") {
			fields := strings.Fields(line)
			for i, field := range fields {
				switch last := len(upright) - 1; field {
				case "q":
					upright = append(upright, upright[last])
				case "Q":
					upright = upright[:last]
				case "cm":
					d, err := strconv.ParseFloat(fields[i-3], 64)
					if err != nil {
						t.Fatalf("%s: %q: %v", s.name, line, err)
					}
					if d != 0 { // a quarter turn has none, and no pictures
						upright[last] *= d
					}
				case "Do":
					if pictures++; upright[last] <= 0 {
						t.Errorf("%s: a picture stands on its head: %q", s.name, line)
					}
				}
			}
		}
		outlines += strings.Count(page, " c\n")
	}
	if pictures < 3 || outlines < 100 {
		t.Errorf("%d pictures and %d curves in all PDFs: there must be more", pictures, outlines)
	}
}

// content is the page of a PDF, as commands.
func content(t *testing.T, pdf []byte) string {
	t.Helper()
	for _, stream := range regexp.MustCompile(`(?s)stream\n(.*?)\nendstream`).FindAllSubmatch(pdf, -1) {
		reader, err := zlib.NewReader(bytes.NewReader(stream[1]))
		if err != nil {
			continue
		}
		if plain, err := io.ReadAll(reader); err == nil && bytes.Contains(plain, []byte(" cm\n")) {
			return string(plain)
		}
	}
	t.Fatal("the PDF has no page")
	return ""
}
