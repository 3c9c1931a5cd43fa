"""Scores of splits beside scikit-learn: every figure of `eval --json` to 1e-6, on random tables.

    python3 scores_sklearn.py GRAPHRUN [--seeds N]

Models are trained a little, `predict` says what they make of the rows, and scikit-learn what that is worth. Exit code 77:
scikit-learn is not installed.
"""

import argparse
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy
    from sklearn import metrics
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TOLERANCE = 1e-6
TOP = (2, 3, 5)
OF_CLASSES = ["accuracy", "precision", "recall", "f1", "precision_macro", "recall_macro", "f1_macro", "precision_micro",
              "recall_micro", "f1_micro", "auc", "average_precision", "log_loss"]
METRICS = {  # of "train" of a model: they are told as the scores are
    "two": OF_CLASSES + ["balanced_accuracy", "mcc"],
    "several": OF_CLASSES + ["balanced_accuracy", "mcc", "top_2", "top_3", "top_5"],
    "labels": OF_CLASSES,
    "numbers": ["mse", "rmse", "mae", "r2", "mape", "mean_residual"],
}
SHARES = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)


def model(kind, columns, classes, words):
    width = 1 if kind == "two" else classes
    losses = {
        "two": "mean(sigmoid_cross_entropy(out, y))",
        "several": "mean(softmax_cross_entropy(out, y))",
        "labels": "mean(sigmoid_cross_entropy(out, y))",
        "numbers": "mean(square(out - y))",
    }
    targets = {"several": [{"one_hot": words}], "numbers": ["standardize"]}
    inputs = {"x": ["batch", columns], "y": ["batch", width]}
    names = ["y"] if kind in ("two", "several") else [f"y{k}" for k in range(classes)]
    return {
        "format": 1,
        "data": {
            "source": {"csv": "table.csv", "x": [f"x{i}" for i in range(columns)], "y": names},
            "transform": {"y": targets[kind]} if kind in targets else {},
            "split": [0.6, 0, 0.4],
        },
        "inputs": inputs,
        "graph": [
            {"name": "out", "op": "dense", "inputs": ["x"], "units": width},
            f"loss = {losses[kind]}",
        ],
        "outputs": {"out": "y"},
        "train": {"minimize": "loss", "metrics": METRICS[kind], "optimizer": {"sgd": {"lr": 0.1}}, "batch": 7, "epochs": 5},
    }


def table(draw, kind, columns, classes, words):
    rows = draw.randint(30, 200)
    weights = [draw.choice([0.3, 1, 3]) for _ in range(classes)]
    lines = []
    for r in range(rows):
        x = [round(draw.gauss(0, 1), draw.choice([0, 5])) for _ in range(columns)]
        if kind == "two":
            y = [int(x[0] + draw.gauss(0, 1) > 1)]
        elif kind == "several":
            y = [words[r] if r < classes else draw.choices(words, weights)[0]]
        elif kind == "labels":
            y = [int(draw.random() < 0.3 + 0.1 * k) for k in range(classes)]
        else:
            y = [round(5 + 100**k * (x[0] + draw.gauss(0, 0.3)), 3) for k in range(classes)]
        lines.append((x, y))
    return lines


class Comparison:
    def __init__(self, where):
        self.where, self.count, self.worst = where, 0, 0.0

    def same(self, name, ours, right, scale=1.0):
        if ours is None or right is None or math.isnan(right):
            if (ours is None) != (right is None or math.isnan(right)):
                raise SystemExit(f"{self.where}: {name} is {ours}, scikit-learn says {right}")
            return
        error = abs(ours - right) / max(scale, abs(right))
        self.count += 1
        self.worst = max(self.worst, error)
        if error > TOLERANCE:
            raise SystemExit(f"{self.where}: {name} is {ours}, scikit-learn says {right}")


