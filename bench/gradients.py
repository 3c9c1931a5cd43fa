"""Compares the gradients of the workloads of bench/models/ with double precision, from equal parameters.

python3 bench/gradients.py GRAPHRUN [WORKLOAD ...] [-- FLAG ...]

After 0, 10 and 50 training steps of a workload, one separate step runs with plain SGD and a learning rate of 2^20. The
parameters are negligible against such a step, so their change divided by this exact power of two is the gradient. NumPy
computes the same gradient in double precision, and in single precision for comparison. Prints the norm of the
difference, divided by the norm of the gradient, for each workload and step. The exit code is 1 if one is above 3e-6 and
above the value of NumPy: the gradient jumps if rounding moves a sum across the kink of relu. FLAGs go to graphrun, for
example --executor=cuda.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import workload

STEPS = (0, 10, 50)
MOST = 3e-6
RATE = 2.0**20


def models_of(name, folder, steps):
    """Writes a model that trains on `steps` batches and one that trains on the next batch. Returns that batch."""
    model, w = json.loads(workload.path_of(name).read_text()), workload.read(name)
    random = np.random.default_rng(steps)
    batches = max(steps, 1) if w.batches > 1 else 1
    rows = w.batch * (batches + (w.batches > 1))
    x = random.standard_normal((rows, w.widths[0]), dtype=np.float32)
    if w.loss == "softmax":
        y = np.eye(w.widths[-1], dtype=np.float32)[random.integers(0, w.widths[-1], rows)]
    elif w.loss == "sigmoid":
        y = random.integers(0, 2, (rows, w.widths[-1])).astype(np.float32)
    else:
        y = random.standard_normal((rows, w.widths[-1]), dtype=np.float32)
    for file, part in (("steps", slice(0, w.batch * batches)), ("one", slice(rows - w.batch, rows))):
        np.savez(folder / f"{file}.npz", x=x[part], y=y[part])
        model["data"] = {"train": {"npz": f"{file}.npz", "x": ["x"], "y": ["y"]}}
        (folder / f"{file}.json").write_text(json.dumps(model))
    return w, x[-w.batch :], y[-w.batch :]


def gradient(w, weights, x, y, number):
    """In numbers of that type, by the name of the parameter."""
    names = [f"h{i + 1}" for i in range(len(w.widths) - 2)] + ["out"]
    parameters = [(weights[f"{name}.W"].astype(number), weights[f"{name}.b"].astype(number)) for name in names]
    values = [x.astype(number)]
    for i, (W, b) in enumerate(parameters):
        value = values[-1] @ W + b
        if i + 1 < len(parameters):
            value = np.tanh(value) if w.activation == "tanh" else np.maximum(value, 0)
        values.append(value)
    out = values[-1]
    if w.loss == "softmax":
        e = np.exp(out - out.max(axis=1, keepdims=True))
        delta = (e / e.sum(axis=1, keepdims=True) - y) / len(x)
    elif w.loss == "sigmoid":
        delta = (1 / (1 + np.exp(-out)) - y) / out.size
    else:
        delta = 2 * (out - y) / out.size
    of = {}
    for i in reversed(range(len(parameters))):
        of[f"{names[i]}.W"], of[f"{names[i]}.b"] = values[i].T @ delta, delta.sum(axis=0)
        if i > 0:
            delta = delta @ parameters[i][0].T
            delta *= 1 - values[i] ** 2 if w.activation == "tanh" else values[i] > 0
    return of


def measured(graphrun, flags, name, steps):
    """Returns the relative error norm of the gradient, for graphrun and for NumPy in single precision."""
    with tempfile.TemporaryDirectory() as at:
        folder = pathlib.Path(at)
        w, x, y = models_of(name, folder, steps)

        def train(model, save, *more):
            command = [graphrun, "train", model, f"--save-weights={save}", "--quiet", *flags, *more]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{name}: {done.stderr}")
            with np.load(folder / save) as arrays:
                return {key: arrays[key] for key in arrays.files}

        plain = '--set=train.optimizer={"sgd": {"lr": %r}}'
        epochs = 1 if w.batches > 1 else steps
        first = ("--epochs=1", plain % 0.0) if steps == 0 else (f"--epochs={epochs}",)
        start = train("steps.json", "start.npz", *first)
        after = train("one.json", "after.npz", "--epochs=1", "--weights=start.npz", plain % RATE)
        right, single = gradient(w, start, x, y, np.float64), gradient(w, start, x, y, np.float32)

        def wrong(of):
            norms = [sum(np.sum(array**2) for array in arrays) for arrays in ((of[k] - right[k] for k in right), right.values())]
            return np.sqrt(norms[0] / norms[1])

        return wrong({key: (start[key].astype(float) - after[key]) / RATE for key in right}), wrong(single)


def main(arguments):
    split = arguments.index("--") if "--" in arguments else len(arguments)
    if split == 0:
        raise SystemExit(__doc__)
    graphrun, names = str(pathlib.Path(arguments[0]).resolve()), arguments[1:split]
    good = True
    print(f"{'':16}{'steps':>6}{'graphrun':>12}{'NumPy, f32':>12}")
    for name in names or [name for name in workload.names() if not workload.read(name).table]:
        for steps in STEPS:
            of_graphrun, of_numpy = measured(graphrun, arguments[split + 1 :], name, steps)
            good = good and of_graphrun <= max(MOST, 1.01 * of_numpy)
            print(f"{name:16}{steps:6}{of_graphrun:12.2g}{of_numpy:12.2g}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
