package smc_test

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/smc"
)

var (
	zzHidden = flag.String("zz.hidden", "2", "")
	zzAct    = flag.String("zz.act", "tanh", "")
	zzThr    = flag.String("zz.thr", ".5,.9", "")
	zzMoves  = flag.String("zz.moves", "3", "")
	zzSteps  = flag.Int("zz.steps", 5, "")
	zzJ      = flag.Int("zz.j", 1000, "")
	zzRuns   = flag.Int("zz.runs", 2, "")
	zzWF     = flag.Int("zz.wf", 0, "")
	zzSplit  = flag.Int("zz.split", 5, "")
	zzTrace  = flag.Bool("zz.trace", false, "")
	zzRes    = flag.String("zz.res", "", "")
)

func TestZZ(t *testing.T) {
	var h []int
	for _, s := range strings.Split(*zzHidden, ",") {
		if s != "" {
			n, _ := strconv.Atoi(s)
			h = append(h, n)
		}
	}
	act := nn.Tanh
	if *zzAct == "relu" {
		act = nn.ReLU
	}
	net := nn.MLP{Hidden: h, Activation: act}
	if len(h) == 0 {
		net = nn.MLP{}
	}
	engine := computetest.Engines(t)[0]
	for _, a := range strings.Split(*zzThr, ",") {
		for _, b := range strings.Split(*zzMoves, ",") {
			thr, _ := strconv.ParseFloat(a, 64)
			moves, _ := strconv.Atoi(b)
			sampler := smc.Sampler{Kernel: mcmc.HMC{Steps: *zzSteps}}
			sampler.Problem = bostonProblem(t, engine, boston(t, *zzSplit, net), *zzJ)
			for run := range *zzRuns {
				begun := time.Now()
				r, err := sampler.Sample(t.Context(), smc.Settings{Particles: *zzJ, Moves: moves, Threshold: thr, Seed: uint64(run), Engine: engine, WasteFree: *zzWF, Resampler: smc.Resampler(*zzRes)})
				if err != nil {
					t.Fatal(err)
				}
				last := r.Trace[len(r.Trace)-1]
				fmt.Printf("%s %v thr %v moves %d J %d: %.2f +- %.2f; rungs %d first %.0f evals %.2fM, %.1f s %v\n", *zzAct, h, thr, moves, *zzJ, r.LogEvidence, r.LogEvidenceStdErr, len(r.Trace), last.First, float64(r.Evaluations)/1e6, time.Since(begun).Seconds(), r.Warnings)
				if *zzTrace {
					for _, s := range r.Trace {
						fmt.Printf("   %.3g dz %.2f ess %.0f first %.0f acc %.2f step %.3f trans %d\n", s.Place, s.LogEvidence, s.ESS, s.First, s.Acceptance, s.StepSize, s.Transitions)
					}
				}
			}
			sampler.Close()
		}
	}
}
