package ohsmc

import (
	"context"

	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
)

// begun is a training of the trainer's model before its first step. Close it at the end.
func begun(trainer *Trainer, algorithm Algorithm, parts dataset.Parts, settings Settings) (*training, error) {
	data, err := fit.New("ohsmc", trainer.model, parts)
	if err != nil {
		return nil, err
	}
	r, err := trainer.newTraining(algorithm, data, settings)
	if err != nil {
		return nil, err
	}
	return r, r.Begin(context.Background())
}
