package ohsmc

import (
	"encoding/json"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/particles"

	. "github.com/gomlx/gomlx/core/graph"
)

// typed is the JSON form of an interface's value: its type and its settings.
type typed struct {
	Type     string `json:"type"`
	Settings any    `json:"settings"`
}

func typeAnd(settings any) typed { return typed{fmt.Sprintf("%T", settings), settings} }

// written is an algorithm's JSON: its training's settings, and its own.
func written(t particles.Training, own map[string]any) ([]byte, error) {
	own["training"] = t
	return json.Marshal(own)
}

// nonFinite counts the particles whose log-density is not finite.
func nonFinite(logDensity *Node) *Node {
	return ReduceAllSum(ConvertDType(Not(IsFinite(logDensity)), logDensity.DType()))
}

// perRow is minus a log-likelihood divided by the number of rows.
func perRow(logLik *Node, batch density.Batch) *Node {
	return Neg(Div(ConvertDType(logLik, compute.Float64), ConvertDType(batch.Count, compute.Float64)))
}
