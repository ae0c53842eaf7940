package run_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

type record struct {
	Loss     float64
	Moves    int
	Rejected bool
}

// Records come back as they were; a number that a field cannot have had is an error.
func TestRecords(t *testing.T) {
	want := []record{{1.5, 3, true}, {math.Inf(-1), -2, false}, {.1, 0, false}}
	for _, records := range [][]record{nil, want[:1], want} {
		kept := map[string]*tensors.Tensor{"trace": run.Records(records)}
		got, err := run.ReadRecords[record](kept, "trace", len(records))
		if err != nil || !slices.Equal(got, records) {
			t.Errorf("%+v: got %+v, error %v", records, got, err)
		}
	}
	for says, row := range map[string][]float64{
		"0.5 as Moves of record 0": {0, .5, 0}, "NaN as Moves": {0, math.NaN(), 0}, "2 as Rejected": {0, 0, 2},
	} {
		kept := map[string]*tensors.Tensor{"trace": run.Table(row, 3)}
		if _, err := run.ReadRecords[record](kept, "trace", 1); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: error %v does not say %q", row, err, says)
		}
	}
	if _, err := run.ReadRecords[record](map[string]*tensors.Tensor{}, "trace", 1); err == nil {
		t.Error("records that are not there are no error")
	}
}
