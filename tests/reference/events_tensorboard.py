#!/usr/bin/env python3
"""Event files beside TensorBoard's own reader.

    events_tensorboard.py GRAPHRUN

It reads 1,000 of 1,000 events of a run, with the values of the CSV beside it; of a file that is cut at any byte all
events before the cut; and of a folder with a second run the events of that one.
Exit code: 0 it does, 1 it does not, 77 the package is not installed.
"""

import csv
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MODEL = {
    "format": 1,
    "name": "line",
    "data": {
        "train": {"inline": {"x": [[0], [1], [2], [3]], "y": [[1], [3], [5], [7]]}},
        "validation": {"inline": {"x": [[4], [5]], "y": [[9], [11]]}},
    },
    "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
    "graph": [{"name": "p", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mean((p - y) ^ 2)"],
    "outputs": {"p": "y"},
    "train": {"minimize": "loss", "metrics": ["rmse"], "optimizer": {"sgd": {"lr": 0.01}}, "epochs": 1000,
              "log_every": 1, "evaluate_every": 1, "seed": 1},
}


def curves(folder):
    """{tag: [(step, value)]}"""
    events = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    found = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    for tag in events.Tags()["tensors"]:
        found[tag] = [(e.step, tensor_util.make_ndarray(e.tensor_proto).item()) for e in events.Tensors(tag)]
    return found


def single(text):
    return struct.unpack("f", struct.pack("f", float(text)))[0]


def main(graphrun):
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        with open(path("line.json"), "w") as file:
            json.dump(MODEL, file)

        def train(*flags):
            subprocess.run([graphrun, path("line.json"), "-q", "--tensorboard", path("events"), *flags], check=True,
                           stdout=subprocess.DEVNULL)

        train("--log", path("log.csv"))
        found = curves(path("events"))
        with open(path("log.csv")) as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 1000
        for tag, column in (("loss/train", "loss"), ("loss/validation", "validation_loss"),
                            ("rmse/validation", "validation_rmse")):
            assert len(found[tag]) == 1000, (tag, len(found[tag]))
            for (step, value), row in zip(found[tag], rows):
                assert step == int(row["step"]) and value == single(row[column]), (tag, step, value, row)

        whole = open(glob.glob(path("events/*"))[0], "rb").read()
        for cut in (0, 5, 60, 500, 4000, len(whole) - 1):
            os.makedirs(path(f"cut{cut}"))
            with open(path(f"cut{cut}/events.out.tfevents.1.graphrun"), "wb") as file:
                file.write(whole[:cut])
            part = curves(path(f"cut{cut}")).get("loss/train", [])
            assert part == found["loss/train"][: len(part)]
            assert cut != len(whole) - 1 or len(part) == 999, len(part)

        train("--epochs=10")
        again = curves(path("events"))["loss/train"]
        assert [step for step, _ in again] == list(range(1, 11)), again
    print("TensorBoard reads 1,000 of 1,000 events, what a cut leaves, and the newer of two runs")


if __name__ == "__main__":
    main(sys.argv[1])
