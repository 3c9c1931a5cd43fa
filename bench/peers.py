"""Runs one peer on one workload for bench/compare.

python3 bench/peers.py PEER WORKLOAD cpu|gpu [--tf32]

Prints one JSON object when the peer is ready (versions, BLAS, or "error"). Then, for each line "N" of the input, it
trains at least N steps and prints {"steps", "seconds"}. A line with the name of another workload prepares the peer for
it and prints the first object again. The time excludes the transfer of the data to the device. It
includes a synchronization at the end of the block, not of each step. Every peer computes the step of the model file in
float32, in idiomatic code.
"""
import json
import math
import os
import sys
import time

import numpy as np

import blas
import torch_steps
import workload


def random_data(w):
    random = np.random.default_rng(0)
    rows = w.batch * w.batches
    if w.table:
        x = random.integers(0, w.table[0], rows, dtype=np.int32)
    else:
        x = random.standard_normal((rows, w.widths[0]), dtype=np.float32)
    if w.loss == "softmax":
        y = np.eye(w.widths[-1], dtype=np.float32)[random.integers(0, w.widths[-1], rows)]
    elif w.loss == "sigmoid":
        y = (random.random((rows, w.widths[-1])) < 0.5).astype(np.float32)
    else:
        y = random.standard_normal((rows, w.widths[-1]), dtype=np.float32)
    return x.reshape(w.batches, w.batch, *x.shape[1:]), y.reshape(w.batches, w.batch, -1)


def random_weights(w):
    random = np.random.default_rng(1)
    return [
        (random.standard_normal((i, o), dtype=np.float32) / np.float32(math.sqrt(i)), np.zeros(o, np.float32))
        for i, o in zip(w.widths, w.widths[1:])
    ]


def random_table(w):
    return np.random.default_rng(2).standard_normal(w.table, dtype=np.float32)


def no_embedding(w):
    if w.table:
        raise NotImplementedError("this peer has no embedding")


# A peer is a function (workload, gpu, tf32) -> (versions, train, wait): train(n) does n steps or a few more and returns
# how many; wait() returns when the device has done them.


# ---- torch


def torch_network(w, gpu, tf32):
    import torch

    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    if not gpu:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
    device = "cuda" if gpu else "cpu"
    layers = [torch.nn.Embedding.from_pretrained(torch.from_numpy(random_table(w)), freeze=False)] if w.table else []
    for weight, bias in random_weights(w):
        layer = torch.nn.Linear(*weight.shape)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weight.T.copy()))
            layer.bias.copy_(torch.from_numpy(bias))
        layers += [layer, torch.nn.ReLU() if w.activation == "relu" else torch.nn.Tanh()]
    network = torch.nn.Sequential(*layers[:-1]).to(device)
    x, y = (torch.from_numpy(a).to(device) for a in random_data(w))
    functional = torch.nn.functional
    losses = {
        "softmax": lambda z, target: -(target * functional.log_softmax(z, 1)).sum(1).mean(),
        "mse": functional.mse_loss,
        "sigmoid": functional.binary_cross_entropy_with_logits,
    }
    on_gpu = {"fused": True} if gpu else {}
    lr = w.numbers["lr"]
    if w.optimizer == "adam":
        optimizer = torch.optim.Adam(network.parameters(), lr=lr, **on_gpu, **({"capturable": True} if gpu else {}))
    else:
        optimizer = torch.optim.SGD(
            network.parameters(),
            lr=lr,
            momentum=w.numbers.get("momentum", 0),
            weight_decay=w.numbers.get("l2", 0),
            **on_gpu,
        )
    return torch, network, losses[w.loss], optimizer, x, y


def torch_versions(torch):
    return {"torch": torch.__version__, "torch BLAS": torch_blas(torch)}


def torch_blas(torch):
    """The wheels carry MKL inside libtorch_cpu.so; other builds load a library."""
    if torch.backends.mkl.is_available():
        return ["MKL, linked into torch"]
    return blas.loaded()


def torch_wait(torch, gpu):
    return torch.cuda.synchronize if gpu else lambda: None


