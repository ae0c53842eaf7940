"""Moves of penalty Metropolis chains in plain JAX: the yardstick of BenchmarkMove in this package's bench_test.go.

    python3 -m venv venv && venv/bin/pip install jax numpy && venv/bin/python jax_move.py

The cases are the benchmark's, float32: a move is by 10 mini-batches without replacement that all chains share, or by
all rows. Moves are a scan in one call, whose places, acceptances and variances come to the host. The skewness of the
differences, which ours measures too, is left out. Every call is waited for. Compare ratios, run in turn, not times.
"""
import argparse
import math
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

arguments = argparse.ArgumentParser()
arguments.add_argument("--seconds", type=float, default=5)
arguments.add_argument("--chunk", type=int, default=1, help="of the network's chains")
arguments.add_argument("--only", default="", help="cases whose name has this")
arguments = arguments.parse_args()
NOISE, BATCHES = 0.6, 10
DRAWN = {(400, 20): 32, (50_000, 100): 107}  # draws with replacement that hold a batch, but for a chance of 1e-12


def data(rows):
    i = np.arange(rows)
    x = np.stack([np.sin(1.7 * i), 0.8 * np.sin(1.7 * i) + 0.6 * np.sin(5.1 * i)], 1)
    y = 2 * x[:, 0] - x[:, 1] + 0.3 + 0.7 * np.cos(2.9 * i)
    return [jnp.asarray((v - v.mean(0)) / v.std(0), jnp.float32) for v in (x, y)]


def log_prior(theta):
    return -0.5 * jnp.square(theta).sum(-1)


class Case:
    def __init__(self, sizes, rows, chains, size, points, step, langevin):
        self.sizes, self.chains, self.size, self.points = sizes, chains, size, points
        self.step, self.langevin, (self.x, self.y) = step, langevin, data(rows)

    def each(self, f, *theta):  # over chains, in chunks for networks
        if len(self.sizes) == 2:
            return jax.vmap(f)(*theta)
        return jax.lax.map(lambda t: f(*t), theta, batch_size=arguments.chunk)

    def rows(self, theta, x, y):  # log-likelihoods of one chain, [B]
        h, at = x, 0
        for i, o in zip(self.sizes, self.sizes[1:]):
            h = (h if at == 0 else jnp.tanh(h)) @ theta[at:at + i * o].reshape(i, o) + theta[at + i * o:at + i * o + o]
            at += i * o + o
        return -0.5 * jnp.square((y - h[:, 0]) / NOISE) - math.log(NOISE * math.sqrt(2 * math.pi))

    def batch(self, key):  # without replacement: the first distinct ones of enough draws
        rows = len(self.y)
        drawn = jax.random.randint(key, (BATCHES, DRAWN[rows, self.size]), 0, rows)
        again = jnp.tril(drawn[:, :, None] == drawn[:, None], -1).any(2)
        rows = jnp.take_along_axis(drawn, jnp.argsort(again, stable=True)[:, :self.size], 1).reshape(-1)
        return self.x[rows], self.y[rows]

    def log_density(self, theta, x, y):
        return log_prior(theta) + self.points / len(y) * self.rows(theta, x, y).sum()

    def gradient(self, theta, x, y):
        return self.each(jax.value_and_grad(lambda t: self.log_density(t, x, y)), theta)

    def leapfrog(self, theta, gradient, z, x, y):
        half = z + self.step / 2 * gradient
        to = theta + self.step * half
        value, gradient = self.gradient(to, x, y)
        back = half + self.step / 2 * gradient
        return to, value, gradient, 0.5 * (jnp.square(z) - jnp.square(back)).sum(1)

    def penalty(self, theta, key):
        keys = jax.random.split(key, 4)
        z = jax.random.normal(keys[0], theta.shape)
        to, ratio = theta + self.step * z, 0
        if self.langevin:
            x, y = self.batch(keys[1])
            to, _, _, ratio = self.leapfrog(theta, self.gradient(theta, x, y)[1], z, x, y)
        x, y = self.batch(keys[2])
        by_row = self.each(lambda a, b: self.rows(b, x, y) - self.rows(a, x, y), theta, to)
        d = by_row.reshape(-1, BATCHES, self.size).sum(2) * (self.points / self.size)
        d = -d - (log_prior(to) - log_prior(theta))[:, None]
        delta, f = d.mean(1), BATCHES - 1
        s = jnp.square(d - delta[:, None]).sum(1) / (BATCHES * f)
        ratio -= delta + s / 2 + s * s / (4 * (f + 2)) + s**3 / (3 * (f + 2) * (f + 4))
        accepted = jnp.log(jax.random.uniform(keys[3], ratio.shape)) < ratio
        theta = jnp.where(accepted[:, None], to, theta)
        return theta, (jnp.exp(jnp.minimum(ratio, 0)), s, theta)

    def all_rows(self, state, key):  # MALA or a random walk
        theta, value, gradient = state
        keys = jax.random.split(key)
        z = jax.random.normal(keys[0], theta.shape)
        if self.langevin:
            to, new, new_gradient, ratio = self.leapfrog(theta, gradient, z, self.x, self.y)
        else:
            to, new_gradient, ratio = theta + self.step * z, gradient, 0
            new = self.each(lambda t: self.log_density(t, self.x, self.y), to)
        ratio += new - value
        accepted = jnp.log(jax.random.uniform(keys[1], ratio.shape)) < ratio
        state = [jnp.where(accepted.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in
                 ((to, theta), (new, value), (new_gradient, gradient))]
        return state, (jnp.exp(jnp.minimum(ratio, 0)), jnp.zeros_like(ratio), state[0])

    def start(self, key):
        dims = sum((i + 1) * o for i, o in zip(self.sizes, self.sizes[1:]))
        theta = 0.1 * jax.random.normal(key, (self.chains, dims))
        if self.size < len(self.y):
            return self.penalty, theta
        return self.all_rows, [theta, *self.gradient(theta, self.x, self.y)]


for name, moves, *case in [
    ("line, random walk", 64, (2, 1), 400, 32, 20, 400, 0.01, False),
    ("line, Langevin", 64, (2, 1), 400, 32, 20, 400, 0.01, True),
    ("line, all rows", 64, (2, 1), 400, 32, 400, 400, 0.01, True),
    ("network, random walk", 4, (2, 60, 60, 1), 50_000, 100, 100, 100, 1e-3, False),
    ("network, all rows", 1, (2, 60, 60, 1), 50_000, 100, 50_000, 50_000, 1e-4, False),
]:
    if arguments.only in name:
        key = jax.random.key(1)
        move, state = Case(*case).start(key)
        run = jax.jit(lambda state, key: jax.lax.scan(move, state, jax.random.split(key, moves)))
        times, acceptance, variance = [], 0, 0
        while not times or sum(times[1:]) < arguments.seconds:  # the first one compiles
            start = time.perf_counter()
            state, record = jax.block_until_ready(run(state, jax.random.fold_in(key, len(times))))
            acceptance, variance, _ = [np.asarray(r).mean() for r in record]
            times.append(time.perf_counter() - start)
        print(f"jax {jax.__version__} {jax.devices()[0].platform} {name} median "
              f"{1e3 * statistics.median(times[1:]) / moves:.4f} ms/move, least {1e3 * min(times[1:]) / moves:.4f}, "
              f"n={len(times) - 1}, acceptance {acceptance:.3f}, sigma^2 {variance:.3g}", flush=True)
