"""Models: a model file with its own data or with arrays, in the style of scikit-learn estimators."""

import contextlib
import ctypes
import json
import operator
import os
import tempfile
from typing import Any, Callable, Dict, List, Optional

from graphrun import _library
from graphrun._arrays import (Array, as_array, as_table, column_names, converted, has_more_digits, in_columns, near, number_of_dtype,
                              write_table)
from graphrun._session import OnReport, Report, Session, train_many

_OPTIONS = ("executor", "target", "tiling", "fuse", "passes", "threads", "jit", "rows_vary")  # keywords of open()
# Replacements for keywords of other libraries.
_INSTEAD = {
    "validation_data": "validation=(x, y)", "eval_set": "validation=(x, y)",
    "validation_split": "validation=(x, y)", "epochs": 'Model(..., set={"train.epochs": 10})',
    "n_epochs": 'Model(..., set={"train.epochs": 10})', "max_iter": 'Model(..., set={"train.epochs": 10})',
    "batch_size": 'Model(..., set={"train.batch": 32})', "shuffle": 'Model(..., set={"train.shuffle": True})',
    "learning_rate": 'Model(..., set={"train.optimizer.adam.lr": 0.01})',
    "lr": 'Model(..., set={"train.optimizer.adam.lr": 0.01})',
    "random_state": 'Model(..., set={"train.seed": 1})', "seed": 'Model(..., set={"train.seed": 1})',
    "verbose": "progress=False", "callbacks": "on_report", "callback": "on_report", "device": "executor",
    "class_weight": 'a transform {"class_weight": "balanced"} of a further input of the model',
}


def _check_options(function: str, known: Any, options: Dict[str, Any]) -> None:
    names = [*known, *_OPTIONS]
    for name in options:
        if name not in names:
            instead = f"; instead: {_INSTEAD[name]}" if name in _INSTEAD else near(name, names)
            raise TypeError(f"{function}() has no keyword {name!r}, only {', '.join(names)}{instead}")


_CSV_FORMAT = ("header", "delimiter", "decimal", "thousands", "percent", "comment")  # keys next to "csv"
_TABLE = "<table>"  # file of fit(table) in the data section


