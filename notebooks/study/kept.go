package study

import (
	"encoding/json"

	"gobnn/bayes/compute"
	"gobnn/bayes/exchange"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"
)

// keptSettings returns an algorithm's settings under the field names that its first kept results have.
func keptSettings(algorithm any) any {
	kept := map[string]any{}
	if text, err := json.Marshal(algorithm); err != nil || json.Unmarshal(text, &kept) != nil {
		return algorithm // the store says what is wrong with it
	}
	switch algorithm.(type) {
	case smc.Tempered, exchange.Replicas: // which had a field for it
		kept["dtype"] = compute.DType(0).String()
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
