package study

import (
	"encoding/json"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"
	"gobnn/pmcnet/annealed"
)

// keptSettings returns an algorithm's settings under the field names that its first kept results have.
func keptSettings(algorithm any) any {
	kept := map[string]any{}
	if text, err := json.Marshal(algorithm); err != nil || json.Unmarshal(text, &kept) != nil {
		return algorithm // the store says what is wrong with it
	}
	switch a := algorithm.(type) {
	case annealed.Annealed:
		s := a.SMC
		return map[string]any{
			"kernel": fmt.Sprintf("%T", s.Kernel), "kernel_settings": s.Kernel, "sampling": map[string]any{
				"particles": s.Particles, "ladder": s.Ladder, "threshold": s.Threshold, "waste_free": s.WasteFree,
				"moves": s.Moves, "dtype": compute.DType(0).String(),
			},
			"components": a.Components, "draws": a.Draws, "bridge": a.Bridge,
		}
	case smc.Tempered: // whose first results have a data type, and no values of what are constants now
		kept["dtype"] = compute.DType(0).String()
		for _, constant := range []string{"tempering", "block", "resampler"} {
			delete(kept, constant)
		}
		return kept
	}
	a, ok := algorithm.(pmcnet.PMC)
	if !ok {
		return algorithm
	}
	delete(kept, "ascent")
	kept["gradient_free"], kept["light"] = a.Ascent == pmcnet.NoAscent, a.Ascent == pmcnet.MiniBatchAscent
	if a.Weights == pmcnet.Floored {
		kept["weights"] = "own: exp(log w) + 1e-50"
	}
	return kept
}
