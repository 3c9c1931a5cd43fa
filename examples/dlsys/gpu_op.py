"""The operations of the assignment, each a Program of one op that graphrun runs on the context of its output.

A Program is planned and loaded once for each operation, shape and context; later calls allocate no memory of a device.
The arrays of a call are one sample of it: a leading axis of one row is what graphrun calls the batch. Sums and products
of arrays on the device of an autodiff.Executor become part of its next run (ndarray.combined).
"""

import functools

import graphrun
import numpy

from .ndarray import combined

_sessions = []  # of all Programs


def opened(model, executor):
    """Opens a session whose memory allocations() counts."""
    _sessions.append(model.open(executor=executor))
    return _sessions[-1]


@functools.lru_cache(maxsize=None)
def _program(formula, shapes, ones, executor):
    """formula: of the inputs (name, shape) in `shapes`; `ones` is the shape of a constant of that name, or None."""
    parameters = {"unused": {"shape": [1], "init": "zeros"}}
    if ones is not None:
        parameters["ones"] = {"shape": list(ones), "init": "ones"}
    model = {
        "format": 1,
        "name": "one_op",
        "data": {"train": {"npz": "none.npz"}},  # it is never trained
        "inputs": {name: ["batch", *shape] for name, shape in shapes},
        "parameters": parameters,
        "graph": [f"out = {formula}", "loss = mean(square(unused))"],
        "outputs": ["out"],
        "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 1}}, "batch": 1},
    }
    return opened(graphrun.Model(model, data="none"), executor)


def _run(formula, out, ones=None, **inputs):
    arrays = {name: numpy.asarray(getattr(one, "values", one), dtype=numpy.float32) for name, one in inputs.items()}
    session = _program(formula, tuple((name, one.shape) for name, one in arrays.items()), ones, out.ctx.executor)
    result = session.predict(**{name: one[numpy.newaxis] for name, one in arrays.items()})
    if result.size != numpy.prod(out.shape):
        raise ValueError(f"{formula}: the result has shape {result.shape[1:]}, the array for it {out.shape}")
    out[:] = numpy.asarray(result).reshape(out.shape)


def array_set(out, value):
    _run("value * ones", out, ones=out.shape, value=numpy.full((1,) * len(out.shape), value))


def broadcast_to(a, out):
    _run("a * ones", out, ones=out.shape, a=a.values.reshape((1,) * (len(out.shape) - len(a.shape)) + a.shape))


def reduce_sum_axis_zero(a, out):
    _run("sum(a, axis=1)", out, a=a)


def matrix_elementwise_add(a, b, out):
    if not combined("+", a, b, out):
        _run("a + b", out, a=a, b=b)


def matrix_elementwise_add_by_const(a, value, out):
    if not combined("+", a, value, out):
        _run("a + value", out, a=a, value=numpy.full((1,) * len(a.shape), value))


def matrix_elementwise_multiply(a, b, out):
    if not combined("*", a, b, out):
        _run("a * b", out, a=a, b=b)


def matrix_elementwise_multiply_by_const(a, value, out):
    if not combined("*", a, value, out):
        _run("a * value", out, a=a, value=numpy.full((1,) * len(a.shape), value))


def matrix_multiply(a, transpose_a, b, transpose_b, out):
    left = "transpose(a, axes=[0, 2, 1])" if transpose_a else "a"
    right = "transpose(b, axes=[0, 2, 1])" if transpose_b else "b"
    _run(f"{left} @ {right}", out, a=a, b=b)


def relu(a, out):
    _run("relu(a)", out, a=a)


def relu_gradient(a, gradient, out):
    _run("where(a > 0, gradient, 0 * gradient)", out, a=a, gradient=gradient)


def softmax(a, out):
    _run("softmax(a)", out, a=a)


def softmax_cross_entropy(a, labels, out):
    """The mean over rows; labels are one-hot."""
    _run("mean(softmax_cross_entropy(a, labels), axis=1)", out, a=a, labels=labels)


def loaded_programs():
    """Number of Programs: it does not grow with the number of calls."""
    return len(_sessions)


def allocations():
    """How often the executors of all Programs have allocated memory: on a GPU the calls of cudaMalloc."""
    return sum(session.counters.get("allocations", 0) for session in _sessions)
