"""Estimators of scikit-learn: a network that fit() builds for its data, or a model file of the user."""

import re
from numbers import Integral
from typing import Any, Dict, List, Optional, Tuple

try:
    import numpy
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_array, check_consistent_length, check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data
except ImportError as missing:
    raise ImportError("GraphRegressor and GraphClassifier need scikit-learn 1.6 or newer: pip install scikit-learn") from missing

from graphrun._arrays import as_table, column_names
from graphrun._library import Error
from graphrun._model import Model
from graphrun._session import OnReport

__all__ = ["GraphClassifier", "GraphRegressor"]

_WHOLE = ((type(None), Integral), "a whole number")
_FLAG = ((Integral, numpy.bool_), "True or False")
# Arguments behind settings of the model, by JSON pointer.
_ARGUMENTS = {"/train/batch": "batch_size", "/train/epochs": "epochs", "/train/seed": "random_state",
              "/train/early_stopping/patience": "patience", "/train/optimizer/[^/]+/lr": "learning_rate",
              "/train/optimizer": "optimizer", "/graph/[0-9]+/activation": "activation", "/graph/[0-9]+/units": "hidden"}
_KINDS = {"epochs": _WHOLE, "batch_size": _WHOLE, "patience": _WHOLE, "early_stopping": _FLAG, "verbose": _FLAG}

_PARAMETERS = """
    Columns of a DataFrame (pandas, polars, pyarrow) are selected by name, in any order. Columns of strings are one-hot
    encoded, and a string that fit() has not seen has no effect on a prediction. Missing values are replaced by the
    mean, or the most frequent string, of the training rows. Dates become days since 1970-01-01 (in UTC). Numbers are
    standardized.

    Parameters
    ----------
    hidden : units of the hidden layers
    activation : activation of the hidden layers, a name such as "relu" or "tanh"
    epochs, batch_size, optimizer, learning_rate : training settings (default: those of `model`; without it 200, 32,
        "adam" and 0.01). An optimizer is a name, or a dict as in a model file
    early_stopping : stop when the loss on validation rows has not improved for `patience` epochs
    validation_fraction : fraction of the rows for validation, if early stopping needs them
    random_state : seed (default: that of `model`, or 0). Equal seeds give bitwise identical predictions
    executor : "cpu", "ref", "cuda:1" or "auto"
    model : instead of the built network, a model file, its text or dict, or a Model; hidden and activation are then
        not used, nor are the data that the model names
    set : further settings as by --set of the command line: {"graph.h.units": 64}
    verbose : show a progress line

    Attributes
    ----------
    model_ : the fitted Model; save_weights() writes it for the command line
    n_features_in_ : number of columns
    feature_names_in_ : names of the columns, if fit() had a DataFrame
    target_names_ : names of the columns of y, or those of the targets of the model
"""