def torch_step(w, gpu, tf32):
    """A workload of bench/models/steps/."""
    import torch

    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    if not gpu:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
    device = "cuda" if gpu else "cpu"
    torch.manual_seed(0)
    table = w.model["data"]["train"]["random"]
    inputs = []
    for column in table["columns"].values():
        if "integers" in column:
            inputs.append(torch.randint(*column["integers"], (table["rows"],), device=device))
        else:
            inputs.append(torch.randn(table["rows"], *column["shape"], device=device))
    parameters = {
        name: (torch.randn(p["shape"], device=device) * p["init"]["normal"]).requires_grad_()
        for name, p in w.model["parameters"].items()
    }
    name, numbers = w.optimizer
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[name](parameters.values(), **numbers)
    step = torch_steps.step_of(w.name)

    def train(steps):
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            step(torch, *inputs, parameters).backward()
            optimizer.step()
        return steps

    return torch_versions(torch), train, torch_wait(torch, gpu)


def torch_eager(w, gpu, tf32):
    if isinstance(w, workload.Step):
        return torch_step(w, gpu, tf32)
    torch, network, loss_of, optimizer, x, y = torch_network(w, gpu, tf32)

    def train(steps):
        for i in range(steps):
            optimizer.zero_grad(set_to_none=True)
            loss_of(network(x[i % w.batches]), y[i % w.batches]).backward()
            optimizer.step()
        return steps

    return torch_versions(torch), train, torch_wait(torch, gpu)


def torch_compile(w, gpu, tf32):
    torch, network, loss_of, optimizer, x, y = torch_network(w, gpu, tf32)
    forward = torch.compile(lambda a, b: loss_of(network(a), b), mode="reduce-overhead" if gpu else "default")
    update = torch.compile(optimizer.step)

    def train(steps):
        for i in range(steps):
            if gpu:
                torch.compiler.cudagraph_mark_step_begin()
            forward(x[i % w.batches], y[i % w.batches]).backward()
            update()
            optimizer.zero_grad(set_to_none=True)
        return steps

    return torch_versions(torch), train, torch_wait(torch, gpu)


def torch_captured(w, tf32, compiled):
    """Whole steps in one CUDA graph: those of an epoch, at least ten."""
    torch, network, loss_of, optimizer, x, y = torch_network(w, True, tf32)
    forward, update = (lambda a, b: loss_of(network(a), b)), optimizer.step
    if compiled:
        forward, update = torch.compile(forward), torch.compile(update)
        for parameter in network.parameters():
            parameter.grad = torch.zeros_like(parameter)

    def step(i):
        optimizer.zero_grad(set_to_none=not compiled)
        forward(x[i % w.batches], y[i % w.batches]).backward()
        update()

    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for i in range(5):
            step(i)
    torch.cuda.current_stream().wait_stream(aside)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    if not compiled:
        optimizer.zero_grad(set_to_none=True)
    in_graph = max(w.batches, 10)
    with torch.cuda.graph(graph):
        for i in range(in_graph):
            step(i)

    def train(steps):
        replays = math.ceil(steps / in_graph)
        for _ in range(replays):
            graph.replay()
        return replays * in_graph

    return torch_versions(torch), train, torch_wait(torch, True)


def torch_graph(w, gpu, tf32):
    return torch_captured(w, tf32, compiled=False)


def torch_compile_graph(w, gpu, tf32):
    return torch_captured(w, tf32, compiled=True)


# ---- JAX


def jax_network(w, gpu, tf32):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if tf32 else "float32")
    activation = jax.nn.relu if w.activation == "relu" else jnp.tanh
    tree = jax.tree_util.tree_map

    def loss_of(weights, x, y):
        if w.table:
            table, *weights = weights
            x = table[x]
        *hidden, (last, bias) = weights
        for a, b in hidden:
            x = activation(x @ a + b)
        z = x @ last + bias
        if w.loss == "softmax":
            return -(y * jax.nn.log_softmax(z)).sum(1).mean()
        if w.loss == "mse":
            return jnp.square(z - y).mean()
        return (jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z)))).mean()

    weights = [(jnp.asarray(a), jnp.asarray(b)) for a, b in random_weights(w)]
    if w.table:
        weights = [jnp.asarray(random_table(w)), *weights]
    zeros = lambda: tree(jnp.zeros_like, weights)  # new ones for each use: a donated buffer belongs to one
    lr = w.numbers["lr"]
    if w.optimizer == "adam":
        slots = (zeros(), zeros(), jnp.zeros(()))

        def update(weights, slots, gradient):
            m, v, t = slots
            t = t + 1
            m = tree(lambda m, g: 0.9 * m + 0.1 * g, m, gradient)
            v = tree(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradient)
            c1, c2 = 1 - 0.9**t, 1 - 0.999**t
            weights = tree(lambda p, m, v: p - lr * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), weights, m, v)
            return weights, (m, v, t)

    elif w.optimizer == "momentum":
        slots = zeros()

        def update(weights, slots, gradient):
            mu, l2 = w.numbers["momentum"], w.numbers["l2"]
            slots = tree(lambda s, g, p: mu * s + g + l2 * p, slots, gradient, weights)
            return tree(lambda p, s: p - lr * s, weights, slots), slots

    else:
        slots = ()

        def update(weights, slots, gradient):
            return tree(lambda p, g: p - lr * g, weights, gradient), slots

    def step(state, batch):
        weights, slots = state
        loss, gradient = jax.value_and_grad(loss_of)(weights, *batch)
        return update(weights, slots, gradient), loss

    x, y = (jnp.asarray(a) for a in random_data(w))
    return jax, step, (weights, slots), x, y


