"""examples/dlsys/autodiff.py: ops, gradients, copies to and from the device, and the two networks of the assignment on
random data, next to NumPy. Exit code 77: NumPy or the device is not here.

dlsys_autodiff_test.py LIBRARY SOURCE [EXECUTOR]
"""

import os
import pathlib
import re
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

os.environ["GRAPHRUN_LIBRARY"] = os.path.abspath(sys.argv[1])
os.environ["DLSYS_GPU"] = executor_name = sys.argv[3] if len(sys.argv) > 3 else "cpu"
source = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(source / "python"), str(source / "examples")]
import graphrun  # noqa: E402
from dlsys import autodiff as ad  # noqa: E402
from dlsys import gpu_op, ndarray  # noqa: E402

if executor_name != "cpu" and executor_name not in [d["id"] for d in graphrun.devices()["devices"]]:
    print(f"skipped: there is no {executor_name}")
    sys.exit(77)
ctx = ndarray.gpu(0)
random = np.random.default_rng(1)
copies = {"to": 0, "from": 0}  # states that were written and read


def counted(name, direction):
    original = getattr(graphrun.Session, name)

    def counting(*arguments):
        copies[direction] += np.shape(arguments[-1]) != () or direction == "from"  # numbers of formulas are scalars
        return original(*arguments)
    setattr(graphrun.Session, name, counting)


counted("__setitem__", "to")
counted("__getitem__", "from")


def copied(run):
    before = dict(copies)
    result = run()
    return result, copies["to"] - before["to"], copies["from"] - before["from"]


def given(*shape):
    return random.normal(size=shape).astype(np.float32)


def close(one, other, tolerance=1e-5):
    one = one.asnumpy() if isinstance(one, ndarray.NDArray) else one
    assert one.shape == np.shape(other), (one.shape, np.shape(other))
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def raises(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"no {kind.__name__} with {text!r}")


def computed(node, *feeds):
    """The value of a node on both contexts, which must agree."""
    feeds = dict(feeds)
    (one,) = ad.Executor([node]).run(feeds)
    (other,) = ad.Executor([node], ctx).run(feeds, convert_to_numpy_ret_vals=True)
    close(one, other)
    return one


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def test_ops():
    a, b = ad.Variable(name="a"), ad.Variable("b")
    x, y, cube, labels = given(4, 3), given(4, 3), given(5, 4, 3), np.eye(3, dtype=np.float32)[[0, 2, 1, 1]]
    x[0, 0] = 0
    for node, wanted in ((a + b, x + y), (a * b, x * y), (a + 2, x + 2), (-1.5 * a, -1.5 * x), (3 + a * 2, 3 + x * 2),
                         (ad.relu_op(a), np.maximum(x, 0)), (ad.relu_gradient_op(a, b), (x > 0) * y),
                         (ad.softmax_op(a), softmax(x)), (ad.matmul_op(a, b, trans_B=True), x @ y.T),
                         (ad.matmul_op(a, b, True, False), x.T @ y), (ad.reducesumaxiszero_op(a), x.sum(axis=0))):
        feeds = [(one, value) for one, value in ((a, x), (b, y)) if one in ad.find_topo_sort([node])]
        close(computed(node, *feeds), wanted)
    close(computed(ad.softmaxcrossentropy_op(a, b), (a, x), (b, labels)),
          [-(labels * np.log(softmax(x))).sum(axis=1).mean()])
    close(ad.softmax_func(x), softmax(x))
    close(computed(ad.matmul_op(a, b, trans_A=True, trans_B=True), (a, x), (b, given(5, 4) * 0 + 1)),
          np.repeat(x.sum(axis=0)[:, None], 5, axis=1))
    close(computed(ad.broadcastto_op(a, b), (a, x), (b, np.full_like(cube, np.inf))), np.broadcast_to(x, cube.shape))
    close(computed(ad.reducesumaxiszero_op(a), (a, cube)), cube.sum(axis=0))
    close(computed(ad.reducesumaxiszero_op(a), (a, x[0])), [x[0].sum()])
    close(computed(ad.zeroslike_op(a), (a, np.array([np.inf, -np.inf, np.nan, 1], np.float32))), np.zeros(4))
    close(computed(ad.oneslike_op(a), (a, x)), np.ones((4, 3)))
    close(computed(a * b, (a, x), (b, x[:1, :1])), x * x[:1, :1])
    close(computed(a, (a, x)), x)
    middle = a * 2
    close(computed(middle + 1, (middle, x)), x + 1)  # a value is fed inside the graph


