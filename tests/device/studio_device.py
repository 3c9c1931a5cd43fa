"""The studio on a device by its HTTP interface, as its page asks: a model is trained there, paused, stepped and looked
into; what it shows is compared with the executor cpu and with what the command line says of the same model. Only the
standard library is needed, no browser.

    python3 studio_device.py GRAPHRUN SOURCES [EXECUTOR]

EXECUTOR is cuda unless it is given; any other than cpu shows the same. Exit code 77: this machine has no such device.
"""

import http.client
import io
import json
import math
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zipfile

PATIENCE = 600  # seconds for everything: then it says what it was waiting for

failures = []
begun = time.monotonic()


def expect(holds, what, found=""):
    print(f"{'ok    ' if holds else 'FAILED'} {time.monotonic() - begun:5.1f} s  {what}{f': {found}' if found != '' else ''}", flush=True)
    if not holds:
        failures.append(what)


def left():
    return max(1.0, PATIENCE - (time.monotonic() - begun))


class Studio:
    """One that runs, and the events that it sends."""

    def __init__(self, graphrun, folder, *words):
        started = time.monotonic()
        self.process = subprocess.Popen([graphrun, "studio", *words, "--no-browser"], cwd=folder, stdout=subprocess.PIPE, text=True)
        url = urllib.parse.urlsplit(self.process.stdout.readline().strip())
        self.host, self.port = url.netloc, url.port
        token = dict(urllib.parse.parse_qsl(url.query))["token"]
        self.headers = {"Cookie": f"graphrun_studio_{self.port}={token}", "Origin": f"http://{self.host}"}
        self.ask("/")
        self.first_byte = time.monotonic() - started
        self.changed, self.training, self.points, self.progress = threading.Condition(), {}, [], {}
        threading.Thread(target=self.listen, daemon=True).start()

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=left())
        headers = dict(self.headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def ask(self, path, **arguments):
        answer = self.request("GET", path + ("?" + urllib.parse.urlencode(arguments) if arguments else ""))
        return self.judged(path, answer)

    def post(self, path, **values):
        return self.judged(path, self.request("POST", path, json.dumps(values)))

    @staticmethod
    def judged(path, answer):
        data = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {data.decode(errors='replace')}")
        return json.loads(data) if answer.headers["Content-Type"] == "application/json" else data

    def listen(self):
        try:
            event, data = None, []
            for line in self.request("GET", "/api/events"):
                word, _, rest = line.decode().rstrip("\n").partition(": ")
                if word == "event":
                    event = rest
                elif word == "data":
                    data.append(rest)
                elif data:  # an empty line ends it
                    self.hear(event, json.loads("\n".join(data)))
                    data = []
        except (OSError, http.client.HTTPException):  # it has ended
            pass

    def hear(self, event, data):
        with self.changed:
            if event in ("hello", "state"):
                self.training = data
                if data["state"] in ("loading", "idle"):
                    self.points, self.progress = [], {}
            elif event == "points":
                self.points += data
            elif event == "progress":
                self.progress = data
            self.changed.notify_all()

    def until(self, what, holds):
        with self.changed:
            if not self.changed.wait_for(lambda: holds(self) or self.training.get("state") == "failed", left()):
                raise TimeoutError(f"not {what} in time; it is {self.training.get('state')}")
            if self.training.get("state") == "failed" and not holds(self):
                raise RuntimeError(f"not {what}: the training failed: {self.training['error']}")
            return self.training

    def state(self, name):
        return self.until(name, lambda studio: studio.training.get("state") == name)


def trained(graphrun, folder, command, *words):
    """What the command that the page prints says of the same training."""
    argv = [str(graphrun), *command.split()[1:], "--json", "--quiet", *words]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=left(), check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def compare_values(studio, executor):
    """Statistics of every value and gradient, with the same weights; f32 sums of another order may differ in the last digits."""
    own, host = (studio.ask("/api/values", executor=name) for name in (executor, "cpu"))
    expect(own["trained"], "values are those of the present weights")
    others = {one["name"]: one for one in host["arrays"]}
    kinds = {one["kind"] for one in own["arrays"]}
    expect(kinds == {"input", "parameter", "value", "gradient"}, "values, parameters and gradients are there", sorted(kinds))
    worst, where = 0.0, ""
    for one in own["arrays"]:
        other = others[one["name"]]
        if one["shape"] != other["shape"]:
            expect(False, f"shape of {one['name']}", (one["shape"], other["shape"]))
            continue
        size = max(abs(other["min"]), abs(other["max"]), 1e-30)
        for figure in ("min", "max", "mean", "std"):
            away = abs(one[figure] - other[figure]) / size
            if not away <= worst:
                worst, where = away, f"{figure} of {one['name']}"
    expect(worst < 1e-4, f"{len(own['arrays'])} arrays are those of cpu, by min, max, mean, std", f"{worst:.1e} of the largest element ({where})")
    return own["arrays"]


def look_inside(studio, executor):
    arrays = compare_values(studio, executor)
    studio.ask("/api/values", executor=executor)
    drawn = 0
    for one in arrays:
        for kind in ("histogram", "heat"):
            drawn += studio.ask("/api/value.svg", name=one["name"], **{"as": kind}).startswith(b"<svg")
    expect(drawn == 2 * len(arrays), "histogram and heat map of every array", drawn)

    costs = studio.ask("/api/costs", executor=executor)
    nodes = {node["name"]: node for node in costs["nodes"]}
    expect(costs["executor"] == executor, "costs are of the executor", costs["executor"])
    timed = [node for node in nodes.values() if node["seconds"] > 0]
    expect(len(timed) > 3, "time of each value",
           ", ".join(f"{node['name']} {1e6 * node['seconds']:.1f} µs" for node in timed))
    inexact = [name for name, node in nodes.items() if node["difference"] is None or not math.isfinite(node["ulp"])]
    worst = max((node for node in nodes.values() if node["name"] not in inexact), key=lambda node: node["ulp"])
    expect(not inexact and worst["ulp"] < 1000, "error of each value beside ref", f"worst {worst['ulp']:.1f} ulp ({worst['name']}) {inexact or ''}")

    plan = studio.ask("/api/plan", executor=executor)
    expect(plan["arena_bytes"] >= plan["lower_bound"] > 0, "memory plan", f"{plan['target']}, {plan['arena_bytes']} bytes, {len(plan['blocks'])} blocks")
    report = studio.post("/api/verify", executor=executor)
    expect(report["passed"] and report["executor"] == executor and report["values"] > 0, "verify",
           report["difference"] or f"{report['values']} values, {report['fused_values']} with {report['regions']} regions")


def watch(studio, text):
    """Pause, step, resume, while another training runs whose number is changed."""
    endless = re.sub(r'"epochs": 40,\n', '"epochs": 100000000,\n    "log_every": 1,\n', re.sub(r'"lr": \{.*?\}\}', '"lr": 0.001', text))
    expect('"log_every"' in endless and '"lr": 0.001' in endless, "a model for pausing")
    studio.post("/api/train", text=endless)
    studio.until("running", lambda one: one.training.get("numbers") and one.training["state"] == "running")
    studio.until("a point", lambda one: one.points)
    studio.post("/api/control", action="pause")
    studio.state("paused")
    steps = []
    for _ in range(3):
        before = studio.progress.get("step")
        studio.post("/api/control", action="step")
        studio.until("a step", lambda one: one.progress.get("step") != before and one.training["state"] == "paused")
        steps.append(studio.progress["step"])
    expect(steps == list(range(steps[0], steps[0] + 3)), "steps one by one", steps)
    studio.post("/api/number", name="lr", value=0.0005)
    studio.until("the change", lambda one: one.training["changes"])
    studio.post("/api/control", action="resume")
    studio.state("running")
    for what in ("confusion", "misclassified"):
        expect(studio.ask("/api/picture.svg", what=what, split="test").startswith(b"<svg"), f"picture while it trains: {what}")
    asked = time.monotonic()
    studio.post("/api/control", action="stop")
    training = studio.state("stopped")
    return training, time.monotonic() - asked


def use(graphrun, sources, executor, work):
    shutil.copy(sources / "models" / "digits.json", work)
    (work / "data").mkdir()
    for file in (sources / "models" / "data").glob("digits-*"):
        shutil.copy(file, work / "data")
    text = (work / "digits.json").read_text()
    studio = Studio(graphrun, work, "digits.json", f"--executor={executor}")
    try:
        print(f"first byte after the start: {1e3 * studio.first_byte:.0f} ms")
        model = studio.ask("/api/model")
        expect(executor in model["executors"], "the executor is offered", model["executors"])

        studio.post("/api/train", text=text)
        training = studio.state("done")
        expect(training["facts"]["executor"] == executor, "it trains on the executor", training["facts"]["executor"])
        result = training["result"]
        expect(result["test"]["accuracy"] > 0.9, "test accuracy", round(result["test"]["accuracy"], 4))
        named = executor == "cpu" or f"--executor {executor}" in training["command"]
        expect(training["run"] and named, "the command", training["command"])
        saved = work / "again.npz"
        again = trained(graphrun, work, training["command"], "--save-weights", str(saved))
        expect(again["weights_hash"] == result["weights_hash"], "weights are those of the command", f"{result['weights_hash']}, {again['weights_hash']}")
        exported = zipfile.ZipFile(io.BytesIO(studio.ask("/api/run-file", run=pathlib.Path(training["run"]).name, file="weights.npz")))
        kept = zipfile.ZipFile(saved)
        same = exported.namelist() == kept.namelist() and all(exported.read(name) == kept.read(name) for name in kept.namelist())
        expect(same, "exported weights are those that the command saves, byte by byte", ", ".join(exported.namelist()))

        look_inside(studio, executor)
        rows = "\n".join([",".join(f"x{i}" for i in range(64))] + [",".join(str((7 * i + 3 * row) % 17) for i in range(64)) for row in range(3)])
        answer = studio.post("/api/predict", rows=rows + "\n")
        expect(len(answer["predictions"]) == 3, "predictions", answer["predictions"])

        training, took = watch(studio, text)
        print(f"stop: {1e3 * took:.0f} ms")
        expect(training["command"].startswith("graphrun replay "), "the command of a changed training", training["command"])
        try:
            trained(graphrun, work, training["command"])
            expect(True, "its replay has the same weights")
        except RuntimeError as failure:
            expect(False, "its replay has the same weights", failure)

        studio.post("/api/train", text=text)
        studio.until("running", lambda one: one.training["state"] in ("running", "done") and one.training["number"] != training["number"])
        asked = time.monotonic()
        studio.process.send_signal(signal.SIGINT)
        studio.process.wait(left())
        took = time.monotonic() - asked
        expect(studio.process.returncode in (0, 130), "Ctrl-C while it trains", f"{1e3 * took:.0f} ms")
    finally:
        if studio.process.poll() is None:
            studio.process.kill()


def main(graphrun, sources, executor="cuda"):
    graphrun, sources = pathlib.Path(graphrun).resolve(), pathlib.Path(sources).resolve()
    if executor == "cuda":
        devices = subprocess.run([graphrun, "devices", "--json"], capture_output=True, text=True, timeout=left(), check=False)
        found = json.loads(devices.stdout)
        if not any(device["executor"] == "cuda" for device in found["devices"]):
            print("skipped: " + next((one["reason"] for one in found["missing"] if one["executor"] == "cuda"), "there is no cuda"))
            return 77
    with tempfile.TemporaryDirectory() as work:
        try:
            use(graphrun, sources, executor, pathlib.Path(work))
        except (RuntimeError, TimeoutError, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as failure:
            expect(False, f"{type(failure).__name__}: {failure}")
    print(f"{len(failures)} failed: {'; '.join(failures)}" if failures else f"all of it, {time.monotonic() - begun:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
