package bayes_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"
)

// The service of the example with 1000 particles: clients that each ask again as soon as they are answered say what
// load the processors bear, answers/s. At half of it, requests arriving as a Poisson process, each of one row, take p50
// and p99, from the time at which they were due; a timer of Go's may be late by a millisecond.
func BenchmarkServe(b *testing.B) {
	for _, engine := range computetest.Engines(b) {
		computetest.BenchOn(b, engine, benchmarkServe)
	}
}

func benchmarkServe(b *testing.B, engine *compute.Engine) {
	const particles = 1000
	load, requests := 2*time.Second, 5000
	if testing.Short() {
		load, requests = load/20, requests/50
	}
	bound := computetest.Must(bayes.Model{
		Network: nn.MLP{Hidden: []int{50, 20, 5}, Activation: nn.GELU}, Likelihood: bayes.Gaussian{StdDev: 1},
		Stochastic: bayes.All(),
	}.Bind(2, 1))
	s := newService(computetest.Must(bayes.NewPosterior(bound, bayes.Draws{
		Phi:        compute.Floats(compute.Float32, wave(particles*bound.D, 1.7), particles, bound.D),
		LogWeights: bayes.EqualLogWeights(particles),
	}, bayes.Origin{Engine: engine, FeatureNames: []string{"area", "rooms"}, TargetNames: []string{"y"}})))
	ask := func(i int) {
		w, body := httptest.NewRecorder(), fmt.Sprintf(`{"rows": [{"area": %d, "rooms": 1}]}`, i%7)
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if w.Code != http.StatusOK {
			b.Error(w.Body)
		}
	}
	ask(0)
	for b.Loop() {
		var clients sync.WaitGroup
		var answers atomic.Int64
		start := time.Now()
		for range 8 * runtime.GOMAXPROCS(0) {
			clients.Go(func() {
				for time.Since(start) < load {
					ask(int(answers.Add(1)))
				}
			})
		}
		clients.Wait()
		rate := float64(answers.Load()) / time.Since(start).Seconds()

		took, random := make([]float64, requests), rand.New(rand.NewPCG(1, 2))
		due := time.Now()
		for i := range took {
			due = due.Add(time.Duration(random.ExpFloat64() / (rate / 2) * float64(time.Second)))
			time.Sleep(time.Until(due))
			due := due
			clients.Go(func() {
				ask(i)
				took[i] = time.Since(due).Seconds() * 1e3
			})
		}
		clients.Wait()
		slices.Sort(took)
		b.ReportMetric(rate, "answers/s")
		b.ReportMetric(took[requests/2], "p50-ms")
		b.ReportMetric(took[requests*99/100], "p99-ms")
	}
}
