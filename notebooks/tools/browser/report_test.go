package browser

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The page that fit writes stands alone, on a screen and on a phone: its figures are there, nothing is wider than the
// window, the verdict comes first, and what a file calls its columns runs nothing.
func TestReportInBrowser(t *testing.T) {
	browser := chromium(t)
	folder := t.TempDir()
	const evil = `<img src=x onerror="document.title='run'">`
	text := `"` + strings.ReplaceAll(evil, `"`, `""`) + "\",town,price\n"
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		x, town := rng.Float64(), rng.IntN(2)
		text += fmt.Sprintf("%v,%s,%v\n", x, []string{"<script>document.title='run'</script>", "Ulm"}[town],
			2*x+float64(town)+.1*rng.NormFloat64())
	}
	data := filepath.Join(folder, "houses.csv")
	if err := os.WriteFile(data, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	fit := exec.Command("go", "run", "./notebooks", "fit", data, "-seconds", "20", "-out", filepath.Join(folder, "houses"))
	fit.Dir = filepath.Join("..", "..", "..")
	fit.Env = append(os.Environ(), "GOBNN_CACHE="+cache(t))
	if out, err := fit.CombinedOutput(); err != nil {
		t.Fatalf("fit: %v\n%s", err, out)
	}

	p := open(t, browser)
	for _, width := range []int64{1280, 390} {
		p.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate("file://"+filepath.Join(folder, "houses.html")))
		p.until("the figures are there", `[...document.images].length >= 5 && [...document.images].every(e => e.complete)`,
			10*time.Second)
		p.picture(fmt.Sprintf("report %d", width))
		if broken := is[int](p, `[...document.images].filter(e => e.naturalWidth < 300).length`); broken > 0 {
			t.Errorf("%d wide: %d pictures are broken", width, broken)
		}
		if wide := is[int64](p, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("%d wide: the page is %d", width, wide)
		}
		if top := is[float64](p, `document.querySelector('.verdict').getBoundingClientRect().bottom`); top > 900 {
			t.Errorf("%d wide: the verdict ends at %v, below the first screen", width, top)
		}
		if first := is[string](p, `document.querySelector('.verdict h2').textContent`); !strings.Contains(first, "rust") {
			t.Errorf("%d wide: the verdict is %q", width, first)
		}
		if title := is[string](p, `document.title`); !strings.HasPrefix(title, "houses") {
			t.Errorf("%d wide: a column's name has run: the title is %q", width, title)
		}
		if scripts := is[int](p, `document.scripts.length`); scripts > 0 {
			t.Errorf("%d wide: %d scripts", width, scripts)
		}
	}
}