def compare_classes(c, ours, truth, said, probabilities, names, two):
    """`truth` and `said`: numbers of classes; `probabilities` (rows, classes)."""
    labels = list(range(len(names)))
    for name, right in (
        ("accuracy", metrics.accuracy_score(truth, said)),
        ("balanced_accuracy", metrics.balanced_accuracy_score(truth, said)),
        ("mcc", metrics.matthews_corrcoef(truth, said)),
        ("log_loss", metrics.log_loss(truth, probabilities, labels=labels)),
    ):
        c.same(name, ours[name], right)
    for average in ("macro", "micro"):
        p, r, f, _ = metrics.precision_recall_fscore_support(truth, said, average=average, zero_division=0)
        for name, right in (("precision", p), ("recall", r), ("f1", f)):
            c.same(f"{average} {name}", ours[average][name], right)
    p, r, f, n = metrics.precision_recall_fscore_support(truth, said, labels=labels, zero_division=0)
    areas = []
    for k in labels:
        one = ours["classes"][k]
        if one["class"] != names[k] or one["rows"] != n[k] or one["predicted"] != int((said == k).sum()):
            raise SystemExit(f"{c.where}: class {k} is {one}")
        for name, right in (("precision", p[k]), ("recall", r[k]), ("f1", f[k])):
            c.same(f"{name} of {names[k]}", one[name], right)
        areas.append(compare_areas(c, one, truth == k, probabilities[:, k]))
    known = [area for area in areas if area[0] is not None]
    if two:
        c.same("auc", ours["auc"], areas[1][0])
        for name, right in (("precision", p[1]), ("recall", r[1]), ("f1", f[1])):
            c.same(name, ours[name], right)
    elif known:
        c.same("auc", ours["auc"], float(numpy.mean([area[0] for area in known])))
        if len(known) == len(names):
            c.same("auc, macro", ours["auc"],
                   metrics.roc_auc_score(truth, probabilities, multi_class="ovr", average="macro"))
        c.same("average_precision", ours["average_precision"], float(numpy.mean([area[1] for area in known])))
    if ours["confusion"] != metrics.confusion_matrix(truth, said, labels=labels).tolist():
        raise SystemExit(f"{c.where}: confusion {ours['confusion']}")
    tops = [k for k in TOP if k < len(names)]
    if sorted(ours.get("top_k", {})) != [str(k) for k in tops]:
        raise SystemExit(f"{c.where}: top_k {ours.get('top_k')}")
    for k in tops:
        c.same(f"top {k}", ours["top_k"][str(k)], metrics.top_k_accuracy_score(truth, probabilities, k=k, labels=labels))


def compare_areas(c, ours, is_one, score):
    area = average = None
    if is_one.any():
        average = float(metrics.average_precision_score(is_one, score))
        if not is_one.all():
            area = float(metrics.roc_auc_score(is_one, score))
    c.same("auc of a class", ours["auc"], area)
    c.same("average precision of a class", ours["average_precision"], average)
    return area, average


def compare_thresholds(c, scores, is_one, score, used=None):
    """The curve of a class, and its metrics at `used`, a given threshold, or at that of the best F1."""
    points = scores["thresholds"][::-1]
    precision, recall, thresholds = metrics.precision_recall_curve(is_one, score)
    if len(points) != len(thresholds):
        raise SystemExit(f"{c.where}: {len(points)} thresholds, scikit-learn has {len(thresholds)}")
    positives = max(1, int(is_one.sum()))
    negatives = max(1, len(is_one) - int(is_one.sum()))
    wrong, found, cuts = metrics.roc_curve(is_one, score, drop_intermediate=False)
    for i, point in enumerate(points):
        c.same("threshold", point["threshold"], thresholds[i])
        c.same("precision at it", point["precision"], precision[i])
        if is_one.any():
            c.same("recall at it", point["recall"], recall[i])
            c.same("true positive rate", point["true_positives"] / positives, found[::-1][i])
        if not is_one.all():
            c.same("false positive rate", point["false_positives"] / negatives, wrong[::-1][i])
        c.same("f1 at it", point["f1"], metrics.f1_score(is_one, score >= thresholds[i], zero_division=0))
    at = scores["threshold"]
    if used is None and is_one.any():
        with numpy.errstate(invalid="ignore"):
            best = numpy.nan_to_num(2 * precision * recall / (precision + recall))[:-1]
        c.same("best f1", scores["f1"], best.max())
        c.same("f1 at the best threshold", best[numpy.abs(thresholds - at).argmin()], best.max())
        c.same("the best threshold", at, thresholds[numpy.abs(thresholds - at).argmin()])
    elif used is not None:
        c.same("the threshold", at, used)
    p, r, f, _ = metrics.precision_recall_fscore_support(is_one, score >= at - 1e-12, average="binary", zero_division=0)
    for name, right in (("precision", p), ("recall", r), ("f1", f)):
        c.same(f"{name} at the threshold", scores[name], right)


