"""Runs graphrun and its peers in turns on a workload: for bench/compare and bench/sweep --peers."""
import json
import pathlib
import statistics
import subprocess

import workload

HERE = pathlib.Path(__file__).resolve().parent
PEERS_ON_CPU = ["torch_eager", "torch_compile", "numpy", "jax_step", "jax_scan"]
PEERS_ON_GPU = ["torch_eager", "torch_graph", "torch_compile", "torch_compile_graph", "cupy", "jax_step", "jax_scan"]


class Failure(Exception):
    """A runner that cannot run. The table has the reason instead of its time."""


class Graphrun:
    """Runs a training run per block and takes the time that it reports for its steps."""

    def __init__(self, name, program, options, w, environment):
        self.name = name
        self.command = [str(program), str(workload.path_of(w.name)), "--json", "--quiet"]
        self.command += ["--executor=cuda"] if options.gpu else [f"--threads={options.threads}"]
        if options.tf32:
            self.command += ["--set", "train.precision=tf32"]
        self.command += options.option
        self.environment = environment
        self.batches = w.batches
        self.versions = {}
        self.blas = None

    def block(self, steps):
        epochs = -(-steps // self.batches)
        # One report, at the end: the steps are not interrupted before.
        command = [*self.command, f"--epochs={epochs}", "--set", f"train.log_every={epochs}"]
        run = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Failure((run.stderr.strip() or f"graphrun ended with {run.returncode}").splitlines()[0])
        result = json.loads(run.stdout)
        return result["steps"], result["seconds"]

    def close(self):
        pass


class Peer:
    """A process of bench/peers.py, which waits between its blocks. It can prepare one workload after another."""

    def __init__(self, options, name, w, environment):
        self.name = name
        self.python = options.python
        command = [options.python, str(HERE / "peers.py"), name, w.name, "gpu" if options.gpu else "cpu"]
        if options.tf32:
            command.append("--tf32")
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.take(self.answer())

    def take(self, ready):
        self.versions, self.blas = ready["versions"], ready["blas"]
        if ready["refused"]:
            self.close()
            raise SystemExit(f"{self.python}: {self.name} has loaded {ready['refused']}")

    def answer(self, line=""):
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended: there is no answer
        line = self.process.stdout.readline()
        reply = json.loads(line) if line.startswith("{") else {"error": "it ended without a word"}
        if "error" in reply:
            self.close()
            raise Failure(reply["error"].splitlines()[0])
        return reply

    def prepare(self, w):
        self.take(self.answer(f"{w.name}\n"))

    def block(self, steps):
        reply = self.answer(f"{steps}\n")
        return reply["steps"], reply["seconds"]

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it ended before it read the last line
        self.process.stdout.close()
        self.process.wait()


def steps_for(runner, seconds):
    """Returns the number of steps of a block of about `seconds`. Warms up the runner."""
    steps = 1
    while True:
        done, took = runner.block(steps)
        if took >= seconds / 4 or done >= 10_000_000:
            return max(1, int(done * seconds / max(took, 1e-9)))
        steps = max(done * 2, int(done * min(seconds / max(took, 1e-9) / 2, 50)))


def measure(options, name, environment, waiting=None):
    """Returns {runner: times or {"error"}}, and the versions that the runners report. If `waiting` is a dict, it keeps
    the processes of peers for the next workload."""
    w = workload.read(name)
    results, versions, runners = {}, {}, []

    def peer(name):
        if not (waiting and name in waiting):
            return Peer(options, name, w, environment)
        kept = waiting.pop(name)
        kept.prepare(w)
        return kept

    makers = [("graphrun", lambda: Graphrun("graphrun", options.graphrun, options, w, environment))]
    if options.against:
        makers.append(("against", lambda: Graphrun("against", options.against, options, w, environment)))
    makers += [(p, lambda p=p: peer(p)) for p in options.peers]
    try:
        for runner_name, make in makers:
            try:
                runner = make()
                runners.append(runner)
                runner.steps = steps_for(runner, options.seconds)
                runner.times = []
            except Failure as failure:
                results[runner_name] = {"error": str(failure)}
                runners = [r for r in runners if r.name != runner_name]
                continue
            versions.update(runner.versions)
            if runner.blas:
                versions[f"BLAS of {runner_name.split('_')[0]}"] = ", ".join(runner.blas)
        for _ in range(options.rounds):
            for runner in list(runners):
                try:
                    steps, seconds = runner.block(runner.steps)
                    runner.times.append(seconds / steps * 1e6)
                except Failure as failure:
                    results[runner.name] = {"error": str(failure)}
                    runners.remove(runner)
    finally:
        for runner in runners:
            if waiting is not None and isinstance(runner, Peer):
                waiting[runner.name] = runner
            else:
                runner.close()
    for runner in runners:
        results[runner.name] = {
            "us_per_step": statistics.median(runner.times),
            "min": min(runner.times),
            "max": max(runner.times),
            "steps_in_block": runner.steps,
            "blocks": len(runner.times),
        }
    return results, versions
