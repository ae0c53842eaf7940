package fit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/run"
)

// extractorOf is what makes the features of rows, of a model or of the posterior that a method continues; nil: nothing.
func extractorOf(model bayes.Model, method Method) bayes.Extractor {
	if from, is := method.(From); is && from.Trained != nil {
		return from.Trained.Extractor()
	}
	e, _ := model.Network.(bayes.Extractor)
	return e
}

// behind is Fit of a network behind an Extractor: the features are a table like any other, and its posterior becomes
// one of the rows.
func behind(
	ctx context.Context, e bayes.Extractor, model bayes.Model, method Method, parts dataset.Parts, settings run.Settings,
) (result *Result, err error) {
	if parts.Train == nil {
		return nil, errors.New("fit: the network's features are computed of rows in memory: give them in Parts.Train")
	}
	rows := parts.Train
	if from, is := method.(From); is {
		if err := rows.SameOrder(from.Trained.Origin().FeatureNames, nil, nil); err != nil {
			return nil, fmt.Errorf("fit: %w", err)
		}
		method = From{from.Trained.OfFeatures(), from.Method}
	} else if model, err = e.Behind(model); err != nil {
		return nil, err
	}
	for _, part := range []**dataset.Dataset{&parts.Train, &parts.Validation} {
		if *part == nil {
			continue
		}
		if *part, err = extracted(ctx, e, *part, settings.Progress); err != nil {
			return nil, err
		}
	}
	if observe := settings.Observe; observe != nil {
		settings.Observe = func(step int, now *bayes.Posterior) error { return observe(step, now.Behind(e, rows)) }
	}
	result, err = Fit(ctx, model, method, parts, settings)
	if result != nil && result.Posterior != nil {
		result.Posterior = result.Posterior.Behind(e, rows)
	}
	return result, err
}

// extracted is a part with features in place of its rows.
func extracted(
	ctx context.Context, e bayes.Extractor, part *dataset.Dataset, report func(run.Progress),
) (*dataset.Dataset, error) {
	if err := part.Validate(); err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	width, err := e.Features(part.Dims())
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	features, err := e.Extract(ctx, part.X, func(done int) {
		if report != nil {
			report(run.Progress{Stage: "features of rows", Step: done, Steps: part.Rows(), Elapsed: time.Since(begun)})
		}
	})
	if err != nil {
		return nil, err
	}
	other := *part
	other.X, other.Features = features, make([]string, width)
	for k := range width {
		other.Features[k] = fmt.Sprintf("feature %d", k+1)
	}
	return &other, nil
}