class _GraphEstimator(BaseEstimator):
    def __init__(self, *, hidden: Any = (32,), activation: str = "relu", epochs: Optional[int] = None,
                 batch_size: Optional[int] = None, optimizer: Any = None, learning_rate: Optional[float] = None,
                 early_stopping: bool = False, patience: int = 10, validation_fraction: float = 0.1,
                 random_state: Any = None, executor: str = "cpu", model: Any = None,
                 set: Optional[Dict[str, Any]] = None, verbose: bool = False):  # pylint: disable=redefined-builtin
        self.hidden = hidden
        self.activation = activation
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.early_stopping = early_stopping
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.executor = executor
        self.model = model
        self.set = set
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, on_report: Optional[OnReport] = None) -> Any:
        """Trains from the initial weights. Returns self.

        Parameters
        ----------
        X : array of shape (rows, columns), or a DataFrame
        y : targets of the rows
        sample_weight : weight of each row in the loss; a `model` must have an input "sample_weight"
        on_report : called with a Report after each epoch; a true result stops training
        """
        for name, (kinds, what) in _KINDS.items():
            if not isinstance(getattr(self, name), kinds):
                raise TypeError(f"{name}: expected {what}, got {getattr(self, name)!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction: expected a fraction between 0 and 1, got {self.validation_fraction!r}")
        X, names = _finite_table(X), column_names(y) or [getattr(y, "name", None)]
        checks: Dict[str, Any] = {"dtype": "numeric" if isinstance(self, RegressorMixin) else None, "ensure_2d": False}
        if column_names(X):
            validate_data(self, X, y, skip_check_array=True)
            y = check_array(y, input_name="y", **checks)
            check_consistent_length(X, y)
        else:
            X, y = validate_data(self, X, y, validate_separately=(
                {"ensure_all_finite": "allow-nan", "allow_nd": self.model is not None}, checks))
            check_consistent_length(X, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=numpy.float64, ensure_non_negative=True)
            sample_weight = sample_weight / (sample_weight.mean() or 1)
        given = self.model if self.model is None or isinstance(self.model, Model) else Model(self.model, data="none")
        y = self._encoded(y, given)
        named = all(isinstance(one, str) for one in names)
        columns: Dict[str, List[str]] = {}
        if given is None:
            columns = {name: _words(X[name]) for name in column_names(X)} or {f"x{i}": [] for i in range(X.shape[1])}
            targets = names if named and not columns.keys() & set(names) else []
            built = self._built(columns, y, targets, sample_weight is not None)
            given = self._named_errors(lambda: Model(built, data="none"))
        seed = self.random_state
        if seed is not None and not isinstance(seed, (int, numpy.integer)):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        model = self._changed(given, seed, on_report)
        parts = [one for one in (X, y, sample_weight) if one is not None]
        validation = None
        settings = {*model._section("train"), *(key.partition(".")[2] for key in model._options["set"])}
        if settings & {"early_stopping", "lr_plateau"}:
            parts = train_test_split(*parts, test_size=self.validation_fraction, random_state=seed or 0,
                                     stratify=y if isinstance(self, ClassifierMixin) else None)
            parts, validation = parts[::2], tuple(parts[1::2])
        self._named_errors(lambda: model.fit(
            parts[0], parts[1], sample_weight=parts[2] if len(parts) > 2 else None, validation=validation,
            executor=self.executor, on_report=on_report, progress=bool(self.verbose)))
        if any(columns.values()):
            _silence_unseen(model, columns)
        self.model_ = model
        target = model.describe()["outputs"][0]["target"]
        self.target_names_ = names if named else [target] if y.ndim == 1 else [f"{target}{i}" for i in range(y.shape[1])]
        self._finish(y)
        return self

    def _changed(self, given: Model, seed: Optional[int], on_report: Optional[OnReport]) -> Model:
        """Returns a model without data, with the settings of the estimator."""
        options = dict(given._options)
        changes = dict(options.pop("set", None) or {})
        for key, value in (("epochs", self.epochs), ("batch", self.batch_size), ("seed", seed),
                           ("optimizer", self.optimizer), ("log_every", None if on_report is None else 1),
                           ("early_stopping", {"patience": self.patience} if self.early_stopping else None)):
            if value is not None:
                changes[f"train.{key}"] = value
        if self.learning_rate is not None:
            optimizer = changes.get("train.optimizer") or given._section("train").get("optimizer", "adam")
            name = optimizer if isinstance(optimizer, str) else next(iter(optimizer))
            changes[f"train.optimizer.{name}.lr"] = self.learning_rate
        return self._named_errors(lambda: Model(given._source, set={**changes, **(self.set or {})}, data="none", **options))

    def _named_errors(self, load: Any) -> Model:
        """Returns the model of load(), whose errors name the arguments of the estimator."""
        try:
            return load()
        except Error as error:
            for one in error.diagnostics:
                pointer = one["pointer"] or re.sub(r"--set ([^=]*)=.*", lambda key: "/" + key[1].replace(".", "/"), one["file"])
                name = next((name for key, name in _ARGUMENTS.items() if re.match(key, pointer)), None)
                if name is None or getattr(self, name) is None or self.set or self.model is not None and "/graph" in pointer:
                    break
                hint = f"; {one['hint']}" if one["hint"] else ""
                raise Error(error.kind, f"{name}: {one['message']}{hint}", error.diagnostics) from None
            if self.model is not None:
                raise
            message = re.sub(r"^<text>:\d+:\d+: (/graph/\d+: )?", "", str(error), flags=re.M)  # places in the built network
            raise Error(error.kind, message, error.diagnostics) from None

    def _built(self, columns: Dict[str, List[str]], y: Any, targets: List[str], weighted: bool) -> Dict[str, Any]:
        """Returns a model file with a dense network over these columns, strings one-hot encoded."""
        x, target = (next(name for name in (one, one + "_", one + "__") if name not in columns) for one in "xy")
        transform: Dict[str, Any] = {x: ["standardize"]}
        if any(columns.values()):
            transform = {name: [{"one_hot": {"categories": _listed(words), "other": True}} if words else "standardize"]
                         for name, words in columns.items()}
        output, kind, transform[target], loss = self._head(y, target)
        units = [self.hidden] if isinstance(self.hidden, (int, numpy.integer)) else list(self.hidden)
        layers = [{"name": f"h{i + 1}", "op": "dense", "units": getattr(one, "item", lambda: one)(), "activation": self.activation}
                  for i, one in enumerate(units)] + [{"op": "dense", **output}]
        for layer, before in zip(layers, [x, *(layer["name"] for layer in layers)]):
            layer["inputs"] = [before]
        if not targets:
            targets = [target] if y.ndim == 1 else [f"{target}{i}" for i in range(y.shape[1])]
        return {
            "format": 1, "name": type(self).__name__,
            "data": {"train": {"csv": "table.csv", x: list(columns), target: targets,
                               "missing": {name: "most_frequent" if words else "mean" for name, words in columns.items()}},
                     "transform": transform},
            "inputs": {x: ["batch", sum(len(_listed(words)) + 1 for words in columns.values())], target: kind,
                       **({"sample_weight": ["batch"]} if weighted else {})},
            "graph": [*layers, f"loss = mean({'sample_weight * ' if weighted else ''}{loss})"],
            "outputs": {output["name"]: target},
            "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.01}}, "batch": 32, "shuffle": True, "epochs": 200}}

    def _outputs_of(self, method: str, X: Any) -> Any:
        check_is_fitted(self, "model_")
        X = _finite_table(X, getattr(self, "feature_names_in_", ()))
        if not set(column_names(X)).issuperset(getattr(self, "feature_names_in_", [None])):
            X = validate_data(self, X, reset=False, ensure_all_finite="allow-nan", allow_nd=self.model is not None)
        return getattr(self.model_, method)(X)

    def predict_frame(self, X: Any) -> Any:
        """Returns predictions as a pandas DataFrame, with the index of X and the columns `target_names_`; for a
        classifier also the probability of each class."""
        import pandas

        frame = pandas.DataFrame(self.predict(X), index=getattr(X, "index", None), columns=self.target_names_)
        if isinstance(self, ClassifierMixin):
            for label, values in zip(self.classes_, self.predict_proba(X).T):
                frame[f"probability.{label}"] = values
        return frame


class GraphRegressor(RegressorMixin, _GraphEstimator):
    __doc__ = "Regression by a network that minimizes the mean squared error.\n" + _PARAMETERS

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _encoded(self, y: Any, given: Optional[Model]) -> Any:
        return y.astype("float64")

    def _head(self, y: Any, target: str) -> Tuple[Dict[str, Any], Any, List[Any], str]:
        """Returns the last layer, the type and the transforms of the target, and the loss of each row."""
        width = 1 if y.ndim == 1 else y.shape[1]
        return ({"name": "y_hat", "units": width}, ["batch", width], ["standardize"],
                f"mean(square(y_hat - {target}), axis=1)")

    def _finish(self, y: Any) -> None:
        self._is_column_ = y.ndim == 1

    def predict(self, X: Any) -> Any:
        """Returns the first output, float64, of shape (rows,) or (rows, targets) as y of fit()."""
        values = self._outputs_of("predict", X).astype("float64")
        return values[:, 0] if self._is_column_ and values.shape[1:] == (1,) else values


class GraphClassifier(ClassifierMixin, _GraphEstimator):
    __doc__ = ("Classification by a network that minimizes the cross-entropy.\n" + _PARAMETERS +
               "    classes_ : labels of the classes, in the order of predict_proba()\n")

    def _encoded(self, y: Any, given: Optional[Model]) -> Any:
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        labels = given.describe()["outputs"][0]["labels"] if given is not None else []
        if labels:
            known = numpy.asarray(labels).astype(y.dtype if y.dtype.kind in "iuf" else object)
            self.classes_, self._order_ = numpy.unique(known, return_index=True)
            unknown = [one for one in numpy.unique(y) if one not in self.classes_]
            if unknown:
                raise ValueError(f"y: {str(unknown[0])!r} is not one of the classes of the model, {', '.join(labels)}")
            return self._order_[numpy.searchsorted(self.classes_, y)]
        self.classes_, encoded = numpy.unique(y, return_inverse=True)
        if given is not None and y.dtype.kind in "iu":  # class indices
            self.classes_, encoded = numpy.arange(y.max() + 1), y
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]}: a classifier needs two or more")
        self._order_ = numpy.arange(len(self.classes_))
        return encoded

    def _head(self, y: Any, target: str) -> Tuple[Dict[str, Any], Any, List[Any], str]:
        labels = [one if isinstance(one, (int, float)) and not isinstance(one, bool) else str(one)
                  for one in self.classes_.tolist()]
        return ({"name": "logits", "units": len(labels)}, {"dtype": "i32", "shape": ["batch"]}, [{"classes": labels}],
                f"softmax_cross_entropy(logits, {target})")

    def _finish(self, y: Any) -> None:
        shape = self.model_._fitted()._outputs[0][3]
        width = max(shape[0] if shape else 1, 2)
        if self.classes_.dtype.kind in "iu" and len(self.classes_) < width and self.model is not None:
            self.classes_, self._order_ = numpy.arange(width), numpy.arange(width)
        if len(self.classes_) != width:
            raise ValueError(f"y has {len(self.classes_)} classes, but the model {width}")

    def predict_proba(self, X: Any) -> Any:
        """Returns the probability of each class, shape (rows, classes), in the order of `classes_`."""
        return self._outputs_of("predict_proba", X)[:, self._order_]

    def predict(self, X: Any) -> Any:
        """Returns the most probable class of each row."""
        numbers = self.predict_proba(X).argmax(axis=1)
        return self.classes_[numbers]


