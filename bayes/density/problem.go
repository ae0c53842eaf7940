package density

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Problem is a distribution to sample: the target's log-density, its data, and where chains begin.
type Problem struct {
	Name string // of the target, for checkpoints and messages; may be empty
	Dim  int    // D, the dimension of phi
	// Data are tensors for the target. They are copied to the device once.
	Data map[string]*tensors.Tensor
	// Target builds the log-density from the data, by their names, and from the inputs of one move. It builds graph,
	// and panics as GoMLX does.
	Target func(data compute.Nodes, inputs []*graph.Node) Target
	// Inputs, if set, returns the target's inputs for a move, such as the row numbers of a mini-batch: tensors or Go
	// values, always of the same shapes. They may depend only on the number of the move, counted from 0: a call of
	// several moves asks for all their inputs before it. Only kernels that carry no log-density from move to move can
	// take them.
	Inputs func(move int) []any
	// HostInputs, if set instead of Inputs, computes them on the host from the chains' state, such as by asking other
	// machines.
	HostInputs *HostInputs
	// Initial draws the chains' starting points, [J, D]; default: independent standard normals.
	Initial func(rng random.Stream, dtype compute.DType, chains int) *graph.Node
	// Climb, if set, moves the chains uphill from there before they begin.
	Climb *Climb
	// Start, if not nil, are the starting points instead of Initial: [J, D], of the chains' type. For a Sampler they may
	// differ from run to run.
	Start *tensors.Tensor
	Rows  int // N, the number of rows of the data behind the target; 0: none
	// BatchShare, for Evaluations, is the share n/N of the rows that an evaluation of the target takes, if it uses
	// mini-batches. 0: an evaluation takes all rows.
	BatchShare float64

	keyed keyed
}

// keyed names what is built for a problem, and the functions that build it.
type keyed struct {
	key             string
	target, initial uintptr
}

// Keyed is the problem with a key for what is compiled for it: the engine keeps that, and takes it again for a problem
// of the same key whose Data, Start and inputs have the same shapes. The parts must name everything that Target and
// Initial build on, beside these, as compute.KeyOf writes it. Without a key, and for a problem whose Target or Initial
// has been replaced since, each run compiles anew.
func (p Problem) Keyed(parts ...any) Problem {
	p.keyed = keyed{compute.KeyOf(parts...), codeOf(p.Target), codeOf(p.Initial)}
	return p
}

// ProgramKey is the key for compute.Keep of programs that are compiled for the problem: it names Keyed's parts, and the
// shapes of everything else; "" if the problem has no key.
func (p Problem) ProgramKey() string {
	if k := p.keyed; k.key == "" || k.target != codeOf(p.Target) || k.initial != codeOf(p.Initial) {
		return ""
	}
	var given []any
	for _, name := range slices.Sorted(maps.Keys(p.Data)) {
		given = append(given, name, p.Data[name].Shape().String())
	}
	if p.Start != nil {
		given = append(given, "start", p.Start.Shape().String())
	}
	inputs := []any{}
	switch {
	case p.Inputs != nil:
		inputs = p.Inputs(0)
	case p.HostInputs != nil:
		inputs = p.HostInputs.Blank
		given = append(given, p.HostInputs.OfMove)
	}
	for _, v := range inputs {
		t, isTensor := v.(*tensors.Tensor)
		if !isTensor {
			var err error
			if t, err = tensors.FromAnyValue(v); err != nil { // the run will refuse it
				return ""
			}
		}
		given = append(given, t.Shape().String())
	}
	return compute.KeyOf(p.keyed.key, p.Dim, p.Climb, p.Rows, given)
}

// codeOf tells functions apart by their code.
func codeOf(f any) uintptr { return reflect.ValueOf(f).Pointer() }

// HostInputs computes a target's inputs for each move if they depend on the chains' state.
type HostInputs struct {
	// Blank are inputs of the right shapes, for building the graph and for starting the chains.
	Blank []any
	// Inputs returns the inputs of a move, counted from 0, given the chains' state before it on the host: "phi", [J, D],
	// and the kernel's State.Auxiliary by their names. It must not keep the tensors. An error ends the run before the
	// move, with the status Stopped and the draws so far; a checkpoint resumes with the same move.
	Inputs func(ctx context.Context, move int, carried map[string]*tensors.Tensor) ([]any, error)
	// OfMove says that Inputs depends on the move's number alone. Then carried is nil, which saves copies, and step k of a
	// Climb takes the inputs of move k in place of Blank.
	OfMove bool
}

