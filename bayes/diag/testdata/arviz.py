"""Writes arviz.json.gz: draws, log-weights and log-likelihoods, and what ArviZ makes of them, for the tests of package diag.

    python3.13 -m venv venv
    venv/bin/pip install arviz-stats[xarray]==1.3.3 numpy==2.5.5 scipy==1.18.1
    venv/bin/python arviz.py

The seed is fixed, and so is the file, up to the versions of ArviZ, NumPy and SciPy that it names.
"""

import gzip
import json
import math
import pathlib
import warnings

import arviz_base
import arviz_stats
import numpy as np
import scipy
from arviz_stats.base import array_stats

warnings.simplefilter("ignore")
rng = np.random.default_rng(20240917)
QUANTILES = (0.05, 0.1, 0.5, 0.9)


def short(x):
    """Seven digits, which keep the file small; ArviZ sees the same numbers."""
    return np.array([float(f"{v:.7g}") for v in np.ravel(x)]).reshape(np.shape(x))


def ar1(chains, draws, rho):
    x = rng.normal(size=(chains, draws))
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1 - rho * rho) * x[:, t]
    return x


def number(x):
    """JSON has no NaN and no infinity: they are written as text."""
    x = float(x)
    return x if math.isfinite(x) else str(x)


def chains_case(name, x):
    x = np.asarray(x, dtype=float)
    split = array_stats._split_chains(x)
    # ArviZ gives no R-hat of one chain. Its own pieces, applied to the two halves, do.
    bulk = array_stats._rhat(array_stats._z_scale(split))
    folded = array_stats._rhat(array_stats._z_fold(split))
    if len(x) > 1:
        for mine, method in ((bulk, "z_scale"), (folded, "folded")):
            assert np.array_equal(mine, array_stats.rhat(x, method=method), equal_nan=True)
        rank = array_stats.rhat(x, method="rank")
    else:
        rank = max(bulk, folded)
    return {
        "name": name,
        "chains": x.shape[0],
        "draws": x.shape[1],
        "values": x.ravel().tolist(),
        "mean": number(x.mean()),
        "sd": number(x.std(ddof=1)),
        "ess_bulk": number(array_stats.ess(x, method="bulk")),
        "ess_tail": number(array_stats.ess(x, method="tail", prob=(0.05, 0.95))),
        "ess_mean": number(array_stats.ess(x, method="mean")),
        "ess_sd": number(array_stats.ess(x, method="sd")),
        "rhat": number(rank),
        "rhat_bulk": number(bulk),
        "rhat_folded": number(folded),
        "mcse_mean": number(array_stats.mcse(x, method="mean")),
        "mcse_sd": number(array_stats.mcse(x, method="sd")),
        "quantiles": [
            {
                "prob": p,
                "ess": number(array_stats.ess(x, method="quantile", prob=p)),
                "mcse": number(array_stats.mcse(x, method="quantile", prob=p)),
            }
            for p in QUANTILES
        ],
    }


def psis_case(name, log_weights, r_eff=1.0):
    log_weights = np.asarray(log_weights, dtype=float)
    # psislw takes log-likelihoods, of which log-weights are the negative.
    smoothed, k = array_stats.psislw(-log_weights, r_eff=r_eff)
    return {
        "name": name,
        "r_eff": r_eff,
        "log_weights": [number(v) for v in log_weights],
        "khat": number(k),
        "smoothed": [number(v) for v in smoothed],
    }


one_stuck = rng.normal(size=(3, 60))
one_stuck[1] = 0.25
chains = [
    chains_case("independent", short(rng.normal(size=(4, 250)))),
    chains_case("AR(1), 0.5", short(ar1(4, 250, 0.5))),
    chains_case("AR(1), 0.98", short(ar1(4, 500, 0.98))),
    chains_case("antithetic", short(ar1(4, 250, -0.9))),
    chains_case("different means", short(ar1(4, 200, 0.3) + np.array([[0], [0], [0.5], [2]]))),
    chains_case("different scales", short(rng.normal(size=(4, 200)) * np.array([[1], [1], [1], [3]]))),
    chains_case("trend", short(rng.normal(size=(4, 200)) + np.linspace(0, 3, 200))),
    chains_case("Cauchy", short(rng.standard_cauchy(size=(4, 300)))),
    chains_case("skewed", short(np.exp(2 * ar1(2, 400, 0.6)))),
    chains_case("odd draws", short(ar1(3, 101, 0.7))),
    # (101-1) 0.05 and (101-1) 0.95 are whole: the quantile is a draw.
    chains_case("one chain", short(ar1(1, 101, 0.4))),
    chains_case("one chain, odd and stuck at the end", short(np.concatenate([ar1(1, 40, 0.4)[0], np.full(35, 1.5)]))[None, :]),
    chains_case("many short chains", short(ar1(50, 10, 0.6))),
    chains_case("4 draws", short(rng.normal(size=(2, 4)))),
    chains_case("5 draws", short(rng.normal(size=(2, 5)))),
    chains_case("8 draws", short(rng.normal(size=(3, 8)))),
    chains_case("11 draws", short(ar1(3, 11, 0.5))),
    chains_case("counts", rng.poisson(2.0, size=(4, 100))),
    chains_case("two values", rng.choice([-1.0, 1.0], size=(4, 60))),
    chains_case("period 2", np.tile([1.0, -1.0], (2, 25))),
    chains_case("constant", np.full((3, 50), 2.5)),
    chains_case("constant, odd", np.full((3, 51), 2.5)),
    chains_case("each chain constant", np.repeat([[1.0], [2.0], [3.0], [4.0]], 20, axis=1)),
    chains_case("one chain stuck", short(one_stuck)),
    chains_case("far from 0", 1e6 + short(ar1(4, 100, 0.5))),
    chains_case("narrower than 1e-15", 1e-18 * short(ar1(4, 100, 0.5))),
]

