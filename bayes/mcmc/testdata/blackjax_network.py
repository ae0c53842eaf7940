"""HMC, NUTS and MCLMC of a network's posterior with BlackJAX: the yardstick of BenchmarkHMC, BenchmarkNUTS and
BenchmarkMCLMC in this package's network_bench_test.go.

    python3 -m venv venv && venv/bin/pip install jax numpy blackjax && venv/bin/python blackjax_network.py

HMC with 10 leapfrog steps and NUTS with trees of depth 6: 100 chains of 8-50-50-1, tanh, noise of 0.3, 927 rows. MCLMC:
20 chains of 8-16-16-16-2, gelu, noise of Student's t with a scale for each row, 927 rows. All chains move in one
compiled call, of one transition or of 20 moves of MCLMC in a scan, with the diagonal preconditioning that the benchmark
has; MCLMC also by a call for each move. Printed are useful gradients per second: chains times the leapfrog steps that
their own trajectories took, and two for each move of MCLMC; the first eight calls do not count, in which trees are
short, of very different lengths. Every call is waited for. Compare ratios, run in turn, not times.
"""
import argparse
import math
import statistics
import time

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

arguments = argparse.ArgumentParser()
arguments.add_argument("--kernels", nargs="+", default=["hmc", "nuts", "mclmc"])
arguments.add_argument("--rows", type=int, default=927)
arguments.add_argument("--seconds", type=float, default=5)
arguments = arguments.parse_args()
ROWS, FEATURES = arguments.rows, 8

rng = np.random.default_rng(0)
X = jnp.asarray(rng.normal(size=(ROWS, FEATURES)), jnp.float32)
Y = jnp.sin(2 * X[:, :1]) + 0.3 * jnp.asarray(rng.normal(size=(ROWS, 1)), jnp.float32)


def numbers(sizes):
    return sum(m * n + n for m, n in zip(sizes, sizes[1:]))


def outputs(theta, sizes, activation, scaled):
    at, h = 0, X
    for i, (m, n) in enumerate(zip(sizes, sizes[1:])):
        w, b = theta[at : at + m * n].reshape(m, n), theta[at + m * n : at + m * n + n]
        h = h @ w * (1 / math.sqrt(m) if scaled else 1) + b
        at += m * n + n
        if i < len(sizes) - 2:
            h = activation(h)
    return h


TANH = (FEATURES, 50, 50, 1)


def gaussian(theta):
    residual = (Y - outputs(theta, TANH, jnp.tanh, True)) / 0.3
    return -0.5 * jnp.sum(residual**2) - 0.5 * jnp.sum(theta**2)


GELU = (FEATURES, 16, 16, 16, 2)
SCALES = jnp.asarray(np.concatenate(
    [np.full(m * n + n, math.sqrt(2 / m)) for m, n in zip(GELU, GELU[1:])] + [np.ones(1)]), jnp.float32)


def student(theta):
    h = outputs(theta[:-1], GELU, lambda h: jax.nn.gelu(h, approximate=False), False)
    log_scale = 6 * jnp.tanh(h[:, 1:] / 6)
    dof = 2.1 + 8 * jnp.exp(3 * jnp.tanh(theta[-1] / 3))
    constant = gammaln((dof + 1) / 2) - gammaln(dof / 2) - 0.5 * jnp.log(math.pi * dof)
    z = (Y - h[:, :1]) * jnp.exp(-log_scale)
    likelihood = ROWS * constant - jnp.sum((dof + 1) / 2 * jnp.log1p(z**2 / dof) + log_scale)
    return likelihood - 0.5 * jnp.sum((theta / SCALES) ** 2)


def measure(name, call, state, gradients, settle=8):
    for i in range(settle):  # the first compiles
        state, info = jax.block_until_ready(call(jax.random.key(i), state))
    rates, end, i = [], time.perf_counter() + arguments.seconds, settle
    while time.perf_counter() < end or i < settle + 2:
        i, start = i + 1, time.perf_counter()
        state, info = jax.block_until_ready(call(jax.random.key(i), state))
        rates.append(gradients(info) / (time.perf_counter() - start))
    print(f"blackjax {blackjax.__version__} jax {jax.__version__} {jax.devices()[0].platform} {name} rows={ROWS} "
          f"median {statistics.median(rates):.0f} useful gradients/s, n={len(rates)}", flush=True)


def transition(algorithm, chains):
    return jax.jit(lambda key, state: jax.vmap(algorithm.step)(jax.random.split(key, chains), state))


for name in arguments.kernels:
    if name == "mclmc":
        chains, d, moves = 20, numbers(GELU) + 1, 20
        algorithm = blackjax.mclmc(student, math.sqrt(d), 0.05, inverse_mass_matrix=jnp.ones(d))
        keys = jax.random.split(jax.random.key(0), chains)
        start = 0.5 * SCALES * jax.random.normal(jax.random.key(0), (chains, d))
        state = jax.vmap(algorithm.init)(start, keys)
        one = transition(algorithm, chains)
        scan = jax.jit(lambda key, state: jax.lax.scan(lambda s, k: (one(k, s)[0], 0), state,
                                                       jax.random.split(key, moves)))
        measure(f"mclmc chains={chains} D={d} scan of {moves}", scan, state, lambda _: 2 * chains * moves)
        measure(f"mclmc chains={chains} D={d} a call each", one, state, lambda _: 2 * chains)
        continue
    chains, d = 100, numbers(TANH)
    algorithm = {
        "hmc": lambda: blackjax.hmc(gaussian, 0.003, jnp.ones(d), 10),
        "nuts": lambda: blackjax.nuts(gaussian, 0.003, jnp.ones(d), max_num_doublings=6),
    }[name]()
    state = jax.vmap(algorithm.init)(0.5 * jax.random.normal(jax.random.key(0), (chains, d)))
    measure(f"{name} chains={chains} D={d}", transition(algorithm, chains), state,
            lambda info: float(jnp.sum(info.num_integration_steps * jnp.ones(chains))))
