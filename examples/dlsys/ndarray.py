"""Arrays and the devices of operations on them: the interface of the assignment's ndarray module.

The numbers of an array are on the host, on the device of an autodiff.Executor, or on both. Use on the host copies them.
"""

import os
from typing import Any, FrozenSet, NamedTuple, Tuple

import numpy


class Context:
    """Which executor of graphrun runs what is done with an array."""

    def __init__(self, executor, is_gpu=None):
        self.executor = executor
        self.is_gpu = executor not in ("cpu", "ref") if is_gpu is None else is_gpu

    def __repr__(self):
        return f"Context({self.executor!r})"

    def __eq__(self, other):
        return isinstance(other, Context) and self.executor == other.executor

    def __hash__(self):
        return hash(self.executor)


def cpu(_device=0):
    return Context("cpu")


def gpu(device=0):
    """The environment variable DLSYS_GPU names another executor: with `cpu`, programs for gpu(0) need no GPU."""
    return Context(os.environ.get("DLSYS_GPU", f"cuda:{device}"), is_gpu=True)


def is_gpu_ctx(ctx):
    return ctx is not None and ctx.is_gpu


class Formula(NamedTuple):
    """A value computed from states of a loaded program: a state, or sums and products of formulas and numbers."""
    program: Any  # has `session`, and the set `arrays` of arrays with a formula of this program
    tree: Any  # name of a state, None for a number, or (operator, tree, tree)
    numbers: Tuple[float, ...]  # in the order of the tree
    states: FrozenSet[str]  # all that the tree reads

    def computed(self, state, numbers):
        """Computes the tree from a function that gives the value of a state, and values for the numbers."""
        numbers = iter(numbers)

        def value(tree):
            if not isinstance(tree, tuple):
                return next(numbers) if tree is None else state(tree)
            left, right = value(tree[1]), value(tree[2])
            return left + right if tree[0] == "+" else left * right
        return value(self.tree)


class NDArray:
    """A dense array of float32. array[:] = x copies x into it; asnumpy() copies it out.

    `version` changes with every write. `formula` is set if an executor's device has the numbers."""

    def __init__(self, values, ctx):
        self.ctx, self.shape = ctx, values.shape
        self._host, self.formula, self.version = values, None, object()

    @property
    def values(self):
        """The numbers on the host, copied from the device if they are only there. For reading."""
        if self._host is None:
            session, numbers = self.formula.program.session, map(numpy.float32, self.formula.numbers)
            self._host = numpy.asarray(self.formula.computed(session.__getitem__, numbers))
        return self._host

    def set_formula(self, formula):
        """Replaces the numbers by those of a formula."""
        self._host, self.version = None, object()
        self.add_formula(formula)

    def add_formula(self, formula):
        """Records that a formula has these numbers, too."""
        self.formula = formula
        formula.program.arrays.add(self)

    def leave_device(self):
        """Copies the numbers to the host if they are not there, before the program changes its states."""
        self._host, self.formula = self.values, None

    def asnumpy(self):
        return self.values.copy()

    def copyto(self, target):
        if isinstance(target, NDArray):
            target[:] = self
            return target
        return NDArray(self.values.copy(), target)

    def reshape(self, shape):
        return NDArray(self.asnumpy().reshape(shape), self.ctx)

    def __setitem__(self, place, source):
        if place != slice(None):
            raise ValueError("only array[:] = ... is supported")
        source = source.values if isinstance(source, NDArray) else source
        if self._host is None:
            self._host = numpy.empty(self.shape, dtype=numpy.float32)
        self._host[...] = source
        self.formula, self.version = None, object()

    def __repr__(self):
        return f"NDArray({self.values!r}, {self.ctx!r})"


def combined(operator, a, b, out):
    """Makes `out` the sum or product of a and b (an array or a number) if they are on the device of one Executor, and
    returns whether they are. The next run, or a use on the host, computes it."""
    operands = [a, b] if isinstance(b, NDArray) else [a]
    if any(one.shape != out.shape or one.ctx != out.ctx or one.formula is None for one in operands):
        return False
    left = a.formula
    right = b.formula if len(operands) > 1 else Formula(left.program, None, (float(b),), frozenset())
    tree = (operator, left.tree, right.tree)
    if left.program is not right.program or str(tree).count("(") > 16:
        return False
    out.set_formula(Formula(left.program, tree, left.numbers + right.numbers, left.states | right.states))
    return True


def array(values, ctx=cpu()):
    return NDArray(numpy.array(values, dtype=numpy.float32, order="C"), ctx)


def empty(shape, ctx=cpu()):
    return NDArray(numpy.empty(shape, dtype=numpy.float32), ctx)