def _finite_table(X: Any, names: Any = None) -> Any:
    """Returns X, converted by as_table(). Raises ValueError if one of these columns, or of all, contains infinity."""
    X = as_table(X)
    for name in column_names(X):
        array = numpy.asarray(X[name]) if names is None or name in names else numpy.empty(0)
        if array.dtype.kind == "f" and numpy.isinf(array).any():
            raise ValueError(f"X: the column {name!r} contains infinity")
    return X


def _listed(words: List[str]) -> List[str]:
    return [one for one in words if one != "other"]  # "other" is the last category, that of unseen strings


def _silence_unseen(model: Model, columns: Dict[str, List[str]]) -> None:
    """Sets the weights of the category of unseen strings to zero."""
    session, row = model._fitted(), -1
    states = [one["name"] for one in session.describe()["states"]]
    name = "h1.W" if "h1.W" in states else f"{session._outputs[0][0]}.W"
    weights = session[name]
    for words in columns.values():
        row += len(_listed(words)) + 1
        if words and "other" not in words:
            weights[row] = 0
    session[name] = weights


def _words(values: Any) -> List[str]:
    """Returns the sorted strings of a column, or an empty list if it holds numbers."""
    array = numpy.asarray(values)
    if array.dtype.kind not in "OUS":
        return []
    words = {one.strip() for one in array.tolist() if isinstance(one, str)} - {""}
    try:
        return [] if all(map(numpy.isfinite, map(float, words))) else sorted(words)
    except ValueError:
        return sorted(words)
