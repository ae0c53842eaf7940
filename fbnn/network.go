package fbnn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Network is the paper's emulator (section 3.3): a dense network from theta to the scores, trained by Adam on the
// squared error, with a rate of .01 that falls to .0001. The training keeps the state with the least error on the
// held-out pairs. One network is trained for each of the Activations. The result is the one whose values and gradients
// are nearest to the true ones on the held-out pairs. The paper drops .5 or .7 of the inputs and of the first hidden
// units in training; so much dropout shrinks predictions towards the mean of the pairs, and there is none here.
type Network struct {
	Hidden      []int           // widths; default 32, 32. The paper has 3, 32 to 8, 64, 32 (Table 2)
	Activations []nn.Activation // tried; default ReLU, Tanh and Swish. The paper selects ReLU everywhere
	Epochs      int             // passes over the pairs, in mini-batches of 50; default 1000
}

// prepare implements Regressor.
func (n Network) prepare() (Regressor, error) {
	if n.Hidden == nil {
		n.Hidden = []int{32, 32}
	}
	if n.Activations == nil {
		n.Activations = []nn.Activation{nn.ReLU, nn.Tanh, nn.Swish}
	}
	known := []nn.Activation{nn.ReLU, nn.Tanh, nn.GELU, nn.Sigmoid, nn.Softplus, nn.Swish}
	isUnknown := func(a nn.Activation) bool { return !slices.Contains(known, a) }
	err := limits.Fill("fbnn: Network",
		limits.Field("Hidden", n.Hidden, !slices.ContainsFunc(n.Hidden, func(width int) bool { return width < 1 }),
			"layers of at least 1 unit"),
		limits.Field("Activations", n.Activations,
			len(n.Activations) > 0 && !slices.ContainsFunc(n.Activations, isUnknown),
			fmt.Sprintf("at least one of %q (nil: relu, tanh, swish)", known)),
		limits.Int("Epochs", &n.Epochs, 1000).From(1),
	)
	return n, err
}

// learn implements Regressor: it trains a network for each activation, and takes the one with the least error. The
// error is 1 - R^2 plus the relative error of the gradients, on the held-out pairs (see Errors).
func (n Network) learn(ctx context.Context, lesson *lesson) (*predictor, error) {
	var best *predictor
	least := math.Inf(1)
	for _, activation := range n.Activations {
		candidate, err := n.train(ctx, lesson, activation)
		if errors.Is(err, train.ErrDiverged) {
			err = fmt.Errorf("%w: %w", ErrEmulator, err)
		}
		if err != nil {
			return nil, err
		}
		found, err := lesson.judge(ctx, candidate)
		if err != nil {
			return nil, err
		}
		if loss := (1 - found.R2) + found.Gradient; loss < least || best == nil {
			best, least = candidate, loss
		}
	}
	return best, nil
}

// train trains a network with an activation.
func (n Network) train(ctx context.Context, lesson *lesson, activation nn.Activation) (*predictor, error) {
	rows, d := lesson.theta.Dims()
	_, rank := lesson.scores.Dims()
	learner := emulatorLearner{
		widths: append(append([]int{d}, n.Hidden...), rank), activation: activation, rows: lesson.learn,
		dtype: lesson.DType,
	}
	part := func(from, to int) train.Rows {
		return train.Rows{Count: to - from, Tensors: func() (x, y *tensors.Tensor, err error) {
			x = compute.Floats(lesson.DType, lesson.theta.RawMatrix().Data[from*d:to*d], to-from, d)
			return x, compute.Floats(lesson.DType, lesson.scores.RawMatrix().Data[from*rank:to*rank], to-from, rank), nil
		}}
	}
	size := min(50, lesson.learn)
	training, err := train.Training{
		Epochs: n.Epochs, BatchSize: size,
		Optimiser: train.Adam{Schedule: train.Exponential(.01, .01, n.Epochs*((lesson.learn+size-1)/size))},
	}.Prepared("fbnn", lesson.learn)
	if err != nil {
		return nil, err
	}
	result, err := train.Run(ctx, lesson.Job, training, train.Task{
		Learner: learner, Name: string(activation), Train: part(0, lesson.learn), Validation: part(lesson.learn, rows),
		Identity: []run.Part{lesson.identity},
	})
	if err != nil {
		return nil, err
	}
	trained := fit.Details[*train.Details](result)
	if ended := result.Status.Err(); ended != nil {
		return nil, fmt.Errorf("fbnn: the training of the emulator ended at step %d: %w", trained.Steps,
			errors.Join(ended, context.Cause(ctx)))
	}
	return &predictor{
		data: map[string]*tensors.Tensor{"theta": compute.Floats(lesson.DType, trained.Theta, len(trained.Theta))},
		predict: func(data compute.Nodes, theta *graph.Node) *graph.Node {
			return learner.predict(data["theta"], theta)
		},
		activation: activation,
	}, nil
}

