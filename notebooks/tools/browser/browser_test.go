package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chromium is a browser that is installed: $CHROMIUM, or the first on PATH. Without one the test is skipped.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	if path := os.Getenv("CHROMIUM"); path != "" {
		names = []string{path}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("NOT RUN: there is no Chromium here (%s, or CHROMIUM=...); mend it with: sudo apt install chromium",
		strings.Join(names, ", "))
	return ""
}

// cache is a cache folder of the test's own with the environment that is set up, so that no run is kept from before.
func cache(t *testing.T) string {
	t.Helper()
	before := os.Getenv("GOBNN_CACHE")
	if before == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		before = filepath.Join(user, "gobnn")
	}
	env, err := filepath.EvalSymlinks(filepath.Join(before, "env"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("NOT RUN: the environment is not set up; mend it with: go run ./notebooks setup")
	}
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	if err := os.Symlink(env, filepath.Join(own, "env")); err != nil {
		t.Fatal(err)
	}
	return own
}

const token = "of-the-test"

// clone is a copy of the source tree whose path has a space, and the environment of a user whose home folder and flags
// of the go command have some too.
func clone(t *testing.T) (root string, environ []string) {
	t.Helper()
	from := filepath.Join("..", "..", "..")
	folder := t.TempDir()
	root = filepath.Join(folder, "my clone")
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to := filepath.Join(root, e.Name())
		switch {
		case e.IsDir() && strings.HasPrefix(e.Name(), "."):
			continue
		case e.IsDir():
			err = os.CopyFS(to, os.DirFS(filepath.Join(from, e.Name())))
		default:
			var data []byte
			if data, err = os.ReadFile(filepath.Join(from, e.Name())); err == nil {
				err = errors.Join(os.MkdirAll(root, 0o755), os.WriteFile(to, data, 0o644))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(folder, "my home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	environ = append(os.Environ(), "HOME="+home, "GOFLAGS='-ldflags=-X main.nothing=of -X main.importance=here'")
	// What is downloaded and compiled lies in the old home folder.
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GONOSUMDB"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		environ = append(environ, name+"="+strings.TrimSpace(string(out)))
	}
	return root, environ
}

// lab starts JupyterLab from a clone on an empty folder of the user's, and returns the folder, and the address without
// a path.
func lab(t *testing.T) (work, address string) {
	t.Helper()
	root, environ := clone(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	work, address = filepath.Join(t.TempDir(), "my work"), "http://127.0.0.1:"+port
	command := exec.Command("go", "run", "./notebooks", "lab", "-no-browser", "-port", port, "--",
		"--IdentityProvider.token="+token)
	command.Dir = root
	command.Env = append(environ, "GOBNN_WORK="+work, "GOBNN_CACHE="+cache(t))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			<-ended
		}
		if t.Failed() {
			t.Logf("JupyterLab said: %s", said.Bytes())
		}
	})
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("JupyterLab: %v", err)
		default:
		}
		if answer, err := http.Get(address + "/api?token=" + token); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return work, address
			}
		}
	}
	t.Fatal("JupyterLab does not answer")
	return "", ""
}

// page is a notebook that is open in the browser.
type page struct {
	t        *testing.T
	ctx      context.Context
	pictures string // folder for a picture of the page where the test fails; empty: none
}

// open starts the browser.
func open(t *testing.T, path string) page {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path),
		chromedp.WindowSize(1280, 1000), chromedp.NoSandbox)
	allocated, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 15*time.Minute)
	t.Cleanup(cancel)
	p := page{t, ctx, os.Getenv("GOBNN_PICTURES")}
	t.Cleanup(func() {
		if t.Failed() {
			p.picture("failed")
		}
	})
	return p
}

// picture keeps a picture of the page.
func (p page) picture(name string) {
	if p.pictures == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(p.pictures, name+".png"), png, 0o644)
	}
	if err != nil {
		p.t.Logf("picture %s: %v", name, err)
	}
}

func (p page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// is evaluates a JavaScript expression.
func is[T any](p page, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// click clicks on the first element that a CSS selector finds.
func (p page) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// until waits for a JavaScript expression to be true.
func (p page) until(what, expression string, patience time.Duration) {
	p.t.Helper()
	for end := time.Now().Add(patience); !is[bool](p, expression); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("waited %v until %s; the last output is %q", patience, what, is[string](p, lastOutput))
		}
	}
}