def jax_step(w, gpu, tf32):
    jax, step, state, x, y = jax_network(w, gpu, tf32)
    run = jax.jit(step, donate_argnums=0)
    batches = [(x[i], y[i]) for i in range(w.batches)]
    now = [state]

    def train(steps):
        for i in range(steps):
            now[0], _ = run(now[0], batches[i % w.batches])
        return steps

    return {"jax": jax.__version__}, train, lambda: jax.block_until_ready(now[0])


def jax_scan(w, gpu, tf32):
    """Runs many steps in one compiled loop, enough to make the call overhead negligible."""
    jax, step, state, x, y = jax_network(w, gpu, tf32)
    work = w.batch * sum(i * o for i, o in zip(w.widths, w.widths[1:]))
    epochs = math.ceil(min(max((2e10 if gpu else 5e8) / work, 1), 1000) / w.batches)

    @jax.jit
    def run(state, x, y):
        if w.batches == 1:
            return jax.lax.scan(lambda s, _: step(s, (x[0], y[0])), state, None, length=epochs)
        return jax.lax.scan(lambda s, _: jax.lax.scan(step, s, (x, y)), state, None, length=epochs)

    now = [state]

    def train(steps):
        calls = math.ceil(steps / (epochs * w.batches))
        for _ in range(calls):
            now[0], _ = run(now[0], x, y)
        return calls * epochs * w.batches

    return {"jax": jax.__version__}, train, lambda: jax.block_until_ready(now[0])


# ---- NumPy, and CuPy, which is NumPy on a GPU


def arrays(xp, w, wait):
    no_embedding(w)
    x, y = (xp.asarray(a) for a in random_data(w))
    weights = [[xp.asarray(a), xp.asarray(b)] for a, b in random_weights(w)]
    m = [[xp.zeros_like(p) for p in layer] for layer in weights]
    v = [[xp.zeros_like(p) for p in layer] for layer in weights]
    lr = w.numbers["lr"]
    done = [0]

    def update(layer, k, g):
        p = weights[layer][k]
        if w.optimizer == "adam":
            m[layer][k] = 0.9 * m[layer][k] + 0.1 * g
            v[layer][k] = 0.999 * v[layer][k] + 0.001 * g * g
            c1, c2 = 1 - 0.9 ** done[0], 1 - 0.999 ** done[0]
            p -= lr * (m[layer][k] / c1) / (xp.sqrt(v[layer][k] / c2) + 1e-8)
        elif w.optimizer == "momentum":
            m[layer][k] = w.numbers["momentum"] * m[layer][k] + g + w.numbers["l2"] * p
            p -= lr * m[layer][k]
        else:
            p -= lr * g

    def step(x, y):
        inputs = [x]
        for a, b in weights[:-1]:
            z = inputs[-1] @ a + b
            inputs.append(xp.maximum(z, 0) if w.activation == "relu" else xp.tanh(z))
        z = inputs[-1] @ weights[-1][0] + weights[-1][1]
        if w.loss == "softmax":
            e = xp.exp(z - z.max(1, keepdims=True))
            d = (e / e.sum(1, keepdims=True) - y) / len(z)
        elif w.loss == "mse":
            d = 2 * (z - y) / z.size
        else:
            d = (1 / (1 + xp.exp(-z)) - y) / z.size
        done[0] += 1
        for layer in range(len(weights) - 1, -1, -1):
            h = inputs[layer]
            gradients = h.T @ d, d.sum(0)
            if layer > 0:
                d = (d @ weights[layer][0].T) * ((h > 0) if w.activation == "relu" else (1 - h * h))
            for k, g in enumerate(gradients):
                update(layer, k, g)

    def train(steps):
        for i in range(steps):
            step(x[i % w.batches], y[i % w.batches])
        return steps

    return train, wait


