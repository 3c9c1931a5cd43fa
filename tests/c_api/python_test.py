"""The Python package over the C interface, and the examples of python.md. Exit code 77: NumPy is not here.

python_test.py LIBRARY SOURCE; with "installed" as LIBRARY of the package that is installed
"""

import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

try:
    import numpy
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

source = pathlib.Path(sys.argv[2]).absolute()
if sys.argv[1] != "installed":
    os.environ["GRAPHRUN_LIBRARY"] = os.path.abspath(sys.argv[1])
    sys.path.insert(0, str(source / "python"))
import graphrun  # noqa: E402
from exceptions import refused  # noqa: E402

package = str(pathlib.Path(graphrun.__file__).parents[1])


def raised(kind, code, call):
    try:
        call()
    except graphrun.Error as error:
        assert error.kind == kind and error.diagnostics[0]["code"] == code, (error.kind, error.diagnostics)
        return str(error)
    raise AssertionError(f"no error {code}")


def xor(**changes):
    return graphrun.Model(source / "models/xor.json", **changes)


def test_training():
    reports = []
    session = xor(set={"train.epochs": 400, "train.optimizer": "adam", "train.log_every": 100}).open()
    result = session.train(reports.append)
    assert result["epochs"] == 400 and [r.epoch for r in reports] == [100, 200, 300, 400], (result, reports)
    assert session.step == 400 and session.loss == reports[-1].loss
    assert session.advance(2).steps == 2 and session.advance(5, until=time.monotonic_ns() - 1).steps == 0
    assert session.evaluate("train")["loss"] < 0.01
    together = session.predict([[0, 1], [1, 1], [1, 0]])
    alone = numpy.concatenate([session.predict([row]) for row in ([0, 1], [1, 1], [1, 0])])
    assert (together == alone).all() and abs(together[0, 0] - 1) < 0.2, together
    other = xor(set={"train.epochs": 400, "train.optimizer": "adam"}).open("ref")
    assert other.describe()["executor"] == "ref" and "h.W:m" in [s["name"] for s in other.describe()["states"]]


def test_a_callback_ends_it():
    session = xor(set={"train.log_every": 1}).open()
    assert session.train(lambda report: report.epoch == 3)["cancelled"]

    def fails(report):
        raise KeyError("mine")
    try:
        session.train(fails)
    except KeyError:
        return
    raise AssertionError("the exception of a callback is lost")


def changed(i, **more):
    """Network i of a group, of which number 2 diverges."""
    return xor(set={"train.log_every": 10, "train.epochs": 100, "train.seed": i, **more,
                    **({"train.optimizer.sgd.lr": 1e30} if i == 2 else {})})


def test_many_networks_train_as_each_alone():
    sessions = [changed(i).open(threads=1) for i in range(6)]
    thread, seen = threading.get_ident(), {i: [] for i in range(6)}

    def ends(i, report):
        assert threading.get_ident() == thread and report.step == sessions[i].step
        assert i == 2 or sessions[i].evaluate("train")["loss"] > 0
        seen[i].append(report.epoch)
        return i == 3 and report.epoch == 50

    results = graphrun.train_many(sessions, ends, at_once=3)
    for i, (session, result) in enumerate(zip(sessions, results)):
        alone = changed(i).open()
        try:
            alone.train(lambda report: i == 3 and report.epoch == 50)
        except graphrun.Error as error:
            assert i == 2 and str(error) == str(result["error"]), (i, error, result)
        assert session.weights_hash() == alone.weights_hash(), i
        assert i == 2 or (result["error"] is None and result["cancelled"] == (i == 3)), result
        assert i == 2 or result["epochs"] == (50 if i == 3 else 100), result
        assert i == 2 or seen[i] == list(range(10, result["epochs"] + 1, 10)), seen[i]
    assert results[2]["error"].code == "run.not_finite"
    assert [one["epochs"] for one in graphrun.train_many([changed(0).open(), changed(1).open()])] == [100, 100]
    assert graphrun.train_many([]) == []


def test_an_exception_ends_many_trainings():
    sessions = [changed(0).open() for _ in range(3)]
    for kind in (KeyError, KeyboardInterrupt):
        def fails(i, report):
            raise kind("mine")
        try:
            graphrun.train_many(sessions, fails, at_once=1)
        except kind:
            assert sessions[2].step == 0
            continue
        raise AssertionError("the exception of a callback is lost")
    assert "less than 1" in refused(ValueError, lambda: graphrun.train_many(sessions, at_once=0))
    assert "got Model" in refused(TypeError, lambda: graphrun.train_many([xor()]))
    assert "given twice" in raised("input", "train_many.session", lambda: graphrun.train_many(sessions * 2))


def test_ctrl_c_ends_many_trainings_without_reports():
    sessions = [changed(0, **{"train.epochs": 10**10, "train.log_every": 10**10}).open(threads=1) for _ in range(4)]
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        graphrun.train_many(sessions, at_once=2)
    except KeyboardInterrupt:
        return
    raise AssertionError("Ctrl-C is lost")


