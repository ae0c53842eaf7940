package run_test

import (
	"math"
	"slices"
	"testing"

	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

type record struct {
	Loss     float64
	Moves    int
	Rejected bool
}

// Records come back as they were.
func TestRecords(t *testing.T) {
	want := []record{{1.5, 3, true}, {math.Inf(-1), -2, false}, {.1, 0, false}}
	for _, records := range [][]record{want[:1], want} {
		kept := map[string]*tensors.Tensor{"trace": run.Records(records)}
		got, err := run.ReadRecords[record](kept, "trace", len(records))
		if err != nil || !slices.Equal(got, records) {
			t.Errorf("%+v: got %+v, error %v", records, got, err)
		}
	}
	if _, err := run.ReadRecords[record](map[string]*tensors.Tensor{}, "trace", 1); err == nil {
		t.Error("records that are not there are no error")
	}
}
