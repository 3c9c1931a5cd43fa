"""Sessions: training, access to states as arrays, predictions."""

import ctypes
import json
import math
import operator
import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from graphrun import _library
from graphrun._arrays import (Array, as_array, as_output, as_table, column_names, converted, empty, has_more_digits, in_columns,
                              numpy_dtype, precise_dtype, rows_like)
from graphrun._progress import Progress, wanted


class Report(NamedTuple):
    """Report of a training run, for on_report."""
    epoch: int  # completed epochs
    epochs: int  # epochs of the run
    step: int  # completed steps
    loss: float  # mean over the samples of the epoch
    validation_loss: Optional[float]  # None: not evaluated at this report
    seconds: float  # since the start of training
    steps_per_second: float
    objectives: Dict[str, float] = {}  # mean loss of each, for models with several


OnReport = Callable[[Report], Any]  # a true result stops training


class Advanced(NamedTuple):
    """Result of Session.advance()."""
    steps: int  # completed steps
    finite: bool  # whether the losses of these steps (at most the last 4096) are finite
    loss: float  # loss of the last step; NaN before the first


class Session:
    """A planned model with its memory and data, from Model.open(). Its training steps allocate nothing.

    session["W"] returns a copy of a parameter or another state, in its shape and dtype; session["W"] = array writes it.
    An unknown name raises Error, another shape ValueError. One thread at a time may use a session, except cancel() and
    step."""

    def __init__(self, handle: ctypes.c_void_p):
        self._handle = handle
        self._values: Dict[str, Tuple[ctypes.c_uint32, Any, Tuple[int, ...]]] = {}
        description = self.describe()
        # Columns by input: those of the model, or those of the DataFrame of fit().
        self._columns: Dict[str, List[Dict[str, Any]]] = {i["name"]: i.get("columns", []) for i in description["inputs"]}
        self._objectives: List[str] = description["objectives"]
        self._inputs = [(i["name"], numpy_dtype(i["dtype"]), tuple(i["shape"][1:])) for i in description["inputs"]]
        batch = description["inputs"][0]["shape"][0] if self._inputs else 1
        # Rows per sample: an output may have several.
        self._outputs = [(o["name"], numpy_dtype(o["dtype"]), o["shape"][0] // batch, tuple(o["shape"][1:]))
                         for o in description["outputs"]]

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _library.lib.gr_session_free(self._handle)

    def __reduce__(self) -> Any:
        raise TypeError("a session cannot be copied: use save_state() or save_weights()")

    def describe(self) -> Dict[str, Any]:
        """Returns executor, arena size in bytes, inputs, outputs, states, splits, objectives and counters."""
        return json.loads(_library.text("gr_session_describe", self._handle))

    @property
    def counters(self) -> Dict[str, int]:
        """Counters of the executor, such as {"allocations": 2}. Allocations stay constant from the first step on."""
        return self.describe()["counters"]

    def train(self, on_report: Optional[OnReport] = None, *, progress: Optional[bool] = None) -> Dict[str, Any]:
        """Trains for the epochs of the model, or until Ctrl-C. Returns "epochs", "steps", "seconds" and "cancelled".

        Parameters
        ----------
        on_report : called with a Report. It may read, write, predict and evaluate the session, but not train or advance
            it. A true result stops training; an exception stops training and is raised here
        progress : show a progress line (default: in a notebook, and in a terminal without on_report)
        """
        raised: List[BaseException] = []
        shows = wanted(progress) and (progress is not None or on_report is None)
        line = Progress() if shows else None

        def report(_: Any, given: Any) -> int:
            made = self._report(given.contents)
            try:
                if line is not None:
                    line.update(made)
                return bool(on_report is not None and on_report(made))
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
        return _outcome(result)

    def _report(self, one: Any) -> Report:
        validation = None if math.isnan(one.validation_loss) else one.validation_loss
        return Report(one.epoch, one.epochs, one.step, one.loss, validation, one.seconds, one.steps_per_second,
                      dict(zip(self._objectives, one.objectives[:one.objective_count])))

    def cancel(self) -> None:
        """Stops train() after its steps in flight. Any thread may call it."""
        _library.lib.gr_session_cancel(self._handle)

    def advance(self, steps: int = 1, *, until: Optional[int] = None) -> Advanced:
        """Runs training steps; with `until` (time.monotonic_ns()), only if the fastest so far would end before it."""
        if operator.index(steps) < 0:
            raise ValueError(f"advance: {steps} steps")
        done = _library.Advanced(ctypes.sizeof(_library.Advanced))
        deadline = 0 if until is None else max(int(until), 1)
        _library.call("gr_session_advance_until", self._handle, steps, deadline, ctypes.byref(done))
        return Advanced(done.steps, bool(done.finite), done.loss)

    @property
    def step(self) -> int:
        """Number of the current or last training step, from 1; 0 before the first. Any thread may read it."""
        return _library.lib.gr_session_step(self._handle)

    @property
    def loss(self) -> float:
        """Loss of that step; NaN before the first."""
        value = ctypes.c_double()
        _library.call("gr_session_loss", self._handle, ctypes.byref(value))
        return value.value

    def evaluate(self, split: str = "test") -> Dict[str, Any]:
        """Returns {"loss": ..., "metrics": {...}} over a whole split, with None for values that are not finite."""
        return json.loads(_library.text("gr_session_evaluate", self._handle, split.encode()))

    def predict(self, *inputs: Any, **named: Any) -> Array:
        """Returns the first output for each row: predict(x), or predict(x=..., z=...) by input name."""
        return next(iter(self.predict_all(*inputs, count=1, **named).values()))

    def predict_all(self, *inputs: Any, count: Optional[int] = None, out: Optional[Dict[str, Array]] = None,
                    **named: Any) -> Dict[str, Array]:
        """Returns outputs by name, in original units, for inputs of shape (rows, *sample), with any number of rows.
        `count` limits the number of outputs. `out` has arrays or CPU tensors by output name that receive the results;
        they are contiguous, of the shape and dtype of the output."""
        if not self._inputs:
            raise TypeError("no output depends on an input: the number of rows is unknown")
        inputs = tuple(as_table(one) for one in inputs)
        if len(inputs) == 1 and column_names(inputs[0]) and all(self._columns.values()):
            inputs *= len(self._inputs)  # a DataFrame with the columns of all inputs
        given = dict(zip((name for name, _, _ in self._inputs), inputs), **named)
        missing = [name for name, _, _ in self._inputs if name not in given]
        if missing or len(given) != len(self._inputs) or len(inputs) > len(self._inputs):
            raise TypeError(f"predict takes {', '.join(name for name, _, _ in self._inputs)}; given: {', '.join(given)}")
        known = [name for name, _, _, _ in self._outputs[:count]]
        for name in out or {}:
            if name not in known:
                raise ValueError(f"out: there is no output {name}, only {', '.join(known)}")
        values = {name: as_array(in_columns(name, given[name], self._columns[name])) for name, _, _ in self._inputs}
        precise = any(has_more_digits(one) for one in values.values())
        arrays = [rows_like(name, values[name], precise_dtype(dtype) if precise else dtype, sample)
                  for name, dtype, sample in self._inputs]
        rows = arrays[-1].shape[0]
        results = {}
        for name, dtype, of_sample, sample in self._outputs[:count]:
            shape = (rows * of_sample, *sample)
            array = as_output((out or {}).get(name))
            if array is None:
                array = empty(shape, dtype)
            elif (not hasattr(array, "flags") or array.shape != shape or array.dtype != dtype
                  or not array.flags.c_contiguous or not array.flags.writeable):
                raise ValueError(f"out: {name} takes a contiguous array of {dtype} {shape}")
            results[name] = array
        call_in = (_library.Bytes * len(arrays))(*[_library.Bytes(a.ctypes.data, a.nbytes) for a in arrays])
        call_out = (_library.Bytes * len(results))(*[_library.Bytes(a.ctypes.data, a.nbytes) for a in results.values()])
        _library.call("gr_session_predict_double" if precise else "gr_session_predict", self._handle, call_in, len(arrays), call_out, len(results))
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
        """Writes a parameter or a runtime hyperparameter: session["train:lr"] = 0.01."""
        number, dtype, shape = self._value(name)
        array = converted(name, values, dtype)
        if array.shape != shape and not (shape == () and array.size == 1):
            raise ValueError(f"{name}: an array of shape {array.shape}, not {shape}")
        _library.call("gr_session_write", self._handle, number, array.ctypes.data, array.nbytes)

    def write_rows(self, name: str, first: int, rows: Any) -> None:
        """Writes rows of dimension 0, starting at `first`, for example of the data set "data/train/x".

        Data sets of 8-bit images take only values of scaled bytes, unless their split is in open(rows_vary=[...])."""
        number, dtype, shape = self._value(name)
        array = rows_like(name, rows, dtype, shape[1:])
        _library.call("gr_session_write_rows", self._handle, number, first, array.ctypes.data, array.nbytes)

    def set_rows(self, split: str, rows: int) -> None:
        """Sets the number of rows of a split in use, from its first row. Requires open(rows_vary=[split])."""
        _library.call("gr_session_set_rows", self._handle, split.encode(), rows)

    def save_state(self) -> bytes:
        """Returns the training state without the data. A run resumed from it is bitwise identical."""
        size = ctypes.c_size_t()
        _library.call("gr_session_state_bytes", self._handle, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        _library.call("gr_session_save_state", self._handle, buffer, size.value)
        return buffer.raw

    def load_state(self, state: Any) -> None:
        """Restores bytes of save_state(). Raises Error if the model has other parameter names or shapes."""
        given = bytes(memoryview(state))
        _library.call("gr_session_load_state", self._handle, given, len(given))

    def save_weights(self, path: Any) -> None:
        """Writes safetensors with the model inside if the path ends in .safetensors, else NPZ, atomically."""
        _library.call("gr_session_save_weights", self._handle, os.fsencode(path))

    def load_weights(self, path: Any) -> None:
        """Reads weights from a file of save_weights()."""
        _library.call("gr_session_load_weights", self._handle, os.fsencode(path))

    def weights_hash(self) -> str:
        """Returns 16 hex digits that are equal for bitwise identical weights."""
        text = ctypes.create_string_buffer(17)
        _library.call("gr_session_weights_hash", self._handle, text)
        return text.value.decode()


def _outcome(result: Any) -> Dict[str, Any]:
    return {"epochs": result.epochs, "steps": result.steps, "seconds": result.seconds,
            "cancelled": bool(result.cancelled)}


def train_many(sessions: Sequence[Session], on_report: Optional[Callable[[int, Report], Any]] = None, *,
               at_once: Optional[int] = None) -> List[Dict[str, Any]]:
    """Trains sessions at a time, each with the bits of Session.train(). Returns the results of train() in order, with
    the key "error": the Error of a network that failed, such as by a loss that is not finite, else None.

    Parameters
    ----------
    sessions : different sessions. Open them on the CPU with threads=1
    on_report : called in this thread with the index of a session and its Report. It may read, predict and evaluate this
        session. A true result stops its training; an exception or Ctrl-C stops all training and is raised here
    at_once : number of sessions that train concurrently (default: one per core)
    """
    if at_once is not None and operator.index(at_once) < 1:
        raise ValueError(f"train_many: at_once={at_once} is less than 1")
    sessions = list(sessions)
    for one in sessions:
        if not isinstance(one, Session):
            raise TypeError(f"train_many: expected sessions of Model.open(), got {type(one).__name__}")
    raised: List[BaseException] = []

    def report(_: Any, network: int, given: Any) -> int:
        try:
            return int(bool(on_report(network, sessions[network]._report(given.contents))))  # type: ignore[misc]
        except BaseException as error:  # pylint: disable=broad-except
            raised.append(error)
            return -1

    count = len(sessions)
    callback = _library.OnNetworkReport() if on_report is None else _library.OnNetworkReport(report)
    options = _library.TrainManyOptions(ctypes.sizeof(_library.TrainManyOptions), at_once or 0, callback, None)
    results = (_library.TrainResult * max(count, 1))()
    results[0].struct_size = ctypes.sizeof(_library.TrainResult)
    errors = (ctypes.c_void_p * count)()
    arguments = ("gr_train_many", (ctypes.c_void_p * count)(*[one._handle for one in sessions]), count,
                 ctypes.byref(options), results, errors)
    if on_report is not None:
        _library.call(*arguments)
    else:  # in another thread, so that Ctrl-C stops the sessions without a report
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(_library.call, *arguments)
            try:
                call.result()
            except KeyboardInterrupt:
                while not call.done():
                    for one in sessions:
                        one.cancel()
                    time.sleep(0.01)
                raise
    made = [_library.taken_error(one) if one else None for one in errors]
    if raised:
        raise raised[0]
    return [{**_outcome(result), "error": error} for result, error in zip(results, made)]