// squaredErrors forwards a training's progress with the name of what its scores are.
func squaredErrors(progress func(run.Progress)) func(run.Progress) {
	if progress == nil {
		return nil
	}
	return func(p run.Progress) {
		for i := range p.Scores {
			p.Scores[i].Name = strings.Replace(p.Scores[i].Name, "NLPD", "squared error", 1)
		}
		progress(p)
	}
}

// emulatorLearner is a network for package ascent with one member. Its flat parameters are each layer's weights, [in,
// out], followed by its biases, [out], layer by layer.
type emulatorLearner struct {
	widths     []int
	activation nn.Activation
	rows       int
	dtype      compute.DType
}

var _ train.Learner = emulatorLearner{}

// Size implements train.Learner.
func (l emulatorLearner) Size() (members, width int) {
	for i := range len(l.widths) - 1 {
		width += (l.widths[i] + 1) * l.widths[i+1]
	}
	return 1, width
}

// Initial implements train.Learner: weights N(0, 2/in) before hidden layers and N(0, 1/in) before the scores, biases
// 0.
func (l emulatorLearner) Initial(rng random.Stream) *graph.Node {
	var parts []*Node
	for i := range len(l.widths) - 1 {
		in, out := l.widths[i], l.widths[i+1]
		gain := 2.
		if i == len(l.widths)-2 {
			gain = 1
		}
		weights := MulScalar(rng.Named(fmt.Sprint("layer ", i)).Normal(l.dtype, in*out), math.Sqrt(gain/float64(in)))
		parts = append(parts, weights, ZerosLike(Slice(weights, AxisRange(0, 1))))
		if out > 1 {
			parts[len(parts)-1] = BroadcastToDims(parts[len(parts)-1], out)
		}
	}
	return ExpandAxes(Concatenate(parts, 0), 0)
}

// predict is the network's output, [B, R], at x, [B, D].
func (l emulatorLearner) predict(theta, x *Node) *Node {
	from, h := 0, x
	take := func(n int) *Node {
		from += n
		return Slice(theta, AxisRange(from-n, from))
	}
	for i := range len(l.widths) - 1 {
		in, out := l.widths[i], l.widths[i+1]
		w := Reshape(take(in*out), in, out)
		h = Add(Einsum("bi,io->bo", h, w), Reshape(take(out), 1, out))
		if i < len(l.widths)-2 {
			h = l.activation.Apply(nil, nn.Value{Node: h}).Node
		}
	}
	return h
}

// Objective implements train.Learner: minus half the sum of squared errors.
func (l emulatorLearner) Objective(
	theta *graph.Node, batch density.Batch, _ random.Stream,
) (value, gradient *graph.Node) {
	flat := Reshape(theta, theta.Shape().Size())
	squares := ReduceSum(Square(Sub(l.predict(flat, batch.X), batch.Y)), 1)
	if batch.Count != nil {
		row := Iota(squares.Graph(), squares.Shape(), 0)
		squares = Where(LessThan(row, batch.Count), squares, ZerosLike(squares))
	}
	scale := Div(ConstAs(theta, float64(l.rows)), batch.Count)
	value = Reshape(Mul(MulScalar(ReduceAllSum(squares), -.5), scale), 1)
	return value, Gradient(ReduceAllSum(value), theta)[0]
}

// Score implements train.Learner: the mean squared error.
func (l emulatorLearner) Score(theta *graph.Node, batch density.Batch, _ random.Stream) *graph.Node {
	flat := Reshape(theta, theta.Shape().Size())
	squares := Square(Sub(l.predict(flat, batch.X), batch.Y))
	return Reshape(DivScalar(ReduceAllSum(squares), float64(batch.Y.Shape().Dim(0))), 1)
}