def test_an_ensemble_predicts_the_mean():
    changes = {"train.epochs": 300, "train.seed": 5}
    ensemble = graphrun.Ensemble(source / "models/xor.json", 4, set=changes).fit()
    alone = [xor(set={**changes, "train.seed": 5 + i}).fit() for i in range(4)]
    assert [one.session.weights_hash() for one in ensemble.models] == [one.session.weights_hash() for one in alone]
    rows = [[0, 1], [1, 1], [0.5, 0.25]]
    values = [one.predict(rows).astype("float64") for one in alone]
    mean, std = ensemble.predict(rows, return_std=True)
    assert (mean == sum(values) / 4).all() and mean.dtype == numpy.float64, (mean, values)
    assert (mean == ensemble.predict(rows)).all()
    assert numpy.allclose(std, numpy.std(values, axis=0, ddof=1)) and (std > 0).all(), std
    assert "no classes" in refused(TypeError, lambda: ensemble.predict_proba(rows))
    x, y = numpy.random.default_rng(0).normal(size=(2, 40, 2)).astype("float32")
    on_arrays = graphrun.Ensemble(source / "models/xor.json", 2, set=changes).fit(x, y[:, :1], at_once=1)
    assert on_arrays.predict(x).shape == (40, 1)
    broken = graphrun.Ensemble(source / "models/xor.json", 2, set={"train.optimizer.sgd.lr": 1e30})
    raised("run", "run.not_finite", broken.fit)
    assert "fewer than 2" in refused(ValueError, lambda: graphrun.Ensemble(source / "models/xor.json", 1))
    assert "train.epochs" in refused(TypeError, lambda: broken.fit(epochs=3))


def test_an_ensemble_votes_by_mean_probabilities():
    ensemble = graphrun.Ensemble(source / "models/digits.json", 3, set={"train.epochs": 2}).fit()
    seeds = {one._options["set"]["data.split_seed"] for one in ensemble.models}
    assert len(seeds) == 1, "the networks share the split of the rows"
    x = numpy.random.default_rng(1).uniform(0, 16, (20, 64))
    probabilities = sum(one.predict_proba(x) for one in ensemble.models) / 3
    assert (ensemble.predict_proba(x) == probabilities).all()
    classes, std = ensemble.predict(x, return_std=True)
    assert (classes == probabilities.argmax(axis=1)).all() and std.shape == (20, 10)


def test_arrays():
    session = xor().open()
    weights = session["h.W"]
    session["h.W"] = weights * 2
    assert (session["h.W"] == weights * 2).all() and weights.dtype == numpy.float32
    session.write_rows("data/train/x", 2, [[5, 6]])
    assert (session["data/train/x"][2] == [5, 6]).all()
    x = numpy.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32")
    y = numpy.array([[0], [1], [1], [0]], "float32")
    fitted = xor().fit(x, y).session
    assert fitted.weights_hash() == xor().fit().session.weights_hash()
    assert fitted.weights_hash() == xor().fit(x.tolist(), [0, 1, 1, 0]).session.weights_hash()
    out = {"y_hat": numpy.empty((4, 1), "float32")}
    given = fitted.predict_all(x, out=out)["y_hat"]
    assert given.ctypes.data == out["y_hat"].ctypes.data, "the array of the caller is not used"
    assert graphrun._arrays.as_array(x).ctypes.data == x.ctypes.data, "an array was copied"

    class Other:  # of another library
        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

        def __dlpack_device__(self):
            return x.__dlpack_device__()
    assert graphrun._arrays.as_array(Other()).ctypes.data == x.ctypes.data, "a tensor of another library was copied"
    assert (fitted.predict(Other()) == given).all()
    room = numpy.zeros((4, 1), "float32")

    class OtherRoom:
        def __dlpack__(self, **options):
            return room.__dlpack__(**options)

        def __array__(self, *_, **__):
            return room
    fitted.predict_all(x, out={"y_hat": OtherRoom()})
    assert (room == given).all(), "a tensor of another library is not written"
    assert "y_hat" in refused(ValueError, lambda: fitted.predict_all(x, out={"y_hat": [[0], [0], [0], [0]]}))
    with tempfile.TemporaryDirectory() as folder:
        fitted.save_weights(os.path.join(folder, "w.safetensors"))
        fresh = xor().open()
        fresh.load_weights(os.path.join(folder, "w.safetensors"))
    assert fresh.weights_hash() == fitted.weights_hash()


def test_embedding():
    session = xor(set={"train.optimizer": {"sgd": {"lr": {"runtime": 0.1}}}}).open(rows_vary=["train"])
    session.set_rows("train", 3)
    session.advance(10)
    state, hash_then = session.save_state(), session.weights_hash()
    session["train:lr"] = 0.5
    session.advance(10)
    assert session.weights_hash() != hash_then and session["train:lr"] == numpy.float32(0.5)
    session.load_state(state)
    assert session.weights_hash() == hash_then and session["train:lr"] == numpy.float32(0.1)
    raised("input", "rows.range", lambda: session.set_rows("train", 5))
    raised("input", "state.size", lambda: session.load_state(b"12345678"))


