#!/usr/bin/env python3
"""Weights as safetensors beside the Python package of that name, in its NumPy flavour.

    safetensors_numpy.py GRAPHRUN

It loads what graphrun saves, with the values of the NPZ; graphrun loads what it saves: in its order of tensors, with
headers of any length, with and without the texts, and predicts the same bytes; and graphrun refuses what the package
refuses, and two things more. The same of checkpoints, which are weights with more tensors.
Exit code: 0 both agree, 1 they do not, 77 the package is not installed.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file, save, save_file
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MODEL = {
    "format": 1,
    "name": "houses",
    "data": {
        "source": {"csv": "houses.csv", "missing": "mean", "x": ["age", "rooms"], "y": "price"},
        "split": [0.8, 0.1, 0.1],
        "transform": {"x": ["standardize"], "y": ["standardize"]},
    },
    "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
    "graph": [
        {"name": "h", "op": "dense", "inputs": ["x"], "units": 5, "activation": "tanh"},
        {"name": "p", "op": "dense", "inputs": ["h"], "units": 1},
        "loss = mean((p - y)^2)",
    ],
    "outputs": {"p": "y"},
    "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.05}}, "epochs": 30, "seed": 3},
}
failures = []


def check(right, what):
    if not right:
        failures.append(what)
        print(f"wrong: {what}")


def run(*words):
    done = subprocess.run([sys.argv[1], *words, "-q"], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr}"


def with_header(text, values):
    return struct.pack("<Q", len(text)) + text + values


def ours_is_loaded(safe, npz):
    with safe_open(safe, "numpy") as file:
        texts = file.metadata()
    tensors = load_file(safe)
    check(set(npz) - set(tensors) == {"data:origin"} and set(tensors) <= set(npz), "the names of the tensors")
    for name, tensor in tensors.items():
        same = tensor.dtype == npz[name].dtype and tensor.tobytes() == npz[name].tobytes()
        check(same and tensor.shape == npz[name].shape, f"the values of {name}")
    check(json.loads(texts["graphrun.model"])["name"] == "houses", "the model inside")
    check(texts["graphrun.origin"].encode() == bytes(npz["data:origin"].astype("u1")), "the origin of the data")
    return tensors, texts


def theirs_is_loaded(tensors, texts, expected):
    save_file(tensors, "theirs.safetensors", metadata=texts)
    check(run("predict", "theirs.safetensors", "new.csv") == expected, "their file with the model inside")
    save_file(dict(reversed(tensors.items())), "bare.safetensors")
    check(run("predict", "houses.json", "new.csv", "--weights", "bare.safetensors") == expected, "their bare file")
    # Headers of any length: values at every residue of their alignment.
    whole = save(tensors, metadata=texts)
    (length,) = struct.unpack("<Q", whole[:8])
    header, values = whole[8 : 8 + length].rstrip(b" "), whole[8 + length :]
    for spaces in range(8):
        with open("odd.safetensors", "wb") as file:
            file.write(with_header(header + b" " * spaces, values))
        load_file("odd.safetensors")
        check(run("predict", "odd.safetensors", "new.csv") == expected, f"values behind {spaces} spaces")
    # Other types: f16 is widened, f64 rounded; PyTorch's Linear layers are transposed.
    half = {name: t.astype("float16") if name == "h.W" else t for name, t in tensors.items()}
    save_file(half, "half.safetensors")
    save_file(half | {"h.W": half["h.W"].astype("float32")}, "rounded.safetensors")
    said, rounded = (run("predict", "houses.json", "new.csv", "--weights", f"{name}.safetensors") for name in ("half", "rounded"))
    check(said == rounded and said != expected, f"half precision: {said}")
    wide = {name: t.astype("float64") for name, t in tensors.items()}
    save_file(wide, "wide.safetensors")
    check(run("predict", "houses.json", "new.csv", "--weights", "wide.safetensors") == expected, "double precision")
    linear = {name.replace(".W", ".weight").replace(".b", ".bias"): t.T.copy() for name, t in tensors.items()}
    save_file(linear, "linear.safetensors")
    check(run("predict", "houses.json", "new.csv", "--weights", "linear.safetensors") == expected, "Linear layers")


def checkpoints_are_loaded(npz, expected):
    """They are weights with more tensors; what the package saves of them is weights again, and no checkpoint."""
    run("train", "houses.json", "--checkpoint-dir", "ck")
    path = "ck/" + max(name for name in os.listdir("ck") if name != "best.safetensors")
    tensors = load_file(path)
    with safe_open(path, "numpy") as file:
        texts = file.metadata()
    for name, tensor in npz.items():
        if ":" not in name:
            check(tensors[name].tobytes() == tensor.tobytes(), f"{name} of a checkpoint")
    steps = tensors["checkpoint:train/step:counter"]
    check(steps.dtype == numpy.uint64 and steps.shape == () and int(steps) == 30, "the steps of a checkpoint")
    check(tensors["checkpoint:h.W:m"].shape == (2, 5), "a slot of a checkpoint")
    check(texts["checkpoint.seed"] == "3", "the texts of a checkpoint")
    check(run("predict", path, "new.csv") == expected, "the prediction of a checkpoint")
    save_file(tensors, "again.safetensors", metadata=texts)
    check(run("predict", "again.safetensors", "new.csv") == expected, "the prediction of a checkpoint that they saved")
    said = run("train", "houses.json", "--resume=again.safetensors")
    check("is damaged" in said, f"a checkpoint that they saved: {said}")


def broken_ones_are_refused():
    one = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    broken = {
        "trailing bytes": with_header(one + b"}", bytes(5)),
        "too few bytes": with_header(one + b"}", bytes(3)),
        "a hole": with_header(one + b',"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}}', bytes(6)),
        "an overlap": with_header(one + b',"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}', bytes(5)),
        "a wrong length": with_header(one.replace(b"[1]", b"[2]") + b"}", bytes(4)),
        "an overflow": with_header(one.replace(b"[1]", b"[4611686018427387905,4]") + b"}", bytes(4)),
        "a negative offset": with_header(one.replace(b"[0,4]", b"[-4,0]") + b"}", bytes(4)),
        "a list": with_header(b"[]", b""),
        "a text that is none": with_header(b'{"__metadata__":{"a":1}}', b""),
        "a header that is too long": struct.pack("<Q", 100_000_001) + b"{}",
        "a header beyond the file": struct.pack("<Q", 100) + b"{}",
        "nothing": b"",
    }
    # What the format's description forbids and the package reads all the same.
    forbidden = {
        "a space first": with_header(b" {}", b""),
        "a name twice": with_header(one + b"," + one[1:] + b"}", bytes(4)),
    }
    for what, content in {**broken, **forbidden}.items():
        with open("broken.safetensors", "wb") as file:
            file.write(content)
        try:
            load_file("broken.safetensors")
            check(what in forbidden, f"the package reads {what}")
        except SafetensorError:
            check(what in broken, f"the package refuses {what}")
        said = run("predict", "houses.json", "new.csv", "--weights", "broken.safetensors")
        check(said.startswith("exit code 2: 'broken.safetensors': "), f"{what}: {said}")


def main():
    sys.argv[1] = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("houses.json", "w") as file:
            json.dump(MODEL, file)
        with open("houses.csv", "w") as file:
            file.write("age,rooms,price\n")
            for i in range(60):
                age, rooms = i * 7 % 50, 1 + i * 3 % 8
                file.write(f"{age if i % 9 else ''},{rooms},{1000 * rooms - 20 * age + 500}\n")
        with open("new.csv", "w") as file:
            file.write("rooms,age\n3,10\n5,\n2,33\n")
        for name in ("w.safetensors", "w.npz"):
            run("train", "houses.json", "--save-weights", name)
        npz = dict(numpy.load("w.npz"))
        expected = run("predict", "houses.json", "new.csv", "--weights", "w.npz")
        check(expected.startswith("p\n") and len(expected.split()) == 4, f"the prediction: {expected}")
        check(run("predict", "w.safetensors", "new.csv") == expected, "the prediction from one file")
        tensors, texts = ours_is_loaded("w.safetensors", npz)
        theirs_is_loaded(tensors, texts, expected)
        checkpoints_are_loaded(npz, expected)
        save_file(npz, "converted.safetensors")
        check(run("eval", "houses.json", "--weights", "converted.safetensors") == run("eval", "w.safetensors"),
              "an NPZ that was converted")
        broken_ones_are_refused()
        os.chdir("/")
    print("safetensors: all agree" if not failures else f"{len(failures)} do not agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
