package study

import (
	"encoding/json"
	"fmt"

	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/optim"
	"gobnn/ohsmc"
	"gobnn/pmcnet"
	"gobnn/pmcnet/annealed"
)

// keptSettings are those of an algorithm as its first results were kept, whose files are named by a digest of their
// JSON: settings that have become constants since are in it, as 0.
func keptSettings(algorithm any) any {
	switch a := algorithm.(type) {
	case ohsmc.OpenHorizon:
		return struct {
			Kernel  mcmc.Kernel
			Poisson *ohsmc.Poisson
		}{a.Kernel, a.Poisson}
	case ohsmc.Guided:
		return struct {
			Proposal     ohsmc.Proposal
			StepSize     optim.Schedule
			Adapt        float64
			Precondition bool
			PerBatch     bool
		}{a.Proposal, a.StepSize, a.Adapt, a.Precondition, a.PerBatch}
	case ohsmc.SMC:
		return struct {
			Kernel       mcmc.Kernel
			Moves        int
			Precondition bool
		}{a.Kernel, a.Moves, a.Precondition}
	case pmcnet.PMC:
		weights := a.Weights
		if weights == pmcnet.Floored {
			weights = "own: exp(log w) + 1e-50"
		}
		return struct {
			Proposals    int               `json:"proposals"`
			Draws        int               `json:"draws"`
			Iterations   int               `json:"iterations"`
			Covariance   pmcnet.Covariance `json:"covariance"`
			Rank         int               `json:"rank"`
			StdDev       float64           `json:"std_dev"`
			Forgetting   float64           `json:"forgetting"`
			Shrinkage    float64           `json:"shrinkage"`
			Start        pmcnet.Start      `json:"start"`
			Noise        float64           `json:"noise"`
			Epochs       int               `json:"epochs"`
			BatchSize    int               `json:"batch_size"`
			Optimiser    json.RawMessage   `json:"optimiser"`
			Weights      pmcnet.Weights    `json:"weights"`
			ESS          float64           `json:"ess"`
			Mixture      int               `json:"mixture"`
			Resampling   pmcnet.Resampling `json:"resampling"`
			Scheme       string            `json:"scheme"`
			GradientFree bool              `json:"gradient_free"`
			Halvings     int               `json:"halvings"`
			Light        bool              `json:"light"`
			Keep         string            `json:"keep"`
		}{
			Proposals: a.Proposals, Draws: a.Draws, Iterations: a.Iterations, Covariance: a.Covariance, StdDev: a.StdDev,
			Shrinkage: a.Shrinkage, Start: a.Start, Noise: a.Noise, BatchSize: a.BatchSize,
			Optimiser: json.RawMessage(`{"schedule":{"rate":0}}`), Weights: weights, Resampling: a.Resampling,
			GradientFree: a.Ascent == pmcnet.NoAscent, Light: a.Ascent == pmcnet.MiniBatchAscent,
		}
	case annealed.Annealed:
		kept := map[string]any{}
		if text, err := json.Marshal(a); err != nil || json.Unmarshal(text, &kept) != nil {
			return a // the store says what is wrong with it
		}
		for _, name := range []string{"rank", "dof", "defence", "inflation"} {
			kept[name] = 0
		}
		return kept
	}
	return algorithm
}

// keptMethod is the type of an algorithm as its first results were kept.
func keptMethod(algorithm any) string {
	if _, ok := algorithm.(annealed.Annealed); ok {
		return "pmcnet.Annealed"
	}
	return fmt.Sprintf("%T", algorithm)
}

// MarshalJSON is an attempt in the key of kept results.
func (a attempt) MarshalJSON() ([]byte, error) {
	type plain attempt
	p := plain(a)
	p.Method = keptSettings(a.Method)
	return json.Marshal(p)
}

// trained is an algorithm of package ohsmc with these settings.
func trained(method fit.Method, training ohsmc.Training) fit.Method {
	switch m := method.(type) {
	case ohsmc.OpenHorizon:
		m.Training = training
		return m
	case ohsmc.Guided:
		m.Training = training
		return m
	case ohsmc.SMC:
		m.Training = training
		return m
	}
	return method
}