// The notebook in front, and what JavaScript tells of it.
const (
	front = `.jp-NotebookPanel:not(.lm-mod-hidden) `
	panel = `document.querySelector('` + front + `')`

	active  = `Number((` + panel + `.querySelector('.jp-Cell.jp-mod-active') || {dataset: {}}).dataset.windowedListIndex)`
	running = `[...` + panel + `.querySelectorAll('.jp-InputPrompt')].filter(e => e.textContent.includes('*')).length`
	failed  = `[...` + panel + `.querySelectorAll('[data-mime-type="application/vnd.jupyter.stderr"]')]` +
		`.map(e => e.textContent).filter(s => s.includes('panic:') || s.includes('exit status')).join('\n')`
	lastOutput = `([...document.querySelectorAll('.jp-OutputArea-output')].map(e => e.textContent).pop() || '')` +
		`.slice(-500)`

	// the bar that was drawn last: how far it is, -1 without one, 0 while it has no length
	bar = `(() => { const all = [...` + panel + `.querySelectorAll('progress')]; ` +
		`return all.length ? all[all.length-1].value : -1 })()`
	figures = `[...` + panel + `.querySelectorAll('.jp-OutputArea-output img')]` +
		`.filter(e => e.complete && e.naturalWidth > 300).length`
	offered = `[...document.querySelectorAll('.jp-Completer:not(.lm-mod-hidden) .jp-Completer-item')]` +
		`.map(e => e.textContent).join(' ')`

	stopButton = front + `[data-command="notebook:interrupt-kernel"]`
)

// show opens a notebook, and goes to its first cell when the kernel is there.
func (p page) show(address, name string) {
	p.t.Helper()
	p.do(chromedp.Navigate(fmt.Sprintf("%s/lab/tree/%s?token=%s&reset", address, name, token)))
	p.until("Lab shows "+name, `!!`+panel+` && `+panel+`.querySelectorAll('.jp-CodeCell').length > 1`, time.Minute)
	state := func() string { return sessionOf(p.t, address, name).Kernel.State }
	for end := time.Now().Add(time.Minute); state() != "idle"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("the kernel of %s is %q", name, state())
		}
	}
	// Lab shows idle before it has a kernel, too.
	p.until("Lab knows that the kernel is idle",
		`(`+panel+`.querySelector('.jp-Notebook-ExecutionIndicator') || {dataset: {}}).dataset.status === 'idle'`,
		time.Minute)
	p.click(front + `.jp-Notebook .jp-Cell`)
	p.do(chromedp.KeyEvent(kb.Escape))
	for end := time.Now().Add(time.Minute); is[int](p, active) != 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("the arrow up ends at cell %d", is[int](p, active))
		}
		p.do(chromedp.KeyEvent(kb.ArrowUp))
	}
}

// session is a notebook that has a kernel.
type session struct {
	ID     string
	Path   string
	Kernel struct {
		State string `json:"execution_state"`
	}
}

// sessionOf asks JupyterLab's server for a notebook's kernel; the zero value: it has none.
func sessionOf(t *testing.T, address, notebook string) session {
	t.Helper()
	answer, err := http.Get(address + "/api/sessions?token=" + token)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var all []session
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Path == notebook {
			return s
		}
	}
	return session{}
}

// shut ends a notebook's kernel.
func shut(t *testing.T, address, notebook string) {
	t.Helper()
	at := address + "/api/sessions/" + sessionOf(t, address, notebook).ID + "?token=" + token
	request, err := http.NewRequest(http.MethodDelete, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Fatalf("%s has not been shut: %s", notebook, answer.Status)
	}
}

// next runs the active cell by keyboard and goes to the one below.
func (p page) next() {
	p.t.Helper()
	at := is[int](p, active)
	prompt := fmt.Sprintf(`((%s.querySelector('.jp-CodeCell[data-windowed-list-index="%d"] .jp-InputPrompt')`+
		` || {}).textContent || '')`, panel, at)
	before := is[string](p, prompt)
	p.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierShift)))
	p.until("the cell below is active", fmt.Sprintf(`%s === %d`, active, at+1), 10*time.Second)
	if before != "" { // a cell of code
		p.until("the cell runs", prompt+fmt.Sprintf(` !== %q`, before), 10*time.Second)
	}
}

