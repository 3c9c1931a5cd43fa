#!/usr/bin/env python3
"""The node cases of the package onnx: import-onnx reads each one and predicts its outputs, or names what it rejects.

    onnx_node_cases.py GRAPHRUN LIBRARY SOURCES [--list] [--op NAME]

A case is a file with one or a few nodes, inputs and reference outputs. Weights of convolutions, which the cases pass
as inputs, become initializers, as in other files. An imported case must equal the reference in shape and value. A
rejection must exit with code 2 and name the node with its op, or an input with its dtype. At least 480 cases must be
equal. Where onnxruntime is installed and evaluates an imported case, it must agree too. --list prints a line for each
case; --op limits the run to the cases with this op.
Exit code: 0 all agree, 1 they do not, 77 the package onnx is missing.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import onnx
    from onnx.backend.test.case.node import collect_testcases
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
except ImportError:
    onnxruntime = None

parser = argparse.ArgumentParser()
parser.add_argument("graphrun")
parser.add_argument("library")
parser.add_argument("sources")
parser.add_argument("--list", action="store_true")
parser.add_argument("--op")
arguments = parser.parse_args()
os.environ["GRAPHRUN_LIBRARY"] = arguments.library
sys.path.insert(0, os.path.join(arguments.sources, "python"))
import graphrun  # noqa: E402  pylint: disable=wrong-import-position

MIN_EQUAL = 480
NAMED = re.compile(r"node '[^']*' \(\w+\): |dtype \w+ of the input '")


def renamed(name):
    """The name of an input or output in the model."""
    name = re.sub(r"[^A-Za-z0-9.]+", "_", name).strip("_.")
    reserved = {"and", "or", "not", "true", "false", "none", "pi", "e", "batch"}
    return "v_" + name if not name or name[0].isdigit() or name in reserved else name


def array(value):
    if isinstance(value, list):  # ZipMap
        value = [list(row.values()) for row in value]
    return np.asarray(onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value)


def same(got, wanted, case):
    got, wanted = array(got), array(wanted)
    if got.shape != wanted.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    if np.allclose(got, wanted, rtol=max(case.rtol, 1e-5), atol=max(case.atol, 1e-6), equal_nan=True):
        return ""
    return f"off by {np.nanmax(np.abs(got - wanted))}"


def predicted(path, inputs, outputs):
    """Outputs of the imported model for one call."""
    model = graphrun.Model(path, data="none")
    sample = {one["name"]: one for one in model.describe()["inputs"] if not one["target"]}
    given, by_call = {}, True
    for info, value in inputs:
        name = renamed(info)
        if name not in sample:
            continue  # no output needs it
        value = array(value).astype(np.float32 if sample[name]["dtype"] == "f32" else np.int32)
        by_call = len(sample[name]["shape"]) == value.ndim
        given[name] = value[None] if by_call else value
    results = model.open("ref").predict_all(**given)
    return [results[renamed(name)][0] if by_call else results[renamed(name)] for name in outputs]


def with_weights(case):
    """The model of a case, and its inputs by name."""
    model, inputs = case.model, dict(zip([info.name for info in case.model.graph.input], case.data_sets[0][0]))
    if len(model.graph.node) == 1 and model.graph.node[0].op_type in ("Conv", "ConvTranspose"):
        for name in list(inputs)[1:]:
            model.graph.initializer.append(onnx.numpy_helper.from_array(array(inputs.pop(name)), name))
        del model.graph.input[1:]
    return model, inputs


def tried(case):
    """("equal" | "rejected" | "wrong", details) of a case."""
    source, target = os.path.join(FOLDER, "case.onnx"), os.path.join(FOLDER, "case.safetensors")
    model, inputs = with_weights(case)
    with open(source, "wb") as file:
        file.write(model.SerializeToString())
    done = subprocess.run([arguments.graphrun, "import-onnx", source, "-o", target], capture_output=True, text=True)
    if done.returncode != 0:
        message = done.stderr.strip().replace(source + ": ", "").split("\n")[0]
        return ("rejected" if done.returncode == 2 and NAMED.search(done.stderr) else "wrong"), message
    wanted = case.data_sets[0][1]
    try:
        got = predicted(target, list(inputs.items()), [info.name for info in model.graph.output])
    except Exception as error:  # pylint: disable=broad-except
        return "wrong", f"{type(error).__name__}: {error}"
    for one, reference in zip(got, wanted):
        if different := same(one, reference, case):
            return "wrong", different
    if onnxruntime:
        try:
            session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
            peers = session.run(None, inputs)
        except Exception:  # pylint: disable=broad-except
            return "equal", "onnxruntime does not support it"
        for one, peer in zip(got, peers):
            if different := same(one, peer, case):
                return "equal", f"onnxruntime differs from the reference, too: {different}"
        return "equal", "as onnxruntime"
    return "equal", ""


warnings.simplefilter("ignore")
counts, notes = collections.Counter(), collections.Counter()
failures = []
with tempfile.TemporaryDirectory() as FOLDER:
    cases = collect_testcases(None)
    for case in cases:
        ops = sorted({node.op_type for node in case.model.graph.node})
        if arguments.op and arguments.op not in ops:
            continue
        verdict, details = tried(case)
        counts[verdict] += 1
        if verdict == "equal":
            notes[details.split(":")[0]] += 1
        if arguments.list:
            print(verdict, case.name, "+".join(ops[:3]), details, sep=" | ", flush=True)
        if verdict == "wrong":
            failures.append(f"{case.name} ({', '.join(ops)}): {details}")
print(f"{sum(counts.values())} node cases of onnx {onnx.__version__}: " + ", ".join(f"{n} {v}" for v, n in counts.items()))
print("; ".join(f"{count} {note or 'without onnxruntime'}" for note, count in notes.items()))
for failure in failures:
    print("wrong:", failure)
if not arguments.op and counts["equal"] < MIN_EQUAL:
    failures.append(f"fewer than {MIN_EQUAL} cases are equal")
    print(failures[-1])
sys.exit(1 if failures else 0)
