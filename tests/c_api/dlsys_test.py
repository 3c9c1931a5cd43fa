"""examples/dlsys: every operation beside NumPy, and its two networks. Exit code 77: NumPy or the device is not here.

dlsys_test.py LIBRARY SOURCE [EXECUTOR]
"""

import os
import pathlib
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

os.environ["GRAPHRUN_LIBRARY"] = os.path.abspath(sys.argv[1])
source = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(source / "python"), str(source / "examples")]
import graphrun  # noqa: E402
from dlsys import gpu_op, mnist, ndarray  # noqa: E402

ctx = ndarray.Context(sys.argv[3] if len(sys.argv) > 3 else "cpu")
if ctx.executor not in ("cpu", "ref") and ctx.executor not in [d["id"] for d in graphrun.devices()["devices"]]:
    print(f"skipped: there is no {ctx.executor}")
    sys.exit(77)
random = np.random.default_rng(1)


def given(*shape):
    return ndarray.array(random.normal(size=shape), ctx)


def same(out, wanted):
    np.testing.assert_allclose(out.asnumpy(), wanted, rtol=1e-5, atol=1e-5)


def log_softmax(z):
    z = z - z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


a, b, out = given(7, 5), given(7, 5), ndarray.empty((7, 5), ctx)
x, y = a.asnumpy(), b.asnumpy()
for value in (2.5, -1.0):  # another number is no other program
    gpu_op.array_set(out, value)
    same(out, np.full((7, 5), value))
gpu_op.matrix_elementwise_add(a, b, out)
same(out, x + y)
gpu_op.matrix_elementwise_multiply(a, b, out)
same(out, x * y)
before = gpu_op.loaded_programs()
for value in (3.0, -0.5):
    gpu_op.matrix_elementwise_add_by_const(a, value, out)
    same(out, x + value)
    gpu_op.matrix_elementwise_multiply_by_const(a, value, out)
    same(out, x * value)
assert gpu_op.loaded_programs() == before + 2
gpu_op.relu(a, out)
same(out, np.maximum(x, 0))
gpu_op.relu_gradient(a, b, out)
same(out, (x > 0) * y)
gpu_op.softmax(a, out)
same(out, np.exp(log_softmax(x)))
labels = ndarray.array(np.eye(5)[random.integers(0, 5, 7)], ctx)
loss = ndarray.empty((1,), ctx)
gpu_op.softmax_cross_entropy(a, labels, loss)
same(loss, [-(labels.asnumpy() * log_softmax(x)).sum(axis=1).mean()])
row = ndarray.empty((5,), ctx)
gpu_op.reduce_sum_axis_zero(a, row)
same(row, x.sum(axis=0))
gpu_op.broadcast_to(row, out)
same(out, np.broadcast_to(row.asnumpy(), (7, 5)))
cube = ndarray.empty((3, 7, 5), ctx)
gpu_op.broadcast_to(a, cube)
same(cube, np.broadcast_to(x, (3, 7, 5)))
for turned_a in (False, True):
    for turned_b in (False, True):
        left, right = given(*((4, 6) if turned_a else (6, 4))), given(*((3, 4) if turned_b else (4, 3)))
        product = ndarray.empty((6, 3), ctx)
        gpu_op.matrix_multiply(left, turned_a, right, turned_b, product)
        one, other = left.asnumpy(), right.asnumpy()
        same(product, (one.T if turned_a else one) @ (other.T if turned_b else other))
try:
    gpu_op.relu(a, ndarray.empty((7, 4), ctx))
    raise SystemExit("a result of another shape was taken")
except ValueError:
    pass

assert gpu_op.allocations() >= gpu_op.loaded_programs(), "each Program has an arena"
for model, least in (("logreg", 0.85), ("mlp", 0.9)):
    counts = []
    accuracy = mnist.train(model, 30, ctx, None,
                           tell=lambda line: counts.append((gpu_op.loaded_programs(), gpu_op.allocations())))
    assert accuracy > least, (model, accuracy)
    assert counts[9] == counts[29], counts  # after 10 epochs and after 30
    assert len(set(counts)) == 1, counts  # all of it in the first epoch
    print(f"{model}: accuracy {accuracy:.3f}, {counts[0][0]} programs, {counts[0][1]} allocations after 10 and 30 epochs")