class Model:
    """A model to train and to predict with. Raises Error with all diagnostics if the source is invalid.

    A copy or a pickle of a fitted model holds its weights but no training data. It predicts bitwise identical values,
    except after training on a GPU: copies predict on the CPU.

    Parameters
    ----------
    source : path of a model file or of a safetensors file with the model inside, or the model as a str or a dict
    set : changes of settings as by --set of the command line, {"train.epochs": 5}
    data_dir : folder of relative data files (default: that of the model file)
    weights : file with the initial weights
    data : "values", "sizes" or "none" (default: read the data if they are needed and no arrays replace them)
    has_data : False if the data section of the source is a placeholder
    """

    def __init__(self, source: Any, *, set: Optional[Dict[str, Any]] = None,  # pylint: disable=redefined-builtin
                 data_dir: Any = None, weights: Any = None, data: Optional[str] = None, has_data: bool = True):
        self._options: Dict[str, Any] = {}
        for key, value in (("data_dir", data_dir), ("weights", weights)):
            if value is not None:
                self._options[key] = os.fspath(value)
        if set is not None:
            self._options["set"] = set
        if isinstance(source, dict):
            source = json.dumps(source, indent=1)  # for line numbers in messages
        self._is_text = isinstance(source, str) and source.lstrip().startswith("{")
        self._source = source if self._is_text else os.fspath(source)
        self._data = data
        self._has_data = has_data
        self._loaded = _Loaded(self, data or "none")
        self._description: Optional[Dict[str, Any]] = None
        self._columns: Dict[str, Dict[str, Array]] = {}
        self._names: Dict[str, List[Dict[str, Any]]] = {}  # columns of a DataFrame, if the model lists none
        self.session: Optional[Session] = None  # session of the last fit()
        self._predictor: Optional[Session] = None  # session with weights and without data
        self._weights: Optional[bytes] = None  # weights file of a copy of a fitted model
        self._executor = "cpu"  # executor for predictions of a copy

    def __getstate__(self) -> Dict[str, Any]:
        state = {**self.__dict__, "_loaded": None, "session": None, "_predictor": None}
        session = self.session or self._predictor
        if session is not None:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "w.safetensors")
                session.save_weights(path)
                with open(path, "rb") as file:
                    state["_weights"] = file.read()
            state["_columns"] = {}
            text = _model_text(state["_weights"])
            if text is not None:  # independent of the file of the model
                data_dir = self._options.get("data_dir", None if self._is_text else os.path.dirname(self._source))
                state.update(_source=text, _is_text=True, _options={"data_dir": data_dir} if data_dir else {})
        return state

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state, _loaded=_Loaded())
        if self._weights is not None:
            self._predictor = self._opened(self._loaded_with("none"), self._executor, {})

    def describe(self) -> Dict[str, Any]:
        """Returns inputs (with flag `target`) and outputs, with names, shapes and dtypes."""
        if self._description is None:
            loaded = self._loaded if self._loaded.handle else _Loaded(self, "none")
            self._description = json.loads(_library.text("gr_model_describe", loaded.handle))
        return self._description

    def set_data(self, split: str, **columns: Any) -> "Model":
        """Sets arrays of a split by input: set_data("train", x=..., y=...), also for "validation" and "test". They have
        shape (rows, *sample), in original units: the session applies the transforms of the model, fitted to "train".
        Columns of a DataFrame are selected by name. A session copies the arrays when it opens."""
        inputs = {one["name"]: one for one in self.describe()["inputs"]}
        for name, values in columns.items():
            values = as_table(values)
            if name not in inputs:
                raise TypeError(f"the model has no input {name}, only {', '.join(inputs)}")
            columns = inputs[name].get("columns", [])
            if not columns and split == "train":
                self._names[name] = [{"name": one, "words": []} for one in column_names(values)]
            values = in_columns(name, values, columns or self._names.get(name, []))
            self._columns.setdefault(split, {})[name] = _column(name, values, inputs[name])
        return self

    def open(self, executor: str = "cpu", **options: Any) -> Session:
        """Plans the model, allocates its memory and returns a Session. Options: those of gr_session_open (c.h).

        If the data files of a weights file do not exist, as for an imported ONNX file, the session can only predict.
        """
        _check_options("open", (), options)
        try:
            return self._opened(self._taken(), executor, options)
        except _library.Error as error:
            if error.code != "data.file_not_found" or self._data is not None or not self._is_weights():
                raise
            return self._opened(self._loaded_with("none"), executor, options)

    def _opened(self, loaded: "_Loaded", executor: str, options: Dict[str, Any]) -> Session:
        for split, columns in self._columns.items():
            for name, array in columns.items():
                kind = _library.Type(dtype=number_of_dtype(name, array), rank=array.ndim)
                for axis, extent in enumerate(array.shape):
                    kind.shape[axis] = extent
                _library.call("gr_model_set_data", loaded.handle, split.encode(), name.encode(), ctypes.byref(kind),
                              array.ctypes.data)
        if not isinstance(executor, str):
            raise TypeError(f"executor: expected a name such as \"cpu\", got {executor!r}")
        _library.prepare(executor)
        handle = ctypes.c_void_p()
        _library.call("gr_session_open", loaded.handle, _library.encoded({"executor": executor, **options}),
                      ctypes.byref(handle))
        session = Session(handle)
        for name, names in session._columns.items():
            session._columns[name] = names or self._names.get(name, [])
        return session

    def _taken(self) -> "_Loaded":
        """Returns a loaded model with its data, for a session to consume."""
        if not self._has_data and "train" not in self._columns:
            raise TypeError("the model has no data: pass arrays to fit(x, y) or set_data(\"train\", ...)")
        return self._loaded_with(self._data or ("none" if "train" in self._columns else "values"))

    def _loaded_with(self, data: str) -> "_Loaded":
        loaded, self._loaded = self._loaded, _Loaded()
        if self._weights is not None:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "w.safetensors")
                with open(path, "wb") as file:
                    file.write(self._weights)
                return _Loaded(self, data, {"weights": path})
        return loaded if loaded.handle and loaded.data == data else _Loaded(self, data)

    def _section(self, name: str) -> Dict[str, Any]:
        """Returns a section of the model, without changes to its parts by `set`."""
        text: Any = self._source
        if not self._is_text:
            with open(self._source, "rb") as file:
                text = file.read()
            text = _model_text(text) or "{}" if str(self._source).endswith(".safetensors") else text
        return (self._options.get("set") or {}).get(name) or json.loads(text).get(name, {})

    def _loaded_with_table(self, table: Any, key: str) -> "_Loaded":
        """Returns a loaded model whose source, data.source or data.train, has the rows of this table."""
        source = f"data.{key}"
        removed = {f"{source}.{one}": None for one in (*_CSV_FORMAT, "records") if one in self._section("data")[key]}
        changes = {**(self._options.get("set") or {}), **removed, f"{source}.csv": _TABLE}
        with tempfile.TemporaryDirectory() as folder:
            write_table(table, os.path.join(folder, _TABLE))
            return _Loaded(self, "values", {"set": changes, "data_dir": folder})

    def fit(self, x: Any = None, y: Any = None, *, validation: Any = None, sample_weight: Any = None,
            executor: str = "cpu", on_report: Optional[OnReport] = None, progress: Optional[bool] = None,
            **options: Any) -> "Model":
        """Trains from the initial weights, on arrays or on the data of the model file. Returns self.

        Parameters
        ----------
        x, y : arrays of shape (rows, *sample), in original units; for several inputs or targets a dict by name, or a
            DataFrame with the columns of all. They replace those of an earlier call, unless fit() cannot open a session.
            Without y, a table of pandas, polars or pyarrow replaces the CSV file or the records of the model: the
            section "data" applies to it
        validation : (x, y) of the validation split, or (x, y, sample_weight)
        sample_weight : weight of each row; the model reads it as its input "sample_weight" (default: 1)
        executor : "cpu", "ref", "cuda:1", "auto", or the path of a plug-in
        on_report, progress : those of Session.train()
        """
        _check_options("fit", ("x", "y", "validation", "sample_weight", "on_report", "progress"), options)
        session = self._fitting(x, y, validation, sample_weight, executor, options)
        session.train(on_report, progress=progress)
        self.session, self._executor = session, "ref" if executor == "ref" else "cpu"
        return self

    def _fitting(self, x: Any, y: Any, validation: Any, sample_weight: Any, executor: str,
                 options: Dict[str, Any]) -> Session:
        """Returns a session for fit(), with the given arrays."""
        if validation is not None and not (isinstance(validation, (tuple, list)) and len(validation) in (2, 3)):
            raise TypeError("fit: validation takes (x, y) or (x, y, sample_weight)")
        x, before, weights = as_table(x), (self._columns, self._weights), sample_weight
        replaced = self._replaced(x) if y is None and validation is None and weights is None else ""
        self._columns, self._weights = {} if replaced else dict(self._columns), None
        try:
            for split, given in (("train", (x, y, weights)), ("validation", validation or (None, None))):
                if not replaced and any(one is not None for one in given):
                    columns = self._named(*given)
                    self._columns[split] = {}
                    self.set_data(split, **columns)
            loaded = self._loaded_with_table(x, replaced) if replaced else self._taken()
            return self._opened(loaded, executor, options)
        except BaseException:
            self._columns, self._weights = before
            raise

    def _replaced(self, x: Any) -> str:
        """Returns the key in "data" of the table that a table x replaces: "source", "train", or "" for none."""
        if not column_names(x) or not self._has_data:
            return ""
        data = self._section("data")
        keys = [key for key in ("source", "train") if data.get(key, {}).keys() & {"csv", "records"}]
        return keys[0] if keys else ""

    def _named(self, x: Any, y: Any, sample_weight: Any = None) -> Dict[str, Any]:
        columns: Dict[str, Any] = {}
        described = self.describe()["inputs"]
        if any(i["name"] == "sample_weight" for i in described) and (sample_weight is not None or y is not None):
            columns["sample_weight"] = [1.0] * len(y) if sample_weight is None else sample_weight
        elif sample_weight is not None:
            raise TypeError("sample_weight: the model has no input of this name: declare it, and use it in the loss: "
                            '"mean(sample_weight * square(y_hat - y))"')
        for given, targets in ((x, False), (y, True)):
            inputs = [i for i in described if i["target"] == targets and i["name"] != "sample_weight"]
            names = [i["name"] for i in inputs]
            if given is None:
                continue
            if isinstance(given, dict):
                columns.update(given)
            elif len(names) == 1 or (names and column_names(given) and all(i.get("columns") for i in inputs)):
                columns.update((name, given) for name in names)
            else:
                raise TypeError(f"the model has the {'targets' if targets else 'inputs'} {', '.join(names) or 'none'}: "
                                "give a dict of them")
        return columns

    def _fitted(self) -> Session:
        if self.session is None:
            self.session = self._opened(self._taken(), "cpu", {})  # with the given or the initial weights
        return self.session

    def _is_weights(self) -> bool:
        return not self._is_text and ("weights" in self._options or str(self._source).endswith(".safetensors"))

    def _predicts(self) -> Session:
        """Returns the session for predictions. A weights file needs no data."""
        if self._predictor is None or self.session is not None:
            if self.session is not None or not self._is_weights() or self._data is not None or "train" in self._columns:
                return self._fitted()
            self._predictor = self._opened(self._loaded_with("none"), "cpu", {})
        return self._predictor

    def _raw(self, x: Any) -> Array:
        return self._predicts().predict(**x) if isinstance(x, dict) else self._predicts().predict(x)

    def predict(self, x: Any) -> Array:
        """Returns the first output for each row; for a classifier the class of each row, shape (rows,).

        A multi-label target gives 0 or 1 per label, shape (rows, labels). A decision threshold of the model applies.
        """
        output = self.describe()["outputs"][0]
        scores = self._raw(x)
        if not output["classes"]:
            return scores
        return _classes(scores, output, self._predicts().describe()["outputs"][0].get("thresholds"))

    def predict_proba(self, x: Any) -> Array:
        """Returns the probability of each class, shape (rows, classes), float64. Raises TypeError for regression."""
        import numpy

        output = self.describe()["outputs"][0]
        if not output["classes"]:
            raise TypeError(f"{output['name']} has no classes: use predict() for its values")
        scores = _probabilities(self._raw(x), output)
        return numpy.concatenate([1 - scores, scores], axis=-1) if scores.shape[-1] == 1 else scores

    def score(self, x: Any, y: Any) -> float:
        """Returns the accuracy of a classifier, else R², as score() of scikit-learn."""
        import numpy

        predicted, wanted = self.predict(x), as_array(y)
        if self.describe()["outputs"][0]["classes"]:
            if predicted.ndim > 1:  # all labels of a row are right
                return float((predicted == wanted).all(axis=-1).mean())
            if wanted.ndim > 1:
                wanted = wanted.argmax(axis=-1) if wanted.shape[-1] > 1 else wanted[..., 0]
            return float((predicted == wanted).mean())
        wanted = wanted.astype("float64").reshape(predicted.shape)
        left = ((wanted - predicted) ** 2).sum(axis=0)
        varies = ((wanted - wanted.mean(axis=0)) ** 2).sum(axis=0)
        return float(numpy.mean(numpy.where(varies > 0, 1 - left / numpy.where(varies > 0, varies, 1), left == 0)))

    def evaluate(self, split: str = "test") -> Dict[str, Any]:
        """Returns {"loss": ..., "metrics": {...}} over a split: "train", "validation" or "test"."""
        return self._fitted().evaluate(split)

    def save_weights(self, path: Any) -> None:
        """Writes safetensors with the model inside, which Model(path) reads, or NPZ."""
        self._predicts().save_weights(path)

    def verify(self, executor: str = "cpu", **options: Any) -> Dict[str, Any]:
        """Compares every step of an executor with the reference executor, on the data of the model. Returns {"passed":
        ..., ...}."""
        loaded = self._taken()
        _library.prepare(executor)
        return json.loads(_library.text("gr_verify", loaded.handle,
                                        _library.encoded({"executor": executor, **options})))


