"""Comparison of settings next to scipy: every number of `runs --compare --json` to 1e-6, on random stored runs.

    python3 comparison_scipy.py GRAPHRUN

Exit code 77: scipy is not installed.
"""

import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

try:
    from scipy import stats
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TOLERANCE = 1e-6


def store(folder, setting, seed, fold, folds, loss):
    folder.mkdir()
    (folder / "run.json").write_text('{"command": ["graphrun"]}')
    data = {"folds": {"k": folds, "fold": fold}} if folds else {}
    (folder / "model.json").write_text(json.dumps({"data": data, "graph": [{"name": "h", "units": setting}]}))
    (folder / "result.json").write_text(
        json.dumps({"model": "m", "settings": {"seed": seed}, "validation": {"loss": loss}}))


def check(graphrun, settings, seeds, folds):
    with tempfile.TemporaryDirectory() as name:
        losses = {}
        for setting in range(settings):
            for seed in range(seeds):
                for fold in range(max(folds, 1)):
                    loss = random.gauss(0.2 * setting, 1) * 10 ** random.randint(-1, 1)
                    losses.setdefault(setting, []).append(loss)
                    store(pathlib.Path(name) / f"{setting}-{seed}-{fold}", setting, seed, fold, folds, loss)
        rows = json.loads(subprocess.run([graphrun, "runs", name, "--compare", "--json"], check=True,
                                         capture_output=True).stdout)
    assert [row["verdict"] for row in rows].count("best") == 1 and rows[0]["verdict"] == "best"
    best = losses[int(rows[0]["graph.h.units"])]
    worst = 0
    for row in rows:
        own = losses[int(row["graph.h.units"])]
        n = len(own)
        pairs = [("mean", statistics.fmean(own)), ("std", statistics.stdev(own))]
        if row["verdict"] != "best":
            d = [a - b for a, b in zip(own, best)]
            if folds:  # Nadeau and Bengio's correction
                half = stats.t.ppf(0.975, n - 1) * statistics.stdev(d) * math.sqrt(1 / n + 1 / (folds - 1))
                low, high = statistics.fmean(d) - half, statistics.fmean(d) + half
            else:
                low, high = stats.ttest_rel(own, best).confidence_interval(0.95)
            pairs += [("difference", statistics.fmean(d)), ("low", low), ("high", high)]
            assert (row["verdict"] == "not distinguishable") == (low <= 0 <= high), row
        assert row["pairs"] == row["runs"] == n, row
        for key, wanted in pairs:
            error = abs(row[key] - wanted) / max(1, abs(wanted))
            worst = max(worst, error)
            assert error < TOLERANCE, f"{key} of {settings} settings, {seeds} seeds, {folds} folds: {row[key]}, {wanted}"
    return worst


def main():
    random.seed(1)
    worst, cases = 0, 0
    for seeds in [*range(2, 32), 100, 301]:
        worst, cases = max(worst, check(sys.argv[1], 3, seeds, 0)), cases + 1
    for folds in (2, 3, 5, 10):
        for seeds in (1, 4):
            worst, cases = max(worst, check(sys.argv[1], 3, seeds, folds)), cases + 1
    print(f"{cases} comparisons agree with scipy, largest difference {worst:.1e}")


main()
