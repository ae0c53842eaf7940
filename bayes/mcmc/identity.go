package mcmc

import (
	"encoding/json"
	"fmt"

	"gobnn/bayes/density"
	"gobnn/bayes/run"
)

// IdentityOf returns what must agree with a checkpoint: the parts of the problem, and the kernel's settings.
func IdentityOf(p density.Problem, kernel Kernel) ([]run.Part, error) {
	if err := run.CheckWritten(kernel); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"type": fmt.Sprintf("%T", kernel), "settings": kernel})
	if err != nil {
		return nil, fmt.Errorf("%T cannot be written as JSON: %w", kernel, err)
	}
	parts, err := p.Identity()
	if err != nil {
		return nil, err
	}
	return append(parts, run.Part{Name: "kernel", Value: string(text)}), nil
}
