package smc

import (
	"encoding/json"
	"fmt"
	"slices"

	"gobnn/bayes/density"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// position is the progress of a run, without the state on the device and the trace.
type position struct {
	Next        stage      `json:"next"`         // what the next call does
	Place       float64    `json:"place"`        // the power that is reached
	Rung        int        `json:"rung"`         // number of the ladder's powers that are reached
	Calls       uint32     `json:"calls"`        // made so far: the counter of the random numbers
	Transition  int        `json:"transition"`   // made since the last resampling
	Halfway     float64    `json:"halfway"`      // correlation at the last look for a plateau, see enough
	Going       bool       `json:"going"`        // a transition of several moves is not complete
	Slot        int        `json:"slot"`         // of a waste-free chain: number of the next state that is kept
	StepSize    float64    `json:"step_size"`    // now
	Trajectory  trajectory `json:"trajectory"`   // of a Steered kernel
	LogEvidence float64    `json:"log_evidence"` // so far
	Genealogy   Genealogy  `json:"genealogy"`    // for its standard error
	Drift       drift      `json:"drift"`        // likewise: what the moves changed
	Evaluations int        `json:"evaluations"`  // of the likelihood of one particle
	Records     int        `json:"records"`      // number of rows of the trace
	Transitions int        `json:"transitions"`  // made in the whole run
	Sum         float64    `json:"sum"`          // of the acceptance, over the moves of the transitions in progress
	Full        float64    `json:"full"`         // the same of particles with full steps
	Scouts      outlook    `json:"scouts"`
	Repeated    string     `json:"repeated"` // mcmc.Carrier.RepeatedDraws, as of the last checkpoint
}

// adopt puts the tensors of a checkpoint on the device.
func (m *machine) adopt() error {
	for _, name := range m.stages.Entries() {
		t := m.kept[name]
		if t == nil && name != phiName && m.Next != toMove {
			continue // the kernel has carried nothing yet, or begins anew
		}
		if t == nil || t.Rank() == 0 {
			return m.wrongFile("it has no tensor %q", name)
		}
		m.state.Set(name, t)
	}
	if m.Place > 1 {
		return m.wrongFile("it stands at the power %v", m.Place)
	}
	m.kept = nil
	return nil
}

func (m *machine) wrongFile(format string, args ...any) error {
	return fmt.Errorf("smc: resuming from %s (delete the file to start anew): "+format,
		append([]any{m.Checkpoint}, args...)...)
}

const checkpointFormat = "gobnn.smc/6"

// Keep returns what a checkpoint holds: the state of the device without the data, and the trace.
func (m *machine) Keep() (any, map[string]*tensors.Tensor, error) {
	kept, err := m.state.Host(m.state.NamesWithout(density.DataPrefix, startName)...)
	if err != nil {
		return nil, nil, err
	}
	var rows []float64
	for _, r := range m.Trace {
		rows = append(rows, r.values()...)
	}
	kept[traceName] = run.Table(rows, recordWidth)
	m.Records, m.Repeated = len(m.Trace), m.stages.carrier.RepeatedDraws()
	return m.position, kept, nil
}

const traceName = "trace"

// Adopt checks and takes over what Keep returned.
func (m *machine) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at position
	if err := run.Decode(head, &at); err != nil {
		return err
	}
	known := slices.Contains([]stage{toWeigh, toRestart, toMove, toScout, stalled, finished}, at.Next)
	if !known || !(at.Place >= 0) || at.Rung < 0 || at.Transition < 0 || at.Records < 0 || at.Genealogy.Before < 0 ||
		!(at.StepSize >= 0) || m.steers() && !(at.Trajectory.Length >= 1) ||
		at.Next == toWeigh && len(m.Ladder) > 0 && at.Rung >= len(m.Ladder) || m.rungs > 0 && at.Rung > m.rungs ||
		at.Next != toWeigh && at.Records == 0 {
		return fmt.Errorf("no such run stands at %+v", at)
	}
	rows, err := run.Rows(kept, traceName, at.Records, recordWidth)
	if err != nil {
		return err
	}
	for name, dims := range map[string][]int{
		phiName:        {m.Particles, m.problem.Dim},
		logWeightsName: {m.Particles},
		scaleName:      {m.problem.Dim},
	} {
		if _, err := run.Tensor(kept, name, shapes.Make(m.DType, dims...)); err != nil {
			return err
		}
	}
	delete(kept, traceName)
	m.position, m.kept = at, kept
	for _, v := range rows {
		m.Trace = append(m.Trace, recordOf(v))
	}
	return nil
}