z = rng.normal(size=1000)
ties = np.round(2 * rng.normal(size=500), 1)
truncated = short(rng.normal(size=400))
truncated[rng.choice(400, size=150, replace=False)] = -np.inf
few = np.full(200, -np.inf)
few[rng.choice(200, size=36, replace=False)] = short(rng.normal(size=36))
psis = [
    # A Gaussian proposal of scale s for N(0, 1): k is 1 - s^2, or below 0.
    psis_case("proposal of scale 0.9", short(-0.5 * (0.9 * z) ** 2 + 0.5 * z**2)),
    psis_case("proposal of scale 0.5", short(-0.5 * (0.5 * z) ** 2 + 0.5 * z**2)),
    psis_case("wide proposal", short(-0.5 * (2 * z) ** 2 + 0.5 * z**2)),
    psis_case("Pareto 0.3", short(0.3 * rng.exponential(size=800))),
    psis_case("Pareto 0.7", short(0.7 * rng.exponential(size=800))),
    psis_case("Pareto 1.2", short(1.2 * rng.exponential(size=800))),
    psis_case("large logs", short(700 + 0.5 * rng.exponential(size=300))),
    psis_case("autocorrelated", short(0.5 * rng.exponential(size=600)), r_eff=0.4),
    psis_case("autocorrelated, short", short(0.5 * rng.exponential(size=300)), r_eff=0.5),
    psis_case("226 draws", short(0.5 * rng.exponential(size=226))),
    psis_case("225 draws", short(0.5 * rng.exponential(size=225))),
    psis_case("25 draws", short(rng.normal(size=25))),
    psis_case("ties", ties),
    psis_case("some weights 0", truncated),
    psis_case("tail holds weights 0", few),
    psis_case("tail of two values", np.concatenate([short(rng.normal(size=60) - 5), np.zeros(8), [1.0, 1.0]])),
]

def loo_case(name, log_likelihood, reff=1.0):
    """log_likelihood is [draws, rows]."""
    log_likelihood = np.asarray(log_likelihood, dtype=float)
    data = arviz_base.from_dict({"log_likelihood": {"y": log_likelihood[None]}}, sample_dims=["chain", "draw"])
    found = arviz_stats.loo(data, pointwise=True, reff=reff)
    return found, {
        "name": name,
        "rows": log_likelihood.shape[1],
        "r_eff": reff,
        "log_likelihood": [number(v) for v in log_likelihood.ravel()],
        "elpd": number(found.elpd),
        "se": number(found.se),
        "p": number(found.p),
        "elpd_i": [number(v) for v in found.elpd_i.values],
        "khat": [number(v) for v in found.pareto_k.values],
    }


def normal(y, f, sd):
    return short(-0.5 * ((y - f) / sd) ** 2 - math.log(sd) - 0.5 * math.log(2 * math.pi))


x = rng.normal(size=12)
y = short(0.8 * x + 0.5 * rng.normal(size=12))
y[3] += 2.2  # a row that decides
slope = rng.normal(0.8, 0.2, size=(200, 1))
found, loo = zip(
    loo_case("slope", normal(y, slope * x, 0.5)),
    loo_case("slope and constant", normal(y, slope * x + rng.normal(0.1, 0.2, size=(200, 1)), 0.6)),
    loo_case("constant", normal(y, rng.normal(0.1, 0.3, size=(200, 1)) + 0 * x, 1.0)),
)
_, slow = loo_case("autocorrelated", normal(y, rng.normal(0.8, 0.2, size=(600, 1)) * x, 0.5)[:, :4], reff=0.5)
table = arviz_stats.compare({c["name"]: f for c, f in zip(loo, found)}, method="stacking", round_to="none")
comparison = [
    {
        "name": name,
        "elpd": number(row["elpd"]),
        "se": number(row["se"]),
        "difference": number(row["elpd_diff"]),
        "dse": number(row["dse"]),
        "weight": number(row["weight"]),
    }
    for name, row in table.iterrows()
]

versions = f"arviz {arviz_stats.__version__} (arviz-stats), numpy {np.__version__}, scipy {scipy.__version__}"
text = json.dumps({"made_by": "testdata/arviz.py", "versions": versions, "chains": chains, "psis": psis, "loo": [*loo, slow],
                   "comparison": comparison})
path = pathlib.Path(__file__).with_name("arviz.json.gz")
path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
print(versions, path.stat().st_size, "bytes")
