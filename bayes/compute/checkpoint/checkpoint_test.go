package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute/tensorfile"

	"github.com/gomlx/gomlx/core/tensors"
)

type at struct {
	Step int `json:"step"`
}

func blank() Run[at] {
	return Run[at]{Format: "test/2", Identity: []Part{{"seed", "7"}, {"data", "abc"}}}
}

func TestReadsWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	run := blank()
	run.Head, run.Tensors = at{3}, map[string]*tensors.Tensor{"x": tensors.FromValue([]float32{1, 2})}
	if err := run.Write(path); err != nil {
		t.Fatal(err)
	}
	again := blank()
	if found, err := again.Resume(path, false); !found || err != nil {
		t.Fatal(found, err)
	}
	if again.Head != run.Head || !again.Tensors["x"].Equal(run.Tensors["x"]) {
		t.Errorf("read %+v", again)
	}
}

func TestOtherRuns(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run")
	if err := blank().Write(path); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged")
	if err := os.WriteFile(damaged, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign")
	if err := tensorfile.Write(foreign, tensorfile.File{}); err != nil {
		t.Fatal(err)
	}
	format, seed := blank(), blank()
	format.Format = "test/3"
	seed.Identity[0].Value = "8"
	for _, c := range []struct {
		what, path string
		run        Run[at]
		is         error
		says       string
		anew       bool // with replace
	}{
		{"a format", path, format, ErrOtherRun, `its format is "test/2", not "test/3"`, true},
		{"a seed", path, seed, ErrOtherRun, "another seed: there 7, here 8", true},
		{"no head", foreign, blank(), ErrOtherRun, "no head", true},
		{"damage", damaged, blank(), tensorfile.ErrDamaged, "damaged", true},
		{"no file", filepath.Join(dir, "none"), blank(), fs.ErrNotExist, "none", true},
		{"a folder", dir, blank(), nil, dir, false},
	} {
		before := c.run.Head
		err := c.run.Read(c.path)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || c.run.Head != before || c.run.Tensors != nil {
			t.Errorf("%s: Read gives %v and %+v", c.what, err, c.run)
		}
		if found, err := c.run.Resume(c.path, true); found || (err == nil) != c.anew {
			t.Errorf("%s: Resume with replace gives %v, %v", c.what, found, err)
		}
		if found, err := c.run.Resume(c.path, false); found || (err == nil) != (c.is == fs.ErrNotExist) {
			t.Errorf("%s: Resume gives %v, %v", c.what, found, err)
		}
	}
}

// Records come back as they were laid out, none as none; what is no table of that width, or missing, is an error.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		rows []float64
		want [][]float64
	}{
		{nil, nil}, {[]float64{0, 1}, [][]float64{{0, 1}}}, {[]float64{0, 0, 0, 0}, [][]float64{{0, 0}, {0, 0}}}, {[]float64{1, 2, 3, 4}, [][]float64{{1, 2}, {3, 4}}},
	} {
		got, err := Rows(Table(c.rows, 2), 2)
		if err != nil || !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%v came back as %v, %v", c.rows, got, err)
		}
	}
	for _, bad := range []*tensors.Tensor{nil, tensors.FromValue([]float64{1, 2, 3}), tensors.FromValue([]int32{1, 2})} {
		if rows, err := Rows(bad, 2); err == nil {
			t.Errorf("%v has rows %v", bad, rows)
		}
	}
}
