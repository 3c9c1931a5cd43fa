"""Compares physics-informed training steps with a scan of JAX that computes the same step, in one call.

python3 bench/pinn.py GRAPHRUN heat|burgers [--steps=N] [-- FLAG ...]

heat is bench/physics/heat.json (2-20-20-1), burgers is examples/physics/burgers.json (2-20-20-20-1), both with Adam. JAX
runs two forms of the step: second derivatives by reverse mode, as `gradient` writes them, and by forward mode (jvp of
jvp), which is the usual advice. First, graphrun and JAX in double precision, on the CPU, train 10 steps from the same
weights on the same points: the script prints the difference of the weights, divided by their norm, and exits with 1 if it
is above 1e-4. Then it prints microseconds per step, the median of 5 runs of N steps (default: 20,000). FLAGs go to
graphrun, for example --executor=cuda.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ADAM = {"adam": {"lr": 0.001}}
MOST = 1e-4


def heat_points():
    t, x = (a.reshape(-1, 1) for a in np.meshgrid(np.linspace(0, 1, 31), np.linspace(0, 1, 65), indexing="ij"))
    known = (t == 0) | (x == 0) | (x == 1)
    return {"t": t, "x": x, "known": known, "exact": np.exp(-0.4 * np.pi**2 * t) * np.sin(np.pi * x)}


def burgers_points():
    random = np.random.default_rng(3)
    n = 2780
    k, c, t0 = (random.random((n, 1)) for _ in range(3))
    x0, near = random.uniform(-1, 1, (n, 1)), np.clip(random.normal(0, 0.06, (n, 1)), -1, 1)
    initial, edge = k < 0.0576, (k >= 0.0576) & (k < 0.0864)
    t = np.where(initial, 0, 0.99 * t0)
    x = np.where(initial, x0, np.where(edge, np.sign(x0), np.where(c < 0.4, near, x0)))
    return {"t": t, "x": x, "initial": initial, "edge": edge}


def heat_loss(np_, u, u_t, u_x, u_xx, p):
    return np_.mean((u_t - 0.4 * u_xx) ** 2) + 10 * np_.mean(p["known"] * (u - p["exact"]) ** 2)


def burgers_loss(np_, u, u_t, u_x, u_xx, p):
    equation = np_.mean(((1 - p["initial"] - p["edge"]) * (u_t + u * u_x - 0.00318309886 * u_xx)) ** 2)
    known = (p["initial"] + p["edge"]) * u + p["initial"] * np_.sin(np_.pi * p["x"])
    return equation + 10 * np_.mean(known**2)


PROBLEMS = {
    "heat": (HERE / "physics/heat.json", heat_points, heat_loss, ["h2", "u"]),
    "burgers": (HERE.parent / "examples/physics/burgers.json", burgers_points, burgers_loss, ["h2", "h3", "u"]),
}


def start_weights(layers):
    random = np.random.default_rng(1)
    normal = lambda *shape: random.standard_normal(shape) / np.sqrt(shape[0])
    weights = {"Wt": normal(1, 20), "Wx": normal(1, 20), "b": 0.1 * normal(20)}
    for layer in layers:
        units = 1 if layer == "u" else 20
        weights |= {f"{layer}.W": normal(20, units), f"{layer}.b": 0.1 * normal(units)}
    return {name: array.astype(np.float32) for name, array in weights.items()}


def jax_scan(loss, layers, forward):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_default_matmul_precision", "float32")
    tree = jax.tree_util.tree_map

    def network(w, t, x):
        h = jnp.tanh(t @ w["Wt"] + x @ w["Wx"] + w["b"])
        for layer in layers[:-1]:
            h = jnp.tanh(h @ w[f"{layer}.W"] + w[f"{layer}.b"])
        return h @ w["u.W"] + w["u.b"]

    def loss_of(w, p):
        t, x = p["t"], p["x"]
        if forward:
            of_x = lambda x: jax.jvp(lambda x: network(w, t, x), (x,), (jnp.ones_like(x),))
            (u, u_x), (_, u_xx) = jax.jvp(of_x, (x,), (jnp.ones_like(x),))
            u_t = jax.jvp(lambda t: network(w, t, x), (t,), (jnp.ones_like(t),))[1]
        else:
            u = network(w, t, x)
            u_t = jax.grad(lambda t: network(w, t, x).sum())(t)
            of_x = jax.grad(lambda x: network(w, t, x).sum())
            u_x, u_xx = of_x(x), jax.grad(lambda x: of_x(x).sum())(x)
        return loss(jnp, u, u_t, u_x, u_xx, p)

    def step(state, p):
        w, m, v, n = state
        value, g = jax.value_and_grad(loss_of)(w, p)
        n = n + 1
        m = tree(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = tree(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        c1, c2 = 1 - 0.9**n, 1 - 0.999**n
        w = tree(lambda w, m, v: w - ADAM["adam"]["lr"] * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), w, m, v)
        return (w, m, v, n), value

    def run(state, p, steps):
        return jax.lax.scan(lambda s, _: step(s, p), state, None, length=steps)

    return jax, jax.jit(run, static_argnums=2)


def start_state(jax, weights, points, dtype):
    arrays = lambda values: {k: jax.numpy.asarray(v, dtype) for k, v in values.items()}
    w = arrays(weights)
    zeros = lambda: {k: jax.numpy.zeros_like(v) for k, v in w.items()}
    return (w, zeros(), zeros(), jax.numpy.zeros((), dtype)), arrays(points)


def difference(weights, right):
    norm = np.sqrt(sum(np.sum(np.square(a)) for a in right.values()))
    return np.sqrt(sum(np.sum(np.square(np.asarray(weights[k], np.float64) - a)) for k, a in right.items())) / norm


def run_graphrun(graphrun, *arguments):
    done = subprocess.run([graphrun, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"graphrun {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def measure_graphrun(graphrun, path, points, weights, steps, flags, folder):
    model = json.loads(path.read_text())
    model["data"] = {"train": {"npz": "points.npz", **{name: [name] for name in points}}}
    model["train"]["optimizer"] = ADAM
    np.savez(folder / "points.npz", **{k: v.astype(np.float32) for k, v in points.items()})
    np.savez(folder / "start.npz", **weights)
    file = folder / "model.json"
    file.write_text(json.dumps(model))
    run_graphrun(graphrun, "train", str(file), "--epochs=10", f"--weights={folder / 'start.npz'}",
                 f"--save-weights={folder / 'end.npz'}", "--quiet", *flags)
    with np.load(folder / "end.npz") as arrays:
        trained = {name: arrays[name] for name in weights}
    bench = [json.loads(run_graphrun(graphrun, "bench", str(file), f"--steps={steps}", "--json", *flags)) for _ in range(5)]
    return trained, [1e6 / b["steps_per_second"] for b in bench]


def main(arguments):
    split = arguments.index("--") if "--" in arguments else len(arguments)
    mine, flags = arguments[:split], arguments[split + 1 :]
    steps = next((int(a[8:]) for a in mine if a.startswith("--steps=")), 20000)
    names = [a for a in mine if not a.startswith("--")]
    if len(names) != 2 or names[1] not in PROBLEMS:
        raise SystemExit(__doc__)
    path, points_of, loss, layers = PROBLEMS[names[1]]
    points = {name: np.asarray(a, np.float64) for name, a in points_of().items()}
    weights = start_weights(layers)

    jax, exact = jax_scan(loss, layers, False)
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        (right, *_), _ = exact(*start_state(jax, weights, points, np.float64), 10)
        right = {k: np.asarray(v) for k, v in right.items()}
    print(f"{names[1]}, {len(points['t'])} points, {steps} steps; jax {jax.__version__} on {jax.devices()[0].device_kind}")
    print(f"{'':20}{'us per step':>12}{'fastest':>10}{'slowest':>10}", flush=True)

    def report(form, times):
        print(f"{form:20}{statistics.median(times):12.2f}{min(times):10.2f}{max(times):10.2f}", flush=True)

    with tempfile.TemporaryDirectory() as at:
        trained, times = measure_graphrun(names[0], path, points, weights, steps, flags, pathlib.Path(at))
    report("graphrun", times)
    wrong = difference(trained, right)
    print(f"difference of graphrun's weights after 10 steps from double precision: {wrong:.2g}", flush=True)
    for form, forward in (("JAX scan, reverse", False), ("JAX scan, forward", True)):
        _, scan = jax_scan(loss, layers, forward)
        state, p = start_state(jax, weights, points, np.float32)
        jax.block_until_ready(scan(state, p, steps))  # compiles
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            jax.block_until_ready(scan(state, p, steps))
            times.append(1e6 * (time.perf_counter() - begin) / steps)
        report(form, times)
    return 0 if wrong <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