def _probabilities(scores: Array, output: Dict[str, Any]) -> Array:
    import numpy

    scores = scores.astype("float64")
    if output["scores"] == "softmax_logits":
        scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
    elif output["scores"] == "sigmoid_logits":
        scores = 1 / (1 + numpy.exp(-scores))
    return scores


def _classes(scores: Array, output: Dict[str, Any], thresholds: Any) -> Array:
    import numpy

    if output["multi_label"] or scores.shape[-1] == 1 or (thresholds and scores.shape[-1] == 2):
        above = (_probabilities(scores, output) >= thresholds if thresholds else
                 scores > (0.5 if output["scores"] == "plain" else 0)).astype("int64")
        if output["multi_label"]:
            return above
        numbers = above[..., -1]
    else:
        numbers = scores.argmax(axis=-1)
    return numpy.asarray(output["labels"])[numbers] if output["labels"] else numbers


class Ensemble:
    """Networks of one model that differ in their seed. `models` are the networks, each a Model.

    Parameters
    ----------
    source, **options : those of Model
    networks : number of networks. The first has the seed of the model, and its split of the rows is that of all
    """

    def __init__(self, source: Any, networks: int = 8, **options: Any):
        if operator.index(networks) < 2:
            raise ValueError(f"Ensemble: {networks} networks are fewer than 2")
        given = dict(options.pop("set", None) or {})
        first = Model(source, set=given, **options)
        seed = given.get("train.seed", first._section("train").get("seed", 0))
        if "split_seed" not in first._section("data"):
            with contextlib.suppress(_library.Error):  # the model does not split its rows
                given = Model(source, set={"data.split_seed": seed, **given}, **options)._options["set"]
        self.models = [Model(source, set={**given, "train.seed": seed + i}, **options) for i in range(networks)]

    def fit(self, x: Any = None, y: Any = None, *, validation: Any = None, sample_weight: Any = None,
            executor: str = "cpu", on_report: Optional[Callable[[int, Report], Any]] = None,
            at_once: Optional[int] = None, **options: Any) -> "Ensemble":
        """Trains the networks with the arguments of Model.fit() and train_many(), each with the bits of its own fit().
        Returns self. Raises the Error of the first network that failed."""
        _check_options("fit", ("x", "y", "validation", "sample_weight", "on_report", "at_once"), options)
        options = {"threads": 1, **options}
        sessions = [one._fitting(x, y, validation, sample_weight, executor, options) for one in self.models]
        for model, session, result in zip(self.models, sessions, train_many(sessions, on_report, at_once=at_once)):
            if result["error"] is not None:
                raise result["error"]
            model.session, model._executor = session, "ref" if executor == "ref" else "cpu"
        return self

    def predict(self, x: Any, return_std: bool = False) -> Any:
        """Returns the mean over the networks of the first output, in float64; for a classifier the class of the mean
        probabilities. With return_std, returns it and the sample standard deviation of the output or probabilities."""
        import numpy

        output = self.models[0].describe()["outputs"][0]
        values = numpy.stack([_probabilities(one._raw(x), output) for one in self.models])
        mean = values.mean(axis=0)
        if output["classes"]:
            chosen = [one._predicts().describe()["outputs"][0].get("thresholds") for one in self.models]
            thresholds = numpy.mean(chosen, axis=0).tolist() if all(chosen) else None
            mean = _classes(mean.astype("float32"), {**output, "scores": "plain"}, thresholds)
        return (mean, values.std(axis=0, ddof=1)) if return_std else mean

    def predict_proba(self, x: Any) -> Array:
        """Returns the mean probability of each class, shape (rows, classes). Raises TypeError for regression."""
        return sum(one.predict_proba(x) for one in self.models) / len(self.models)


