"""Compares fits of small networks with those of other programs: errors at points not trained on, and processor seconds.

python3 bench/fits.py GRAPHRUN burgers|heat|sinc|steps [--seeds=5] [--core=0] [--epochs=2500] [--peer=whole]

burgers  examples/physics/burgers.json (bfgs, fp32 and fp64) and deepxde's example Burgers.py: the same network, number
         of points and terms. deepxde runs for the processor time of graphrun in fp64, or with --peer=whole to the end
         of its example: 15,000 steps of Adam, then L-BFGS.
heat     examples/physics/heat.json with levenberg_marquardt in fp64, and MINPACK's lm (scipy, residuals and J by JAX)
sinc     examples/fitting/sinc.json in fp64, and MINPACK's lm with an analytic J, and tf-levenberg-marquardt, all from
         weights by Nguyen and Widrow, with all 20,000 rows in each step
steps    one evaluation of bfgs on heat.json in fp32, and of torch.optim.LBFGS on the same loss

The peers need deepxde and torch, scipy and jax, or tf-levenberg-marquardt and tensorflow. Each program is a process of
its own, pinned to one core with one thread. Programs alternate. Seconds are processor time (of the peers without imports
and compilation), so other programs on the machine matter little.
"""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
NU = 0.01 / np.pi


# ---- exact solutions and points


def burgers_grid():
    """u(t, x) by Cole and Hopf, with Gauss-Hermite quadrature: 99 times, 256 places; (n, 1) each."""
    nodes, weights = np.polynomial.hermite.hermgauss(200)
    t, x = np.meshgrid(np.linspace(0.01, 0.99, 99), np.linspace(-1, 1, 256), indexing="ij")
    y = x[..., None] - np.sqrt(4 * NU * t)[..., None] * nodes
    log_f = -np.cos(np.pi * y) / (2 * np.pi * NU)
    f = weights * np.exp(log_f - log_f.max(-1, keepdims=True))
    u = -np.sum(f * np.sin(np.pi * y), -1) / np.sum(f, -1)
    return [a.reshape(-1, 1) for a in (t, x, u)]


def relative_error(u, exact):
    return float(np.linalg.norm(np.ravel(u) - np.ravel(exact)) / np.linalg.norm(exact))


def heat_exact(t, x):
    return np.exp(-0.4 * np.pi**2 * t) * np.sin(np.pi * x)


def sinc_test():
    u = np.random.default_rng(7).uniform(-1, 1, 2000)
    return u, np.sinc(10 * u)


# ---- graphrun


