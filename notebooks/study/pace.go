package study

import "time"

// Pace measures the progress of a study's repetitions. Options.Repetition feeds it.
type Pace struct {
	At             Repetition // the last one that began, was done or kept
	Running        bool
	Computed, Kept int

	began    time.Time
	mean     float64 // seconds of a repetition of this method that ran now
	measured int
}

// Note takes a repetition that begins, is done, or was kept.
func (p *Pace) Note(r Repetition, now time.Time) {
	if r.Study != p.At.Study || r.Data != p.At.Data || r.Method != p.At.Method {
		p.mean, p.measured = 0, 0
	}
	p.At = r
	switch {
	case r.Kept:
		p.Kept++
	case r.Done:
		p.Running = false
		p.Computed++
		p.measured++
		p.mean += (r.Seconds - p.mean) / float64(p.measured)
	default:
		p.Running, p.began = true, now
	}
}

// Elapsed returns the time that the repetition has run.
func (p *Pace) Elapsed(now time.Time) time.Duration { return now.Sub(p.began) }

// Left estimates the seconds that this method still takes, from its repetitions that ran now. Before the first it uses
// the expected seconds of a repetition; known is false if these are 0.
func (p *Pace) Left(now time.Time, expected float64) (seconds float64, known bool) {
	each := p.mean
	if p.measured == 0 {
		each = expected
	}
	return max(each-p.Elapsed(now).Seconds(), 0) + each*float64(p.At.Of-p.At.Number), each > 0
}

// EachSecond calls show each second until stop is called, which waits for the last call.
func EachSecond(show func()) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				show()
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}