def test_gradients():
    a, b, y = ad.Variable("a"), ad.Variable("b"), ad.Variable("y")
    x, w, bias, labels = given(5, 4), given(4, 3), given(3), np.eye(3, dtype=np.float32)[[0, 2, 1, 1, 0]]
    z = ad.matmul_op(a, b)
    z = z + ad.broadcastto_op(y, z)
    values = {a: x.astype(np.float64), b: w.astype(np.float64), y: bias.astype(np.float64)}
    for node, of in ((ad.relu_op(z) * z + 2, lambda z: np.maximum(z, 0) * z),
                     (ad.softmax_op(z) * z, lambda z: softmax(z) * z),
                     (ad.reducesumaxiszero_op(3 * z * z), lambda z: 3 * z * z)):
        for one, gradient in zip(values, ad.gradients(node, list(values))):
            result = computed(gradient, *((key, value.astype(np.float32)) for key, value in values.items()))
            wanted = np.empty_like(values[one])
            for at in np.ndindex(wanted.shape):
                sides = []
                for step in (1e-6, -1e-6):
                    moved = {key: value.copy() for key, value in values.items()}
                    moved[one][at] += step
                    sides.append(of(moved[a] @ moved[b] + moved[y]).sum())
                wanted[at] = (sides[0] - sides[1]) / 2e-6
            close(result, wanted, 1e-4)
    # The assignment's gradient of the mean cross-entropy is that of its sum.
    label = ad.Variable("label")
    loss = ad.softmaxcrossentropy_op(z, label)
    wanted = x.T @ (softmax(x @ w + bias) - labels)
    feeds = ((a, x), (b, w), (y, bias), (label, labels))
    close(computed(ad.gradients(loss, [b])[0], *feeds), wanted)
    close(computed(ad.gradients(loss * 2, [b])[0], *feeds), 2 * wanted)


def test_an_array_is_not_copied():
    w, x = ad.Variable("w"), ad.Variable("x")
    loss = w * w * x
    executor = ad.Executor([loss, ad.gradients(loss, [w])[0], w + x], ctx)
    weights, inputs, plain = ndarray.array(given(3, 2), ctx), ndarray.array(given(3, 2), ctx), given(3, 2)
    expected = weights.asnumpy()

    def run(w_value, x_value):
        return copied(lambda: executor.run({w: w_value, x: x_value}))

    (value, gradient, total), to, back = run(weights, inputs)
    assert (to, back) == (2, 0), (to, back)
    assert run(weights, inputs)[1:] == (0, 0)  # unchanged
    close(gradient, 2 * expected * inputs.asnumpy())
    inputs[:] = plain
    assert run(weights, inputs)[1:] == (1, 0)
    assert run(weights, plain)[1:] == (1, 0)  # a NumPy array may have changed
    programs = gpu_op.loaded_programs()
    for rate in (0.1, 0.2, 0.3, 0.3):  # the update of the assignment: any rate takes the same program
        gpu_op.matrix_elementwise_multiply_by_const(gradient, -rate, gradient)
        gpu_op.matrix_elementwise_add(weights, gradient, weights)
        expected = expected + np.float32(-rate) * (2 * expected * plain)
        inputs[:] = plain
        _, to, back = run(weights, inputs)
        assert (to, back) == (1, 0) or rate == 0.1, (rate, to, back)
    assert gpu_op.loaded_programs() == programs + 1
    close(weights, expected)
    close(value, expected * expected * plain)
    gpu_op.matrix_elementwise_add_by_const(weights, 1, weights)
    close(weights, expected + 1)  # before any run
    gpu_op.matrix_elementwise_multiply(weights, weights, weights)
    run(weights, inputs)
    close(value, (expected + 1) ** 4 * plain, 1e-4)

    # An array that the last run returned: w is w + x of the run before.
    weights[:] = expected = given(3, 2)
    total = run(weights, inputs)[0][2]
    counts = [run(total, inputs)[1:] for _ in range(4)]
    close(total, expected + 5 * plain)
    assert counts[1:] == [(0, 0)] * 3, counts
    close(weights, expected)
    # Arrays that no run feeds keep their numbers, and one may be fed twice.
    kept = ndarray.empty((3, 2), ctx)
    gpu_op.matrix_elementwise_add(total, total, kept)
    run(weights, inputs)
    close(kept, 2 * (expected + 5 * plain))
    before = value.asnumpy()
    gpu_op.matrix_elementwise_add_by_const(value, 1, kept)
    inputs[:] = plain = given(3, 2)
    run(weights, inputs)
    close(kept, before + 1)
    close(total, expected + plain)
    run(kept, inputs)
    close(total, before + 1 + plain)
    # Arrays that change places.
    gpu_op.matrix_elementwise_add_by_const(weights, 1, weights)
    run(weights, inputs)
    run(inputs, weights)
    close(value, plain * plain * (expected + 1))
    gpu_op.matrix_elementwise_add(inputs, value, kept)
    other_inputs = kept.asnumpy()
    gpu_op.matrix_elementwise_add(inputs, value, kept)
    inputs[:] = plain = given(3, 2)
    run(inputs, kept)
    close(value, plain * plain * other_inputs)
    inputs[:] = plain = given(3, 2)
    gpu_op.matrix_elementwise_add_by_const(inputs, 1, inputs)
    close(inputs, plain + 1)
    run(kept, kept)
    close(value, kept.asnumpy() ** 3, 1e-4)
    assert run(kept, kept)[1:] == (0, 0)
    # Another executor, and other shapes: the numbers of an array follow it.
    other = ad.Executor([w + 1], ctx)
    run(kept, inputs)
    wanted = kept.asnumpy() + 2
    gpu_op.matrix_elementwise_add_by_const(kept, 1, kept)
    close(other.run({w: kept})[0], wanted)
    close(kept, wanted - 1)
    gpu_op.matrix_elementwise_add_by_const(kept, 1, kept)
    wide = executor.run({w: kept, x: given(4, 3, 2)})[0]
    assert wide.shape == (4, 3, 2)
    close(run(kept, kept)[0][2], 2 * kept.asnumpy())
    close(executor.run({w: total.copyto(ctx), x: inputs}, convert_to_numpy_ret_vals=True)[2],
          total.asnumpy() + inputs.asnumpy())