// save keeps the notebook, without which Lab would ask before it shows another one.
func (p page) save() {
	p.t.Helper()
	p.do(chromedp.KeyEvent("s", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	p.until("the notebook is saved", `!document.querySelector('.lm-TabBar-tab.jp-mod-dirty')`, 20*time.Second)
}

// blank writes a copy of a notebook without outputs, with its source changed, so that what shows is new, and returns
// how many cells it has.
func blank(t *testing.T, from, to, old, new string) (cells int) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var notebook map[string]any
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(old), []byte(new)), &notebook); err != nil {
		t.Fatal(err)
	}
	if old != new && !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s has no %q", from, old)
	}
	all := notebook["cells"].([]any)
	for _, cell := range all {
		if cell := cell.(map[string]any); cell["cell_type"] == "code" {
			cell["outputs"], cell["execution_count"] = []any{}, nil
		}
	}
	if text, err = json.Marshal(notebook); err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// In JupyterLab the bar of the template's run moves, the stop button ends it, and it goes on when its cell runs again;
// the quickstart runs by keyboard, figures appear, and Tab completes.
func TestQuickstartInBrowser(t *testing.T) {
	path := chromium(t)
	work, address := lab(t)
	p := open(t, path)

	// A run that is long enough to be stopped: the fourth cell's.
	blank(t, filepath.Join(work, "template.ipynb"), filepath.Join(work, "long.ipynb"), "Epochs: 100,",
		"Epochs: 5000, Patience: 1e6,")
	const training = 4
	p.show(address, "long.ipynb")
	for range training {
		p.next()
	}
	p.until("the bar has a length", bar+` > 0`, 3*time.Minute)
	before := is[float64](p, bar)
	p.until("the bar moves", fmt.Sprintf(`%s > %v`, bar, before), 30*time.Second)
	p.picture("bar")
	moved := is[float64](p, bar)
	p.click(stopButton)
	p.until("the cell has stopped", running+` === 0`, 30*time.Second)
	line := regexp.MustCompile(`^stopped at step \d+ of \d+, kept; run the cell again to go on\n`)
	if said := is[string](p, failed); !line.MatchString(said) || strings.Contains(said, "goroutine") {
		t.Errorf("the stopped cell says %q", said)
	}
	p.until("the bar is gone", bar+` === -1`, 10*time.Second)
	p.picture("stopped")
	p.click(fmt.Sprintf(front+`[data-windowed-list-index="%d"] .jp-InputPrompt`, training-1))
	p.next()
	p.until("the cell runs again", running+` > 0`, 30*time.Second)
	for end, now := time.Now().Add(time.Minute), 0.; now <= moved; now = is[float64](p, bar) {
		if 0 < now && now < moved || time.Now().After(end) {
			t.Fatalf("stopped after step %v, the run goes on from %v", moved, now)
		}
	}
	p.click(stopButton)
	p.until("the cell has stopped again", running+` === 0`, 30*time.Second)
	p.save()
	shut(t, address, "long.ipynb")

	// The whole quickstart, with no other notebook beside it.
	quickstart := filepath.Join(work, "quickstart.ipynb")
	cells := blank(t, quickstart, quickstart, "", "")
	p.show(address, "quickstart.ipynb")
	began := time.Now()
	for range cells {
		p.next()
	}
	p.until("there is a figure", figures+` > 0`, 5*time.Minute)
	t.Logf("the first figure %.1f s after the first key", time.Since(began).Seconds())
	p.until("all cells have run", running+` === 0`, 5*time.Minute)
	t.Logf("all cells in %.1f s", time.Since(began).Seconds())
	p.picture("quickstart")
	if said := is[string](p, failed); said != "" {
		t.Errorf("cells failed: %s", said)
	}
	if got := is[int](p, figures); got < 6 {
		t.Errorf("%d figures, want at least 6", got)
	}

	p.save()
	if text, err := os.ReadFile(quickstart); err != nil || regexp.MustCompile(`title=\\"[^"]*[ms] left`).Match(text) {
		t.Errorf("a bar of a run that has ended shows time that is left (%v)", err)
	}

	// Below the last cell there is now one to write in.
	p.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent("%%\rbayes.L"))
	for end := time.Now().Add(90 * time.Second); !strings.Contains(is[string](p, offered), "Layers"); {
		if time.Now().After(end) {
			t.Fatalf("Tab offers %q", is[string](p, offered))
		}
		p.do(chromedp.KeyEvent(kb.Tab), chromedp.Sleep(3*time.Second))
	}
	p.picture("completion")
}