def test_scikit_learn():
    generator = numpy.random.default_rng(1)
    x = generator.normal(size=(300, 4))
    y = x @ [[1.0], [2.0], [-1.0], [0.5]] + 3
    graph = graphrun.GraphBuilder()
    given, target = graph.input("x", 4), graph.input("y", 1)
    graph.p = given @ graph.parameter("W", 4, 1, init="zeros") + graph.parameter("b", 1, init="zeros")
    graph.loss = ((graph.p - target) ** 2).mean()
    model = graph.model(outputs={"p": "y"}, optimizer={"sgd": {"lr": 0.3}}, epochs=60)
    assert model.fit(x, y) is model and model.score(x, y) > 0.999 and model.predict(x).shape == (300, 1)
    assert model.fit(x, y[:, 0]).score(x, y[:, 0]) > 0.999, "a second fit, and a column as a list"

    graph = graphrun.GraphBuilder()
    features, label = graph.input("x", 4), graph.input("label", dtype="i32")
    logits = graph.dense("logits", features, 3)
    graph.loss = graph.call("softmax_cross_entropy", logits, label).mean()
    classes = numpy.argmax(x[:, :3], axis=1)
    model = graph.model(outputs={"logits": "label"}, optimizer={"adam": {"lr": 0.1}}, epochs=80).fit(x, classes)
    assert model.score(x, classes) > 0.95 and model.predict(x[:5]).tolist() == classes[:5].tolist(), model.score(x, classes)
    assert numpy.allclose(model.predict_proba(x).sum(axis=1), 1) and model.predict_proba(x).argmax(axis=1)[0] == classes[0]


def test_decision_thresholds():
    generator = numpy.random.default_rng(2)
    x = generator.normal(size=(400, 2))
    for labels in (1, 3):
        y = (x @ generator.normal(size=(2, labels)) + generator.normal(size=(400, labels)) > 1.5).astype("float32")
        for rule in (None, {"by": {"recall": 1}}, {"by": "f1"}):
            graph = graphrun.GraphBuilder()
            given, target = graph.input("x", 2), graph.input("y", labels)
            graph.z = given @ graph.parameter("W", 2, labels, init="zeros") + graph.parameter("b", labels, init="zeros")
            graph.loss = graph.call("sigmoid_cross_entropy", graph.z, target).mean()
            extra = {"threshold": rule} if rule else {}
            model = graph.model(outputs={"z": "y"}, optimizer={"adam": {"lr": 0.05}}, epochs=40, **extra)
            model.fit(x[:200], y[:200], validation=(x[200:], y[200:]))
            output = model.session.describe()["outputs"][0]
            assert ("thresholds" in output) == bool(rule)
            said, wanted = model.predict(x[200:]).reshape(200, labels), y[200:]
            p = model.predict_proba(x[200:])[:, -labels:]
            assert (said == (p >= output["thresholds"] if rule else p > 0.5)).all()
            assert model.predict(x[:5]).shape == ((5,) if labels == 1 else (5, labels))
            assert rule is None or rule["by"] == "f1" or (said[wanted == 1] == 1).all()
            assert model.score(x[200:], y[200:]) == float((said == wanted).all(axis=1).mean())


def test_graph_builder():
    graph = graphrun.GraphBuilder()
    x = graph.input("x", 3)
    graph.gain = graph.runtime("volume", 0.5) * 2
    assert graph["gain"] is graph.gain
    graph.y = (-(1 - x) / graph.gain + 2 * x.tanh() - 0.5 * (x > 0).mean(axis=1, keepdims=True)) ** 2
    graph.loss = graph.y.mean() * graph.parameter("w", init=1)
    session = graph.model(outputs=["y"], data={"train": {"inline": {"x": [[1, 2, 3]]}}}).open()
    rows = numpy.array([[1, -2, 0.5], [0, 3, -1]], "float32")
    def wanted(gain):
        return (-(1 - rows) / gain + 2 * numpy.tanh(rows) - 0.5 * (rows > 0).mean(axis=1, keepdims=True)) ** 2
    assert numpy.allclose(session.predict(rows), wanted(1), rtol=1e-5)
    session["volume"] = 2
    assert numpy.allclose(session.predict(rows), wanted(4), rtol=1e-5)
    message = raised("input", "shape.mismatch", _broken_model)
    assert "x f32(batch, 3)" in message or "x" in message, message
    for mistake in (lambda: graph.nothing, lambda: x.nothing, lambda: bool(x), lambda: setattr(graph, "z", 3)):
        try:
            mistake()
        except (AttributeError, TypeError):
            continue
        raise AssertionError("a mistake was taken")


def _broken_model():
    graph = graphrun.GraphBuilder()
    x = graph.input("x", 3)
    graph.loss = (x @ graph.parameter("W", 4, 1)).mean()
    graph.model(outputs=["loss"])


def test_objectives_and_layers():
    graph = graphrun.GraphBuilder()
    x, y = graph.input("x", 2), graph.input("y", 1)
    h = graph.layer("batch_norm", "n", graph.dense("h", x, 8, activation="tanh"))
    graph.p = graph.dense("out", graph.layer("rms_norm", "r", graph.layer("layer_norm", "l", h)), 1)
    graph.q = graph.dense("other", x, 1)
    graph.first, graph.second = ((graph.p - y) ** 2).mean(), ((graph.q - y) ** 2).mean()
    average = graph.state("average", 1, init={"constant": 2})
    graph.assign(average, 0.5 * average + 0.5 * graph["other.b"], after=True)
    sgd = {"sgd": {"lr": 0.1}}
    model = graph.model(outputs=["p", "q"], epochs=6, log_every=1, objectives={
        "one": {"minimize": "first", "parameters": ["h", "n", "r", "l", "out"], "optimizer": sgd},
        "two": {"minimize": "second", "parameters": ["other"], "optimizer": sgd, "every": 3}})
    rows = numpy.random.default_rng(2).normal(size=(32, 2)).astype("float32")
    model.set_data("train", x=rows, y=rows[:, :1] + 1)
    session = model.open()
    before, reports, biases = session.counters, [], []
    def tell(report):
        reports.append(report)
        biases.append(float(session["other.b"][0]))
    session.train(tell)
    assert [list(report.objectives) for report in reports] == [["one", "two"]] * 6, reports[0]
    for report in reports:
        assert abs(sum(report.objectives.values()) - report.loss) < 1e-5 * report.loss, report
    assert biases[0] == biases[1] == 0 != biases[2] and biases[2:5] == [biases[2]] * 3 and biases[5] != biases[4], biases
    wanted = 2
    for bias in biases:
        wanted = 0.5 * wanted + 0.5 * bias
    assert abs(session["average"][0] - wanted) < 1e-6
    assert session["n.mean"].shape == (8,) and (session["n.variance"] != 1).all()
    allocations = session.counters["allocations"]
    assert allocations == before["allocations"] >= 1 and session.describe()["objectives"] == ["one", "two"]
    session.train()
    assert session.counters["allocations"] == allocations
    assert xor().open().describe()["objectives"] == [] and xor().open().counters["allocated_bytes"] > 0
    single = []
    xor(set={"train.epochs": 2}).open().train(single.append)
    assert single[0].objectives == {}