def compare_unseen(c, ours, truth, said, probabilities):
    """`truth` has one class that the model does not have: the number after its own."""
    p, r, f, _ = metrics.precision_recall_fscore_support(truth, said, average="macro", zero_division=0)
    for name, right in (("precision", p), ("recall", r), ("f1", f)):
        c.same(f"macro {name}, unseen", ours["macro"][name], right)
    c.same("accuracy, unseen", ours["accuracy"], metrics.accuracy_score(truth, said))
    c.same("micro, unseen", ours["micro"]["f1"], metrics.f1_score(truth, said, average="micro"))
    c.same("balanced accuracy, unseen", ours["balanced_accuracy"], metrics.balanced_accuracy_score(truth, said))
    c.same("mcc, unseen", ours["mcc"], metrics.matthews_corrcoef(truth, said))
    for k, one in enumerate(ours["classes"]):
        compare_areas(c, one, truth == k, probabilities[:, k])
    if ours["unseen"] != int((truth == probabilities.shape[1]).sum()):
        raise SystemExit(f"{c.where}: unseen is {ours['unseen']}")


def compare_labels(c, ours, truth, said, probabilities):
    c.same("accuracy", ours["accuracy"], metrics.accuracy_score(truth, said))
    for average in ("macro", "micro"):
        p, r, f, _ = metrics.precision_recall_fscore_support(truth, said, average=average, zero_division=0)
        for name, right in (("precision", p), ("recall", r), ("f1", f)):
            c.same(f"{average} {name}", ours[average][name], right)
    for k in range(truth.shape[1]):
        compare_areas(c, ours["classes"][k], truth[:, k] == 1, probabilities[:, k])
    clipped = numpy.clip(probabilities, 1e-300, 1)
    losses = -numpy.where(truth == 1, numpy.log(clipped), numpy.log1p(-probabilities))
    c.same("log_loss", ours["log_loss"], losses.mean())


def compare_numbers(c, ours, truth, said):
    for k in range(truth.shape[1]):
        y, p, one = truth[:, k], said[:, k], ours["columns"][k]
        size = numpy.abs(y).max()
        c.same("r2", one["r2"], metrics.r2_score(y, p))
        c.same("mae", one["mae"], metrics.mean_absolute_error(y, p), size)
        c.same("rmse", one["rmse"], math.sqrt(metrics.mean_squared_error(y, p)), size)
        if numpy.abs(y).min() > 1e-3 * size:
            c.same("mape", one["mape"], metrics.mean_absolute_percentage_error(y, p))
        c.same("mean_residual", one["mean_residual"], (p - y).mean(), size)
        for share, right in zip(SHARES, numpy.quantile(p - y, SHARES)):
            c.same(f"quantile {share}", one["residual_quantiles"][f"{share:g}"], right, size)
    c.same("r2", ours["r2"], metrics.r2_score(truth, said))
    roots = numpy.sqrt(((said - truth) ** 2).mean(axis=0))
    c.same("rmse", ours["rmse"], roots.mean(), numpy.abs(truth).max())


def score_of(scores, metric):
    """What the score of an output is that a metric of this name has to be."""
    name, _, average = metric.partition("_") if metric.endswith(("_macro", "_micro")) else (metric, "", "")
    if average:
        return scores[average][name]
    if metric.startswith("top_"):
        return scores.get("top_k", {}).get(metric[4:])
    return scores[metric] if metric in scores else scores["macro"][metric]


def compare_metrics(c, told, scores, kind):
    for name in METRICS[kind]:
        if name != "mse":
            c.same(f"the metric {name}", told[name], score_of(scores, name))


