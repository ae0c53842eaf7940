"""LeNet-5 of J particles on B pictures in plain JAX: the yardstick of BenchmarkLeNet5 in this package's bench_test.go.

    python3 -m venv venv && venv/bin/pip install jax numpy && venv/bin/python jax_lenet5.py

The forward pass is each particle's log-likelihood. The gradient is that of each particle with respect to its own
numbers where all layers are stochastic, and that of the log of the particles' mean likelihood with respect to the
shared numbers where only the first is. There are two layouts: "vmap" of one particle's network, and "groups", where
the particles are folded by hand: into the filters of a convolution of what they share, and into groups of the channels
of a convolution of their own. Every call is waited for. Compare ratios, run in turn, not times.
"""
import argparse
import math
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

arguments = argparse.ArgumentParser()
arguments.add_argument("--particles", type=int, default=20)
arguments.add_argument("--batch", type=int, default=100)
arguments.add_argument("--seconds", type=float, default=5)
arguments = arguments.parse_args()
J, B = arguments.particles, arguments.batch

FIRST = {"w1": (5, 5, 1, 6), "b1": (6,)}
REST = {"w2": (5, 5, 6, 16), "b2": (16,), "w3": (400, 120), "b3": (120,), "w4": (120, 84), "b4": (84,), "w5": (84, 10),
        "b5": (10,)}
AXES = ("NHWC", "HWIO", "NHWC")


def convolve(x, w, padding, groups=1):
    return jax.lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=AXES, feature_group_count=groups)


def pool(x):
    n, height, width, channels = x.shape
    return jnp.tanh(x).reshape(n, height // 2, 2, width // 2, 2, channels).mean((2, 4))


def picked(logits, y):  # [..., B, 10] to [...], the log-likelihoods
    logs = jax.nn.log_softmax(logits)
    return (logs * jax.nn.one_hot(y, 10)).sum((-1, -2))


def dense(h, p):
    for layer in "345":
        h = h @ p["w" + layer] + p["b" + layer]
        if layer != "5":
            h = jnp.tanh(h)
    return h


def network(p, x):  # one particle
    h = pool(convolve(x, p["w1"], "SAME") + p["b1"])
    h = pool(convolve(h, p["w2"], "VALID") + p["b2"])
    return dense(h.reshape(h.shape[0], -1), p)


def first_folded(own, x):  # [B, 14, 14, J*6]: the particles' filters of the first convolution as one
    w = own["w1"].transpose(1, 2, 3, 0, 4).reshape(5, 5, 1, J * 6)
    return pool(convolve(x, w, "SAME") + own["b1"].reshape(-1))


def all_vmap(own, _, x, y):
    return jax.vmap(lambda p: picked(network(p, x), y))(own)


def all_groups(own, _, x, y):
    w = own["w2"].transpose(1, 2, 3, 0, 4).reshape(5, 5, 6, J * 16)
    h = pool(convolve(first_folded(own, x), w, "VALID", J) + own["b2"].reshape(-1))
    h = h.reshape(B, 25, J, 16).transpose(2, 0, 1, 3).reshape(J, B, 400)
    for layer in "345":
        h = jnp.einsum("jbi,jio->jbo", h, own["w" + layer]) + own["b" + layer][:, None]
        if layer != "5":
            h = jnp.tanh(h)
    return picked(h, y)


def first_vmap(own, shared, x, y):
    return jax.vmap(lambda p: picked(network({**p, **shared}, x), y))(own)


def first_groups(own, shared, x, y):
    h = first_folded(own, x).reshape(B, 14, 14, J, 6).transpose(3, 0, 1, 2, 4).reshape(J * B, 14, 14, 6)
    h = pool(convolve(h, shared["w2"], "VALID") + shared["b2"])
    return picked(dense(h.reshape(J, B, -1), shared), y)


def gradient_of_all(f):
    def both(own, shared, x, y):
        (_, values), gradient = jax.value_and_grad(lambda p: ((v := f(p, shared, x, y)).sum(), v), has_aux=True)(own)
        return values, gradient
    return both


def gradient_of_rest(f):
    def both(own, shared, x, y):
        def evidence(p):
            values = f(own, p, x, y)
            return jax.nn.logsumexp(values) - math.log(J), values
        (_, values), gradient = jax.value_and_grad(evidence, has_aux=True)(shared)
        return values, gradient
    return both


rng = np.random.default_rng(1)


def drawn(shapes, *particles):
    return {name: jnp.asarray(0.1 * rng.normal(size=(*particles, *shape)), jnp.float32) for name, shape in shapes.items()}


def fan_in_scaled(drawn_numbers):  # no layer saturates
    return {name: v * (10 / math.sqrt(math.prod(v.shape[-4 if name[1] in "12" else -2:-1]))) if name[0] == "w" else v
            for name, v in drawn_numbers.items()}


x = jnp.asarray(rng.uniform(size=(B, 28, 28, 1)), jnp.float32)
y = jnp.asarray(rng.integers(0, 10, B))
cases = []
for stochastic, own, shared, wanted in [
    ("all", fan_in_scaled(drawn({**FIRST, **REST}, J)), {}, [("vmap", all_vmap), ("groups", all_groups)]),
    ("first", fan_in_scaled(drawn(FIRST, J)), fan_in_scaled(drawn(REST)),
     [("vmap", first_vmap), ("groups", first_groups)]),
]:
    gradient = gradient_of_all if stochastic == "all" else gradient_of_rest
    for layout, f in wanted:
        for what, g in (("forward", f), ("gradient", gradient(f))):
            cases.append((f"stochastic={stochastic} {what:8s} {layout:6s}", jax.jit(g), own, shared))
for name, f, own, shared in cases:
    jax.block_until_ready(f(own, shared, x, y))  # compiles
    times, end = [], time.perf_counter() + arguments.seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        jax.block_until_ready(f(own, shared, x, y))
        times.append(time.perf_counter() - start)
    print(f"jax {jax.__version__} {jax.devices()[0].platform} lenet5 J={J} B={B} {name} "
          f"median {1e3 * statistics.median(times):.1f} ms, least {1e3 * min(times):.1f} ms, n={len(times)}", flush=True)
