package density

import (
	"gobnn/bayes"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Statistics are the running statistics of a network after a mini-batch of training: each evaluation of a batch with
// Batch.Training leaves them there.
type Statistics struct {
	model  *bayes.BoundModel // nil: there are none, or nothing was evaluated
	shared nn.Params         // where they are in psi
	own    *Node             // where they are in phi: [J, .], those of all layers
}

// In is theta, [J, Q], with these running statistics in place of its own: theta ends with psi, [W], or, if nothing is
// shared, begins with phi, [D]. Without running statistics it is theta.
func (s *Statistics) In(theta *graph.Node) *graph.Node {
	if s == nil || s.model == nil {
		return theta
	}
	rows, columns := theta.Shape().Dim(0), theta.Shape().Dim(1)
	first := 0
	if s.own == nil {
		first = columns - s.model.W
	}
	var parts []*Node
	to, taken := 0, 0 // columns of theta, and of own
	for _, slot := range s.model.Slots {
		if slot.Kind != nn.Statistics {
			continue
		}
		parts = append(parts, Slice(theta, AxisRange(), AxisRange(to, first+slot.Offset)))
		if s.own == nil {
			parts = append(parts, BroadcastToDims(ExpandAxes(s.shared[slot.Name].Node, 0), rows, slot.Size()))
		} else {
			parts = append(parts, Slice(s.own, AxisRange(), AxisRange(taken, taken+slot.Size())))
			taken += slot.Size()
		}
		to = first + slot.Offset + slot.Size()
	}
	if to < columns {
		parts = append(parts, Slice(theta, AxisRange(), AxisRange(to)))
	}
	return Concatenate(parts, 1)
}

// byBatch says whether layers normalise by the batch.
func (l Likelihood) byBatch(batch Batch) bool { return batch.Training != nil && l.Model.Normalises() }

// eachByBatch says whether layers normalise by the batch, and particles have their own statistics.
func (l Likelihood) eachByBatch(batch Batch) bool { return l.byBatch(batch) && l.Model.W == 0 }

// mode is the parameters for a batch in training, or else as they are.
func (l Likelihood) mode(params nn.Params, batch Batch) nn.Params {
	if !l.byBatch(batch) {
		return params
	}
	return params.Training(batch.count())
}

// statistics are those of a chunk's particles after its evaluation, [c, .].
func (e *evaluation) statistics(c chunk) *Node {
	var all []*Node
	for _, slot := range e.Model.Slots {
		if slot.Kind == nn.Statistics {
			all = append(all, nn.Unblock(c.after[slot.Name].Node, c.Count))
		}
	}
	return Concatenate(all, 1)
}

// statisticsWidth is the number of running statistics.
func (e *evaluation) statisticsWidth() (width int) {
	for _, slot := range e.Model.Slots {
		if slot.Kind == nn.Statistics {
			width += slot.Size()
		}
	}
	return width
}
