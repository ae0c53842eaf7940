package viz_test

import (
	"bytes"
	"compress/zlib"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/image/draw"
)

// A PDF shows what the PNG does: its pages are rendered, and looked at beside it.
func TestPDFPages(t *testing.T) {
	renderer, err := exec.LookPath("pdftoppm")
	if err != nil {
		t.Skip("NOT RUN: there is no pdftoppm; mend it with: sudo apt install poppler-utils")
	}
	for _, s := range gallery() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			fig, err := s.make()
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			file := filepath.Join(folder, "figure.pdf")
			if err := fig.Save(file); err != nil {
				t.Fatal(err)
			}
			page := filepath.Join(folder, "page")
			if out, err := exec.CommandContext(t.Context(), renderer, "-r", "192", "-png", "-singlefile", file, page).
				CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			rendered, err := os.ReadFile(page + ".png")
			if err != nil {
				t.Fatal(err)
			}
			picture, err := fig.PNG()
			if err != nil {
				t.Fatal(err)
			}
			if unlike := unlikeness(t, rendered, picture); unlike > .02 {
				t.Errorf("a share of %.3f of the page's squares are unlike those of the PNG", unlike)
			}
		})
	}
}

// unlikeness is the share of squares of 16 x 16 pixels whose mean colours differ by more than a fifth of what black and
// white do.
func unlikeness(t *testing.T, one, other []byte) float64 {
	t.Helper()
	coarse := func(data []byte, size image.Point) *image.RGBA {
		picture, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if size == (image.Point{}) {
			size = picture.Bounds().Size().Div(16)
		}
		out := image.NewRGBA(image.Rectangle{Max: size})
		draw.CatmullRom.Scale(out, out.Bounds(), picture, picture.Bounds(), draw.Src, nil)
		return out
	}
	a := coarse(one, image.Point{})
	b := coarse(other, a.Bounds().Size())
	unlike := 0
	for i := 0; i < len(a.Pix); i += 4 {
		for k := range 3 {
			if math.Abs(float64(a.Pix[i+k])-float64(b.Pix[i+k])) > 255./5 {
				unlike++
				break
			}
		}
	}
	return float64(unlike) / float64(len(a.Pix)/4)
}

// In a PDF pictures stand upright, and all text is ASCII, which is all that its fonts have; the rest is drawn.
func TestPDFContent(t *testing.T) {
	pictures, outlines := 0, 0
	for _, s := range gallery() {
		fig, err := s.make()
		if err != nil {
			t.Fatal(err)
		}
		pdf, err := fig.PDF()
		if err != nil {
			t.Fatal(err)
		}
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
