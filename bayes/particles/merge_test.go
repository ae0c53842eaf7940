package particles

import (
	"math"
	"testing"
)

// A record of several steps has the last one's numbers, and of those that add up, or that a warning looks for, the sum,
// the mean or the extreme.
func TestMergedRecords(t *testing.T) {
	a := StepRecord{LogEvidence: -1, LogEvidenceStdErr: 3, Loss: 2, ESS: 9, MeanGradient: 1, UniqueAncestors: 1,
		Resamplings: 1, NonFinite: 4, GradientRejected: true, Acceptance: .1, StepSize: .5, Seconds: 1}
	b := StepRecord{LogEvidence: -2, LogEvidenceStdErr: 4, Loss: 5, ESS: 8, MeanGradient: 2, UniqueAncestors: 6,
		Resamplings: 1, NonFinite: 3, Acceptance: .2, StepSize: .4, Seconds: 2}
	want := StepRecord{LogEvidence: -3, LogEvidenceStdErr: 5, Loss: 3, ESS: 8, MeanGradient: 2, UniqueAncestors: 1,
		Resamplings: 2, NonFinite: 4, GradientRejected: true, Acceptance: .2, StepSize: .4, Seconds: 3}
	got := a.merge(b, 1./3) // a is of two steps
	if got.Loss = math.Round(1e9*got.Loss) / 1e9; got != want {
		t.Errorf("merged %+v, want %+v", got, want)
	}
}
