"""Reads a workload of bench/compare from its model file in bench/models/, so that all peers run the same model.

Supports only these files: a random table, a chain of dense layers, an optional embedding before them (rows of a
parameter `table`), one of three losses, and three optimizers. Anything else is an error. The workloads of
bench/models/steps/ are single steps over all rows with any graph; bench/torch_steps.py has their PyTorch versions.
A name like 16-64-64-1x4096 is a workload without a file: relu layers of these widths on 4,096 random rows, the squared
error, Adam, all rows in each step.
"""
import json
import pathlib
import re
import tempfile
from dataclasses import dataclass

FOLDER = pathlib.Path(__file__).resolve().parent / "models"
LOSSES = {
    "loss = mean(softmax_cross_entropy(out, y))": "softmax",
    "loss = mean(square(out - y))": "mse",
    "loss = mean(sigmoid_cross_entropy(out, y))": "sigmoid",
}
OPTIMIZERS = {"sgd": {"lr"}, "momentum": {"lr", "momentum", "l2"}, "adam": {"lr"}}


@dataclass
class Workload:
    name: str
    batch: int  # rows per step
    batches: int  # steps per epoch
    widths: list  # width of the input and of every layer
    activation: str  # activation of the hidden layers
    loss: str  # softmax, mse, sigmoid
    optimizer: str
    numbers: dict  # lr, momentum, l2
    table: tuple = None  # embedding: entries and width (equals widths[0])


@dataclass
class Step:
    """A workload of bench/models/steps/, with its model file."""

    name: str
    model: dict
    batches: int = 1

    @property
    def optimizer(self):
        return next(iter(self.model["train"]["optimizer"].items()))


def names():
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def names_of_steps():
    return sorted(path.stem for path in FOLDER.glob("steps/*.json"))


def dense_network(widths, rows):
    layers = [{"name": f"h{i}" if i < len(widths) - 1 else "out", "op": "dense", "inputs": [f"h{i - 1}" if i > 1 else "x"],
               "units": width, "activation": "relu"} for i, width in enumerate(widths) if i > 0]
    del layers[-1]["activation"]
    columns = {"a": {"normal": 1, "shape": [widths[0]]}, "b": {"normal": 1, "shape": [widths[-1]]}}
    return {
        "format": 1, "name": "network",
        "data": {"train": {"random": {"rows": rows, "seed": 0, "columns": columns}, "x": ["a"], "y": ["b"]}},
        "inputs": {"x": ["batch", widths[0]], "y": ["batch", widths[-1]]},
        "graph": layers + ["loss = mean(square(out - y))"], "outputs": {"out": "y"},
        "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.001}}, "batch": "all", "epochs": 1, "seed": 1},
    }


def path_of(name):
    if network := re.fullmatch(r"(\d+(?:-\d+)+)x(\d+)", name):
        path = pathlib.Path(tempfile.gettempdir()) / f"{name}.json"
        path.write_text(json.dumps(dense_network(list(map(int, network[1].split("-"))), int(network[2])), indent=2))
        return path
    path = FOLDER / "steps" / f"{name}.json"
    return path if path.exists() else FOLDER / f"{name}.json"


# TF32 operations and bytes per second, from the data sheets of the SXM modules.
PEAKS = {"H100": (494.7e12, 3.35e12), "H200": (494.7e12, 4.8e12)}


def limit(workload, device, tf32):
    """Returns the least time of a step's products in µs on the GPU, None for others. A product takes as long as its
    operations (in f32, three TF32 products of parts) or as memory takes for its operands and its result."""
    peaks = next((peaks for name, peaks in PEAKS.items() if name in device), None)
    if peaks is None or isinstance(workload, Step):
        return None
    total, rows = 0, workload.batch
    for layer, (features, units) in enumerate(zip(workload.widths, workload.widths[1:])):
        operations = 2 * rows * features * units * (1 if tf32 else 3)
        moved = 4 * (rows * features + features * units + rows * units)
        total += (2 if layer == 0 else 3) * max(operations / peaks[0], moved / peaks[1])
    return total * 1e6


def check(condition, path, what):
    if not condition:
        raise SystemExit(f"{path}: {what}")


def read(name):
    path = path_of(name)
    check(path.exists(), path, f"there is no such workload; there are {', '.join(names() + names_of_steps())}")
    model = json.loads(path.read_text())
    if name in names_of_steps():
        check(model["train"]["batch"] == "all", path, "a batch that is not all rows")
        return Step(name, model)
    *layers, loss = model["graph"]
    check(loss in LOSSES, path, f"a loss that the peers do not know: {loss!r}")
    table, previous = None, "x"
    if layers[0] == "h0 = gather(table, x)":
        table, previous = tuple(model["parameters"]["table"]["shape"]), "h0"
        del layers[0]
    widths, activations = [table[1] if table else model["inputs"]["x"][1]], []
    for layer in layers:
        known = layer["op"] == "dense" and layer["inputs"] == [previous]
        check(known, path, f"a layer that the peers do not know: {layer}")
        widths.append(layer["units"])
        activations.append(layer.get("activation"))
        previous = layer["name"]
    check(previous == "out" and activations.pop() is None, path, "the last layer is 'out', without an activation")
    check(len(set(activations)) <= 1, path, "the hidden layers differ in their activation")
    check(set(activations) <= {"relu", "tanh"}, path, f"activations that the peers do not know: {activations}")
    (optimizer, numbers), = model["train"]["optimizer"].items()
    check(OPTIMIZERS.get(optimizer) == set(numbers), path, f"an optimizer that the peers do not know: {optimizer} {numbers}")
    rows = model["data"]["train"]["random"]["rows"]
    batch = rows if model["train"]["batch"] == "all" else model["train"]["batch"]
    check(rows % batch == 0, path, "the last batch is not full")
    activation = activations[0] if activations else "relu"
    return Workload(name, batch, rows // batch, widths, activation, LOSSES[loss], optimizer, numbers, table)


if __name__ == "__main__":
    for workload in map(read, names() + names_of_steps()):
        print(workload)