def test_errors():
    a, b = ad.Variable("a"), ad.Variable("b")
    raises(ValueError, "MatMul(a,b): the inputs have shapes (2, 3), (2, 3) (expected equal inner extents, got 3 and 2)",
           lambda: computed(ad.matmul_op(a, b), (a, given(2, 3)), (b, given(2, 3))))
    raises(ValueError, "no value for b", lambda: computed(a + b, (a, given(2))))
    raises(ValueError, "(a+b)", lambda: computed(a + b, (a, given(2)), (b, given(3))))
    raises(ValueError, "expected 2 dimensions", lambda: computed(ad.softmax_op(a), (a, given(2))))
    raises(ValueError, "Relu(a) does not depend on b", lambda: ad.gradients(ad.relu_op(a), [a, b]))
    raises(TypeError, "a takes an array of this context, not list", lambda: ad.Executor([a]).run({a: [1]}))
    raises(TypeError, "not NDArray", lambda: ad.Executor([a]).run({a: ndarray.array([1], ctx)}))


class Network:
    """The network of the assignment's script, with its way to train on both contexts."""

    def __init__(self, sizes, context):
        self.context = context
        self.x, self.y = ad.Variable(name="X"), ad.Variable(name="y_")
        names = [ad.Variable(name=f"{kind}{i}") for i in range(len(sizes) - 1) for kind in "Wb"]
        h = self.x
        for i in range(0, len(names), 2):
            z = ad.matmul_op(h, names[i])
            z = z + ad.broadcastto_op(names[i + 1], z)
            h = ad.relu_op(z)
        loss = ad.softmaxcrossentropy_op(z, self.y)
        self.executor = ad.Executor([loss, *ad.gradients(loss, names), z], ctx=context)
        seeded = np.random.RandomState(seed=123)
        values = []
        for shape in zip(sizes, sizes[1:]):
            values += [seeded.normal(scale=0.1, size=shape), seeded.normal(scale=0.1, size=shape[1:])]
        on_context = values if context is None else [ndarray.array(one, ctx=context) for one in values]
        self.values = dict(zip(names, on_context))

    def step(self, x, y, rate):
        loss, *gradients, _ = self.executor.run(feed_dict={self.x: x, self.y: y, **self.values})
        for (name, value), gradient in zip(self.values.items(), gradients):
            if self.context is None:
                self.values[name] = value - rate * gradient
            else:
                gpu_op.matrix_elementwise_multiply_by_const(gradient, -rate, gradient)
                gpu_op.matrix_elementwise_add(value, gradient, value)
        return loss


