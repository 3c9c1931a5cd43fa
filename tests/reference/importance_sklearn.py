#!/usr/bin/env python3
"""Permutation importance next to scikit-learn, to 1e-6: `eval --importance`.

    python3 importance_sklearn.py GRAPHRUN

sklearn.inspection.permutation_importance runs on `graphrun predict` as the estimator and on the same shuffles, which
this file computes from their definition (src/base/random_bits.h). Exit code 77: scikit-learn is not installed.
"""

import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest.mock

try:
    import numpy
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.inspection import permutation_importance
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROWS, REPEATS, SEED = 90, 10, 3
U32, U64 = (1 << 32) - 1, (1 << 64) - 1


def philox(counter, key):
    key0, key1 = key & U32, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ key0, b & U32, a >> 32 ^ counter[3] ^ key1, a & U32]
        key0, key1 = key0 + 0x9E3779B9 & U32, key1 + 0xBB67AE85 & U32
    return counter


def stream(seed, name):
    value = 14695981039346656037
    for byte in name.encode():
        value = (value ^ byte) * 1099511628211 & U64
    words = philox([value & U32, value >> 32, 0, 0], seed)
    return words[0] | words[1] << 32


def permuted(i, count, key, epoch):
    half = 1
    while 1 << 2 * half < count:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = i >> half, i & mask
        for step in range(4):
            left, right = right, left ^ philox([right, step, epoch, 0], key)[0] & mask
        i = left << half | right
        if i < count:
            return i


class Shuffles:
    """Stands for a RandomState: the k-th shuffle gives the column row permuted(row) of the start, as graphrun does."""

    def __init__(self, key):
        self.key, self.repeat, self.before = key, 0, None

    def shuffle(self, indices):  # scikit-learn shuffles a column that it has shuffled before
        count = len(indices)
        wanted = [permuted(i, count, self.key, self.repeat) for i in range(count)]
        at = {row: i for i, row in enumerate(self.before or range(count))}
        indices[:] = [at[row] for row in wanted]
        self.repeat, self.before = self.repeat + 1, wanted


def run(*arguments):
    return subprocess.run([graphrun, *arguments], check=True, capture_output=True, text=True, cwd=folder).stdout


def write_table(name, header, rows):
    lines = [",".join(header)] + [",".join(str(cell) for cell in row) for row in rows]
    (folder / name).write_text("\n".join(lines) + "\n")


class Graphrun(BaseEstimator):
    def __init__(self, weights="", columns=()):
        self.weights, self.columns = weights, columns

    def fit(self, x, y):
        return self

    def predict(self, x):
        write_table("asked.csv", self.columns, x)
        lines = run("predict", self.weights, "asked.csv").splitlines()
        cells = [line.split(",")[0] for line in lines[1:]]
        return numpy.array(cells if isinstance(self, ClassifierMixin) else [float(cell) for cell in cells])


class Regressor(RegressorMixin, Graphrun):
    pass


class Classifier(ClassifierMixin, Graphrun):
    classes_ = numpy.array(["no", "yes"])


def near(got, expected, what):
    if not math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-6):
        sys.exit(f"{what}: {got}, not {expected}")


def check(label, metric, scoring, kind):
    columns = ["rooms", "area", "city", "noise"]
    table = [[row[c] for c in range(4)] for row in rows]
    answers = numpy.array([row[4 if label == "price" else 5] for row in rows])
    write_table(f"{label}.csv", columns + [label], [cells + [answer] for cells, answer in zip(table, answers)])
    if not (folder / f"{label}.json").exists():
        run("init", f"{label}.csv", "--label", label, "-o", f"{label}.json")
    metrics = f'train.metrics=["{metric}"]'
    run("train", f"{label}.json", "--seed", str(SEED), "--epochs", "40", "--set", metrics, "--save-weights",
        f"{label}.safetensors", "-q")
    told = json.loads(run("eval", f"{label}.safetensors", "--data", f"{label}.csv", "--importance", metric, "--json"))
    assert told["importance"]["split"] == "data" and told["importance"]["metric"] == metric, told
    told = told["importance"]["columns"]
    means = [one["mean"] for one in told]
    assert means == sorted(means, reverse=True) and means[0] > 0, means
    states = [numpy.random.RandomState(0)] + [Shuffles(stream(SEED, f"importance/{column}")) for column in columns]
    with unittest.mock.patch("sklearn.inspection._permutation_importance.check_random_state", side_effect=states):
        found = permutation_importance(kind(f"{label}.safetensors", columns), numpy.array(table, dtype=object), answers,
                                       scoring=scoring, n_repeats=REPEATS)
    for column, mean, std in zip(columns, found.importances_mean, found.importances_std):
        one = next(one for one in told if one["column"] == column)
        near(one["mean"], mean, f"mean importance of {column} for {label}")
        near(one["std"], std, f"std of the importance of {column} for {label}")


graphrun = os.path.abspath(sys.argv[1])
random.seed(1)
rows = []
for _ in range(ROWS):
    rooms, area, noise = random.randint(1, 6), round(random.uniform(30, 150), 1), round(random.gauss(0, 1), 3)
    city = random.choice(["Bern", "Ulm", "Oslo"])
    price = round(20 + 3 * rooms + 2.5 * area + {"Bern": 30, "Ulm": 0, "Oslo": -20}[city] + random.gauss(0, 3), 2)
    rows.append([rooms, area, city, noise, price, "yes" if price > 250 else "no"])
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    check("price", "rmse", "neg_root_mean_squared_error", Regressor)
    check("price", "r2", "r2", Regressor)
    check("dear", "accuracy", "accuracy", Classifier)
print("permutation importance agrees with scikit-learn")