def run_graphrun(graphrun, *arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run([graphrun, *arguments, "--threads=1", "--quiet"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"graphrun {' '.join(arguments)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, seconds, time.perf_counter() - start


def ours_burgers(graphrun, seed, precision, epochs):
    with tempfile.TemporaryDirectory() as folder:
        weights, points = f"{folder}/w.npz", f"{folder}/points.csv"
        model = str(EXAMPLES / "physics/burgers.json")
        flags = ["--set", f"train.precision={precision}"]
        _, cpu, wall = run_graphrun(graphrun, "train", model, f"--seed={seed}", f"--save-weights={weights}",
                                    f"--epochs={epochs}", *flags)
        t, x, exact = burgers_grid()
        np.savetxt(points, np.hstack([t, x]), "%.17g", ",", header="t,x", comments="")
        out = run_graphrun(graphrun, "predict", model, points, f"--weights={weights}", *flags)[0]
        return relative_error(np.array(out.split()[1:], float), exact), cpu, wall


def ours_summary(graphrun, model, seed, metric, *flags):
    out, cpu, wall = run_graphrun(graphrun, "train", str(EXAMPLES / model), f"--seed={seed}", "--json", *flags)
    summary = json.loads(out)
    return summary["test"][metric], cpu, wall, summary


# ---- peers, each in a process of its own: python3 bench/fits.py --child NAME SEED LIMIT


def peer_deepxde(seed, limit):
    """The example Burgers.py: Adam, 15,000 steps, then L-BFGS. With a limit: half the time for each."""
    os.environ["DDE_BACKEND"] = "pytorch"
    import deepxde as dde
    import torch

    torch.set_num_threads(1)
    dde.config.set_random_seed(seed)

    class Until(dde.callbacks.Callback):
        def __init__(self, end):
            super().__init__()
            self.end = end

        def on_epoch_end(self):
            if self.end and time.process_time() > self.end:
                self.model.stop_training = True

    def equation(x, y):
        dy_x = dde.grad.jacobian(y, x, i=0, j=0)
        dy_t = dde.grad.jacobian(y, x, i=0, j=1)
        return dy_t + y * dy_x - NU * dde.grad.hessian(y, x, i=0, j=0)

    begin = time.process_time()
    space = dde.geometry.GeometryXTime(dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 0.99))
    edge = dde.icbc.DirichletBC(space, lambda x: 0, lambda _, on: on)
    initial = dde.icbc.IC(space, lambda x: -np.sin(np.pi * x[:, 0:1]), lambda _, on: on)
    data = dde.data.TimePDE(space, equation, [edge, initial], num_domain=2540, num_boundary=80, num_initial=160)
    model = dde.Model(data, dde.nn.FNN([2] + [20] * 3 + [1], "tanh", "Glorot normal"))
    until = lambda share: [Until(limit and begin + share * limit)]
    model.compile("adam", lr=1e-3)
    model.train(iterations=15000, display_every=100000, callbacks=until(0.5), verbose=0)
    if limit:  # checks the time every 20 iterations
        dde.optimizers.config.LBFGS_options.update(iter_per_step=20, fun_per_step=25)
    model.compile("L-BFGS")
    model.train(display_every=100000, callbacks=until(1), verbose=0)
    seconds = time.process_time() - begin
    t, x, exact = burgers_grid()
    return relative_error(model.predict(np.hstack([x, t])), exact), seconds, model.train_state.step


class OutOfTime(Exception):
    pass


def least_squares(residuals, jacobian, start, limit, error):
    """MINPACK's lm until its own end, or for `limit` seconds; the error at the best point."""
    import scipy.optimize

    begin = time.process_time()
    best = [np.inf, start, 0]

    def watched(w):
        r = residuals(w)
        best[2] += 1
        if r @ r < best[0]:
            best[:2] = [r @ r, w.copy()]
        if limit and time.process_time() - begin > limit:
            raise OutOfTime
        return r

    try:
        scipy.optimize.least_squares(watched, start, jacobian, method="lm", ftol=1e-15, xtol=1e-15, gtol=1e-15,
                                     max_nfev=20000)
    except OutOfTime:
        pass
    return error(best[1]), time.process_time() - begin, best[2]


def peer_scipy_heat(seed, limit):
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    t, x = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 31), np.linspace(0, 1, 65), indexing="ij"))
    known = (t == 0) | (x == 0) | (x == 1)
    exact, scale = heat_exact(t, x), 1 / np.sqrt(t.size)

    def u(w, t, x):
        return jnp.tanh(t[:, None] * w[:20] + x[:, None] * w[20:40] + w[40:60]) @ w[60:80] + w[80]

    def residuals(w):
        one = jnp.ones_like(x)
        of_x = lambda x: jax.jvp(lambda x: u(w, t, x), (x,), (one,))[1]
        u_xx = jax.jvp(of_x, (x,), (one,))[1]
        u_t = jax.jvp(lambda t: u(w, t, x), (t,), (one,))[1]
        return jnp.concatenate([scale * (u_t - 0.4 * u_xx), np.sqrt(10) * scale * known * (u(w, t, x) - exact)])

    random = np.random.default_rng(seed)
    limits = np.repeat([np.sqrt(6 / 21), 0, np.sqrt(6 / 21), 0], [40, 20, 20, 1])  # glorot_uniform, as in heat.json
    start = random.uniform(-1, 1, 81) * limits
    residual, jacobian = jax.jit(residuals), jax.jit(jax.jacfwd(residuals))
    residual(start).block_until_ready(), jacobian(start).block_until_ready()
    points = np.random.default_rng(7).uniform(0, 1, (2, 2000))
    error = lambda w: float(np.sqrt(np.mean(np.square(u(w, *points) - heat_exact(*points)))))
    return least_squares(lambda w: np.asarray(residual(w)), lambda w: np.asarray(jacobian(w)), start, limit, error)


