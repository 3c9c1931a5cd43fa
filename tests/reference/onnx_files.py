#!/usr/bin/env python3
"""Exported ONNX files as others read them, and files of others as graphrun reads them.

    onnx_files.py GRAPHRUN SOURCES

Each model is trained for an epoch or two and exported. A decoder of our own, which shares nothing with the library,
evaluates the file with NumPy. Where the packages onnx and onnxruntime are installed, onnx checks each file,
onnxruntime evaluates it, and networks made with onnx.helper are imported. All must agree with `graphrun predict`
within 1e-5 of the outputs' size.
Exit code: 0 all agree, 1 they do not, 77 there is no NumPy, or our decoder agrees and the packages are missing.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    import onnx
    import onnxruntime
except ImportError as error:
    onnx = onnxruntime = None
    missing = error

TOLERANCE = 1e-5
failures = []


def run(*arguments):
    done = subprocess.run([GRAPHRUN, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"graphrun {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def close(name, got, wanted):
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    if got.shape != wanted.shape:
        failures.append(f"{name}: shape {got.shape}, not {wanted.shape}")
        return
    size = max(1.0, float(np.max(np.abs(wanted))))
    worst = float(np.max(np.abs(got - wanted))) / size
    print(f"{name}: within {worst:.2g} of the outputs' size")
    if not worst <= TOLERANCE:
        failures.append(f"{name}: {worst}")


# ---- a decoder of our own: protobuf's wire format, then the nodes that dense networks are exported with


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
            value -= (value >> 63) << 64
        elif kind == 5:
            value, at = struct.unpack("<f", data[at : at + 4])[0], at + 4
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size
        else:
            raise ValueError(f"wire type {kind}")
        yield tag >> 3, value


def gather(data):
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


DTYPES = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 11: np.float64}


def tensor(data):
    found = gather(data)
    array = np.frombuffer(found[9][0], DTYPES[found[2][0]])
    return found[8][0].decode(), array.reshape(found.get(1, []))


def attributes(found):
    result = {}
    for data in found.get(5, []):
        one = gather(data)
        kind = one[20][0]
        result[one[1][0].decode()] = {1: lambda: one[2][0], 2: lambda: one[3][0], 7: lambda: one.get(8, [])}[kind]()
    return result


NODES = {
    "Add": lambda a, x, y: x + y,
    "Sub": lambda a, x, y: x - y,
    "Mul": lambda a, x, y: x * y,
    "Div": lambda a, x, y: x / y,
    "MatMul": lambda a, x, y: x @ y,
    "Tanh": lambda a, x: np.tanh(x),
    "Relu": lambda a, x: np.maximum(x, 0),
    "Sigmoid": lambda a, x: (1 / (1 + np.exp(-x))).astype(x.dtype),
    "Exp": lambda a, x: np.exp(x),
    "Log": lambda a, x: np.log(x),
    "Identity": lambda a, x: x,
    "Cast": lambda a, x: x.astype(DTYPES[a["to"]]),
    "Reshape": lambda a, x, shape: x.reshape(shape),
    "Gather": lambda a, x, indices: np.take(x, indices, axis=a["axis"]),
    "Transpose": lambda a, x: x.transpose(a["perm"]),
    "Pad": lambda a, x, pads, value: np.pad(x, pads.reshape(2, -1).T, constant_values=value),
    "ReduceMax": lambda a, x: x.max(axis=tuple(a["axes"]), keepdims=bool(a["keepdims"])),
}


def evaluate(path, inputs):
    with open(path, "rb") as file:
        model = gather(file.read())
    assert model[1] == [8], "IR version"
    assert gather(model[8][0])[2] == [17], "opset"
    graph = gather(model[7][0])
    values = dict(inputs)
    values.update(tensor(data) for data in graph.get(5, []))
    for data in graph[1]:
        node = gather(data)
        given = [values[name.decode()] for name in node.get(1, [])]
        values[node[2][0].decode()] = NODES[node[4][0].decode()](attributes(node), *given)
    return [values[gather(data)[1][0].decode()] for data in graph[12]]


def predicted(weights, x):
    rows = os.path.join(FOLDER, "rows.npy")
    np.save(rows, x)
    answer = json.loads(run("predict", weights, rows, "--json", "--executor=ref"))
    return np.array(answer["predictions"])


def check_export(name, x, *training):
    model = os.path.join(SOURCES, "models", name + ".json")
    weights, path = os.path.join(FOLDER, name + ".safetensors"), os.path.join(FOLDER, name + ".onnx")
    run("train", model, "--quiet", "--epochs=2", *training, f"--save-weights={weights}")
    run("export-onnx", weights, "-o", path)
    wanted = predicted(weights, x)
    (input_name,) = [gather(data)[1][0].decode() for data in gather(gather(open(path, "rb").read())[7][0])[11]]
    for rows in (len(x), 1):
        close(f"{name}, {rows} rows, NumPy", evaluate(path, {input_name: x[:rows]})[0].reshape(rows, -1), wanted[:rows])
        if onnxruntime:
            onnx.checker.check_model(onnx.load(path), full_check=True)
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            close(f"{name}, {rows} rows, onnxruntime", session.run(None, {input_name: x[:rows]})[0].reshape(rows, -1),
                  wanted[:rows])
    if name == "digits_cnn":  # imports read Conv, not the Gather nodes that exports write
        return
    back = os.path.join(FOLDER, name + "-back.safetensors")
    run("import-onnx", path, "-o", back)


def check_every_op(x, k):
    """What the decoder above does not know; only where onnxruntime is."""
    path = os.path.join(FOLDER, "ops.json")
    formulas = {
        "softmax": "softmax(reshape(x, shape=[-1, 12]))", "log_softmax": "log_softmax(x)",
        "transpose": "transpose(x, axes=[0, 2, 1])", "max": "max(x, axis=[1, 2])", "min": "min(x, axis=2, keepdims=true)",
        "prod": "prod(x, axis=1)", "mean": "mean(x, axis=1)", "logsumexp": "logsumexp(x, axis=2)",
        "gather": "gather(E, k)", "one_hot": "one_hot(k, classes=5)", "pad": "pad(x, axis=2, before=1, after=2)",
        "concat": "concat(x, x * 2, axis=1)", "slice": "slice(x, axis=1, start=1, stop=3)",
        "where": "where((x >= 0 and x < 1) or not (x <= 2), x, E0)",
        "windows": "windows(x, size=[2], dilation=[2])", "fold": "fold(windows(x, size=[2]), extents=[4], size=[2])",
        "fold_apart": "fold(reshape(x, shape=[-1, 2, 2, 3]), extents=[7], size=[2], stride=[3], dilation=[2])",
        "fold_image": "fold(reshape(x, shape=[-1, 1, 2, 2, 3, 1]), extents=[3, 5], size=[2, 3], stride=[2, 2])",
        "products": "x @ transpose(E)", "pairs": "transpose(x, axes=[0, 2, 1]) @ x",
        "a": "clip(silu(elu(softplus(selu(x)))), low=0.1, high=2.0) - erf(x) + mod(x, 0.7) + pow(abs(x), 1.5)",
        "b": "sin(x) * cos(x) / (2 + tan(x / 4)) + sqrt(exp(x)) - rsqrt(square(x) + 1) + log(1 + square(x)) + log1p(abs(x))",
        "c": "floor(x) + ceil(x) * round(x) + sign(x) + minimum(x, 0.3) + maximum(x, -0.2) + reciprocal(x + 10)",
        "d": "gelu(x) + gelu_tanh(x) + leaky_relu(x) + relu(-x) + tanh(x) * sigmoid(x) + expm1(x)",
    }
    layers = [{"name": "v_embedding", "op": "embedding", "inputs": ["k"], "entries": 5, "units": 3}]
    for layer in ("layer_norm", "rms_norm", "batch_norm"):
        layers.append({"name": f"v_{layer}", "op": layer, "inputs": ["x"], "scale": {"normal": 1}})
    model = {
        "format": 1, "name": "ops", "data": {"train": {"npz": "ops.npz"}},
        "inputs": {"x": ["batch", 4, 3], "k": {"dtype": "i32", "shape": ["batch"]}},
        "parameters": {"E": {"shape": [5, 3], "init": {"normal": 1}}, "E0": {"shape": [4, 1], "init": {"normal": 1}}},
        "graph": [f"v_{name} = {text}" for name, text in formulas.items()] + layers
        + ["loss = mean(square(x @ transpose(E))) + mean(square(E0)) + mean(v_batch_norm)"],
        "outputs": [f"v_{name}" for name in formulas] + [layer["name"] for layer in layers],
        "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "batch": 4, "epochs": 1},
    }
    with open(path, "w") as file:
        json.dump(model, file)
    np.savez(os.path.join(FOLDER, "ops.npz"), x=x, k=k)
    weights, exported = os.path.join(FOLDER, "ops.safetensors"), os.path.join(FOLDER, "ops.onnx")
    run("train", path, "--quiet", f"--save-weights={weights}")
    run("export-onnx", weights, "-o", exported)
    onnx.checker.check_model(onnx.load(exported), full_check=True)
    session = onnxruntime.InferenceSession(exported, providers=["CPUExecutionProvider"])
    got = session.run(None, {"x": x, "k": k})
    answer = json.loads(run("predict", weights, os.path.join(FOLDER, "ops.npz"), "--json", "--executor=ref"))
    wanted, at = np.array(answer["predictions"]), 0
    for output, values in zip(session.get_outputs(), got):
        width = values[0].size
        close(f"op {output.name}, onnxruntime", values.reshape(len(x), -1), wanted[:, at : at + width])
        at += width


def check_import(random):
    helper, types = onnx.helper, onnx.TensorProto
    w1, b1, w2 = (random.normal(size=size).astype(np.float32) for size in ((7, 5), (7,), (7, 3)))
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w1", "b1"], ["/h/Gemm_output_0"], transB=1),
        helper.make_node("LeakyRelu", ["/h/Gemm_output_0"], ["h"], alpha=0.2),
        helper.make_node("MatMul", ["h", "w2"], ["z"]),
        helper.make_node("Softmax", ["z"], ["p"], axis=-1),
    ]
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in (("w1", w1), ("b1", b1), ("w2", w2))]
    graph = helper.make_graph(
        nodes, "mlp", [helper.make_tensor_value_info("x", types.FLOAT, ["N", 5, 1])],
        [helper.make_tensor_value_info("p", types.FLOAT, ["N", 3])], tensors)
    path, weights = os.path.join(FOLDER, "made.onnx"), os.path.join(FOLDER, "made.safetensors")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    run("import-onnx", path, "-o", weights)
    x = random.normal(size=(9, 5, 1)).astype(np.float32)
    wanted = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    close("import of an MLP", predicted(weights, x), wanted)


def check_convolutions(random):
    """Random networks Conv, pooling, ConvTranspose, Conv, global average: graphrun imports them, onnxruntime evaluates
    them."""
    helper, types = onnx.helper, onnx.TensorProto
    for case in range(16):
        axes = 1 + case % 3 if case % 3 < 2 else 2
        pick = lambda low, high: [int(random.integers(low, high + 1)) for _ in range(axes)]
        groups, channels = int(random.integers(1, 3)), int(random.integers(1, 4))
        x = random.normal(size=(7, groups * channels, *pick(9, 13))).astype(np.float32)
        w1 = random.normal(size=(4 * groups, channels, *pick(1, 3))).astype(np.float32)
        b1 = random.normal(size=4 * groups).astype(np.float32)
        w2 = random.normal(size=(3, 2 * groups, *pick(1, 2))).astype(np.float32)
        w3 = random.normal(size=(4 * groups, 2, *pick(3 if case < 4 else 1, 3))).astype(np.float32)
        b3 = random.normal(size=2 * groups).astype(np.float32)
        crop = ({"auto_pad": "SAME_UPPER"}, {"pads": pick(0, 1) + pick(0, 1)}, {"output_padding": [1] * axes},
                {"pads": [1] * (2 * axes), "output_padding": pick(0, 1)})[case // 4]
        padding = {"auto_pad": "SAME_UPPER"} if case % 4 == 0 else {"pads": pick(0, 2) + pick(0, 2)}
        largest = case % 2 == 0
        pool = {"kernel_shape": pick(2, 3), "strides": pick(1, 2), "pads": [1] * (2 * axes)}
        if not largest:
            pool["count_include_pad"] = 1
        nodes = [
            helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], group=groups, strides=pick(1, 2),
                             dilations=pick(1, 1 if case % 4 == 0 else 2), **padding),
            helper.make_node("Relu", ["c1"], ["r1"]),
            helper.make_node("MaxPool" if largest else "AveragePool", ["r1"], ["p1"], **pool),
            helper.make_node("ConvTranspose", ["p1", "w3", "b3"], ["t1"], group=groups, strides=pick(2, 3),
                             dilations=pick(1, 2), **crop),
            helper.make_node("Conv", ["t1", "w2"], ["c2"]),
            helper.make_node("GlobalAveragePool", ["c2"], ["mean"]),
            helper.make_node("Flatten", ["mean"], ["p"])]
        tensors = [onnx.numpy_helper.from_array(value, name) for name, value in
                   (("w1", w1), ("b1", b1), ("w2", w2), ("w3", w3), ("b3", b3))]
        graph = helper.make_graph(
            nodes, "cnn", [helper.make_tensor_value_info("x", types.FLOAT, ["N", *x.shape[1:]])],
            [helper.make_tensor_value_info("p", types.FLOAT, ["N", 3])], tensors)
        path, weights = os.path.join(FOLDER, f"cnn{case}.onnx"), os.path.join(FOLDER, f"cnn{case}.safetensors")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        wanted = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        run("import-onnx", path, "-o", weights)
        close(f"import of convolutions {case}", predicted(weights, x), wanted)


GRAPHRUN, SOURCES = sys.argv[1:]
random = np.random.default_rng(1)
with tempfile.TemporaryDirectory() as FOLDER:
    check_export("xor", random.normal(size=(5, 2)).astype(np.float32))
    check_export("peaks", random.normal(size=(5, 2)).astype(np.float32))
    check_export("digits", random.uniform(0, 16, size=(5, 64)).astype(np.float32))
    check_export("digits_cnn", random.uniform(0, 16, size=(5, 8, 8)).astype(np.float32))
    houses = np.array([2013.2, 18, 1080, 4, 24.97, 121.5]) + random.normal(size=(5, 6)) * [0.3, 11, 900, 3, 0.01, 0.01]
    check_export("realestate_mlp2", houses.astype(np.float32))
    if onnxruntime:
        check_every_op(random.normal(size=(8, 4, 3)).astype(np.float32), random.integers(0, 5, 8).astype(np.int32))
        check_import(random)
        check_convolutions(random)
for failure in failures:
    print("wrong:", failure)
if failures:
    sys.exit(1)
if not onnxruntime:
    print(f"skipped: our decoder agrees; {missing}")
    sys.exit(77)
