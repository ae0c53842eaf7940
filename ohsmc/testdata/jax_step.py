"""A step of OHSMC (Zhao et al. 2024, Algorithm 3) in plain JAX: the yardstick of BenchmarkStep in this package.

    python3 -m venv venv && venv/bin/pip install jax numpy && venv/bin/python jax_step.py

A network 13-50-20-5-1 with GELU whose third layer is stochastic, and batches of 50 of 300 rows without a signal:
stratified resampling, a random walk of variance 0.01, weights by the batch, and Adam on the shared numbers, along one
reverse pass through the weighted log-likelihood. "call" is a call for each step, which is waited for; "scan" makes 64
steps in a call, as many as BenchmarkStep makes of 100 particles. Compare ratios, run in turn, not times.
"""
import argparse
import functools
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

arguments = argparse.ArgumentParser()
arguments.add_argument("--particles", type=int, nargs="+", default=[100, 1000, 10_000])
arguments.add_argument("--seconds", type=float, default=3)
arguments = arguments.parse_args()
ROWS, BATCH, FEATURES, TOGETHER = 300, 50, 13, 64
SHARED = [(FEATURES, 50), (50, 20), (5, 1)]  # layers 1, 2 and 4


def affine(parameters, layer, h):
    start = sum(n * m + m for n, m in SHARED[:layer])
    n, m = SHARED[layer]
    return h @ parameters[start : start + n * m].reshape(n, m) + parameters[start + n * m : start + n * m + m]


gelu = functools.partial(jax.nn.gelu, approximate=False)


def log_likelihood(phi, psi, x, y):
    h = gelu(affine(psi, 1, gelu(affine(psi, 0, x))))
    outputs = jax.vmap(lambda p: affine(psi, 2, gelu(h @ p[:100].reshape(20, 5) + p[100:])))(phi)
    return -0.5 * jnp.sum((y - outputs[..., 0]) ** 2 + jnp.log(2 * jnp.pi), axis=1)


def step(state, x, y):
    phi, log_weights, psi, mean, square, made, key = state
    key, of_rows, of_resampling, of_move = jax.random.split(key, 4)
    rows = jax.random.randint(of_rows, (BATCH,), 0, ROWS)
    x, y = x[rows], y[rows]
    count = phi.shape[0]
    places = (jnp.arange(count) + jax.random.uniform(of_resampling, (count,))) / count
    ancestors = jnp.searchsorted(jnp.cumsum(jax.nn.softmax(log_weights)), places)
    phi = phi[jnp.minimum(ancestors, count - 1)] + 0.1 * jax.random.normal(of_move, phi.shape)

    def weighted(psi):
        of_each = log_likelihood(phi, psi, x, y)
        return jax.nn.logsumexp(of_each), of_each

    (evidence, log_weights), gradient = jax.value_and_grad(weighted, has_aux=True)(psi)
    gradient *= ROWS / BATCH
    made += 1
    mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
    psi += 0.01 * (mean / (1 - 0.9**made)) / (jnp.sqrt(square / (1 - 0.999**made)) + 1e-8)
    ess = jnp.exp(2 * evidence - jax.nn.logsumexp(2 * log_weights))
    return (phi, log_weights, psi, mean, square, made, key), jnp.stack([evidence - jnp.log(count), ess])


def several(state, x, y):
    return jax.lax.scan(lambda s, _: step(s, x, y), state, None, length=TOGETHER)


rng = np.random.default_rng(1)
x = jnp.asarray(rng.normal(size=(ROWS, FEATURES)), jnp.float32)
y = jnp.asarray(rng.normal(size=ROWS), jnp.float32)
width = sum(n * m + m for n, m in SHARED)
for count in arguments.particles:
    for name, function, steps in (("call", step, 1), ("scan", several, TOGETHER)):
        state = (
            jnp.asarray(rng.normal(size=(count, 105)), jnp.float32), jnp.zeros(count),
            jnp.asarray(0.2 * rng.normal(size=width), jnp.float32), jnp.zeros(width), jnp.zeros(width), jnp.float32(0),
            jax.random.key(1),
        )
        compiled = jax.jit(function, donate_argnums=0)
        state, record = jax.block_until_ready(compiled(state, x, y))
        times, end = [], time.perf_counter() + arguments.seconds
        while time.perf_counter() < end or not times:
            begun = time.perf_counter()
            state, record = jax.block_until_ready(compiled(state, x, y))
            times.append(1e3 * (time.perf_counter() - begun) / steps)
        print(f"jax {jax.__version__} J={count:<6d} {name}: median {statistics.median(times):.3f} ms a step "
              f"({len(times)} calls; log evidence {float(np.atleast_2d(record)[-1, 0]):.1f}, "
              f"ESS {float(np.atleast_2d(record)[-1, 1]):.0f})", flush=True)