def numpy(w, gpu, tf32):
    return ({}, *arrays(np, w, lambda: None))


def cupy(w, gpu, tf32):
    import cupy as cp

    return ({"cupy": cp.__version__}, *arrays(cp, w, lambda: cp.cuda.Device().synchronize()))


# ---- matrix products of a step alone: their share of the step


def products_of_step(multiply, weights, x):
    """Runs the products of forward and backward in their shapes and order, without other ops."""
    inputs = [x]
    for a in weights:
        inputs.append(multiply(inputs[-1], a))
    d, gradients = inputs.pop(), []
    for layer in range(len(weights) - 1, -1, -1):
        gradients.append(multiply(inputs[layer].T, d))
        if layer > 0:
            d = multiply(d, weights[layer].T)
    return gradients


def into_places(matmul, empty):
    """Each product of a step goes to a place that it got in the first step: memory is not part of the figure."""
    places, turn = [], [0]

    def multiply(a, b):
        if turn[0] == len(places):
            places.append(empty((a.shape[0], b.shape[1])))
        turn[0] += 1
        return matmul(a, b, out=places[turn[0] - 1])

    def begin():
        turn[0] = 0

    return multiply, begin


def products_with(xp, w, array):
    no_embedding(w)
    x = array(random_data(w)[0])
    weights = [array(a) for a, _ in random_weights(w)]
    multiply, begin = into_places(xp.matmul, lambda shape: xp.empty(shape, dtype=xp.float32))

    def train(steps):
        for i in range(steps):
            begin()
            products_of_step(multiply, weights, x[i % w.batches])
        return steps

    return train


def torch_products(w, gpu, tf32):
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    return torch_versions(torch), products_with(torch, w, torch.from_numpy), lambda: None


def numpy_products(w, gpu, tf32):
    return {}, products_with(np, w, lambda a: a), lambda: None


def jax_products(w, gpu, tf32):
    no_embedding(w)
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(random_data(w)[0])
    weights = [jnp.asarray(a) for a, _ in random_weights(w)]
    # The gradients are carried from step to step, or XLA would see that only the last ones are wanted.
    epoch = jax.jit(lambda g, x: jax.lax.scan(lambda _, b: (products_of_step(jnp.matmul, weights, b), None), g, x)[0])
    now = [[jnp.zeros_like(a) for a in reversed(weights)]]

    def train(steps):
        epochs = math.ceil(steps / w.batches)
        for _ in range(epochs):
            now[0] = epoch(now[0], x)
        return epochs * w.batches

    return {"jax": jax.__version__}, train, lambda: jax.block_until_ready(now[0])


CPU = [torch_eager, torch_compile, numpy, jax_step, jax_scan, torch_products, numpy_products, jax_products]
GPU = [torch_eager, torch_graph, torch_compile, torch_compile_graph, cupy, jax_step, jax_scan]


def names(gpu):
    return [peer.__name__ for peer in (GPU if gpu else CPU)]


def say(**values):
    print(json.dumps(values), flush=True)


def prepare(name, workload_name, gpu, flags):
    """Says whether the peer is ready, and returns its train and wait."""
    w = workload.read(workload_name)
    peer = next(p for p in (GPU if gpu else CPU) if p.__name__ == name)
    np.ones((64, 64), np.float32) @ np.ones((64, 64), np.float32)
    numpy_blas = blas.loaded()  # before torch loads its own
    try:
        if isinstance(w, workload.Step) and name != "torch_eager":
            raise ValueError("of the workloads in bench/models/steps only torch_eager knows the step")
        versions, train, wait = peer(w, gpu, "--tf32" in flags)
        train(1)  # compiles
        wait()
    except Exception as error:
        say(error=f"{type(error).__name__}: {error}"[:300])
        return None, None
    libraries = versions.pop("torch BLAS", None)
    if name.startswith("numpy"):
        versions, libraries = {"numpy": np.__version__}, numpy_blas
    say(versions=versions, blas=libraries, refused=blas.refusal(libraries) if libraries is not None and not gpu else None)
    return train, wait


def main(name, workload_name, device, *flags):
    train, wait = prepare(name, workload_name, device == "gpu", flags)
    for line in sys.stdin if train else []:
        if not line.strip().isdigit():
            train = wait = None  # frees the memory of the workload before
            train, wait = prepare(name, line.strip(), device == "gpu", flags)
            if not train:
                return
            continue
        start = time.perf_counter()
        steps = train(int(line))
        wait()
        say(steps=steps, seconds=time.perf_counter() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
