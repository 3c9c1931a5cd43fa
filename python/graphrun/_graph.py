"""GraphBuilder: a model written in Python. What it makes is a model file of format 1; the library checks it when the
model is made, and its messages name values as they are named here."""

import json
import math
import numbers
from typing import Any, Dict, Iterable, Optional, Union

from graphrun._model import Model

_FUNCTIONS_OF_METHODS = ("abs", "exp", "log", "sqrt", "square", "tanh", "sigmoid", "relu", "sum", "mean", "max", "min")


class Value:
    """A value of a graph. Operators and functions make new ones; a GraphBuilder's names are attributes of it."""

    __array_ufunc__ = None  # of NumPy: an array beside a value is a mistake, not an array of values

    def __init__(self, graph: "GraphBuilder", text: str, is_name: bool = False):
        self._graph, self._text, self._is_name = graph, text, is_name

    @property
    def name(self) -> str:
        """Its name in the model; a value that has none yet is given one."""
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

    def __add__(self, other: Any) -> "Value":
        return self._with("+", other)

    def __radd__(self, other: Any) -> "Value":
        return self._with("+", other, True)

    def __sub__(self, other: Any) -> "Value":
        return self._with("-", other)

    def __rsub__(self, other: Any) -> "Value":
        return self._with("-", other, True)

    def __mul__(self, other: Any) -> "Value":
        return self._with("*", other)

    def __rmul__(self, other: Any) -> "Value":
        return self._with("*", other, True)

    def __truediv__(self, other: Any) -> "Value":
        return self._with("/", other)

    def __rtruediv__(self, other: Any) -> "Value":
        return self._with("/", other, True)

    def __matmul__(self, other: Any) -> "Value":
        return self._with("@", other)

    def __pow__(self, other: Any) -> "Value":
        return self._with("^", other)

    def __rpow__(self, other: Any) -> "Value":
        return self._with("^", other, True)

    def __neg__(self) -> "Value":
        return Value(self._graph, f"-{self._operand()}")

    def __lt__(self, other: Any) -> "Value":
        return self._with("<", other)

    def __le__(self, other: Any) -> "Value":
        return self._with("<=", other)

    def __gt__(self, other: Any) -> "Value":
        return self._with(">", other)

    def __ge__(self, other: Any) -> "Value":
        return self._with(">=", other)

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
    """Inputs, parameters, layers and values; model() makes a Model of them.

        graph = graphrun.GraphBuilder()
        x, y = graph.input("x", 2), graph.input("y", 1)
        h = graph.dense("h", x, 4, activation="tanh")
        graph.loss = ((graph.dense("y_hat", h, 1) - y) ** 2).mean()
        model = graph.model(outputs={"y_hat": "y"}, optimizer={"adam": {"lr": 0.01}}, epochs=100)

    graph.NAME = value names a value, and graph.NAME is the value of that name.
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
        """A value by its name: graph["h.W"], a layer's parameter."""
        return self._names.get(name) or Value(self, name, True)

    def input(self, name: str, *shape: int, dtype: str = "f32") -> Value:
        """Of so many numbers a row: input("x", 784), input("label", dtype="i32")."""
        value, extents = self._declare(name), ["batch", *shape]
        self._inputs[name] = extents if dtype == "f32" else {"dtype": dtype, "shape": extents}
        return value

    def parameter(self, name: str, *shape: int, init: Any = "glorot_uniform", decay: bool = True) -> Value:
        value = self._declare(name)
        self._parameters[name] = {"shape": list(shape), "init": init, "decay": decay}
        return value

    def state(self, name: str, *shape: int, init: Any = "zeros") -> Value:
        """What no optimizer moves and assign() changes, once in each step of training."""
        value = self._declare(name)
        self._states[name] = {"shape": list(shape), "init": init}
        return value

    def assign(self, state: Value, value: Value, after: bool = False) -> None:
        """after: of the parameters as the step leaves them, for an average of weights; else as it finds them."""
        self._entries.append(f"assign({state.name}, {_operand_text(self, value)}{', after=true' if after else ''})")

    def runtime(self, name: str, value: float) -> Value:
        """A number that is set between steps: session[name] = 0.5."""
        declared = self._declare(name)
        self._constants[name] = {"runtime": value}
        return declared

    def dense(self, name: str, x: Value, units: int, activation: Optional[str] = None, **attributes: Any) -> Value:
        return self.layer("dense", name, x, units=units, activation=activation, **attributes)

    def layer(self, kind: str, name: str, *inputs: Value, **attributes: Any) -> Value:
        """A layer of the library (ops.md), whose parameters are named after it: layer("batch_norm", "n", h).
        layer("dense", "k", x, share="h") uses those of another."""
        given = {key: value for key, value in attributes.items() if value is not None}
        operands = [value.name for value in inputs]
        value = self._declare(name)
        self._entries.append({"name": name, "op": kind, "inputs": operands, **given})
        return value

    def call(self, function: str, *operands: Any, **attributes: Any) -> Value:
        """A function of the library: call("softmax_cross_entropy", logits, label)."""
        texts = [_operand_text(self, operand) for operand in operands]
        texts += [f"{key}={_literal(value)}" for key, value in attributes.items()]
        return Value(self, f"{function}({', '.join(texts)})")

    def model(self, *, outputs: Union[Dict[str, str], Iterable[str]], minimize: str = "loss",
              optimizer: Optional[Dict[str, Any]] = None, objectives: Optional[Dict[str, Any]] = None,
              name: str = "model", data: Any = None, **train: Any) -> Model:
        """outputs: {output: target}; optimizer: {"adam": {"lr": 0.01}}; objectives, in their place: {"critic": {"minimize":
        "d_loss", "parameters": ["D"], "optimizer": {"adam": {"lr": 0.001}}}, ...}; further keys are those of "train" in a model file:
        epochs, batch, seed, metrics, ... data: its section, where fit() is not given arrays."""
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
