package shards

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
)

// federation is the shards of a run.
type federation struct {
	shards    []Shard
	described []Description
	model     Description // of all of them
	rows      []int       // N_s
	hashes    []string    // of their rows
}

// meet asks all shards for their descriptions, and joins the model with their rows.
func meet(ctx context.Context, shards []Shard, model bayes.Model) (*federation, *fit.Data, error) {
	if len(shards) == 0 {
		return nil, nil, errors.New("shards: there is no shard")
	}
	f := &federation{shards: shards}
	var all bayes.Origin
	first := func(names, others []string) []string {
		if len(names) > 0 {
			return names
		}
		return others
	}
	for i, shard := range shards {
		have, err := inTime(ctx, i, shard.Describe)
		if err != nil {
			return nil, nil, err
		}
		f.described, f.rows, f.hashes = append(f.described, have), append(f.rows, have.Rows), append(f.hashes, have.Hash)
		all.Provenance.Rows += have.Rows
		all.FeatureNames, all.TargetNames = first(all.FeatureNames, have.Features), first(all.TargetNames, have.Targets)
		all.Classes = first(all.Classes, have.Classes)
	}
	all.Provenance.DataHash, all.Provenance.Extras = strings.Join(f.hashes, " "), f.described[0].Extras
	data, err := fit.Held("shards", model, f.described[0].Inputs, f.described[0].Outputs, all)
	if err == nil {
		err = nothingShared(data.Bound)
	}
	return f, data, err
}

// check is an error if the shards differ from the job's model, or do not go together.
func (f *federation) check(j *fit.Job) (err error) {
	if f.model, err = describe(j.Bound, j.DType); err != nil {
		return err
	}
	var names []*dataset.Dataset // those before, without rows
	for i, have := range f.described {
		want := f.model
		want.Rows, want.Hash = have.Rows, have.Hash
		want.Features, want.Targets, want.Classes = have.Features, have.Targets, have.Classes // see compareNames
		if !reflect.DeepEqual(have, want) || have.Rows < 1 {
			return fmt.Errorf("%w: shard %d has %+v, wanted is %+v: give all shards the same model and type", errShard, i,
				have, want)
		}
		own := &dataset.Dataset{
			Name: fmt.Sprintf("shard %d", i), Features: have.Features, Targets: have.Targets, Classes: have.Classes,
		}
		if err := compareNames(own, names); err != nil {
			return err
		}
		names = append(names, own)
		if twin := slices.Index(f.hashes[:i], have.Hash); twin >= 0 && have.Hash != "" {
			return fmt.Errorf("%w: shards %d and %d have the same %d rows (hash %q), which would count twice: "+
				"each row may be held by one shard only: leave out one of the two", errShard, twin, i, have.Rows, have.Hash)
		}
	}
	// Making a posterior of one particle checks the names before the run, not after it.
	draws := bayes.Draws{
		Phi:        compute.Floats(j.DType, make([]float64, j.Bound.D), 1, j.Bound.D),
		LogWeights: bayes.EqualLogWeights(1),
	}
	if _, err := j.Posterior(draws, bayes.Provenance{}, j.Engine); err != nil {
		return fmt.Errorf("%w: the names that the shards describe: %w", errShard, err)
	}
	return nil
}

// compareNames is an error if a feature, target or class stands at another place than in one of others.
func compareNames(own *dataset.Dataset, others []*dataset.Dataset) error {
	for _, other := range others {
		targets := other.Targets
		if len(own.Targets) == 0 { // SameOrder would take it for one target called ""
			targets = nil
		}
		if err := own.SameOrder(other.Features, targets, other.Classes); err != nil {
			return fmt.Errorf("%w: %s beside %s, whose order is called the model's: %w", errShard, own.Name, other.Name, err)
		}
	}
	return nil
}
