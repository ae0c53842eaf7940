"""Scores of CatBoost, NGBoost, a random forest and a linear model on the tables of this package: peers.json.

    go run ./notebooks/study/practice/export > splits.json
    python3 notebooks/study/practice/peers.py splits.json notebooks/study/practice/peers.json [NAME ...]

It needs catboost, ngboost and pandas; the versions that made the scores stand in peers.json.

Every method is fitted on the training rows, and what it chooses (the number of trees, a variance) is chosen on the
validation rows; all else is as its package has it. Regressions are scored in units of the training target's standard
deviation. Rows that peers.json has already are kept.
"""
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor
from ngboost import NGBClassifier, NGBRegressor
from ngboost.distns import k_categorical
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.preprocessing import StandardScaler

TREES, PATIENCE = 5000, 100  # at most, and after the best on the validation rows


# Each method takes a table of the three parts and gives, for the test rows of a regression, the mean and the standard
# deviation of a normal, and for those of a classification the probabilities of the classes, [N, K].


def catboost(t):
    settings = dict(iterations=TREES, early_stopping_rounds=PATIENCE, random_seed=t.seed, thread_count=2, verbose=False,
                    allow_writing_files=False, cat_features=t.text)
    fit = dict(eval_set=(t.raw["validation"], t.y["validation"]))
    if t.classes:
        loss = "Logloss" if t.classes == 2 else "MultiClass"
        return CatBoostClassifier(loss_function=loss, **settings).fit(
            t.raw["train"], t.y["train"], **fit).predict_proba(t.raw["test"])
    mean, variance = CatBoostRegressor(loss_function="RMSEWithUncertainty", **settings).fit(
        t.raw["train"], t.y["train"], **fit).predict(t.raw["test"]).T
    return mean, np.sqrt(variance)


def ngboost(t):
    settings = dict(n_estimators=TREES, random_state=t.seed, verbose=False)
    fit = dict(X_val=t.x["validation"], Y_val=t.y["validation"], early_stopping_rounds=PATIENCE)
    if t.classes:
        model = NGBClassifier(Dist=k_categorical(t.classes), **settings).fit(t.x["train"], t.y["train"], **fit)
        return model.predict_proba(t.x["test"], max_iter=model.best_val_loss_itr)
    model = NGBRegressor(**settings).fit(t.x["train"], t.y["train"], **fit)
    normal = model.pred_dist(t.x["test"], max_iter=model.best_val_loss_itr)
    return normal.loc, normal.scale


def random_forest(t):
    """500 trees. The variance is a + b times the variance between trees, a and b of most density on the validation
    rows. The probabilities are the trees' mean with one more tree that has all classes alike."""
    if t.classes:
        forest = RandomForestClassifier(500, random_state=t.seed, n_jobs=2).fit(t.x["train"], t.y["train"])
        return (500 * forest.predict_proba(t.x["test"]) + 1 / t.classes) / 501
    forest = RandomForestRegressor(500, random_state=t.seed, n_jobs=2).fit(t.x["train"], t.y["train"])

    def moments(part):
        trees = np.stack([tree.predict(t.x[part]) for tree in forest.estimators_])
        return trees.mean(0), trees.var(0)

    mean, between = moments("validation")
    squared = (mean - t.y["validation"]) ** 2

    def loss(logs):
        variance = np.exp(logs[0]) + np.exp(logs[1]) * between
        return np.mean(np.log(variance) + squared / variance)

    a, b = np.exp(minimize(loss, [np.log(squared.mean()), -1], method="Nelder-Mead").x)
    mean, between = moments("test")
    return mean, np.sqrt(a + b * between)


def linear(t):
    """Ridge or logistic regression; the ridge's variance is that of its residuals on the validation rows."""
    x = {part: t.scaled(part) for part in t.x}
    if t.classes:
        return LogisticRegression(max_iter=2000).fit(x["train"], t.y["train"]).predict_proba(x["test"])
    model = RidgeCV(np.logspace(-3, 3, 13)).fit(x["train"], t.y["train"])
    deviation = np.sqrt(np.mean((model.predict(x["validation"]) - t.y["validation"]) ** 2))
    mean = model.predict(x["test"])
    return mean, np.full_like(mean, deviation)


METHODS = dict(catboost=catboost, ngboost=ngboost, random_forest=random_forest, linear=linear)


HERE = Path(__file__).parent


class Table:
    def __init__(self, about, split):
        name, rows = about["Name"], about["Splits"][split]
        file = f"../../../bayes/dataset/data/{name}.csv.gz" if about["Reported"] else f"data/{name}.csv.bz2"
        frame = pd.read_csv(HERE / file, keep_default_na=False)
        self.seed, self.text = int(split), about["Text"]
        x, y = frame.iloc[:, :-1], frame.iloc[:, -1]
        hot = pd.get_dummies(x, columns=self.text, dtype=float)
        self.classes = 0
        if about["Task"] != "regression":
            labels = sorted(set(y))
            y, self.classes = y.map(labels.index), len(labels)
        y = y.to_numpy()
        self.raw = {part: x.iloc[r] for part, r in rows.items()}
        self.x = {part: hot.to_numpy(float)[r] for part, r in rows.items()}
        self.y = {part: y[r] for part, r in rows.items()}
        self.scaler = StandardScaler().fit(self.x["train"])
        if not self.classes:
            known = y[rows["train"] + (rows["validation"] if about["Reported"] else [])]
            self.y = {part: (v - known.mean()) / known.std() for part, v in self.y.items()}

    def scaled(self, part):
        return self.scaler.transform(self.x[part])


def scores(t, predicted):
    y = t.y["test"]
    if t.classes:
        p = np.clip(predicted / predicted.sum(1, keepdims=True), 1e-12, 1)
        return dict(accuracy=np.mean(p.argmax(1) == y), nlpd=-np.mean(np.log(p[np.arange(len(y)), y])),
                    brier=np.mean(((p - np.eye(t.classes)[y]) ** 2).sum(1)))
    mean, deviation = predicted
    z = (y - mean) / deviation
    return dict(rmse=np.sqrt(np.mean((y - mean) ** 2)), nlpd=-np.mean(norm.logpdf(z) - np.log(deviation)),
                crps=np.mean(deviation * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))),
                coverage90=np.mean(np.abs(z) <= norm.ppf(.95)))


def main(splits, to, *only):
    to = Path(to)
    rows = json.loads(to.read_text())["rows"] if to.exists() else []
    done = {(r["data"], r["split"], r["method"]) for r in rows}
    versions = {p: version(p) for p in ("catboost", "ngboost", "scikit-learn", "numpy")}
    for about in json.loads(Path(splits).read_text()):
        name = about["Name"]
        for split in about["Splits"] if not only or name in only else []:
            for method, run in METHODS.items():
                if (name, int(split), method) in done:
                    continue
                t = Table(about, split)
                start = time.time()
                predicted = run(t)
                seconds = time.time() - start
                scored = {k: float(f"{v:.5g}") for k, v in scores(t, predicted).items()}
                row = dict(data=name, split=int(split), method=method, **scored, seconds=round(seconds, 2))
                print(row, flush=True)
                rows.append(row)
                to.write_text('{"versions": ' + json.dumps(versions) + ',\n"rows": [\n' +
                              ",\n".join(json.dumps(r) for r in rows) + "\n]}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