def train(sizes, context, x, labels, epochs, rate, batch=1000):
    """Losses of all epochs, and after each epoch the number of programs and of allocations."""
    network, losses, counts = Network(sizes, context), [], []
    x_value, y_value = np.empty((batch, sizes[0]), np.float32), np.empty((batch, sizes[-1]), np.float32)
    if context is not None:
        x_value, y_value = ndarray.array(x_value, ctx=context), ndarray.array(y_value, ctx=context)
    before = copies["to"], copies["from"]
    for _ in range(epochs):
        for at in range(0, len(x), batch):
            x_value[:], y_value[:] = x[at:at + batch], labels[at:at + batch]
            loss = network.step(x_value, y_value, rate)
            if at == 0 and not losses:
                losses.append(float((loss if context is None else loss.asnumpy())[0]))
        losses.append(float((loss if context is None else loss.asnumpy())[0]))
        counts.append((gpu_op.loaded_programs(), gpu_op.allocations()))
    steps = epochs * len(x) // batch
    if context is not None:  # x and y in each step; parameters in the first two, with the change of the program
        written, read = copies["to"] - before[0], copies["from"] - before[1]
        assert written <= 2 * steps + 3 * len(network.values), (written, steps)
        assert read <= epochs + 1 + 3 * len(network.values), (read, epochs)
    assert counts[9] == counts[29] == counts[0], counts
    feeds = {network.x: x[:batch], network.y: labels[:batch], **network.values}
    *_, z = network.executor.run(feeds, convert_to_numpy_ret_vals=True)
    return np.array(losses), (z.argmax(axis=1) == labels[:batch].argmax(axis=1)).mean(), counts[-1]


def reference(sizes, x, labels, epochs, rate, batch=1000):
    """The same in NumPy with float64."""
    seeded = np.random.RandomState(seed=123)
    layers = [(seeded.normal(scale=0.1, size=shape), seeded.normal(scale=0.1, size=shape[1:]))
              for shape in zip(sizes, sizes[1:])]
    losses = []
    for _ in range(epochs):
        for at in range(0, len(x), batch):
            hidden, y = [x[at:at + batch].astype(np.float64)], labels[at:at + batch]
            for w, b in layers:
                hidden.append(np.maximum(hidden[-1] @ w + b, 0) if w is not layers[-1][0] else hidden[-1] @ w + b)
            p = softmax(hidden[-1])
            loss = -(y * np.log(p)).sum(axis=1).mean()
            if not losses:
                losses.append(loss)
            d = p - y
            for i in reversed(range(len(layers))):
                w, b = layers[i]
                layers[i] = w - rate * hidden[i].T @ d, b - rate * d.sum(axis=0)
                d = (d @ w.T) * (hidden[i] > 0)
        losses.append(loss)
    return np.array(losses)


def test_networks():
    random = np.random.default_rng(2)  # pylint: disable=redefined-outer-name
    classes = random.integers(0, 10, 2000)
    ink = random.choice([0.1, 0.3], size=(10, 784))  # density of a pixel in each class
    x = (random.uniform(size=(2000, 784)) * (random.uniform(size=(2000, 784)) < ink[classes])).astype(np.float32)
    labels = np.eye(10, dtype=np.float32)[classes]
    for name, sizes, rate, tolerance in (("logreg", (784, 10), 5e-4, 1e-5), ("mlp", (784, 256, 100, 10), 2e-4, 5e-3)):
        on_host, _, _ = train(sizes, None, x, labels, 30, rate)
        on_device, accuracy, counts = train(sizes, ctx, x, labels, 30, rate)
        exact = reference(sizes, x, labels, 30, rate)
        for losses in (on_host, on_device):  # relu at 0 turns rounding into steps of the loss, after a few epochs
            rounding = 1e-5 if losses is on_host or executor_name == "cpu" else 1e-4
            np.testing.assert_allclose(losses[:4], exact[:4], rtol=rounding)
            np.testing.assert_allclose(losses, exact, rtol=max(tolerance, rounding))
        assert on_host[-1] < on_host[0] * 0.9 and accuracy > 0.9, (on_host, accuracy)
        print(f"{name}: loss {on_device[0]:.6f} to {on_device[-1]:.6f} on {ctx.executor}, {on_host[-1]:.6f} on the host"
              f", {counts[0]} programs, {counts[1]} allocations after 10 and 30 epochs")


def test_readme():
    text = (source / "examples/dlsys/README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.S)
    lines = []
    exec(example, {"print": lambda *values: lines.append(" ".join(map(str, values)))})  # pylint: disable=exec-used
    wanted = re.findall(r"# prints (.*)", example)
    assert lines == wanted, (lines, wanted)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"{name}: passed")
