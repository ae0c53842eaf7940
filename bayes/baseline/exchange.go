package baseline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
)

// ReplicaExchange samples all parameters of the network, given all rows, by replicas at powers of the likelihood from 0
// (the prior) to 1 (the posterior), which exchange their states (parallel tempering: Geyer 1991; see
// smc.ReplicaExchange). Every parameter has the model's prior, whatever Model.Stochastic is, so the posterior's
// evidence is the model's, as for SMC. It shares no particle and no estimator with SMC. If the kernel mixes well it
// costs more than SMC; if its moves do not leave a mode, exchanges with flatter replicas still can. The particles are
// draws of the posterior, all of the same weight.
//
// Nothing is trained: Epochs, BatchSize and the validation part are not used. A cancelled run has no posterior; with a
// checkpoint it can be resumed.
type ReplicaExchange struct {
	Kernel mcmc.Kernel // leaves the posterior invariant; default mcmc.HMC{Steps: 10}
	// Sampling are the settings of package smc; default 32 sets of replicas, 300 sweeps of warm-up and 500 that count.
	Sampling smc.ExchangeSettings
}

var _ Method = ReplicaExchange{}

// Name implements Method.
func (ReplicaExchange) Name() string { return "replica exchange" }

// Source implements Method.
func (ReplicaExchange) Source() string { return "replica exchange for all parameters (Geyer 1991)" }

// MarshalJSON writes what decides the draws.
func (m ReplicaExchange) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"kernel": fmt.Sprintf("%T", m.Kernel), "settings": m.Kernel, "sampling": m.Sampling.Record(),
	})
}

// Prepare implements Method.
func (m ReplicaExchange) Prepare(j *Job) (Method, error) {
	if m.Kernel == nil {
		m.Kernel = mcmc.HMC{Steps: 10}
	}
	var err error
	if m.Sampling, err = m.Sampling.Within("baseline: ReplicaExchange", j.outer()); err != nil {
		return nil, err
	}
	return m, checkExact("ReplicaExchange", m.Kernel, j.Bound.D+j.Bound.W)
}

// exchangeKind identifies what a compiled Exchanger depends on besides its own settings.
type exchangeKind struct {
	chainsKind
	kernel string
}

// Fit implements Method.
func (m ReplicaExchange) Fit(ctx context.Context, j *Job) (*Result, error) {
	j.untrained = true
	whole, err := j.Whole()
	if err != nil {
		return nil, err
	}
	// The plan of the work is for all replicas on the ladders of usual networks.
	problem, err := j.allRows(whole, nil, usualPowers*m.Sampling.Sets, 1)
	if err != nil {
		return nil, err
	}
	kind := exchangeKind{j.kindOf(whole), compute.CacheKey(m.Kernel)}
	exchanger, giveBack, err := j.trainer.exchanged.Take(kind, func() (*smc.Exchanger, error) {
		return &smc.Exchanger{Kernel: m.Kernel}, nil
	})
	if err != nil {
		return nil, err
	}
	defer giveBack()
	exchanger.Problem = problem
	begun := time.Now()
	drawn, err := exchanger.Sample(ctx, m.Sampling)
	if err != nil {
		err = fmt.Errorf("baseline: %w", err)
	}
	if drawn == nil {
		return nil, err
	}
	j.resumed(drawn.Elapsed, begun)
	if drawn.Status != run.Completed {
		return nil, errors.Join(err, cancelled(ctx, drawn.Status, "among its sweeps"))
	}
	if drawn.Phi == nil {
		return nil, errors.Join(err, fmt.Errorf("baseline: ReplicaExchange has no draw of the posterior: in all sweeps its "+
			"replicas were where the likelihood is 0: check the likelihood, or take a longer Sampling.WarmUp"))
	}
	result := &Result{Exchange: drawn}
	result.Status, result.Warnings = drawn.Status, drawn.Warnings
	evidence := bayes.Evidence{Value: drawn.LogEvidence, StdErr: drawn.LogEvidenceStdErr}
	return j.withDraws(result, whole, drawn.Phi, evidence, err)
}

const usualPowers = 15
