package run

import (
	"context"
	"iter"
)

// StepsAs is Run.Steps for a package that yields its own view of a run: what of returns for the progress after a step.
// A run that has nothing left to do, since its checkpoint is finished, yields once. With an error that leaves no result
// it yields the zero value.
func StepsAs[T any](ctx context.Context, r *Run, of func(Progress) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		yielded := false
		for progress, err := range r.Steps(ctx) {
			yielded = true
			var now T
			if err == nil || r.Status() != "" {
				now = of(progress)
			}
			if !yield(now, err) {
				return
			}
		}
		if !yielded && r.Status() != "" {
			yield(of(r.progress()), nil)
		}
	}
}
