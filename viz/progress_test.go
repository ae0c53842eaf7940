package viz

import (
	"errors"
	"strings"
	"testing"
)

func TestProgressOutsideNotebook(t *testing.T) {
	var out strings.Builder
	p := NewProgress("training")
	p.out = &out
	p.Update(1, 2, "half")
	p.Update(2, 2, "done")
	if got := out.String(); !strings.Contains(got, "training: 1 of 2: half") || !strings.HasSuffix(got, "training: 2 of 2: done\n") {
		t.Errorf("got %q", got)
	}
}

func TestMarkdownOutsideNotebook(t *testing.T) {
	if err := Markdown("*text*"); !errors.Is(err, ErrNotNotebook) {
		t.Errorf("Markdown outside a notebook: error %v", err)
	}
}
