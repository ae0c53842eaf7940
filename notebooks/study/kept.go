package study

import (
	"encoding/json"

	"gobnn/pmcnet"
)

// keptSettings returns an algorithm's settings under the field names that its first kept results have.
func keptSettings(algorithm any) any {
	a, ok := algorithm.(pmcnet.PMC)
	if !ok {
		return algorithm
	}
	kept := map[string]any{}
	if text, err := json.Marshal(a); err != nil || json.Unmarshal(text, &kept) != nil {
		return a // the store says what is wrong with it
	}
	delete(kept, "ascent")
	kept["gradient_free"], kept["light"] = a.Ascent == pmcnet.NoAscent, a.Ascent == pmcnet.MiniBatchAscent
	if a.Weights == pmcnet.Floored {
		kept["weights"] = "own: exp(log w) + 1e-50"
	}
	return kept
}
