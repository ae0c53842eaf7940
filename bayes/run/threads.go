package run

import "fmt"

// Threads are the threads with which all runs of one call compute on a CPU. Their number decides the last digits of
// sums, so that the checkpoints of these runs must agree in it. A finished run may have had another number, as long as
// the call computes nothing further: reading it changes no digit.
type Threads struct {
	Here int // 0: the bits do not depend on it

	began bool  // the call has computed
	other error // why it may not: it has read a finished run of another number of threads
}

// check is an error if the call cannot go on with a checkpoint that was made with another number of threads. A file
// that does not have the number, as one of an earlier version, is taken to agree.
func (t *Threads) check(file string, there int, finished bool) error {
	if t == nil || t.Here == 0 || there == 0 || there == t.Here {
		return nil
	}
	err := fmt.Errorf("%s: %w: it was computed with %d threads, and this process has %d: sums would differ in their last "+
		"digits, and then all that follows; set the environment variable NPROC=%d to go on with as many threads, which may "+
		"share processors", file, ErrOtherRun, there, t.Here, there)
	if finished && !t.began {
		t.other = err
		return nil
	}
	return err
}

// begin is an error if the call is to compute after it has read a run of another number of threads.
func (t *Threads) begin() error {
	if t == nil {
		return nil
	}
	t.began = true
	return t.other
}