class _Loaded:
    """Owner of a gr_model, which a session consumes."""

    def __init__(self, model: Optional[Model] = None, data: str = "", options: Optional[Dict[str, Any]] = None):
        self.handle = ctypes.c_void_p()
        self.data = data
        if model is None:
            return
        function = "gr_model_parse" if model._is_text else "gr_model_load"
        given = {**model._options, **(options or {}), "data": data}
        _library.call(function, os.fsencode(model._source), _library.encoded(given), ctypes.byref(self.handle))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            _library.lib.gr_model_free(self.handle)


def _model_text(weights: bytes) -> Optional[str]:
    """Returns the model inside the bytes of a safetensors file, or None if there is none."""
    header = json.loads(weights[8:8 + int.from_bytes(weights[:8], "little")])
    return header.get("__metadata__", {}).get("graphrun.model")


def _column(name: str, values: Any, wanted: Dict[str, Any]) -> Array:
    array = as_array(values)
    dtype = {"f32": "float32", "i32": "int32"}[wanted["dtype"]]
    sample: List[int] = wanted["shape"]
    if dtype == "float32" and has_more_digits(array):
        dtype = "float64"
    if array.dtype.kind in "biuf" and array.dtype.name != dtype and (wanted["dtype"] == "f32" or array.dtype.kind != "f"):
        array = converted(name, array, dtype)
    if array.ndim == 1 and sample == [1]:
        array = array.reshape(-1, 1)
    if array.ndim == 2 and array.shape[1] == 1 and not sample:
        array = array.reshape(-1)
    return array
