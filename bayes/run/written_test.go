package run_test

import (
	"strings"
	"testing"

	"gobnn/bayes/run"
)

type open struct{ Size float64 }

type hidden struct {
	Size float64
	from float64
}

type tagged struct {
	Size float64 `json:"-"`
}

type own struct {
	Inner any
	from  float64
}

func (own) MarshalJSON() ([]byte, error) { return []byte(`{}`), nil }

// A setting that JSON leaves out would let a run go on from another's checkpoint.
func TestCheckWritten(t *testing.T) {
	for _, c := range []struct {
		settings any
		says     string // "": no error
	}{
		{nil, ""},
		{open{1}, ""},
		{&open{1}, ""},
		{hidden{Size: 1}, ""}, // as it is by default
		{hidden{from: 1}, "run_test.hidden.from"},
		{&hidden{from: 1}, "run_test.hidden.from"},
		{tagged{}, ""},
		{tagged{1}, "tagged.Size"},
		{[]any{open{1}, hidden{from: 1}}, "hidden.from"},
		{map[string]any{"kernel": hidden{from: 1}}, "hidden.from"},
		{struct{ Kernel any }{hidden{from: 1}}, "hidden.from"},
		{struct{ open }{open{1}}, ""}, // whose fields JSON writes
		{struct{ hidden }{hidden{from: 1}}, "hidden.from"},
		{own{from: 1}, ""},
		{own{Inner: hidden{from: 1}}, "hidden.from"},
	} {
		err := run.CheckWritten(c.settings)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%T %+v: %v, want %q", c.settings, c.settings, err, c.says)
		}
	}
}
