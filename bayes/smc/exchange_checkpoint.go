package smc

import (
	"encoding/json"
	"fmt"
	"slices"

	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// This file saves a replica exchange in a checkpoint, and restores it.

// Identity lists what must agree with a checkpoint for a run to resume from it.
func (m *exchange) Identity() ([]run.Part, error) {
	parts, err := mcmc.IdentityOf(m.owner.Problem, m.owner.Kernel)
	if err != nil {
		return nil, err
	}
	engine, err := m.Engine.Or()
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(m.ExchangeSettings.Record())
	return append(parts, run.Part{Name: "seed", Value: fmt.Sprint(m.Seed)},
		run.Part{Name: "settings", Value: string(settings)}, run.Part{Name: "backend", Value: engine.Name()}), err
}

// The tables of a checkpoint, beside the replicas.
const (
	likelihoodTable = "log_likelihoods"
	acceptedTable   = "accepted"
	oddsTable       = "exchanged"
	drawsTable      = "draws"
)

// table holds a record of the sweeps: a row for each sweep, of the given width.
type table struct {
	rows  *[][]float64
	width int
}

func (m *exchange) tables() map[string]table {
	t := len(m.Powers)
	return map[string]table{
		likelihoodTable: {&m.logLikelihood, t * m.Sets}, acceptedTable: {&m.accepted, t - 1}, oddsTable: {&m.odds, t - 1},
		drawsTable: {&m.draws, m.Sets * (2 + m.owner.Problem.Dim)},
	}
}

// Keep returns what a checkpoint holds.
func (m *exchange) Keep() (any, map[string]*tensors.Tensor, error) {
	kept, err := m.state.Host(m.sweeps.entries()...)
	if err != nil {
		return nil, nil, err
	}
	for name, table := range m.tables() {
		kept[name] = run.Table(slices.Concat(*table.rows...), table.width)
	}
	m.Repeated = m.sweeps.carrier.RepeatedDraws()
	return m.exchangePosition, kept, nil
}

// Adopt checks and restores what Keep returned.
func (m *exchange) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at exchangePosition
	if err := run.Decode(head, &at); err != nil {
		return err
	}
	n := len(at.Powers)
	if n < 2 || at.Powers[0] != 0 || at.Made < 0 || at.Made > m.WarmUp+m.Sweeps || at.Arrivals < 0 || at.NonFinite < 0 ||
		at.Moves < 0 || at.Search < 0 || len(m.Ladder) > 0 && !slices.Equal(m.Ladder, at.Powers[1:]) {
		return fmt.Errorf("no such run stands at %+v", at)
	}
	if err := checkLadder("its ladder", at.Powers[1:]); err != nil {
		return err
	}
	m.exchangePosition = at
	counted := max(0, at.Made-m.WarmUp)
	for name, table := range m.tables() {
		rows := counted
		if name == drawsTable {
			rows = counted / m.Thin
		}
		var err error
		if *table.rows, err = run.Rows(kept, name, rows, table.width); err != nil {
			return err
		}
		delete(kept, name)
	}
	s := sweep{carries: m.carries(), powers: n, sets: m.Sets, dim: m.owner.Problem.Dim, dtype: m.DType}
	for name, shape := range s.shapes() {
		if _, err := run.Tensor(kept, name, shape); err != nil {
			return err
		}
	}
	m.kept = kept
	return nil
}