def test_diagnostics():
    text = '{"format": 1,\n "graph": ["loss = mean(z)"], "inputs": {"x": ["batch", 2]}, "outputs": ["loss"],\n "dta": {}}'
    try:
        graphrun.Model(text)
    except graphrun.Error as error:
        assert error.line == 1 or error.line > 0
        pointers = {one["pointer"] for one in error.diagnostics}
        assert "/graph/0" in pointers and len(error.diagnostics) >= 3, error.diagnostics
        assert any(one["line"] == 3 for one in error.diagnostics), error.diagnostics
        return
    raise AssertionError("it was taken")


def test_progress():
    from graphrun._progress import Progress
    import contextlib
    import io
    with contextlib.redirect_stderr(io.StringIO()) as told:
        xor(set={"train.log_every": 500}).open().train(progress=True)
        xor().open().train()  # nobody looks
    lines = told.getvalue().splitlines()
    assert lines and "epoch 2000/2000" in lines[-1] and len(lines) <= 4, lines

    class Shown:
        texts = []

        def update(self, shown, raw):
            self.texts.append(shown["text/plain"])
    notebook = Progress()
    notebook._notebook, notebook._handle = True, Shown()
    notebook.update(graphrun.Report(1, 10, 5, 0.25, 0.5, 1.0, 1000.0))
    notebook.end()
    assert "epoch 1/10  loss 0.25  validation 0.5  1,000 steps/s" in Shown.texts[-1], Shown.texts


def test_wheels_of_nvidia():
    with tempfile.TemporaryDirectory() as folder:
        libraries = pathlib.Path(folder, "nvidia/cu13/lib")
        libraries.mkdir(parents=True)
        try:
            for name in ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0"):
                subprocess.run(["cc", "-shared", "-o", libraries / name, f"-Wl,-soname,{name}", "-x", "c", "/dev/null"], check=True)
        except (OSError, subprocess.CalledProcessError):
            print("no C compiler: libraries in place of NVIDIA's were not made")
            return
        code = ("import ctypes, graphrun; graphrun.devices(); from graphrun import _library; "
                "print([n._name.split('/')[-1] for n in _library._cuda_libraries]); ctypes.CDLL('libnvrtc.so.13')")
        done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True,
                              env={**os.environ, "PYTHONPATH": f"{package}:{folder}"})
        assert done.stdout.strip() == "['libnvrtc-builtins.so.13.0', 'libnvrtc.so.13']", done.stdout


def test_whatever_may_use_cuda_looks_for_them():
    from graphrun import _library

    looked, kept = [], _library.load_cuda_wheels
    _library.load_cuda_wheels = lambda: looked.append(True)
    try:
        for use in (lambda on: xor().open(on), lambda on: xor().verify(on), lambda on: xor().fit(executor=on, progress=False)):
            looked.clear()
            use("cpu")
            assert not looked
            try:
                use("cuda")
            except graphrun.Error as error:  # where there is no GPU
                assert error.diagnostics[0]["code"].startswith(("cuda.", "executor.")), error.diagnostics
            assert looked
    finally:
        _library.load_cuda_wheels = kept


def test_import_is_quick():
    """NumPy and its like take longer than the package: they are imported when they are needed."""
    code = "import sys; import graphrun; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    modules = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": package}, text=True, check=True,
                             capture_output=True).stdout.split()
    late = {"numpy", "pandas", "scipy", "sklearn", "torch", "multiprocessing", "asyncio", "email", "http"}
    assert "graphrun" in modules and not late.intersection(modules), late.intersection(modules)


def test_xor_example():
    done = subprocess.run([sys.executable, source / "examples/xor.py"], text=True, capture_output=True, check=True,
                          env={**os.environ, "PYTHONPATH": package})
    numbers = [float(word) for word in re.findall(r"-?\d+\.\d*(?:e-?\d+)?", done.stdout)]
    assert numpy.allclose(numbers, [0, 1, 1, 0], atol=0.1), done.stdout
    assert len((source / "examples/xor.py").read_text().splitlines()) <= 10
    assert len((source / "examples/xor.c").read_text().splitlines()) <= 40


