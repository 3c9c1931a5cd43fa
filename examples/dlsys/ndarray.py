"""Arrays and where operations on them run: the interface of the assignment's ndarray module.

An array has its numbers in host memory; an operation (gpu_op.py) on the context gpu(0) runs on the GPU, which its
numbers go to and come back from.
"""

import numpy


class Context:
    """Which executor of graphrun runs what is done with an array."""

    def __init__(self, executor):
        self.executor = executor

    def __repr__(self):
        return f"Context({self.executor!r})"

    def __eq__(self, other):
        return isinstance(other, Context) and self.executor == other.executor

    def __hash__(self):
        return hash(self.executor)


def cpu(_device=0):
    return Context("cpu")


def gpu(device=0):
    return Context(f"cuda:{device}")


class NDArray:
    """A dense array of float32. array[:] = x copies x into it; asnumpy() copies it out."""

    def __init__(self, values, ctx):
        self.values = values
        self.ctx = ctx

    @property
    def shape(self):
        return self.values.shape

    def asnumpy(self):
        return self.values.copy()

    def copyto(self, target):
        if isinstance(target, NDArray):
            target[:] = self
            return target
        return NDArray(self.values.copy(), target)

    def reshape(self, shape):
        return NDArray(self.values.reshape(shape), self.ctx)

    def __setitem__(self, place, source):
        if place != slice(None):
            raise ValueError("only array[:] = ... is there")
        self.values[...] = source.values if isinstance(source, NDArray) else source

    def __repr__(self):
        return f"NDArray({self.values!r}, {self.ctx!r})"


def array(values, ctx=cpu()):
    return NDArray(numpy.array(values, dtype=numpy.float32, order="C"), ctx)


def empty(shape, ctx=cpu()):
    return NDArray(numpy.empty(shape, dtype=numpy.float32), ctx)
