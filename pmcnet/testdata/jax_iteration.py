"""An iteration of PMC in plain JAX: the yardstick of BenchmarkIteration in this package's bench_test.go.

    python3 -m venv venv && venv/bin/pip install jax numpy && venv/bin/python jax_iteration.py

All is float32. k-hat is left out, and so are the gates for what is not finite or not positive definite. There are two
layouts of the networks, in chunks: "dot", one by vmap, and "sum", with the networks innermost. The log-weights come to
the host, and every call is waited for. Compare ratios, run in turn, not times.
"""
import argparse
import functools
import gzip
import math
import pathlib
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

arguments = argparse.ArgumentParser()
arguments.add_argument("--seconds", type=float, default=5)
arguments.add_argument("--chunk", type=int, default=250)
arguments.add_argument("--only", default="", help="cases whose name has this")
arguments = arguments.parse_args()
M, K, BETA, SIGMA, HALVINGS = 50, 100, 0.5, 0.5, 20


def load(name, rows):  # standardised features, classes one-hot
    path = pathlib.Path(__file__).parents[2] / "bayes/dataset/data" / f"{name}.csv.gz"
    lines = [line.split(",") for line in gzip.open(path, "rt").read().split()[1:]]
    some = np.random.default_rng(1).permutation(len(lines))[:rows]
    x = np.array([lines[i][:-1] for i in some], float)
    x, y = x[:, x.std(0) > 0], np.unique([lines[i][-1] for i in some], return_inverse=True)[1]
    return jnp.asarray((x - x.mean(0)) / x.std(0), jnp.float32), jnp.asarray(np.eye(y.max() + 1)[y], jnp.float32)


def log_posterior(phi, outputs, y):  # of phi, [D, ...], whose outputs are [B, outputs, ...]; one output is a logit
    y = y.reshape(*y.shape, *[1] * (outputs.ndim - 2))
    if outputs.shape[1] == 1:
        rows = y[:, 1] * outputs[:, 0] - jax.nn.softplus(outputs[:, 0])
    else:
        rows = (y * jax.nn.log_softmax(outputs, 1)).sum(1)
    return rows.sum(0) - 0.5 * jnp.square(phi).sum(0)


def networks(sizes, x, y, layout):  # log-posteriors: of one, [D], and of many, [n, D]
    i, h, o = sizes

    def unpack(phi):
        w1, b1, w2, b2 = jnp.split(phi, [i * h, i * h + h, i * h + h + h * o])
        return w1.reshape(i, h, *phi.shape[1:]), b1, w2.reshape(h, o, *phi.shape[1:]), b2

    def one(phi):
        w1, b1, w2, b2 = unpack(phi)
        return log_posterior(phi, jnp.tanh(x @ w1 + b1) @ w2 + b2, y)

    def some(phi):
        phi = phi.T
        w1, b1, w2, b2 = unpack(phi)
        hidden = jnp.tanh(jnp.einsum("bi,ihj->bhj", x, w1) + b1)
        return log_posterior(phi, b2 + sum(hidden[:, k, None] * w2[k] for k in range(h)), y)

    def in_sums(phi):
        return jax.lax.map(some, phi.reshape(-1, math.gcd(len(phi), arguments.chunk), phi.shape[1])).reshape(-1)
    return one, in_sums if layout == "sum" else lambda phi: jax.lax.map(one, phi, batch_size=arguments.chunk)


def factors(covariance):
    lower = jnp.linalg.cholesky(covariance)
    inverse = jax.lax.map(lambda one: solve_triangular(one, jnp.eye(len(one)), lower=True), lower)
    return covariance, lower, inverse, 2 * jnp.log(jnp.diagonal(lower, axis1=1, axis2=2)).sum(1)


class Full:  # covariances are (Sigma, L, L^-1, log det Sigma)
    initial = lambda d: factors(jnp.broadcast_to(SIGMA**2 * jnp.eye(d), (M, d, d)))
    spread = lambda c, z: jnp.einsum("mde,mke->mkd", c[1], z)
    times = lambda c, v: jnp.einsum("mde,me->md", c[0], v)

    def log_density(c, mean, x):  # [M, N]; sums over the first axis are fast
        def one(mu, inverse, log_det):
            return -0.5 * (jnp.square(inverse @ (x.T - mu[:, None])).sum(0) + log_det)
        return jax.lax.map(lambda of: one(*of), (mean, c[2], c[3]))

    def update(c, rows, weights, less):
        scatter = jnp.einsum("mkd,mke->mde", rows * weights[:, :, None], rows) - less[:, :, None] * less[:, None]
        d = rows.shape[2]
        kept = jnp.where(jnp.eye(d, dtype=bool), 1, 1 - d / (d + K))
        return factors((1 - BETA) * c[0] + kept * scatter)


