"""Transforms and missing values beside scikit-learn: the same numbers to 1e-6, on random tables.

    python3 transforms_sklearn.py GRAPHRUN [--seeds N]

A model that copies its input is asked for predictions, so that what graphrun makes of each row is printed. Exit code 77:
scikit-learn is not installed.
"""

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, RobustScaler, StandardScaler
    from sklearn.utils.class_weight import compute_sample_weight
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

kTolerance = 1e-6

SCALERS = {"standardize": StandardScaler, "minmax": MinMaxScaler, "robust": RobustScaler}


def column(values):
    return numpy.array(values, dtype=object if isinstance(values[0], str) else float).reshape(-1, 1)


def in_order(values):
    return list(dict.fromkeys(values))


def numbers(draw, rows, gaps):
    # Times lie seconds apart: scikit-learn's x * scale + min cancels where large numbers differ by less.
    scale, shift = draw.choice([(10 ** draw.uniform(-3, 3), 0), (10 ** draw.uniform(-3, 3), 5), (1e4, 1.7e9)])
    drawn = [shift + scale * draw.choice([draw.gauss(0, 1), draw.randint(-3, 3)]) for _ in range(rows)]
    return [None if gaps and i > 2 and draw.random() < 0.2 else value for i, value in enumerate(drawn)]


def words(draw, rows, gaps):
    known = draw.sample(["red", "green", "blue", "dark blue", "42", "x,y", 'a "b"'], draw.randint(2, 6))
    drawn = [draw.choice(known) for _ in range(rows)]
    return [None if gaps and i > 2 and draw.random() < 0.2 else value for i, value in enumerate(drawn)]


class Case:
    """A column, what graphrun is told to do, and what scikit-learn makes of it."""

    def __init__(self, draw):
        rows = draw.randint(5, 60)
        self.missing, strategy = None, None
        is_words, gaps = draw.random() < 0.4, draw.random() < 0.5
        if gaps:
            strategy = draw.choice(["most_frequent"] if is_words else ["mean", "median", "most_frequent", "constant"])
            self.missing = -2.5 if strategy == "constant" else strategy
        self.values = (words if is_words else numbers)(draw, rows, gaps)
        filled = self.values
        if gaps:
            absent = None if is_words else numpy.nan
            data = column([absent if v is None else v for v in self.values]) if not is_words else numpy.array(
                self.values, dtype=object).reshape(-1, 1)
            imputer = SimpleImputer(strategy=strategy, fill_value=-2.5 if strategy == "constant" else None,
                                    missing_values=absent)
            filled = list(imputer.fit_transform(data)[:, 0])
        self.transform, self.expected = (self.of_words if is_words else self.of_numbers)(draw, filled)

    def of_words(self, draw, filled):
        kind = draw.choice(["one_hot", "classes", "class_weight"])
        order = in_order(filled)
        if kind == "one_hot":
            return ["one_hot"], OneHotEncoder(categories=[order], sparse_output=False).fit_transform(column(filled))
        if kind == "classes":
            return ["classes"], OrdinalEncoder(categories=[order]).fit_transform(column(filled))
        return [{"class_weight": "balanced"}], compute_sample_weight("balanced", filled).reshape(-1, 1)

    def of_numbers(self, draw, filled):
        kind = draw.choice(list(SCALERS))
        values, steps = column([float(v) for v in filled]), [kind]
        if draw.random() < 0.3 and -1 < values.min() and values.max() < 1e6:
            steps, values = ["log1p", kind], numpy.log1p(values)
        elif draw.random() < 0.3 and 0 < values.min() and values.max() < 1e6:
            steps, values = ["log", kind], numpy.log(values)
        return steps, SCALERS[kind]().fit_transform(values)


def check(graphrun, folder, seed):
    case = Case(random.Random(seed))
    width = case.expected.shape[1]
    with open(f"{folder}/a.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "y"])
        for value in case.values:
            writer.writerow(["" if value is None else value if isinstance(value, str) else repr(value), 0])
    source = {"csv": "a.csv", "x": ["a"], "y": "y"}
    if case.missing is not None:
        source["missing"] = {"a": case.missing}
    model = {
        "format": 1,
        "data": {"train": source, "transform": {"a": case.transform}},
        "inputs": {"x": ["batch", width], "y": ["batch", 1]},
        "parameters": {"b": {"shape": [width], "init": "zeros"}},
        "graph": ["z = x + b", "loss = mean(square(sum(z, axis=1, keepdims=true) - y))"],
        "outputs": {"z": "y"} if width == 1 else ["z"],
        "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.0}}, "batch": "all", "epochs": 0},
    }
    with open(f"{folder}/m.json", "w") as file:
        json.dump(model, file)
    told = f"seed {seed}: {case.transform}, missing {case.missing}"
    run = lambda *words: subprocess.run([graphrun, *words], capture_output=True, text=True, check=False)
    trained = run("train", f"{folder}/m.json", "--quiet", "--save-weights", f"{folder}/w.npz")
    if trained.returncode != 0:
        sys.exit(f"{told}\n{trained.stderr}")
    predicted = run("predict", f"{folder}/m.json", f"{folder}/a.csv", "--quiet", "--json", "--weights", f"{folder}/w.npz")
    if predicted.returncode != 0:
        sys.exit(f"{told}\n{predicted.stderr}")
    found = numpy.array(json.loads(predicted.stdout)["predictions"], dtype=float)
    error = numpy.max(numpy.abs(found - case.expected) / numpy.maximum(1, numpy.abs(case.expected)))
    if not error <= kTolerance:
        sys.exit(f"{told}: off by {error}\n{found[:5]}\n{case.expected[:5]}")
    return error


arguments = argparse.ArgumentParser()
arguments.add_argument("graphrun")
arguments.add_argument("--seeds", type=int, default=100)
given = arguments.parse_args()
with tempfile.TemporaryDirectory() as folder:
    worst = max(check(os.path.abspath(given.graphrun), folder, seed) for seed in range(given.seeds))
print(f"{given.seeds} tables agree with scikit-learn; the worst is off by {worst:.1e}")