def test_mistakes():
    assert "h.W" in raised("input", "state.unknown", lambda: xor().open()["hW"])
    assert raised("input", "json.syntax", lambda: graphrun.Model("{")).startswith("<text>:1:2")
    raised("input", "split.unknown", lambda: xor().open().evaluate("tset"))
    raised("input", "executor.unknown", lambda: xor().open("gpu"))
    model = xor()
    model.open()
    model.open()  # which loads it once more
    rows = numpy.zeros((256, 2), "float32")
    try:
        xor().fit(rows, numpy.zeros((5, 1), "float32"))
    except graphrun.Error as error:
        assert "5 rows" in str(error) and "256" in str(error), error
    else:
        raise AssertionError("x of 256 rows with y of 5 was taken")
    assert xor().verify()["passed"] and graphrun.devices()["devices"]


def test_arrays_that_do_not_fit():
    session = xor().open()
    for values in ([[1j, 2]], [["1", "2"]], numpy.array([[None, 1]])):
        refused(TypeError, lambda: session.predict(values))
        refused(TypeError, lambda: session.__setitem__("h.W", values))
    out = numpy.empty((1, 1), "float32")
    assert "y_hat" in refused(ValueError, lambda: session.predict_all([[0, 1]], out={"z": out}))
    assert "x, y" in refused(TypeError, lambda: xor().set_data("train", z=[1]))
    graph = graphrun.GraphBuilder()
    word, y = graph.input("word", dtype="i32"), graph.input("y", 1)
    graph.p = graph.dense("p1", graph.layer("embedding", "E", word, entries=4, units=3), 1)
    graph.loss = ((graph.p - y) ** 2).mean()
    model = graph.model(outputs={"p": "y"}).fit(numpy.arange(4), numpy.arange(4.0))
    assert model.predict(numpy.array([1, 2], "uint8")).shape == (2, 1)
    for values, kind in (([0.5], TypeError), ([2**40], ValueError), ([-2**40], ValueError)):
        refused(kind, lambda: model.predict(values))
    refused(ValueError, lambda: model.fit(numpy.array([0, 2**40]), [0.0, 1.0]))


def test_arrays_of_a_fit_take_the_place_of_earlier_ones():
    x, y = numpy.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32"), [0, 1, 1, 0]
    model = xor().fit(x, y)
    raised("input", "input.unbound", lambda: model.fit(x))
    raised("input", "data.rows", lambda: model.fit(x, y[:3]))
    assert model.open().describe()["splits"] == [{"name": "train", "samples": 4}], "those that did not fit are kept"
    many = numpy.zeros((100, 2), "float32")
    assert xor(set={"train.epochs": 3}).fit(many, many[:, :1]).session.step == 3, "a batch of all is all rows given"


def frame(**columns):
    """What is asked of a DataFrame: column names, a column by name, all as an array."""
    class Frame:
        def __init__(self):
            self.columns = list(columns)

        def __getitem__(self, name):
            return numpy.asarray(columns[name])

        def __array__(self, dtype=None, copy=None):
            return numpy.stack([self[name] for name in columns], axis=1).astype(dtype)
    return Frame()


