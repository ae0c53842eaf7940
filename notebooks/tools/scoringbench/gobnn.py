"""gobnn in ScoringBench (arXiv 2603.29928), a benchmark of probabilistic regression by proper scoring rules.

Build the program of the verbs, and put this file among the benchmark's wrappers:

    go build -o gobnn-table ./notebooks/table
    cp notebooks/tools/scoringbench/gobnn.py .../scoringbench/wrappers/

and into MODELS of its run_bench_regression.py, with the absolute path of the program:

    "gobnn": lambda: GobnnWrapper(".../gobnn-table", seconds=60),

A fit is that of `fit` with nothing set but its budget: the default method on all rows that the benchmark gives.
"""

import io
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from .base import DistributionPrediction, ProbabilisticWrapper

TARGET = "the target"

# Half per cents between 1 and 99 %, and closer where the tails are: a log score is of the density at the target.
_TAIL = [1e-7, 1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 2e-3, 5e-3]
LEVELS = np.array(_TAIL + [k / 200 for k in range(2, 199)] + [1 - p for p in reversed(_TAIL)])


class GobnnWrapper(ProbabilisticWrapper):
    """Fits by the program's verb fit, and predicts quantiles by predict, from which it makes a histogram."""

    def __init__(self, program, seconds=60, seed=1):
        self.program, self.seconds, self.seed = str(program), seconds, seed
        self._folder = tempfile.TemporaryDirectory()  # gone with the wrapper

    def _run(self, *args):
        done = subprocess.run([self.program, *args], cwd=self._folder.name, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(args)}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def _named(self, X):
        table = pd.DataFrame(X).reset_index(drop=True).infer_objects()
        table.columns = [f"x{i}" for i in range(table.shape[1])]
        return table

    def _write(self, name, table):
        table.to_csv(Path(self._folder.name) / name, index=False)

    def fit(self, X, y):
        self._y = np.asarray(y, dtype=float)
        table = self._named(X)
        self._texts = {c: set(table[c].dropna()) for c in table if not pd.api.types.is_numeric_dtype(table[c])}
        self._write("train.csv", table.assign(**{TARGET: self._y}))
        self._run("fit", "train.csv", "-target", TARGET, "-task", "regression", "-test", "0", "-missing", "mean",
                  "-seconds", str(self.seconds), "-seed", str(self.seed), "-out", "fitted")
        return self

    def _table(self, X):
        table = self._named(X)
        for column, known in self._texts.items():  # of a category without a training row nothing is known
            table[column] = table[column].astype(object).where(table[column].isin(known), None)
        self._write("new.csv", table)
        levels = ",".join(f"{p:.10g}" for p in LEVELS)
        return pd.read_csv(io.StringIO(self._run("predict", "fitted.posterior", "new.csv", "-missing", "mean",
                                                 "-quantiles", levels)))

    def predict(self, X):
        return self._table(X)[TARGET].to_numpy(float)

    def predict_distribution(self, X):
        table = self._table(X)
        edges = np.maximum.accumulate(table.iloc[:, 3:].to_numpy(float), axis=1)
        least = 1e-9 * (np.ptp(self._y) or 1)  # a bin of no width would have an infinite density
        edges = edges + least * np.arange(edges.shape[1])
        masses = np.diff(LEVELS)
        return DistributionPrediction(
            probas=np.tile(masses / masses.sum(), (len(edges), 1)),
            bin_edges=edges,
            bin_midpoints=(edges[:, 1:] + edges[:, :-1]) / 2,
            mean=table[TARGET].to_numpy(float),
        )
