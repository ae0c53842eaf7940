package cluster

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// Islands that are single states of a chain of two, whose evidence is multiplied by potential[state] at each of six
// stages, have a known evidence and a known mean of the last state, by products of 2 x 2 matrices. Over repetitions the
// means of Z, and of Z times the weighted state less its mean, are these within four standard errors: a false alarm in
// ten thousand. The variance of Z was measured as .23, and its mean estimate, which is unbiased but for its lower
// bound, as 1.09 of it, each to 2 %.
func TestArchipelago(t *testing.T) {
	const n, stages, repetitions = 8, 6, 40_000
	potential, stay := [2]float64{1, 6}, .9
	exact := [2]float64{.5, .5} // the measure, not normalised
	for range stages {
		moved := [2]float64{stay*exact[0] + (1-stay)*exact[1], stay*exact[1] + (1-stay)*exact[0]}
		exact = [2]float64{potential[0] * moved[0], potential[1] * moved[1]}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var z, ones, squares []float64
	met := 0
	for range repetitions {
		a, states, evidences := newArchipelago(n), make([]int, n), make([]float64, n)
		for k := range states {
			states[k] = rng.IntN(2)
		}
		for stage := range stages {
			for k := range states {
				if rng.Float64() > stay {
					states[k] = 1 - states[k]
				}
				evidences[k] += math.Log(potential[states[k]])
			}
			at, ancestors, err := a.meet(evidences, rng)
			if err != nil {
				t.Fatal(err)
			}
			if at.Resampled != (at.ESS < n/2.) {
				t.Fatalf("stage %d: %+v", stage, at)
			}
			if at.Resampled {
				met++
			}
			next, before := make([]int, n), make([]float64, n)
			for k, ancestor := range ancestors {
				next[k], before[k] = states[ancestor], evidences[ancestor]
			}
			states, evidences = next, before
		}
		value, one := math.Exp(a.evidence.Value)/(exact[0]+exact[1]), 0.
		for k, w := range a.logWeights.Weights() {
			one += w * float64(states[k])
		}
		z, ones = append(z, value), append(ones, value*(one-exact[1]/(exact[0]+exact[1])))
		squares = append(squares, math.Pow(value*a.evidence.StdErr, 2))
	}
	if met < repetitions/2 {
		t.Errorf("islands were resampled %d times in %d repetitions", met, repetitions)
	}
	for _, c := range []struct {
		name   string
		values []float64
		want   float64
	}{{"Z", z, 1}, {"Z times the state", ones, 0}} {
		mean, stdDev := stat.MeanStdDev(c.values, nil)
		if stdErr := stdDev / math.Sqrt(repetitions); math.Abs(mean-c.want) > 4*stdErr {
			t.Errorf("%s has mean %.4f +- %.4f, exact %v", c.name, mean, stdErr, c.want)
		}
	}
	stated, is := stat.Mean(squares, nil), stat.Variance(z, nil)
	if !(is < .3 && stated > .97*is && stated < 1.15*is) {
		t.Errorf("the stated variance of Z is %.4f, and it is %.4f", stated, is)
	}
}

// Islands keep their first ancestors over all meetings: where all descend from one island, later families are one.
func TestFirstAncestors(t *testing.T) {
	const n = 16
	a, evidences := newArchipelago(n), make([]float64, n)
	evidences[3] = 100 // all others descend from it
	for k := range 3 {
		at, _, err := a.meet(evidences, rand.NewPCG(1, 2))
		if err != nil {
			t.Fatal(err)
		}
		if at.Resampled != (k < 2) || math.Abs(at.First-1) > 1e-9 {
			t.Errorf("meeting %d: %+v, want one first island", k+1, at)
		}
		for i := range evidences {
			evidences[i] = a.before[i]
			if k == 0 && i%4 == 0 {
				evidences[i] += 100 // four of them have the weight
			}
		}
	}
	if slices.Max(a.eve) != 3 || slices.Min(a.eve) != 3 {
		t.Errorf("they descend from %v", a.eve)
	}
}