def widrow(random):
    """Initial weights by Nguyen and Widrow for 20 units of one input in [-1, 1], as sinc.json has them."""
    w = 0.7 * 20 * random.choice([-1.0, 1.0], 20)
    return np.concatenate([w, np.linspace(-1, 1, 20) * w, random.uniform(-1, 1, 20) * np.sqrt(6 / 21), [0]])


def peer_scipy_sinc(seed, limit):
    x = np.linspace(-1, 1, 20000)
    y, scale = np.sinc(10 * x), 1 / np.sqrt(x.size)

    def p(w, x):
        return np.tanh(np.outer(x, w[:20]) + w[20:40]) @ w[40:60] + w[60]

    def jacobian(w):
        h = np.tanh(np.outer(x, w[:20]) + w[20:40])
        b = (1 - h * h) * w[40:60]
        return scale * np.hstack([b * x[:, None], b, h, np.ones((x.size, 1))])

    u, exact = sinc_test()
    error = lambda w: float(np.mean(np.square(p(w, u) - exact)))
    return least_squares(lambda w: scale * (p(w, x) - y), jacobian, widrow(np.random.default_rng(seed)), limit, error)


def peer_tf(seed, limit):
    """tf-levenberg-marquardt in fp64, from the same kind of weights: all 20,000 rows, 300 steps."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    import tf_levenberg_marquardt as lm

    tf.keras.backend.set_floatx("float64")
    x = np.linspace(-1, 1, 20000).reshape(-1, 1)
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(20, "tanh"), tf.keras.layers.Dense(1)])
    w = widrow(np.random.default_rng(seed))
    model.set_weights([w[:20].reshape(1, 20), w[20:40], w[40:60].reshape(20, 1), w[60:]])
    begin = time.process_time()
    fit = lm.model.ModelWrapper(model)
    fit.compile(optimizer=tf.keras.optimizers.SGD(learning_rate=1.0), loss=lm.loss.MeanSquaredError())

    class Until(tf.keras.callbacks.Callback):
        steps = 0

        def on_train_batch_end(self, batch, logs=None):
            self.steps += 1
            if limit and time.process_time() - begin > limit:
                self.model.stop_training = True

    until = Until()
    data = tf.data.Dataset.from_tensor_slices((x, np.sinc(10 * x))).batch(20000).cache()
    fit.fit(data, epochs=300, verbose=0, callbacks=[until])
    seconds = time.process_time() - begin
    u, exact = sinc_test()
    return float(np.mean(np.square(model.predict(u.reshape(-1, 1), verbose=0).ravel() - exact))), seconds, until.steps


def peer_torch(seed, limit):
    """500 iterations of torch.optim.LBFGS with its line search on the loss of heat.json."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    t, x = (torch.tensor(a.reshape(-1, 1), dtype=torch.float32, requires_grad=True)
            for a in np.meshgrid(np.linspace(0, 1, 31), np.linspace(0, 1, 65), indexing="ij"))
    known = ((t == 0) | (x == 0) | (x == 1)).float()
    exact = torch.tensor(heat_exact(t.detach().numpy(), x.detach().numpy()), dtype=torch.float32)
    net = torch.nn.Sequential(torch.nn.Linear(2, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1))
    for layer in (net[0], net[2]):
        torch.nn.init.xavier_uniform_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=500, max_eval=10**6, history_size=100, tolerance_grad=0,
                                  tolerance_change=0, line_search_fn="strong_wolfe")
    evaluations = [0]

    def closure():
        evaluations[0] += 1
        optimizer.zero_grad()
        u = net(torch.hstack([t, x]))
        u_t, u_x = torch.autograd.grad(u.sum(), (t, x), create_graph=True)
        u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
        loss = ((u_t - 0.4 * u_xx) ** 2).mean() + 10 * (known * (u - exact) ** 2).mean()
        loss.backward()
        return loss

    closure()
    evaluations[0], begin = 0, time.process_time()
    optimizer.step(closure)
    seconds = time.process_time() - begin
    points = np.random.default_rng(7).uniform(0, 1, (2000, 2))
    u = net(torch.tensor(points, dtype=torch.float32)).detach().numpy().ravel()
    return float(np.sqrt(np.mean(np.square(u - heat_exact(*points.T))))), seconds, evaluations[0]


