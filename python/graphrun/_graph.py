"""GraphBuilder: writes a model file of format 1 from Python code. GraphBuilder.model() checks it in the library, whose
messages have the names given in Python."""

import json
import math
import numbers
from typing import Any, Callable, Dict, Iterable, Optional, Union

from graphrun._model import Model

_FUNCTIONS_OF_METHODS = ("abs", "exp", "log", "sqrt", "square", "tanh", "sigmoid", "relu", "sum", "mean", "max", "min")


def _operator(symbol: str, swapped: bool = False) -> "Callable[[Value, Any], Value]":
    return lambda value, other: value._with(symbol, other, swapped)


class Value:
    """A value of a graph. Operators and methods such as mean() make new values."""

    __array_ufunc__ = None  # NumPy: operators on an array and a value raise TypeError

    def __init__(self, graph: "GraphBuilder", text: str, is_name: bool = False):
        self._graph, self._text, self._is_name = graph, text, is_name

    @property
    def name(self) -> str:
        """Name in the model. Reading it names an unnamed value."""
        if not self._is_name:
            self._text, self._is_name = self._graph._define(self._text), True
        return self._text

    def __repr__(self) -> str:
        return f"<graphrun value {self._text}>"

    def _operand(self) -> str:
        return self._text if self._is_name else f"({self._text})"

    def _with(self, operator: str, other: Any, swapped: bool = False) -> "Value":
        if not isinstance(other, (Value, numbers.Real)):
            return NotImplemented
        parts = [self._operand(), _operand_text(self._graph, other)]
        return Value(self._graph, f" {operator} ".join(reversed(parts) if swapped else parts))

    __add__, __radd__ = _operator("+"), _operator("+", True)
    __sub__, __rsub__ = _operator("-"), _operator("-", True)
    __mul__, __rmul__ = _operator("*"), _operator("*", True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", True)
    __pow__, __rpow__ = _operator("^"), _operator("^", True)
    __matmul__ = _operator("@")
    __lt__, __le__, __gt__, __ge__ = _operator("<"), _operator("<="), _operator(">"), _operator(">=")

    def __neg__(self) -> "Value":
        return Value(self._graph, f"-{self._operand()}")

    def __bool__(self) -> bool:
        raise TypeError("a value of a graph is computed later: where(condition, a, b) chooses")

    def __getattr__(self, name: str) -> Any:
        if name not in _FUNCTIONS_OF_METHODS:
            raise AttributeError(f"a value has no {name!r}: graph.call({name!r}, value) calls a function of the library")
        return lambda **attributes: self._graph.call(name, self, **attributes)

    @property
    def T(self) -> "Value":  # pylint: disable=invalid-name
        return self._graph.call("transpose", self)


def _operand_text(graph: "GraphBuilder", value: Union[Value, numbers.Real]) -> str:
    if isinstance(value, Value):
        if value._graph is not graph:
            raise ValueError(f"{value!r} is of another graph")
        return value._operand()
    number = int(value) if isinstance(value, numbers.Integral) else float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} in a formula is not finite")
    return f"({json.dumps(number)})" if number < 0 else json.dumps(number)


def _literal(value: Any) -> str:
    if isinstance(value, Value):
        return value.name
    if isinstance(value, str):
        return value
    return "none" if value is None else json.dumps(value)


