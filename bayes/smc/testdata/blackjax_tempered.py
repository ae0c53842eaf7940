"""Tempered SMC on concrete with BlackJAX: the yardstick of BenchmarkTempered in this package's bench_test.go.

    python3 -m venv venv && venv/bin/pip install jax numpy blackjax && venv/bin/python blackjax_tempered.py

1000 particles of 8-10-1, tanh, noise of 0.3, prior N(0, I), 1030 standardised rows: at each temperature, the largest at
which half of the effective sample size is left, multinomial resampling and five moves of MALA. A temperature is one
compiled call, which is waited for; particles are mapped all at once, or in blocks. BlackJAX keeps the step size that it
is given; here it shrinks from temperature to temperature until the acceptance is near 0.57. Printed are gradients per
second, of the moves and of their starts. Compare ratios, run in turn, not times.
"""
import argparse
import csv
import gzip
import math
import pathlib
import time

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.smc import adaptive_tempered, extend_params, resampling

arguments = argparse.ArgumentParser()
arguments.add_argument("--particles", type=int, default=1000)
arguments.add_argument("--hidden", type=int, default=10)
arguments.add_argument("--blocks", type=int, nargs="+", default=[0, 50], help="particles in a block; 0: all at once")
arguments.add_argument("--runs", type=int, default=1)
arguments = arguments.parse_args()
J, H, MOVES = arguments.particles, arguments.hidden, 5

file = pathlib.Path(__file__).resolve().parents[2] / "dataset" / "data" / "concrete.csv.gz"
with gzip.open(file, "rt") as rows:
    table = np.asarray([[float(v) for v in row] for row in list(csv.reader(rows))[1:]])
table = jnp.asarray((table - table.mean(0)) / table.std(0), jnp.float32)
X, Y = table[:, :-1], table[:, -1:]
F = X.shape[1]
D = F * H + H + H + 1


def log_prior(theta):
    return -0.5 * jnp.sum(theta**2) - 0.5 * D * math.log(2 * math.pi)


def log_likelihood(theta):
    h = jnp.tanh(X @ theta[: F * H].reshape(F, H) + theta[F * H : F * H + H])
    z = (Y - h @ theta[F * H + H : -1].reshape(H, 1) - theta[-1]) / 0.3
    return -0.5 * jnp.sum(z**2) - len(Y) * (math.log(0.3) + 0.5 * math.log(2 * math.pi))


for block in arguments.blocks:
    kernel = adaptive_tempered.build_kernel(
        log_prior, log_likelihood, blackjax.mala.build_kernel(), blackjax.mala.init, resampling.multinomial, 0.5,
        batch_size=block)
    step = jax.jit(lambda key, state, size: kernel(key, state, MOVES, extend_params({"step_size": size})))
    rates = []
    for run in range(arguments.runs + 1):  # the first compiles
        key, size, evidence, temperatures, seconds = jax.random.key(run), 1e-2, 0.0, 0, 0.0
        state = adaptive_tempered.init(jax.random.normal(key, (J, D)))
        while float(state.tempering_param) < 1 and (run > 0 or temperatures < 3):
            start = time.perf_counter()
            state, info = jax.block_until_ready(step(jax.random.fold_in(key, temperatures), state, jnp.float32(size)))
            if temperatures > 0 or run > 0:
                seconds += time.perf_counter() - start
            temperatures += 1
            evidence += float(info.log_likelihood_increment)
            size *= math.exp(2 * (float(jnp.mean(info.update_info.acceptance_rate)) - 0.574))
        rates.append(J * temperatures * (MOVES + 1) / seconds)
        if run > 0:
            print(f"blackjax {blackjax.__version__} jax {jax.__version__} {jax.devices()[0].platform} tempered J={J} "
                  f"8-{H}-1 D={D} blocks of {block}: {rates[-1]:.0f} gradients/s, {temperatures} temperatures, "
                  f"log evidence {evidence:.1f}, {seconds:.1f} s", flush=True)
