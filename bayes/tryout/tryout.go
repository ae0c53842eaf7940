// Package tryout judges a user's own parts: networks, likelihoods, priors, targets, and what kernels carry. A part that
// contradicts itself makes nothing fail but all results wrong, so it is tried with a few numbers before a run. The
// packages evaluate the parts, and this one has what must hold of the numbers, how much rounding and chance are
// allowed, and the errors. Parts of the library's own are not tried.
package tryout

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// library lists the folders of the module whose types need no trial.
var library = []string{"bayes", "fbnn", "ohsmc", "pbnn", "pmcnet"}

// Foreign says whether a part's type is defined outside of the library's packages, or in the tests of one of them.
func Foreign(part any) bool {
	kind := reflect.TypeOf(part)
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	path := strings.Split(kind.PkgPath(), "/")
	module, _, _ := strings.Cut(reflect.TypeFor[sized]().PkgPath(), "/")
	inside := len(path) > 1 && path[0] == module && slices.Contains(library, path[1])
	return !inside || strings.HasSuffix(path[len(path)-1], "_test")
}

// holder is a part of the library's that only passes on what another part computes, which may be a user's own.
type holder interface{ Holds() any }

// Held is the part whose type says whether a trial is needed: what a holder holds, or else the part itself.
func Held(part any) any {
	for {
		holder, ok := part.(holder)
		if !ok {
			return part
		}
		part = holder.Holds()
	}
}

// sized is a type of this module.
type sized struct{}

// The allowed difference of log-densities that are computed in one way: relative and absolute, and over their mean
// absolute deviation, since they may be small differences of large numbers.
const mixing, ofDeviation = 1e-4, 1e-3

// Mixing counts particles whose log-density, or another number, changes when other particles move. It returns the
// number compared and the number changed, [2]. density maps phi, [J, D], to [J]; here is its value at phi.
func Mixing(rng random.Stream, density func(phi *graph.Node) *graph.Node, phi, here *graph.Node) *graph.Node {
	j, d := phi.Shape().Dim(0), phi.Shape().Dim(1)
	half := j / 2
	if half == 0 {
		return Zeros(phi.Graph(), shapes.Make(phi.DType(), 2))
	}
	// The first half stays, the others are put near the first particle.
	first := BroadcastToDims(Slice(phi, AxisElem(0)), j-half, d)
	noise := MulScalar(rng.Named("mixing").Normal(phi.DType(), j-half, d), 1e-2)
	others := Add(first, Mul(AddScalar(Abs(first), 1e-2), noise))
	again := density(Concatenate([]*Node{Slice(phi, AxisRange(0, half)), others}, 0))
	was, is := Slice(here, AxisRange(0, half)), Slice(again, AxisRange(0, half))
	there := IsFinite(was)
	none := ZerosLike(was)
	mean := func(x *Node) *Node {
		number := MaxScalar(ReduceAllSum(ConvertDType(there, was.DType())), 1)
		return BroadcastToShape(Div(ReduceAllSum(Where(there, x, none)), number), was.Shape())
	}
	allowed := MulScalar(mean(Abs(Sub(Where(there, was, none), mean(was)))), ofDeviation)
	changed := And(differ(was, is, mixing), Not(LessOrEqual(Abs(Sub(was, is)), allowed)))
	return Concatenate([]*Node{count(phi, there), count(phi, And(there, changed))}, 0)
}

// CheckMixing is an error if Mixing has counted more than half of the compared particles. The function is the name of
// the density's, such as "LogDensity".
func CheckMixing(counts []float64, function string) error {
	if compared, changed := counts[0], counts[1]; changed > compared/2 {
		return fmt.Errorf("%s mixes particles: what it gives for %.0f of %.0f particles changes when others move; it must "+
			"compute row j of its result from row j of phi, [J, D], alone: look for a sum, a mean, a norm or a product over "+
			"the axis of particles", function, changed, compared)
	}
	return nil
}

// differ says where two log-densities differ by more than an error, relative and absolute.
func differ(a, b *graph.Node, err float64) *graph.Node {
	return Not(LessOrEqual(Abs(Sub(a, b)), AddScalar(MulScalar(Abs(a), err), err)))
}

// count returns the number of true values in `which`, [1], in the type of `like`.
func count(like, which *graph.Node) *graph.Node {
	return Reshape(ReduceAllSum(ConvertDType(which, like.DType())), 1)
}
