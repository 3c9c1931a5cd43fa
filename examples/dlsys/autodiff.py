"""Graphs of nodes, their gradients and executors: the interface of the assignment's autodiff module.

An Executor builds one graphrun graph of the nodes that it evaluates, for each set of shapes. Fed and evaluated values
are states of the graph. A run is one training step, which reads the first and assigns the second.
"""

import weakref

import graphrun
import numpy

from . import gpu_op, ndarray


class Node:
    """A value of a graph: an op with its inputs and, if it has one, its number (const_attr)."""

    def __init__(self, op, inputs, name, const_attr=None, **attributes):
        self.op, self.inputs, self.name, self.const_attr, self.attributes = op, inputs, name, const_attr, attributes

    def __add__(self, other):
        return add_op(self, other) if isinstance(other, Node) else add_byconst_op(self, other)

    def __mul__(self, other):
        return mul_op(self, other) if isinstance(other, Node) else mul_byconst_op(self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __str__(self):
        return self.name


class Op:
    """A function that makes nodes.

    name : format of a node's name, from the names of its inputs and its number {c}
    shape : function of the shapes of the inputs; raises ValueError if the op does not take them
    value : function (graph, *values) to the Value of a graphrun.GraphBuilder
    reshaped : whether that Value has another rank than `shape` says
    """

    def __init__(self, name, shape, value, reshaped=False):
        self._name, self._shape, self._value, self._reshaped = name, shape, value, reshaped

    def __call__(self, *operands, **attributes):
        inputs = [one for one in operands if isinstance(one, Node)]
        number = next((float(one) for one in operands if not isinstance(one, Node)), None)
        return Node(self, inputs, self._name.format(*inputs, c=number, **attributes), number, **attributes)

    def infer_shape(self, node, input_shapes):
        try:
            return tuple(self._shape(*input_shapes, **node.attributes))
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(f"{node}: the inputs have shapes {', '.join(map(str, input_shapes))} ({error})") from None

    def value(self, graph, node, values, shape):
        value = self._value(graph, *values, *([] if node.const_attr is None else [node.const_attr]), **node.attributes)
        return graph.call("reshape", value, shape=list(shape)) if self._reshaped else value


def _same(a, *others):
    if any(one != a for one in others):
        raise ValueError("expected equal shapes")
    return a


def _rows(a, *others):
    if len(a) != 2:
        raise ValueError("expected 2 dimensions")
    return _same(a, *others)


def _product(a, b, trans_A, trans_B):
    (rows, inner), (other, columns) = a[::-1] if trans_A else a, b[::-1] if trans_B else b
    if inner != other:
        raise ValueError(f"expected equal inner extents, got {inner} and {other}")
    return rows, columns


def _cross_entropy(graph, logits, labels):
    """Mean over rows, with the gradient of the assignment: softmax(logits) - labels, which is that of the sum."""
    rows = graph.call("softmax_cross_entropy", logits, labels)
    total = rows.sum()
    return graph.call("stop_gradient", rows.mean()) + (total - graph.call("stop_gradient", total))


def _zeros(graph, a):
    return graph.call("cast", a < a, dtype="f32")  # 0 also where a is infinite or NaN


add_op = Op("({}+{})", numpy.broadcast_shapes, lambda graph, a, b: a + b)
mul_op = Op("({}*{})", numpy.broadcast_shapes, lambda graph, a, b: a * b)
add_byconst_op = Op("({}+{c})", _same, lambda graph, a, c: a + c)
mul_byconst_op = Op("({}*{c})", _same, lambda graph, a, c: a * c)
_matmul_op = Op("MatMul({},{})", _product, lambda graph, a, b, trans_A, trans_B: graph.call(
    "matmul", a, b, transpose_a=trans_A, transpose_b=trans_B))
oneslike_op = Op("OnesLike({})", _same, lambda graph, a: 1 + _zeros(graph, a))
zeroslike_op = Op("ZerosLike({})", _same, _zeros)
reducesumaxiszero_op = Op("ReduceSumAxisZero({})", lambda a: a[1:] or (1,),
                          lambda graph, a: graph.call("sum", a, axis=0), reshaped=True)
broadcastto_op = Op("BroadcastTo({},{})", lambda a, b: _same(b, numpy.broadcast_shapes(a, b)),
                    lambda graph, a, b: graph.call("where", b < b, 0, a))
softmax_op = Op("Softmax({})", _rows, lambda graph, a: graph.call("softmax", a))
softmaxcrossentropy_op = Op("SoftmaxCrossEntropy({},{})", lambda a, b: _rows(a, b) and (1,), _cross_entropy,
                            reshaped=True)
relu_op = Op("Relu({})", _same, lambda graph, a: a.relu())
relu_gradient_op = Op("ReluGradient({},{})", _same, lambda graph, a, b: graph.call("where", a > 0, b, 0))
gradient_op = Op("Gradient({},{})", lambda y, x: x, lambda graph, y, x: graph.call("gradient", y.sum(), x))
placeholder_op = Op("placeholder", None, None)


def matmul_op(node_A, node_B, trans_A=False, trans_B=False):  # pylint: disable=invalid-name
    return _matmul_op(node_A, node_B, trans_A=bool(trans_A), trans_B=bool(trans_B))


def Variable(name):  # pylint: disable=invalid-name
    """A node whose value each run feeds."""
    return Node(placeholder_op, [], name)


def gradients(output_node, node_list):
    """Nodes for the gradients of the sum of `output_node` with respect to each of `node_list`."""
    needed = find_topo_sort([output_node])
    for node in node_list:
        if node not in needed:
            raise ValueError(f"gradients: {output_node} does not depend on {node}")
    return [gradient_op(output_node, node) for node in node_list]


def softmax_func(y):
    """The softmax of each row, on the host."""
    powers = numpy.exp(y - numpy.max(y, axis=1, keepdims=True))
    return powers / numpy.sum(powers, axis=1, keepdims=True)


def find_topo_sort(node_list, fed=()):
    """All nodes that those of `node_list` depend on, inputs first. The inputs of fed nodes are not needed."""
    order, pending = {}, list(reversed(node_list))
    while pending:
        node = pending[-1]
        missing = [] if node in fed else [one for one in node.inputs if one not in order]
        if missing:
            pending += reversed(missing)
        else:
            order[pending.pop()] = True
    return list(order)


class _Program:
    """The graph of an Executor for one set of shapes and of formulas, loaded in a session.

    formulas : by fed node the Formula to compute it from, or None if it is the state of the node
    kept : fed nodes with a formula whose states the run assigns
    """

    def __init__(self, executor, formulas, kept):
        self.arrays = weakref.WeakSet()  # with a formula of this program
        self.versions = {}  # of the arrays that were copied to states
        self.numbers = {}  # of the formulas, by the name of their runtime hyperparameter
        shapes, ctx = executor.node_to_shape_map, executor.ctx
        graph = graphrun.GraphBuilder()
        graph.idle = graph.input("row", 1) * graph.parameter("unused", 1, init="zeros")  # a model has an input ...
        graph.loss = graph.idle.sum()  # ... and a loss
        states = {name: graph.state(name, *shapes[node])
                  for node, name in [*executor.inputs.items(), *zip(executor.eval_node_list, executor.outputs)]}
        values = {}
        for node in executor.topo_order:
            if node not in formulas:
                value = node.op.value(graph, node, [values[one] for one in node.inputs], shapes[node])
            elif formulas[node] is None:
                value = states[executor.inputs[node]]
            else:
                names = [f"number{len(self.numbers) + i}" for i in range(len(formulas[node].numbers))]
                self.numbers.update(zip(names, formulas[node].numbers))
                value = formulas[node].computed(states.get, map(graph.runtime, names, formulas[node].numbers))
            values[node] = graph[value.name]  # the name instead of the formula, for each use
        for node in kept:
            graph.assign(states[executor.inputs[node]], values[node])
        for node, name in zip(executor.eval_node_list, executor.outputs):
            graph.assign(states[name], values[node])
        model = graph.model(outputs=["idle"], optimizer={"sgd": {"lr": 0}}, batch=1)
        model.set_data("train", row=numpy.zeros((1, 1)))
        self.session = gpu_op.opened(model, "cpu" if ctx is None else ctx.executor)

    def formula(self, state):
        return ndarray.Formula(self, state, (), frozenset([state]))


class Executor:
    """Computes nodes of a graph on a context; None stands for NumPy arrays, computed on the CPU.

    run() returns the same NDArrays each time and overwrites their numbers, as the assignment's does. Fed arrays are
    copied to the device if they were written since the last run. Arrays of the last run, and sums and products of these
    and of fed arrays, are not copied: the graph computes them from its states."""

    def __init__(self, eval_node_list, ctx=None):
        self.eval_node_list, self.ctx = list(eval_node_list), ctx
        self.outputs = [f"out{i}" for i in range(len(self.eval_node_list))]  # names of states
        self.inputs = {}  # fed node to name of its state
        self.topo_order = self.feed_shapes = self.node_to_shape_map = None
        self._programs = {}
        self._program = None  # that of the last run
        self._arrays = []  # that runs return

    def infer_shape(self, feed_shapes):
        """Sets node_to_shape_map, the shape of each node, from those of the fed nodes."""
        order, shapes = find_topo_sort(self.eval_node_list, feed_shapes), {}
        for node in order:
            if node in feed_shapes:
                shapes[node] = tuple(feed_shapes[node])
            elif node.op is placeholder_op:
                raise ValueError(f"feed_dict has no value for {node}")
            else:
                shapes[node] = node.op.infer_shape(node, [shapes[one] for one in node.inputs])
        self.topo_order, self.node_to_shape_map, self.feed_shapes = order, shapes, dict(feed_shapes)
        self.inputs = {node: f"in{i}" for i, node in enumerate(one for one in order if one in feed_shapes)}
        self._arrays = [ndarray.empty(shapes[node], self.ctx) for node in self.eval_node_list]
        self._program = None

    def run(self, feed_dict, convert_to_numpy_ret_vals=False):
        """Returns the values of the nodes, as NDArrays or, for context None or if asked, as NumPy arrays."""
        for node, value in feed_dict.items():
            if not isinstance(value, (numpy.ndarray, *([] if self.ctx is None else [ndarray.NDArray]))):
                raise TypeError(f"feed_dict: {node} takes an array of this context, not {type(value).__name__}")
        feed_shapes = {node: tuple(value.shape) for node, value in feed_dict.items()}
        if feed_shapes != self.feed_shapes:
            self.infer_shape(feed_shapes)
        feeds = {node: feed_dict[node] for node in self.inputs}
        formulas = {node: self._formula(self.inputs[node], value) for node, value in feeds.items()}
        kept = [node for node, value in feeds.items() if formulas[node] is not None and not _among(value, self._arrays)]
        key = (*((node, feed_shapes[node], one and one.tree) for node, one in formulas.items()), *kept)
        if key not in self._programs:
            self._programs[key] = _Program(self, formulas, kept)
        program = self._programs[key]
        self._load(program, feeds, formulas)
        program.session.advance(1)
        if self.ctx is None:
            return [program.session[name] for name in self.outputs]
        for node, value in feeds.items():
            if isinstance(value, ndarray.NDArray) and value.ctx == self.ctx and not _among(value, self._arrays):
                value.add_formula(program.formula(self.inputs[node]))
        for array, name in zip(self._arrays, self.outputs):
            array.set_formula(program.formula(name))
        return [one.asnumpy() for one in self._arrays] if convert_to_numpy_ret_vals else list(self._arrays)

    def _formula(self, name, value):
        """The formula to compute a fed array from; None if it is the state with this name, or must be copied to it."""
        formula = getattr(value, "formula", None)
        if formula is None or formula.program is not self._program or formula.tree == name:
            return None
        return formula if formula.states <= {name, *self.outputs} else None

    def _load(self, program, feeds, formulas):
        """Gives a program the states that its run reads, and makes it that of the last run."""
        last, self._program = self._program or program, program
        written = {node: value for node, value in feeds.items() if formulas[node] is None and
                   program.versions.get(self.inputs[node]) is not getattr(value, "version", self)}
        for array in {*last.arrays, *program.arrays}:
            if _among(array, written.values()) or not _among(array, [*feeds.values(), *self._arrays]):
                array.leave_device()
        used = [one for one in formulas.values() if one is not None]
        if last is not program:
            for name in set().union(*(formula.states for formula in used)):
                program.session[name] = last.session[name]
        for name, number in zip(list(program.numbers), [number for one in used for number in one.numbers]):
            if program.numbers[name] != number:
                program.session[name] = program.numbers[name] = number
        for node, value in written.items():
            name = self.inputs[node]
            program.session[name] = value.values if isinstance(value, ndarray.NDArray) else value
            program.versions[name] = getattr(value, "version", None)


def _among(one, many):
    return any(one is other for other in many)