class Diagonal:  # covariances are (variances,)
    initial = lambda d: (jnp.full((M, d), SIGMA**2, jnp.float32),)
    spread = lambda c, z: jnp.sqrt(c[0])[:, None] * z
    times = lambda c, v: c[0] * v

    def log_density(c, mean, x):
        return jax.lax.map(lambda of: -0.5 * (jnp.square(x - of[0]) @ (1 / of[1]) + jnp.log(of[1]).sum()), (mean, c[0]))

    def update(c, rows, weights, less):
        return ((1 - BETA) * c[0] + jnp.einsum("mkd,mk->md", rows * rows, weights) - less * less,)


def temper(log_weights):  # to an ESS of a tenth of the draws, by bisection to the resolution of float32
    shifted = log_weights - log_weights.max()

    def enough(power):
        w = jnp.exp(power * shifted)
        return w.sum()**2 >= 0.1 * w.size * (w * w).sum()
    halve = lambda _, at: (jnp.where(enough(at[0] + at[1] / 2), at[0] + at[1] / 2, at[0]), at[1] / 2)
    return shifted * jnp.where(enough(1.0), 1, jax.lax.fori_loop(0, 24, halve, (jnp.float32(0), jnp.float32(1)))[0])


def iteration(family, one, many, state, key, eta):
    mean, c = state
    d, key_draw, key_resample = mean.shape[1], *jax.random.split(key)
    theta = mean[:, None] + family.spread(c, jax.random.normal(key_draw, (M, K, d)))
    x = theta.reshape(M * K, d)
    honest = (many(x) - jax.nn.logsumexp(family.log_density(c, mean, x), 0) + math.log(M)).reshape(M, K)
    w = temper(honest)
    mean = theta[jnp.arange(M), jax.random.categorical(key_resample, w)]
    hat = jax.nn.softmax(w)
    tilde = jax.nn.softmax(jnp.minimum(w, jax.lax.top_k(w, int(math.sqrt(K)) + 1)[0][:, -1:]))
    rows = theta - jnp.einsum("mkd,mk->md", theta, hat)[:, None]
    less = jnp.einsum("mkd,mk->md", rows, tilde) * jnp.sqrt(BETA * eta)
    c = family.update(c, rows, BETA * (1 - eta) * hat + BETA * eta * tilde, less)
    before, gradient = jax.vmap(jax.value_and_grad(one))(mean)
    step, gamma = family.times(c, gradient), 2.0 ** -jnp.arange(HALVINGS + 1)
    good = many((mean + gamma[:, None, None] * step).reshape(-1, d)).reshape(-1, M) >= before
    return (mean + jnp.where(good.any(0), gamma[jnp.argmax(good, 0)], 0)[:, None] * step, c), honest


cases = [(f"{name}/{family.__name__.lower()} {layout}", family, layout, *data) for name, *data in
         [("glass", 128, (9, 10, 6)), ("ionosphere", 210, (33, 5, 1))] for family in (Full, Diagonal) for layout in
         ("dot", "sum")]
for name, family, layout, rows, sizes in cases:
    if arguments.only in name:
        x, y = load(name.split("/")[0], rows)
        d, key = (sizes[0] + 1) * sizes[1] + (sizes[1] + 1) * sizes[2], jax.random.key(1)
        step = jax.jit(functools.partial(iteration, family, *networks(sizes, x, y, layout)), donate_argnums=0)
        state, times = (jax.random.normal(key, (M, d)), family.initial(d)), []
        while not times or sum(times[1:]) < arguments.seconds:  # the first one compiles
            start = time.perf_counter()
            state, honest = step(state, jax.random.fold_in(key, len(times)), jnp.float32(1 / (len(times) + 1)))
            honest = np.asarray(jax.block_until_ready((state, honest))[1], float)
            times.append(time.perf_counter() - start)
        print(f"jax {jax.__version__} {jax.devices()[0].platform} {name} D={d} median "
              f"{1e3 * statistics.median(times[1:]):.1f} ms, least {1e3 * min(times[1:]):.1f} ms, n={len(times) - 1}, "
              f"log evidence {honest.max() + math.log(np.exp(honest - honest.max()).mean()):.1f}", flush=True)