def run(graphrun, folder, *arguments):
    done = subprocess.run([graphrun, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def check(graphrun, seed):
    draw = random.Random(seed)
    kind = ("two", "several", "labels", "numbers")[seed % 4]
    columns, classes = draw.randint(1, 4), draw.randint(2, 7) if kind != "two" else 2
    if kind == "several":
        classes = max(classes, 3)
    width = 1 if kind == "two" else classes
    with tempfile.TemporaryDirectory() as folder:
        words = draw.sample(["red", "green", "blue", "dark blue", "42", "x;y", "grey"], classes)
        lines = table(draw, kind, columns, classes, words)
        names = ["y"] if kind in ("two", "several") else [f"y{k}" for k in range(classes)]
        with open(pathlib.Path(folder) / "table.csv", "w") as file:
            print(*[f"x{i}" for i in range(columns)], *names, sep=",", file=file)
            for x, y in lines:
                print(*x, *y, sep=",", file=file)
        (pathlib.Path(folder) / "model.json").write_text(json.dumps(model(kind, columns, classes, words)))
        trained = json.loads(run(graphrun, folder, "train", "model.json", "--quiet", "--json", "--save-weights=w.npz"))
        result = json.loads(run(graphrun, folder, "eval", "model.json", "--weights=w.npz", "--json"))
        if trained["scores"] != result["scores"] or set(result["scores"]) != {"train", "test"}:
            raise SystemExit(f"seed {seed}: train and eval differ: {result['scores']}")
        # The rows of the file as one split, so that they stand beside the predictions.
        other = run(graphrun, folder, "eval", "model.json", "--weights=w.npz", "--data=table.csv", "--json")
        ours = json.loads(other)["scores"]["data"]["out"]
        told = json.loads(other)["data"]
        out = run(graphrun, folder, "predict", "model.json", "table.csv", "--weights=w.npz", "--json")
        said = numpy.array([row[-width:] for row in json.loads(out)["predictions"]], dtype=float)
        c = Comparison(f"seed {seed}, {kind}")
        compare_metrics(c, told, ours, kind)
        for split in ("train", "test"):
            compare_metrics(c, trained[split], trained["scores"][split]["out"], kind)
        if ours["rows"] != len(lines):
            raise SystemExit(f"{c.where}: {ours['rows']} rows")
        at = draw.choice(["f1", "0.3", "0.75"])
        if kind in ("two", "labels"):
            other = run(graphrun, folder, "eval", "model.json", "--weights=w.npz", "--data=table.csv", "--json",
                        "--threshold", at)
            chosen = json.loads(other)["scores"]["data"]["out"]
            logits = said.astype("float32").astype(float)  # the digits of an f32 name that f32
            probabilities, truth = 1 / (1 + numpy.exp(-logits)), numpy.array([y for _, y in lines])
            for k in range(width):
                compare_thresholds(c, chosen["classes"][1 if kind == "two" else k], truth[:, k] == 1,
                                   probabilities[:, k], None if at == "f1" else float(at))
        if kind == "numbers":
            compare_numbers(c, ours, numpy.array([y for _, y in lines], dtype=float), said)
        elif kind == "labels":
            truth = numpy.array([y for _, y in lines])
            compare_labels(c, ours, truth, (said > 0).astype(int), 1 / (1 + numpy.exp(-said)))
        elif kind == "two":
            one = 1 / (1 + numpy.exp(-said[:, 0]))
            truth = numpy.array([y[0] for _, y in lines])
            compare_classes(c, ours, truth, (said[:, 0] > 0).astype(int), numpy.stack([1 - one, one], 1), ["0", "1"], True)
        else:
            names = words
            truth = numpy.array([names.index(str(y[0])) for _, y in lines])
            e = numpy.exp(said - said.max(axis=1, keepdims=True))
            compare_classes(c, ours, truth, said.argmax(axis=1), e / e.sum(axis=1, keepdims=True), names, False)
            truth[: draw.randint(1, 9)] = classes
            with open(pathlib.Path(folder) / "unseen.csv", "w") as file:
                print(*[f"x{i}" for i in range(columns)], "y", sep=",", file=file)
                for (x, _), k in zip(lines, truth):
                    print(*x, (words + ["unseen"])[k], sep=",", file=file)
            other = run(graphrun, folder, "eval", "model.json", "--weights=w.npz", "--data=unseen.csv", "--json",
                        "--count-unseen")
            compare_unseen(c, json.loads(other)["scores"]["data"]["out"], truth, said.argmax(axis=1),
                           e / e.sum(axis=1, keepdims=True))
        return c


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("graphrun")
    parser.add_argument("--seeds", type=int, default=24)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    found = [check(os.path.abspath(arguments.graphrun), seed) for seed in range(arguments.seeds)]
    figures = sum(c.count for c in found)
    if figures < 20 * len(found):
        raise SystemExit(f"only {figures} figures were compared")
    print(f"{len(found)} tables, {figures} figures, the worst is {max(c.worst for c in found):.1e} off")


if __name__ == "__main__":
    main()