PEERS = {"deepxde": peer_deepxde, "scipy-heat": peer_scipy_heat, "scipy-sinc": peer_scipy_sinc, "tf": peer_tf,
         "torch": peer_torch}


def run_peer(name, seed, limit=0.0):
    start = time.perf_counter()
    command = [sys.executable, __file__, "--child", name, str(seed), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    error, seconds, steps = json.loads(done.stdout.splitlines()[-1])
    return error, seconds, time.perf_counter() - start, steps


# ---- tables


class Table:
    def __init__(self):
        self.rows = {}

    def add(self, name, seed, error, cpu, wall, steps=None):
        self.rows.setdefault(name, []).append((error, cpu, wall, steps))
        print(f"  {name}, seed {seed}: {error:.3g}, {cpu:.2f} s of processor time, {wall:.2f} s, {steps} steps",
              flush=True)

    def print(self):
        for name, rows in self.rows.items():
            error, cpu, wall = (sorted(column) for column in list(zip(*rows))[:3])
            print(f"{name}: median {statistics.median(error):.2g}, worst {error[-1]:.2g}, "
                  f"{statistics.median(cpu):.2f} s of processor time, {statistics.median(wall):.2f} s")


def burgers(graphrun, seed, table, flags):
    if flags.get("peer") == "whole":
        return table.add("deepxde, to its end", seed, *run_peer("deepxde", seed))
    for precision in ("fp32", "fp64"):
        error, cpu, wall = ours_burgers(graphrun, seed, precision, flags.get("epochs", 2500))
        table.add(f"graphrun {precision}", seed, error, cpu, wall)
    table.add("deepxde, same time", seed, *run_peer("deepxde", seed, cpu))


# Returns the processor time of graphrun, which the peer gets, and 20 times as much.
def next_to_scipy(graphrun, seed, table, model, metric, peer, *flags):
    error, cpu, wall, summary = ours_summary(graphrun, model, seed, metric, "--set", "train.precision=fp64", *flags)
    table.add("graphrun fp64", seed, error, cpu, wall, summary["steps"])
    table.add("scipy, same time", seed, *run_peer(peer, seed, cpu))
    table.add("scipy, 20 times as long", seed, *run_peer(peer, seed, 20 * cpu))
    return cpu


def heat(graphrun, seed, table, _):
    flags = ["--set", "train.optimizer=levenberg_marquardt", "--epochs=250"]
    next_to_scipy(graphrun, seed, table, "physics/heat.json", "rmse", "scipy-heat", *flags)


def sinc(graphrun, seed, table, _):
    flags = ["--set", "data.train.grid.u=[-1,1,20000]", "--epochs=300"]
    cpu = next_to_scipy(graphrun, seed, table, "fitting/sinc.json", "loss", "scipy-sinc", *flags)
    table.add("tf-levenberg-marquardt, 20 times as long", seed, *run_peer("tf", seed, 20 * cpu))


def steps(graphrun, seed, table, _):
    error, cpu, wall, summary = ours_summary(graphrun, "physics/heat.json", seed, "rmse")
    table.add("graphrun, bfgs", seed, error, cpu, wall, summary["steps"])
    error, peer, wall, evaluations = run_peer("torch", seed)
    table.add("torch, LBFGS", seed, error, peer, wall, evaluations)
    ours, peer = cpu / summary["steps"], peer / evaluations
    print(f"  evaluation: {1e6 * ours:.0f} and {1e6 * peer:.0f} us, {peer / ours:.1f} times as long", flush=True)


def main():
    if sys.argv[1] == "--child":
        print(json.dumps(PEERS[sys.argv[2]](int(sys.argv[3]), float(sys.argv[4]))))
        return
    graphrun, problem, *rest = sys.argv[1:]
    flags = dict(flag.lstrip("-").split("=") for flag in rest)
    os.sched_setaffinity(0, {int(flags.get("core", 0))})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                 "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        os.environ[name] = "1"
    table = Table()
    for seed in range(1, int(flags.get("seeds", 5)) + 1):
        {"burgers": burgers, "heat": heat, "sinc": sinc, "steps": steps}[problem](graphrun, seed, table, flags)
    table.print()


if __name__ == "__main__":
    main()
