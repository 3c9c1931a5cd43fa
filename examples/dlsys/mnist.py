#!/usr/bin/env python3
"""The two networks of the assignment, trained with the operations of gpu_op.py alone: no graph, no gradient of ours.

    mnist.py [--model logreg|mlp] [--epochs N] [--gpu] [--data FOLDER]

FOLDER has the four files of MNIST (scripts/get-data brings them); without it the 8 x 8 digits of models/data are used.
"""

import argparse
import gzip
import pathlib
import struct
import sys
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples")]
from dlsys import gpu_op, ndarray  # noqa: E402


def idx(path):
    """An IDX file of bytes, gzipped."""
    data = gzip.open(path).read()
    rank = data[3]
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * rank).reshape(shape)


def read(folder):
    """(x, y) to train with and (x, y) to test with: x (rows, pixels) from 0 to 1, y (rows) of classes."""
    if folder:
        names = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                 "t10k-labels-idx1-ubyte.gz")
        x, y, test_x, test_y = (idx(pathlib.Path(folder) / name) for name in names)
        return (x.reshape(len(x), -1) / 255, y), (test_x.reshape(len(test_x), -1) / 255, test_y)
    data = ROOT / "models/data"
    x, y = idx(data / "digits-images-idx3-ubyte.gz"), idx(data / "digits-labels-idx1-ubyte.gz")
    order = numpy.random.default_rng(1).permutation(len(x))  # they come writer by writer
    x, y, cut = x.reshape(len(x), -1)[order] / 16, y[order], len(x) * 4 // 5
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


class Network:
    """Dense layers with relu between them; softmax cross-entropy. sizes: of input, hidden layers and classes."""

    def __init__(self, sizes, batch, ctx, seed=123):
        random = numpy.random.default_rng(seed)
        empty = lambda *shape: ndarray.empty(shape, ctx)  # noqa: E731
        layers = list(zip(sizes, sizes[1:]))
        self.weights = [ndarray.array(random.normal(scale=0.1, size=shape), ctx) for shape in layers]
        self.biases = [ndarray.array(numpy.zeros(n), ctx) for _, n in layers]
        self.x, self.y = empty(batch, sizes[0]), empty(batch, sizes[-1])
        self.products = [empty(batch, n) for n in sizes[1:]]
        self.spread = [empty(batch, n) for n in sizes[1:]]
        self.z = [empty(batch, n) for n in sizes[1:]]
        self.h = [empty(batch, n) for n in sizes[1:-1]]
        self.p, self.loss = empty(batch, sizes[-1]), empty(1)
        self.dz = [empty(batch, n) for n in sizes[1:]]
        self.dh = [empty(batch, n) for n in sizes[1:-1]]
        self.dw = [empty(*shape) for shape in layers]
        self.db = [empty(n) for _, n in layers]
        self.batch = batch

    def forward(self):
        below = self.x
        for i, weights in enumerate(self.weights):
            gpu_op.matrix_multiply(below, False, weights, False, self.products[i])
            gpu_op.broadcast_to(self.biases[i], self.spread[i])
            gpu_op.matrix_elementwise_add(self.products[i], self.spread[i], self.z[i])
            if i < len(self.h):
                gpu_op.relu(self.z[i], self.h[i])
                below = self.h[i]

    def step(self, x, y, rate):
        """A training step; the loss before it."""
        self.x[:], self.y[:] = x, y
        self.forward()
        gpu_op.softmax_cross_entropy(self.z[-1], self.y, self.loss)
        # d loss / d z = (softmax(z) - y) / rows
        gpu_op.softmax(self.z[-1], self.p)
        gpu_op.matrix_elementwise_multiply_by_const(self.y, -1, self.dz[-1])
        gpu_op.matrix_elementwise_add(self.p, self.dz[-1], self.dz[-1])
        gpu_op.matrix_elementwise_multiply_by_const(self.dz[-1], 1 / self.batch, self.dz[-1])
        for i in reversed(range(len(self.weights))):
            gpu_op.matrix_multiply(self.h[i - 1] if i > 0 else self.x, True, self.dz[i], False, self.dw[i])
            gpu_op.reduce_sum_axis_zero(self.dz[i], self.db[i])
            if i > 0:
                gpu_op.matrix_multiply(self.dz[i], False, self.weights[i], True, self.dh[i - 1])
                gpu_op.relu_gradient(self.z[i - 1], self.dh[i - 1], self.dz[i - 1])
        for values, gradients in ((self.weights, self.dw), (self.biases, self.db)):
            for value, gradient in zip(values, gradients):
                gpu_op.matrix_elementwise_multiply_by_const(gradient, -rate, gradient)
                gpu_op.matrix_elementwise_add(value, gradient, value)
        return float(self.loss.values[0])

    def accuracy(self, x, y):
        right = rows = 0
        for at in range(0, len(x) - self.batch + 1, self.batch):
            self.x[:] = x[at : at + self.batch]
            self.forward()
            right += int((self.z[-1].values.argmax(axis=1) == y[at : at + self.batch]).sum())
            rows += self.batch
        return right / rows


def train(model, epochs, ctx, folder, tell=print):
    """The accuracy on rows that it has not seen."""
    (x, y), (test_x, test_y) = read(folder)
    batch, rate = (1000, 1.0) if folder else (64, 0.5)
    hidden = [] if model == "logreg" else [256, 100] if folder else [64, 32]
    network = Network([x.shape[1], *hidden, 10], batch, ctx)
    one_hot = numpy.eye(10, dtype=numpy.float32)[y]
    for epoch in range(epochs):
        start, losses = time.time(), []
        for at in range(0, len(x) - batch + 1, batch):
            losses.append(network.step(x[at : at + batch], one_hot[at : at + batch], rate))
        tell(f"epoch {epoch + 1}: loss {numpy.mean(losses):.4f}, {time.time() - start:.2f} s, "
             f"{gpu_op.loaded_programs()} programs, {gpu_op.allocations()} allocations")
    result = network.accuracy(test_x, test_y)
    tell(f"{model}: accuracy {result:.4f} on rows that it has not seen")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=("logreg", "mlp"), default="mlp")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--gpu", action="store_true", help="on executor cuda:0 instead of cpu")
    parser.add_argument("--data", help="the folder of MNIST's files")
    given = parser.parse_args()
    train(given.model, given.epochs, ndarray.gpu(0) if given.gpu else ndarray.cpu(), given.data)