def linear(x, graph=None, inputs=None, set=None, **data):
    """y_hat of x (batch, 2), whose columns `x` are those of a table."""
    table = {} if "source" in data else {"train": {"csv": "d.csv", "x": x, "y": "y"}}
    text = {"format": 1, "data": {**table, **data},
            "inputs": inputs or {"x": ["batch", 2], "y": ["batch", 1]},
            "graph": graph or ["y_hat = dense(x, units=1)", "loss = mean(square(y_hat - y))"], "outputs": {"y_hat": "y"},
            "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.1}}, "epochs": 300, "seed": 1}}
    return graphrun.Model(text, data="none", set=set)


def test_columns_of_a_table_are_taken_by_name():
    rng = numpy.random.default_rng(0)
    a, b = rng.random(30), rng.random(30)
    x, y = numpy.stack([a, b], axis=1), 3 * a - b
    for names in (["a", "b"], None):  # listed by the model, or those of the fit
        model = linear(names) if names else linear(["a", "b"], set={"data": {"train": {"npz": "d.npz"}}})
        model.fit(frame(b=b, a=a, other=y) if names else frame(a=a, b=b), y, progress=False)
        wanted = model.predict(x)
        assert abs(wanted[:, 0] - y).max() < 0.1
        assert (model.predict(frame(more=y, b=b, a=a)) == wanted).all()
        assert model.score(frame(b=b, a=a), y) > 0.99
        message = refused(ValueError, lambda: model.predict(frame(a_1=a, b=b)))
        assert "no column 'a'" in message and "a_1, b" in message, message
    refused(ValueError, lambda: linear(["alpha", "b"]).fit(frame(alpah=a, b=b), y))
    assert "did you mean 'alpah'" in refused(ValueError, lambda: linear(["alpha", "b"]).fit(frame(alpah=a, b=b), y))


def test_keywords_of_fit():
    x, y = numpy.zeros((4, 2)), numpy.zeros(4)
    model = linear(["a", "b"])
    for name, value, wanted in (("validation_data", (x, y), "validation=(x, y)"),
                                ("epochs", 3, "train.epochs"), ("batch_size", 2, "train.batch"),
                                ("threds", 2, "did you mean 'threads'")):
        message = refused(TypeError, lambda: model.fit(x, y, **{name: value}))
        assert f"{name!r}" in message and "sample_weight, on_report" in message and wanted in message, message
    assert "(x, y)" in refused(TypeError, lambda: model.fit(x, y, validation=x))
    assert "threads" in refused(TypeError, lambda: model.open(thread=2))
    assert "executor: expected a name" in refused(TypeError, lambda: model.fit(x, y, executor=3))
    assert model.fit(x, y, threads=numpy.int64(1), progress=False).session.step > 0
    assert "no input of this name" in refused(TypeError, lambda: model.fit(x, y, sample_weight=y))


def test_sample_weight():
    x = numpy.random.default_rng(3).random((60, 2))
    y, weight = x[:, 0] - x[:, 1], numpy.arange(60) % 2.0
    y[::2] = 5  # rows of weight 0
    shape = {"x": ["batch", 2], "y": ["batch", 1], "sample_weight": ["batch", 1]}
    def weighted():
        return linear(["a", "b"], ["y_hat = dense(x, units=1)", "loss = mean(sample_weight * square(y_hat - y))"], shape)
    model = weighted().fit(x, y, sample_weight=weight, validation=(x, y, weight), progress=False)
    assert model.score(x[1::2], y[1::2]) > 0.99 and model.evaluate("validation")["loss"] < 1e-3
    assert weighted().fit(x, y, progress=False).session.weights_hash() == weighted().fit(
        x, y, sample_weight=[1] * 60, progress=False).session.weights_hash()


def test_a_table_replaces_the_file_of_the_model():
    """Splits, categories, gaps and formulas are those of the model file, as for a CSV file of these rows."""
    sizes, colors = [1.5, None, float("nan"), 4, 1e-7, 6], ["red", "blue, \"dark\"", "red", "red", "blue, \"dark\"", "red"]
    table = frame(size=numpy.array(sizes, object), color=numpy.array(colors, object), y=numpy.arange(6),
                  sold=numpy.array(["2024-01-0%d" % (i + 1) for i in range(6)], object), more=numpy.array([True] * 6))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        graphrun._arrays.write_table(table, "d.csv")
        assert "1.5,red,0,2024-01-01,true\n,\"blue" in pathlib.Path("d.csv").read_text().replace("\r", "")
        graph = ["y_hat = dense(x, units=1)", "loss = mean(square(y_hat - y))"]
        text = linear(["size", "color", "days(sold)"], graph, {"x": ["batch", 4], "y": ["batch", 1]},
                      source={"csv": "d.csv", "x": ["size", "color", "days(sold)"], "y": "y", "missing": "mean"},
                      split=[0.5, 0, 0.5], transform={"x": ["standardize"], "color": ["one_hot"]})._source
        read = graphrun.Model(text).fit(progress=False)
        os.remove("d.csv")
        doubled = frame(**{name: table[name] for name in table.columns})
        doubled.columns.append("size")
        assert "two columns 'size'" in refused(ValueError, lambda: graphrun.Model(text).fit(doubled))
        given = graphrun.Model(text).fit(table, progress=False)
        assert given.session.weights_hash() == read.session.weights_hash()
        assert given.evaluate("test") == read.evaluate("test")
        assert "days(sold)'" in refused(ValueError, lambda: given.predict(table)) and "model computes it" in refused(
            ValueError, lambda: given.predict(table))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            graphrun._arrays.write_table(frame(color=numpy.array(["red", "NA"], object)), "d.csv")
        assert [str(one.message) for one in caught] == ["column 'color': the string 'NA' is read as a missing value"]
        other = json.loads(text)
        other["data"]["source"].update(delimiter=";", decimal=",")
        assert graphrun.Model(other).fit(table, progress=False).session.weights_hash() == read.session.weights_hash()
        assert "no column 'size'" in refused(graphrun.Error, lambda: graphrun.Model(text).fit(frame(y=[1, 2])))
        os.chdir(source)


def test_digits_beyond_float32():
    """Columns are transformed in double, and then rounded."""
    t = 1.7e9 + numpy.arange(150)
    spread = {"csv": "t.csv", "x": ["t"], "y": "y"}
    model = {"format": 1, "data": {"train": spread, "transform": {"x": ["standardize"], "y": ["standardize"]}},
             "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
             "graph": [{"name": "p", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mean(square(p - y))"],
             "outputs": {"p": "y"},
             "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.1}}, "batch": "all", "epochs": 300}}
    for scale in (1, 1000):  # seconds, milliseconds
        for rows in (scale * t, (scale * t).astype("int64")):
            fitted = graphrun.Model(model, data="none").fit(rows, t - t[0])
            assert fitted.score(rows, t - t[0]) > 0.999, (scale, rows.dtype)
            assert numpy.abs(fitted.predict(rows[:3])[:, 0] - [0, 1, 2]).max() < 1, fitted.predict(rows[:3])
    small = numpy.arange(150, dtype="float32")
    fitted = graphrun.Model(model, data="none").fit(small, small)
    assert numpy.array_equal(fitted.predict(small), fitted.predict(small.astype("float64")))
    assert "too large" in refused(graphrun.Error, lambda: fitted.predict([[1e300]]))
    plain = {**model, "data": {"train": spread}}
    assert "too large" in refused(graphrun.Error, lambda: graphrun.Model(plain, data="none").fit([[1e300]], [1.0]))


def test_double_precision():
    """Data, states and predictions are float64, and agree with NumPy."""
    x = numpy.random.default_rng(1).normal(size=(50, 2))
    y = numpy.sin(x[:, :1]) * x[:, 1:]
    model = {"format": 1, "data": {"train": {"csv": "t.csv", "x": ["a", "b"], "y": "y"}},
             "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
             "graph": ["h = dense(x, units=5, activation=tanh)", "p = dense(h, units=1)", "loss = mse(p, y)"],
             "outputs": {"p": "y"}, "train": {"precision": "fp64", "minimize": "loss", "batch": "all", "epochs": 20,
                                              "optimizer": {"adam": {"lr": 0.05}}}}
    fitted = graphrun.Model(model, data="none").fit(x, y)
    names = [state["name"] for state in fitted.session.describe()["states"] if state["kind"] == "parameter"]
    values = [fitted.session[name] for name in names]
    assert all(one.dtype == numpy.float64 for one in values), names
    w, b, v, c = (next(one for name, one in zip(names, values) if name.endswith(end) and (one.shape[-1] == 5) == first)
                  for first, end in ((True, "W"), (True, "b"), (False, "W"), (False, "b")))
    predicted = fitted.predict(x)
    assert predicted.dtype == numpy.float64
    assert numpy.abs(predicted - (numpy.tanh(x @ w + b) @ v + c)).max() < 1e-14
    assert fitted.predict(x.astype("float32")).dtype == numpy.float64


def test_data_that_are_not_finite():
    x = numpy.random.default_rng(0).random((20, 2))
    y, x[3, 1] = x[:, 0], numpy.nan
    message = refused(graphrun.Error, lambda: linear(["a", "b"]).fit(x, y, progress=False))
    assert "in the data: x[3, 1] of the split train is nan" in message and "put numbers in their place" in message


def test_transforms_of_arrays():
    rng = numpy.random.default_rng(1)
    size, year = rng.uniform(5, 15, 40), rng.uniform(100, 200, 40)
    y = 500 + 10 * numpy.log(size) - year / 50
    x, table = numpy.stack([size, year], axis=1), "".join(f"{a},{b},{c}\n" for a, b, c in zip(size, year, y))
    by_column = {"size": ["log", "standardize"], "year": ["minmax"], "y": ["standardize"]}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("d.csv").write_text("size,year,price\n" + table)
        for transform in (by_column, {"x": ["standardize"], "y": ["standardize"]}):
            text = linear(["size", "year"], transform=transform, set={"data.train.y": "price"})
            read = graphrun.Model(text._source, set={"data.train.y": "price"})
            of_table = read.fit(progress=False)
            given = text.fit(x, y, progress=False)
            for model in (of_table, given):
                assert abs(model.predict(x)[:, 0] - y).max() < 2, "in original units"
                assert (model.predict(x[:1]) == model.predict(x)[:1]).all() and model.score(x, y) > 0.95
                model.save_weights("w.safetensors")
                assert (graphrun.Model("w.safetensors").predict(x) == model.predict(x)).all()
            assert abs(given.predict(x) - of_table.predict(x)).max() < 0.1
            given.fit(x * 2, y, validation=(x * 2, y), progress=False)
            assert abs(given.predict(x * 2)[:, 0] - y).max() < 2, "fitted to the rows of the last fit"
            assert abs(given.evaluate("validation")["loss"] - given.evaluate("train")["loss"]) < 1e-6
        os.chdir(source)


def test_words_and_gaps_of_arrays():
    inputs = {"x": ["batch", 4], "y": ["batch", 1]}
    transform = {"color": ["one_hot"], "size": ["standardize"]}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rows = [("red", 1, 1), ("blue", 2, 5), ("green", 3, 9), ("red", "", 1), ("blue", 4, 5), ("green", 3, 9)]
        pathlib.Path("d.csv").write_text("color,size,y\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
        model = linear(["color", "size"], inputs=inputs, transform=transform,
                       set={"data.train.missing": {"size": "mean"}})
        model = graphrun.Model(model._source, set=model._options["set"]).fit(progress=False)
        number = [[i % 3, b or numpy.nan] for i, (_, b, _) in enumerate(rows)]
        wanted = model.predict(number)
        assert abs(wanted[:, 0] - [c for _, _, c in rows]).max() < 0.5, wanted
        words = frame(size=[b for _, b in number], color=numpy.array([a for a, _, _ in rows], object))
        assert (model.predict(words) == wanted).all()
        assert (model.predict(numpy.array([[a, b] for (a, _, _), (_, b) in zip(rows, number)], object)) == wanted).all()
        digits = linear(["a"], inputs={"x": ["batch", 2], "y": ["batch", 1]}, transform={"a": [{"one_hot": ["7", "x"]}]})
        digits.fit([[0], [1]] * 4, [3, 5] * 4, progress=False)
        assert (digits.predict(frame(a=["x", " 7 ", "0"])) == digits.predict([[1], [0], [0]])).all(), "7 is no class index"
        assert "did you mean 'blue'" in refused(ValueError, lambda: model.predict(frame(color=["blu"], size=[1])))
        assert "row 0, column" not in raised("input", "data.value", lambda: model.predict([[3, 1]]))
        refused(ValueError, lambda: model.predict([[1, 2, 3, 4, 5]]))
        model.save_weights("w.safetensors")
        assert (graphrun.Model("w.safetensors").predict(words) == wanted).all()
        os.chdir(source)


def test_weights_predict_without_their_data():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "w.safetensors")
        text = (source / "models/xor.json").read_text()
        data = numpy.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32")
        numpy.savez(os.path.join(folder, "rows.npz"), x=data, y=data[:, :1])
        os.chdir(folder)
        trained = graphrun.Model(text, set={"data": {"train": {"npz": "rows.npz"}}}).fit()
        trained.save_weights(path)
        os.remove("rows.npz")
        weights = graphrun.Model(path)
        assert (weights.predict(data) == trained.predict(data)).all()
        assert "rows.npz" in refused(graphrun.Error, lambda: weights.evaluate("train"))
        session = graphrun.Model(path).open()
        assert (session.predict(data) == trained.predict(data)).all() and session.describe()["splits"] == []
        for call in (lambda: graphrun.Model(path).fit(), lambda: graphrun.Model(path).verify()):
            raised("input", "data.file_not_found", call)
        os.chdir(source)


def test_models_are_copied_and_sessions_are_not():
    import copy
    import pickle
    session, model = xor().open(), xor()
    for one in (copy.copy, copy.deepcopy, pickle.dumps):
        refused(TypeError, lambda: one(session))
    model.fit(progress=False)
    rows = [[0, 1], [1, 1]]
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.copy(copy.deepcopy(model))):
        assert (copied.predict(rows) == model.predict(rows)).all() and copied.evaluate("train") == model.evaluate("train")
        assert copied.fit(progress=False).session.weights_hash() == model.session.weights_hash(), "from the initial weights"
    assert (copy.deepcopy(xor()).predict(rows) == xor().predict(rows)).all(), "a model that is not fitted"
    refused(ValueError, lambda: session.advance(-1))
    refused(TypeError, lambda: session.advance(0.5))
    state = session.save_state()
    session.load_state(bytearray(state))
    session.load_state(numpy.frombuffer(state, "uint8"))
    refused(TypeError, lambda: session.load_state("x" * len(state)))


def test_a_callback_does_not_train():
    session, told = xor(set={"train.log_every": 1}).open(), []
    def tell(report):
        told.append(report.epoch)
        for call in (session.train, session.advance, lambda: session.advance(1, until=time.monotonic_ns() + 10**9)):
            raised("input", "session.busy", call)
        raised("input", "session.busy", session.save_state)
        return report.epoch == 2
    session.train(tell)
    assert told == [1, 2] and session.step == 2


def test_mistakes_in_a_graph():
    graph = graphrun.GraphBuilder()
    x = graph.input("x", 3)
    for mistake in (lambda: graph.input("x", 2), lambda: graph.dense("x", x, 2), lambda: graph.parameter("x", 2),
                    lambda: setattr(graph, "x", x), lambda: x + float("nan"), lambda: x * float("-inf")):
        refused(ValueError, mistake)
    refused(TypeError, lambda: x + numpy.ones(3))
    refused(TypeError, lambda: numpy.ones(3) + x)
    rate = graph.runtime("rate", 0.5)
    graph.y = numpy.float32(0.5) * x + 2 ** x + x * numpy.int64(3)
    graph.kept = graph.call("dropout", x, rate=rate)
    graph.loss = graph.kept.mean() * graph.parameter("w", init=1)
    data = {"train": {"inline": {"x": [[1, 2, 3]]}}}
    model = graph.model(outputs=["y"], data=data, clip_norm={"runtime": 1.5})
    session = model.open()
    assert numpy.allclose(session.predict([[1, 2, 3]]), [[5.5, 11, 18.5]])
    assert session["rate"] == 0.5 and session["train:clip_norm"] == 1.5
    session["rate"] = 0
    session.advance(1)
    assert session.loss == 2


def test_a_generator_without_inputs():
    graph = graphrun.GraphBuilder()
    x = graph.input("x", 1)
    graph.fake = graph.dense("G", graph.call("random_normal", x, shape=4), 1)
    graph.loss = (graph.fake.mean() - x.mean()) ** 2
    session = graph.model(outputs=["fake"], data={"train": {"inline": {"x": [[1], [2]]}}}).open()
    session.advance(3)
    assert "depends on an input" in refused(TypeError, lambda: session.predict([[1]]))


def have(program):
    """Whether the packages that it imports are installed."""
    names = re.findall(r"^(?:import|from) (\w+)", program, flags=re.MULTILINE)
    missing = [name for name in sorted({*names}) if importlib.util.find_spec(name) is None]
    if "sklearn" in names and not missing:
        try:
            importlib.import_module("graphrun.sklearn")
        except ImportError:
            missing = ["scikit-learn 1.6"]
    if missing:
        print(f"not run, {', '.join(missing)} is not installed: {program.splitlines()[0]}")
    return not missing


def test_programs_of_examples():
    last = {"callbacks": r"stopped after \d\d\d epochs; R2 on other rows 0\.9\d+", "cross_validation": r"599 +\d+\.\d+",
            "grid_search": r"test: accuracy 0\.9\d+", "parquet": r"600 rows, accuracy on test rows: 0\.[89]\d+",
            "weights_and_pickle": "same predictions after pickle: True"}
    programs = {path.stem: path for path in (source / "examples/python").glob("*.py")}
    assert programs.keys() == last.keys()
    for name, path in programs.items():
        if have(path.read_text()):
            done = subprocess.run([sys.executable, "-B", path], text=True, capture_output=True, cwd="/",
                                  env={**os.environ, "PYTHONPATH": package})
            assert done.returncode == 0 and re.fullmatch(last[name], done.stdout.splitlines()[-1]), (done.stdout, done.stderr)


def test_examples():
    text = "".join((source / "docs" / page).read_text() for page in ("guide/python.md", "guide/runs.md", "reference/python.md"))
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 12
    for block in blocks:
        if not have(block):
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(source / "models", os.path.join(folder, "models"))
            os.chdir(folder)
            exec(compile(block, "docs", "exec"), {"graphrun": graphrun})
            os.chdir(source)


tests = [value for name, value in list(globals().items()) if name.startswith("test_")]
for test in tests:
    test()
    print(f"{test.__name__}: passed")
