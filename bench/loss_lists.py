"""Training losses of models whose start is known, in float64 by NumPy alone: tests/models/losses/ holds its output.

python3 bench/loss_lists.py DATA_FOLDER OUTPUT_FOLDER   (the folder with mnist/: models, after scripts/get-data)
Writes NAME.txt, one loss a line: the first ten steps and every hundredth of the three convex models, which start from
zeros, and the first ten of mnist_mlp from mnist/mlp_init.npz. tests/models/losses_test.cpp holds graphrun against them at 1e-4.
"""
import gzip
import json
import pathlib
import struct
import sys

import numpy as np

tables = pathlib.Path(__file__).resolve().parent.parent / "models" / "data"
data, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def table(name):
    d = json.loads((tables / name).read_text())
    x = np.array(d["x"], float).reshape(d["m"], d["n"])
    scale = x.std(0)
    scale[scale == 0] = 1  # a constant column is centred only
    return (x - x.mean(0)) / scale, np.array(d["y"], float).reshape(-1, 1)


def idx(name):
    raw = gzip.decompress((data / "mnist" / name).read_bytes())
    rank = raw[3]
    shape = struct.unpack(f">{rank}I", raw[4 : 4 + 4 * rank])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape)


def mnist(rows):
    x = idx("train-images-idx3-ubyte.gz")[:rows].reshape(rows, 784) / 256
    return x, np.eye(10)[idx("train-labels-idx1-ubyte.gz")[:rows]]


def write(name, losses):
    (output / f"{name}.txt").write_text("".join(f"{loss:.7g}\n" for loss in losses[:10] + losses[99::100]))
    print(name, len(losses), "losses, the last", losses[-1])


def linear_regression():
    x, y = table("realestate.json")
    w, b, losses = np.zeros((6, 1)), 0.0, []
    for _ in range(2000):
        d = x @ w + b - y
        losses.append((d * d).mean())
        d *= 2 / len(x)
        w, b = w - 0.1 * x.T @ d, b - 0.1 * d.sum()
    write("linear_regression", losses)


def logistic_regression():
    x, y = table("spam.json")
    w, b, losses = np.zeros((19, 1)), 0.0, []
    for _ in range(20000):
        z = x @ w + b
        losses.append((np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))).mean())
        d = (1 / (1 + np.exp(-z)) - y) / len(x)
        w, b = w - 0.1 * x.T @ d, b - 0.1 * d.sum()
    write("logistic_regression", losses)


def softmax_cross_entropy(z, y):
    z = z - z.max(1, keepdims=True)
    e = np.exp(z)
    s = e.sum(1, keepdims=True)
    return (np.log(s) - (z * y).sum(1, keepdims=True)).mean(), (e / s - y) / len(z)


def train_mnist(name, weights, steps):
    """Relu layers under a softmax, batches of 1000 rows in file order, learning rate 1."""
    x, y = mnist(50000)
    losses = []
    for step in range(steps):
        rows = slice(1000 * (step % 50), 1000 * (step % 50) + 1000)
        inputs = [x[rows]]
        for w, b in weights[:-1]:
            inputs.append(np.maximum(inputs[-1] @ w + b, 0))
        w, b = weights[-1]
        loss, d = softmax_cross_entropy(inputs[-1] @ w + b, y[rows])
        losses.append(loss)
        for i in range(len(weights) - 1, -1, -1):
            w, b = weights[i]
            weights[i] = (w - inputs[i].T @ d, b - d.sum(0))
            if i > 0:
                d = (d @ w.T) * (inputs[i] > 0)
    write(name, losses)


linear_regression()
logistic_regression()
train_mnist("mnist_logreg", [(np.zeros((784, 10)), np.zeros(10))], 1500)
start = np.load(data / "mnist" / "mlp_init.npz")
train_mnist("mnist_mlp", [(start[f"W{i}"].astype(float), start[f"b{i}"].astype(float)) for i in (1, 2, 3)], 10)
