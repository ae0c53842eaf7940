package mcmc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"gobnn/bayes/run"
)

// Identity are the parts of a problem and a kernel that must agree with a checkpoint's: those of the problem, and the
// kernel's settings.
func (p Problem) Identity(kernel Kernel) ([]run.Part, error) {
	if err := run.CheckWritten(kernel); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"type": fmt.Sprintf("%T", kernel), "settings": kernel})
	if err != nil {
		return nil, fmt.Errorf("%T cannot be written as JSON: %w", kernel, err)
	}
	parts, err := p.OwnIdentity()
	if err != nil {
		return nil, err
	}
	return append(parts, run.Part{Name: "kernel", Value: string(text)}), nil
}

// OwnIdentity are the parts of the problem alone: its name and dimension, its data bit by bit, and the identity of the
// data that HostInputs are made of.
func (p Problem) OwnIdentity() ([]run.Part, error) {
	digest := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.Data)) {
		t := p.Data[name]
		fmt.Fprintf(digest, "%q %s ", name, t.Shape())
		if err := t.ConstBytes(func(raw []byte) { digest.Write(raw) }); err != nil {
			return nil, fmt.Errorf("Problem.Data[%q]: %w", name, err)
		}
	}
	if h := p.HostInputs; h != nil && h.Identity != nil {
		of, err := h.Identity()
		if err != nil {
			return nil, fmt.Errorf("Problem.HostInputs.Identity: %w", err)
		}
		fmt.Fprintf(digest, "inputs %q", of)
	}
	return []run.Part{
		{Name: "problem", Value: fmt.Sprintf("%q of dimension %d", p.Name, p.Dim)},
		{Name: "data", Value: hex.EncodeToString(digest.Sum(nil))},
	}, nil
}
