package exchange

import (
	"encoding/json"
	"fmt"
	"slices"

	"gobnn/bayes/internal/tempering"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

const checkpointFormat = "gobnn.exchange/5"

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

func (m *machine) tables() map[string]table {
	t := len(m.Powers)
	return map[string]table{
		likelihoodTable: {&m.logLikelihood, t * m.Sets}, acceptedTable: {&m.accepted, t - 1}, oddsTable: {&m.odds, t - 1},
		drawsTable: {&m.draws, m.Sets * (2 + m.problem.Dim)},
	}
}

// Keep returns what a checkpoint holds.
func (m *machine) Keep() (any, map[string]*tensors.Tensor, error) {
	kept, err := m.state.Host(m.sweeps.entries()...)
	if err != nil {
		return nil, nil, err
	}
	for name, table := range m.tables() {
		kept[name] = run.Table(slices.Concat(*table.rows...), table.width)
	}
	m.Repeated = m.sweeps.carrier.RepeatedDraws()
	return m.position, kept, nil
}

// Adopt checks and restores what Keep returned.
func (m *machine) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at position
	if err := run.Decode(head, &at); err != nil {
		return err
	}
	n := len(at.Powers)
	if n < 2 || at.Powers[0] != 0 || at.Made < 0 || at.Made > m.WarmUp+m.Sweeps || at.Arrivals < 0 || at.NonFinite < 0 ||
		at.Moves < 0 || at.Search < 0 || len(m.Ladder) > 0 && !slices.Equal(m.Ladder, at.Powers[1:]) {
		return fmt.Errorf("no such run stands at %+v", at)
	}
	if err := tempering.CheckLadder("its ladder", at.Powers[1:]); err != nil {
		return err
	}
	m.position = at
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
	s := sweep{carries: m.carries(), powers: n, sets: m.Sets, dim: m.problem.Dim, dtype: m.DType}
	for name, shape := range s.shapes() {
		if _, err := run.Tensor(kept, name, shape); err != nil {
			return err
		}
	}
	m.kept = kept
	return nil
}
