"""Sessions: training, states as arrays, predictions."""

import ctypes
import json
import math
import os
from dataclasses import dataclass
from typing import Optional

import numpy

from graphrun import _library


@dataclass(frozen=True)
class Report:
    epoch: int  # finished
    epochs: int
    step: int
    loss: float  # mean over the samples of the epoch
    validation_loss: Optional[float]
    seconds: float
    steps_per_second: float


def as_array(values):
    """As a C-contiguous array, without a copy where it is one: NumPy's, or what __dlpack__ or a buffer shows of the CPU."""
    if not isinstance(values, numpy.ndarray) and hasattr(values, "__dlpack__"):
        values = numpy.from_dlpack(values)
    return numpy.ascontiguousarray(values)


def check_dtype(name, array):
    if array.dtype.name in _library.DTYPES:
        return _library.DTYPES.index(array.dtype.name)
    raise TypeError(f"{name}: an array of {array.dtype} is none of {', '.join(_library.DTYPES)}")


def _numpy_dtype(name):
    return numpy.dtype({"f32": "float32", "f64": "float64", "i32": "int32", "u64": "uint64"}.get(name, "bool"))


class Session:
    """A planned and loaded model. A parameter is session["W"], which reads it; session["W"] = array writes it."""

    def __init__(self, handle):
        self._handle = handle
        self._values = {}
        description = self.describe()
        self._inputs = [(i["name"], _numpy_dtype(i["dtype"]), tuple(i["shape"][1:])) for i in description["inputs"]]
        batch = description["inputs"][0]["shape"][0] if self._inputs else 1
        # Of a sample: an output may have several rows for each.
        self._outputs = [(o["name"], _numpy_dtype(o["dtype"]), o["shape"][0] // batch, tuple(o["shape"][1:]))
                         for o in description["outputs"]]

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.lib.gr_session_free(self._handle)

    def describe(self):
        """Executor, bytes of the arena, inputs, outputs, states and splits."""
        return json.loads(_library.text("gr_session_describe", self._handle))

    def train(self, on_report=None):
        """Trains for the model's epochs; on_report(Report) ends it by returning True. Ctrl-C ends it too."""
        raised = []

        def report(_, given):
            one = given.contents
            validation = None if math.isnan(one.validation_loss) else one.validation_loss
            try:
                return bool(on_report is not None and on_report(
                    Report(one.epoch, one.epochs, one.step, one.loss, validation, one.seconds, one.steps_per_second)))
            except BaseException as error:  # pylint: disable=broad-except
                raised.append(error)
                return 1

        options = _library.TrainOptions(ctypes.sizeof(_library.TrainOptions), _library.OnReport(report), None)
        result = _library.TrainResult(ctypes.sizeof(_library.TrainResult))
        _library.call("gr_session_train", self._handle, ctypes.byref(options), ctypes.byref(result))
        if raised:
            raise raised[0]
        return {"epochs": result.epochs, "steps": result.steps, "seconds": result.seconds,
                "cancelled": bool(result.cancelled)}

    def cancel(self):
        """From another thread: ends train() after its steps in flight."""
        _library.lib.gr_session_cancel(self._handle)

    def advance(self, steps=1):
        """So many training steps; the loss of the last."""
        _library.call("gr_session_advance", self._handle, steps)
        return self.loss

    @property
    def step(self):
        return _library.lib.gr_session_step(self._handle)

    @property
    def loss(self):
        value = ctypes.c_double()
        _library.call("gr_session_loss", self._handle, ctypes.byref(value))
        return value.value

    def evaluate(self, split="test"):
        """{"loss": ..., "metrics": {...}} over a whole split."""
        return json.loads(_library.text("gr_session_evaluate", self._handle, split.encode()))

    def predict(self, *inputs, **named):
        """The first output for each row: predict(x), or predict(x=..., z=...) by input."""
        return next(iter(self.predict_all(*inputs, count=1, **named).values()))

    def predict_all(self, *inputs, count=None, **named):
        """All outputs by name."""
        given = dict(zip((name for name, _, _ in self._inputs), inputs), **named)
        missing = [name for name, _, _ in self._inputs if name not in given]
        if missing or len(given) != len(self._inputs) or len(inputs) > len(self._inputs):
            raise TypeError(f"predict takes {', '.join(name for name, _, _ in self._inputs)}; given: {', '.join(given)}")
        arrays, rows = [], 0
        for name, dtype, sample in self._inputs:
            array = numpy.ascontiguousarray(as_array(given[name]), dtype=dtype)
            if array.shape[1:] != sample:
                raise ValueError(f"{name}: rows of shape {array.shape[1:]}, not {sample}")
            arrays.append(array)
            rows = array.shape[0]
        results = {name: numpy.empty((rows * of_sample, *shape), dtype)
                   for name, dtype, of_sample, shape in self._outputs[:count]}
        call_in = (_library.Bytes * len(arrays))(*[_library.Bytes(a.ctypes.data, a.nbytes) for a in arrays])
        call_out = (_library.Bytes * len(results))(*[_library.Bytes(a.ctypes.data, a.nbytes) for a in results.values()])
        _library.call("gr_session_predict", self._handle, call_in, len(arrays), call_out, len(results))
        return results

    def _value(self, name):
        if name not in self._values:
            number, kind = ctypes.c_uint32(), _library.Type()
            _library.call("gr_session_find", self._handle, name.encode(), ctypes.byref(number))
            _library.call("gr_session_type", self._handle, number, ctypes.byref(kind))
            self._values[name] = (number, numpy.dtype(_library.DTYPES[kind.dtype]), tuple(kind.shape[:kind.rank]))
        return self._values[name]

    def __getitem__(self, name):
        number, dtype, shape = self._value(name)
        array = numpy.empty(shape, dtype)
        _library.call("gr_session_read", self._handle, number, array.ctypes.data, array.nbytes)
        return array

    def __setitem__(self, name, values):
        number, dtype, shape = self._value(name)
        array = numpy.ascontiguousarray(as_array(values), dtype=dtype)
        if array.shape != shape:
            raise ValueError(f"{name}: an array of shape {array.shape}, not {shape}")
        _library.call("gr_session_write", self._handle, number, array.ctypes.data, array.nbytes)

    def write_rows(self, name, first, rows):
        """Rows of dimension 0 from `first` on: of a data set "data/train/x", say."""
        number, dtype, shape = self._value(name)
        array = numpy.ascontiguousarray(as_array(rows), dtype=dtype)
        if array.shape[1:] != shape[1:]:
            raise ValueError(f"{name}: rows of shape {array.shape[1:]}, not {shape[1:]}")
        _library.call("gr_session_write_rows", self._handle, number, first, array.ctypes.data, array.nbytes)

    def save_weights(self, path):
        _library.call("gr_session_save_weights", self._handle, os.fsencode(path))

    def load_weights(self, path):
        _library.call("gr_session_load_weights", self._handle, os.fsencode(path))

    def weights_hash(self):
        text = ctypes.create_string_buffer(17)
        _library.call("gr_session_weights_hash", self._handle, text)
        return text.value.decode()