// Climb moves each chain uphill by itself before the warm-up, by Adam on the target's log-density, from the point that
// Problem.Initial has drawn. The density can be thousands of times steeper at draws from a prior than where it has its
// mass: then no common step size suits all chains, and those that begin there may never move. Chains that climb from
// points of their own still come to modes of their own. A target whose inputs come from outside (HostInputs) must have
// a gradient at the blank inputs, unless they are OfMove.
type Climb struct {
	// Rate is Adam's learning rate at the first step; it falls to a hundredth of that by the last step. Default 0.1, with
	// which a coordinate climbs up to four units.
	Rate float64
}

// climbSteps is the number of steps of a climb.
const climbSteps = 200

// ClimbSteps is the number of steps uphill that each chain makes before its first move; 0 if they do not climb.
func (p Problem) ClimbSteps() int {
	if p.Climb == nil || p.Start != nil { // they begin where Start says
		return 0
	}
	return climbSteps
}

// Identity returns the parts of the problem that must agree with a checkpoint's: its name and dimension, its data bit
// by bit, and where it begins.
func (p Problem) Identity() ([]run.Part, error) {
	digest := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.Data)) {
		t := p.Data[name]
		fmt.Fprintf(digest, "%q %s ", name, t.Shape())
		if err := t.ConstBytes(func(raw []byte) { digest.Write(raw) }); err != nil {
			return nil, fmt.Errorf("Problem.Data[%q]: %w", name, err)
		}
	}
	start := "draws of Initial"
	switch {
	case p.ClimbSteps() > 0: // as checkpoints have it that were written when a climb had more settings
		start += fmt.Sprintf(", %d steps uphill: {Steps:0 Rate:%v Fixed:[]}", climbSteps, p.Climb.Rate)
	case p.Start != nil:
		var err error
		if start, err = run.Digest(p.Start); err != nil {
			return nil, fmt.Errorf("Problem.Start: %w", err)
		}
	}
	return []run.Part{
		{Name: "problem", Value: fmt.Sprintf("%q of dimension %d", p.Name, p.Dim)},
		{Name: "data", Value: hex.EncodeToString(digest.Sum(nil))},
		{Name: "start", Value: start},
	}, nil
}

// DataPrefix begins the names of a problem's data among the entries of a sampler's state.
const DataPrefix = "data/"

// Entries returns the names of the problem's data in a sampler's state, in order.
func (p Problem) Entries() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(p.Data)) {
		names = append(names, DataPrefix+name)
	}
	return names
}

// Load puts copies of the problem's data into a sampler's state.
func (p Problem) Load(state *compute.State) error {
	for name, t := range p.Data {
		local, err := t.LocalClone() // the state owns what it holds, and frees it
		if err != nil {
			return fmt.Errorf("Problem.Data[%q]: %w", name, err)
		}
		state.Set(DataPrefix+name, local)
	}
	return nil
}

// In builds the target in a graph, of the data among a state's entries and the inputs of a move.
func (p Problem) In(entries compute.Nodes, inputs []*graph.Node) Target {
	data := compute.Nodes{}
	for name, node := range entries {
		if bare, ok := strings.CutPrefix(name, DataPrefix); ok {
			data[bare] = node
		}
	}
	target := p.Target(data, inputs)
	if target == nil {
		panic(fmt.Errorf("Problem.Target gives no target"))
	}
	return target
}

// Parameters are the entries of the problem's data in a graph that is thrown away.
func (p Problem) Parameters(g *graph.Graph) compute.Nodes {
	entries := compute.Nodes{}
	for name, t := range p.Data {
		entries[DataPrefix+name] = graph.Parameter(g, DataPrefix+name, t.Shape())
	}
	return entries
}

// Look builds the target of a problem without inputs in a graph that is thrown away, and looks at it.
func (p Problem) Look(engine *compute.Engine, look func(Target)) error {
	return compute.Try(func() {
		g := graph.NewGraph(engine.Backend(), "look at a target")
		defer g.Finalize()
		look(p.In(p.Parameters(g), nil))
	})
}
