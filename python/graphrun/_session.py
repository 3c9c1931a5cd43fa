"""Sessions: training, states as arrays, predictions."""

import ctypes
import json
import math
import operator
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from graphrun import _library
from graphrun._arrays import Array, as_room, column_names, converted, empty, in_columns, numpy_dtype, rows_like
from graphrun._progress import Progress, wanted


class Report(NamedTuple):
    epoch: int  # finished
    epochs: int
    step: int
    loss: float  # mean over the samples of the epoch
    validation_loss: Optional[float]
    seconds: float
    steps_per_second: float
    objectives: Dict[str, float] = {}  # the mean loss of each, where the model has several


OnReport = Callable[[Report], Any]  # what it gives is true: the training ends


class Advanced(NamedTuple):
    steps: int  # that were run
    finite: bool  # whether their losses were, of the last 4096 at most
    loss: float  # of the last step; NaN before the first


class Session:
    """A planned and loaded model. A parameter is session["W"], which reads it; session["W"] = array writes it."""

    def __init__(self, handle: ctypes.c_void_p):
        self._handle = handle
        self._values: Dict[str, Tuple[ctypes.c_uint32, Any, Tuple[int, ...]]] = {}
        description = self.describe()
        # By input: those that the model lists, or that a DataFrame of a fit had.
        self._columns: Dict[str, List[Dict[str, Any]]] = {i["name"]: i.get("columns", []) for i in description["inputs"]}
        self._objectives: List[str] = description["objectives"]
        self._inputs = [(i["name"], numpy_dtype(i["dtype"]), tuple(i["shape"][1:])) for i in description["inputs"]]
        batch = description["inputs"][0]["shape"][0] if self._inputs else 1
        # Of a sample: an output may have several rows for each.
        self._outputs = [(o["name"], numpy_dtype(o["dtype"]), o["shape"][0] // batch, tuple(o["shape"][1:]))
                         for o in description["outputs"]]

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _library.lib.gr_session_free(self._handle)

    def __reduce__(self) -> Any:
        raise TypeError("a session cannot be copied: save_state() and save_weights() keep what it has learnt")

    def describe(self) -> Dict[str, Any]:
        """Executor, bytes of the arena, inputs, outputs, states, splits, objectives and counters."""
        return json.loads(_library.text("gr_session_describe", self._handle))

    @property
    def counters(self) -> Dict[str, int]:
        """What the executor has counted until now: {"allocations": 2, ...}; from the first step on it allocates nothing."""
        return self.describe()["counters"]

    def train(self, on_report: Optional[OnReport] = None, *, progress: Optional[bool] = None) -> Dict[str, Any]:
        """Trains for the model's epochs; on_report(Report) ends it by returning True, and Ctrl-C ends it too. progress: a
        line of how far it is; by default in a notebook, and in a terminal where there is no on_report."""
        raised: List[BaseException] = []
        shows = wanted(progress) and (progress is not None or on_report is None)
        line = Progress() if shows else None

        def report(_: Any, given: Any) -> int:
            one = given.contents
            validation = None if math.isnan(one.validation_loss) else one.validation_loss
            told = Report(one.epoch, one.epochs, one.step, one.loss, validation, one.seconds, one.steps_per_second,
                          dict(zip(self._objectives, one.objectives[:one.objective_count])))
            try:
                if line is not None:
                    line.tell(told)
                return bool(on_report is not None and on_report(told))
            except BaseException as error:  # pylint: disable=broad-except
                raised.append(error)
                return 1

        options = _library.TrainOptions(ctypes.sizeof(_library.TrainOptions), _library.OnReport(report), None)
        result = _library.TrainResult(ctypes.sizeof(_library.TrainResult))
        try:
            _library.call("gr_session_train", self._handle, ctypes.byref(options), ctypes.byref(result))
        finally:
            if line is not None:
                line.end()
        if raised:
            raise raised[0]
        return {"epochs": result.epochs, "steps": result.steps, "seconds": result.seconds,
                "cancelled": bool(result.cancelled)}

    def cancel(self) -> None:
        """From another thread: ends train() after its steps in flight."""
        _library.lib.gr_session_cancel(self._handle)

    def advance(self, steps: int = 1, *, until: Optional[int] = None) -> Advanced:
        """So many training steps, or fewer: until a moment of time.monotonic_ns()."""
        if operator.index(steps) < 0:
            raise ValueError(f"advance: {steps} steps")
        done = _library.Advanced(ctypes.sizeof(_library.Advanced))
        deadline = 0 if until is None else max(int(until), 1)
        _library.call("gr_session_advance_until", self._handle, steps, deadline, ctypes.byref(done))
        return Advanced(done.steps, bool(done.finite), done.loss)

    @property
    def step(self) -> int:
        return _library.lib.gr_session_step(self._handle)

    @property
    def loss(self) -> float:
        value = ctypes.c_double()
        _library.call("gr_session_loss", self._handle, ctypes.byref(value))
        return value.value

    def evaluate(self, split: str = "test") -> Dict[str, Any]:
        """{"loss": ..., "metrics": {...}} over a whole split."""
        return json.loads(_library.text("gr_session_evaluate", self._handle, split.encode()))

    def predict(self, *inputs: Any, **named: Any) -> Array:
        """The first output for each row: predict(x), or predict(x=..., z=...) by input."""
        return next(iter(self.predict_all(*inputs, count=1, **named).values()))

    def predict_all(self, *inputs: Any, count: Optional[int] = None, out: Optional[Dict[str, Array]] = None,
                    **named: Any) -> Dict[str, Array]:
        """All outputs by name, or the first `count`; into the arrays of `out` where it has one of that name, tensors of
        other libraries included."""
        if not self._inputs:
            raise TypeError("no output depends on an input: one that does says how many rows the others have")
        if len(inputs) == 1 and column_names(inputs[0]) and all(self._columns.values()):
            inputs *= len(self._inputs)  # a DataFrame that has the columns of all
        given = dict(zip((name for name, _, _ in self._inputs), inputs), **named)
        missing = [name for name, _, _ in self._inputs if name not in given]
        if missing or len(given) != len(self._inputs) or len(inputs) > len(self._inputs):
            raise TypeError(f"predict takes {', '.join(name for name, _, _ in self._inputs)}; given: {', '.join(given)}")
        known = [name for name, _, _, _ in self._outputs[:count]]
        for name in out or {}:
            if name not in known:
                raise ValueError(f"out: there is no output {name}, only {', '.join(known)}")
        arrays = [rows_like(name, in_columns(name, given[name], self._columns[name]), dtype, sample)
                  for name, dtype, sample in self._inputs]
        rows = arrays[-1].shape[0]
        results = {}
        for name, dtype, of_sample, sample in self._outputs[:count]:
            shape = (rows * of_sample, *sample)
            room = as_room((out or {}).get(name))
            if room is None:
                room = empty(shape, dtype)
            elif not hasattr(room, "flags") or room.shape != shape or room.dtype != dtype or not room.flags.c_contiguous or not room.flags.writeable:
                raise ValueError(f"out: {name} takes a contiguous array of {dtype} {shape}")
            results[name] = room
        call_in = (_library.Bytes * len(arrays))(*[_library.Bytes(a.ctypes.data, a.nbytes) for a in arrays])
        call_out = (_library.Bytes * len(results))(*[_library.Bytes(a.ctypes.data, a.nbytes) for a in results.values()])
        _library.call("gr_session_predict", self._handle, call_in, len(arrays), call_out, len(results))
        return results

    def _value(self, name: str) -> Tuple[ctypes.c_uint32, Any, Tuple[int, ...]]:
        if name not in self._values:
            number, kind = ctypes.c_uint32(), _library.Type()
            _library.call("gr_session_find", self._handle, name.encode(), ctypes.byref(number))
            _library.call("gr_session_type", self._handle, number, ctypes.byref(kind))
            dtype = numpy_dtype(("f32", "f64", "i32", "u64", "bool")[kind.dtype])
            self._values[name] = (number, dtype, tuple(kind.shape[:kind.rank]))
        return self._values[name]

    def __getitem__(self, name: str) -> Array:
        number, dtype, shape = self._value(name)
        array = empty(shape, dtype)
        _library.call("gr_session_read", self._handle, number, array.ctypes.data, array.nbytes)
        return array

    def __setitem__(self, name: str, values: Any) -> None:
        """A parameter, or a number that is set at run time: session["train:lr"] = 0.01."""
        number, dtype, shape = self._value(name)
        array = converted(name, values, dtype)
        if array.shape != shape and not (shape == () and array.size == 1):
            raise ValueError(f"{name}: an array of shape {array.shape}, not {shape}")
        _library.call("gr_session_write", self._handle, number, array.ctypes.data, array.nbytes)

    def write_rows(self, name: str, first: int, rows: Any) -> None:
        """Rows of dimension 0 from `first` on: of a data set "data/train/x", say."""
        number, dtype, shape = self._value(name)
        array = rows_like(name, rows, dtype, shape[1:])
        _library.call("gr_session_write_rows", self._handle, number, first, array.ctypes.data, array.nbytes)

    def set_rows(self, split: str, rows: int) -> None:
        """How many rows of a split are in use; open(rows_vary=[split]) allows it."""
        _library.call("gr_session_set_rows", self._handle, split.encode(), rows)

    def save_state(self) -> bytes:
        """The whole state of the training but the data: load_state() goes on from it with the same bits."""
        size = ctypes.c_size_t()
        _library.call("gr_session_state_bytes", self._handle, ctypes.byref(size))
        room = ctypes.create_string_buffer(size.value)
        _library.call("gr_session_save_state", self._handle, room, size.value)
        return room.raw

    def load_state(self, state: Any) -> None:
        """What save_state() gave, in bytes or another buffer."""
        held = bytes(memoryview(state))
        _library.call("gr_session_load_state", self._handle, held, len(held))

    def save_weights(self, path: Any) -> None:
        _library.call("gr_session_save_weights", self._handle, os.fsencode(path))

    def load_weights(self, path: Any) -> None:
        _library.call("gr_session_load_weights", self._handle, os.fsencode(path))

    def weights_hash(self) -> str:
        text = ctypes.create_string_buffer(17)
        _library.call("gr_session_weights_hash", self._handle, text)
        return text.value.decode()
