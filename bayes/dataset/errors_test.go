package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Options have other names wherever an error with options is wrapped, and what the user wrote stays as it is.
func TestErrorText(t *testing.T) {
	inner := Errorf("cannot read %.40q: list it in {Ignore}, or set {Missing to MissingMean}", "{Ignore} 5%")
	err := fmt.Errorf("a.csv: %w", Errorf("dataset %s: %v", "Ignore", errors.Join(inner, ErrMissingClass)))
	for name, want := range map[string]string{
		"":  `a.csv: dataset Ignore: cannot read "{Ignore} 5%": list it in Ignore, or set Missing to MissingMean`,
		"%": `a.csv: dataset Ignore: cannot read "{Ignore} 5%": list it in %Ignore, or set %Missing to MissingMean`,
	} {
		got := ErrorText(err, func(option string) string { return name + option })
		if got, _, _ := strings.Cut(got, "\n"); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	if !errors.Is(err, ErrMissingClass) {
		t.Error("the class that is missing is lost")
	}
	twelve := joined(slices.Repeat([]error{inner}, 12)).Error()
	if !strings.HasSuffix(twelve, "\nand 2 more") || strings.Count(twelve, "\n") != 11 {
		t.Errorf("twelve faults: %s", twelve)
	}
}