class GraphBuilder:
    """Builds inputs, parameters, layers and values; model() makes a Model of them.

        graph = graphrun.GraphBuilder()
        x, y = graph.input("x", 2), graph.input("y", 1)
        h = graph.dense("h", x, 4, activation="tanh")
        graph.loss = ((graph.dense("y_hat", h, 1) - y) ** 2).mean()
        model = graph.model(outputs={"y_hat": "y"}, optimizer={"adam": {"lr": 0.01}}, epochs=100)

    graph.NAME = value names a value, and graph.NAME returns it. A name that is in use raises ValueError.
    """

    _inputs: Dict[str, Any]
    _parameters: Dict[str, Any]
    _states: Dict[str, Any]
    _constants: Dict[str, Any]
    _entries: list
    _names: Dict[str, Value]

    def __init__(self) -> None:
        for name, value in (("_inputs", {}), ("_parameters", {}), ("_states", {}), ("_constants", {}), ("_entries", []),
                            ("_names", {})):
            object.__setattr__(self, name, value)

    def _declare(self, name: str) -> Value:
        if name in self._names:
            raise ValueError(f"the graph has a value {name} already")
        self._names[name] = Value(self, name, True)
        return self._names[name]

    def _define(self, text: str, name: Optional[str] = None) -> str:
        name = name or f"value_{len(self._entries) + 1}"
        self._declare(name)
        self._entries.append(f"{name} = {text}")
        return name

    def __setattr__(self, name: str, value: Value) -> None:
        if not isinstance(value, Value) or value._graph is not self:
            raise TypeError(f"graph.{name} takes a value of this graph")
        self._define(value._text, name)

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__") or name not in self._names:
            raise AttributeError(f"the graph has no value {name!r}")
        return self._names[name]

    def __getitem__(self, name: str) -> Value:
        """Returns a value by name, such as the parameter graph["h.W"] of a layer."""
        return self._names[name] if name in self._names else Value(self, name, True)

    def input(self, name: str, *shape: int, dtype: str = "f32") -> Value:
        """Declares an input; `shape` is that of one row: input("x", 784), input("label", dtype="i32")."""
        value, extents = self._declare(name), ["batch", *shape]
        self._inputs[name] = extents if dtype == "f32" else {"dtype": dtype, "shape": extents}
        return value

    def parameter(self, name: str, *shape: int, init: Any = "glorot_uniform", decay: bool = True) -> Value:
        """Declares a trained parameter; `decay` says whether weight decay applies to it."""
        value = self._declare(name)
        self._parameters[name] = {"shape": list(shape), "init": init, "decay": decay}
        return value

    def state(self, name: str, *shape: int, init: Any = "zeros") -> Value:
        """Declares a state that assign() updates in each training step."""
        value = self._declare(name)
        self._states[name] = {"shape": list(shape), "init": init}
        return value

    def assign(self, state: Value, value: Value, after: bool = False) -> None:
        """Updates a state in each step. With `after`, `value` uses the updated parameters, for averages of weights."""
        self._entries.append(f"assign({state.name}, {_operand_text(self, value)}{', after=true' if after else ''})")

    def runtime(self, name: str, value: float) -> Value:
        """Declares a runtime hyperparameter, set between steps by session[name] = 0.5."""
        declared = self._declare(name)
        self._constants[name] = {"runtime": value}
        return declared

    def dense(self, name: str, x: Value, units: int, activation: Optional[str] = None, **attributes: Any) -> Value:
        return self.layer("dense", name, x, units=units, activation=activation, **attributes)

    def layer(self, kind: str, name: str, *inputs: Value, **attributes: Any) -> Value:
        """Adds a layer of the library (ops.md), such as layer("batch_norm", "n", h). Parameters are named n.scale, n.b;
        layer("dense", "k", x, share="h") uses the parameters of h."""
        given = {key: value for key, value in attributes.items() if value is not None}
        operands = [value.name for value in inputs]
        value = self._declare(name)
        self._entries.append({"name": name, "op": kind, "inputs": operands, **given})
        return value

    def call(self, function: str, *operands: Any, **attributes: Any) -> Value:
        """Applies a function of the library (ops.md): call("softmax_cross_entropy", logits, label)."""
        texts = [_operand_text(self, operand) for operand in operands]
        texts += [f"{key}={_literal(value)}" for key, value in attributes.items()]
        return Value(self, f"{function}({', '.join(texts)})")

    def model(self, *, outputs: Union[Dict[str, str], Iterable[str]], minimize: str = "loss",
              optimizer: Optional[Dict[str, Any]] = None, objectives: Optional[Dict[str, Any]] = None,
              name: str = "model", data: Any = None, **train: Any) -> Model:
        """Makes a Model of the graph. Raises Error if the model is invalid.

        Parameters
        ----------
        outputs : {output: target}, or names of outputs without targets
        optimizer : {name: hyperparameters} (default: {"adam": {"lr": 0.001}})
        objectives : instead of minimize and optimizer, for several losses: {"critic": {"minimize": "d_loss",
            "parameters": ["D"], "optimizer": {"adam": {"lr": 0.001}}}, ...}
        data : data section of the model file (default: fit() must have arrays)
        train : other keys of "train" in the model file: epochs, batch, seed, metrics, ...
        """
        aims = {"objectives": objectives} if objectives else {
            "minimize": minimize, "optimizer": optimizer or {"adam": {"lr": 0.001}}}
        given = data if data is not None else {"train": {"npz": "arrays.npz"}}
        document = {"format": 1, "name": name, "constants": self._constants, "data": given, "inputs": self._inputs,
                    "parameters": self._parameters, "graph": self._entries,
                    "outputs": outputs if isinstance(outputs, dict) else list(outputs),
                    "train": {**aims, **train}}
        if self._states:
            document["states"] = self._states
        return Model(document, has_data=data is not None)
