"""The Python package over the C interface, and the Python examples of docs/c-api.md. Exit code 77: NumPy is not here.

python_test.py LIBRARY SOURCE
"""

import os
import pathlib
import re
import sys
import tempfile

try:
    import numpy
except ImportError:
    print("NumPy is not installed: not tried")
    sys.exit(77)

os.environ["GRAPHRUN_LIBRARY"] = os.path.abspath(sys.argv[1])
source = pathlib.Path(sys.argv[2])
sys.path.insert(0, str(source / "python"))
import graphrun  # noqa: E402


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


def test_arrays():
    session = xor().open()
    weights = session["h.W"]
    session["h.W"] = weights * 2
    assert (session["h.W"] == weights * 2).all() and weights.dtype == numpy.float32
    session.write_rows("data/train/x", 2, [[5, 6]])
    assert (session["data/train/x"][2] == [5, 6]).all()
    x = numpy.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32")
    y = numpy.array([[0], [1], [1], [0]], "float32")
    fitted = xor(data="none").fit(x=x, y=y)
    trained = xor().fit()
    assert fitted.weights_hash() == trained.weights_hash()
    with tempfile.TemporaryDirectory() as folder:
        fitted.save_weights(os.path.join(folder, "w.safetensors"))
        fresh = xor().open()
        fresh.load_weights(os.path.join(folder, "w.safetensors"))
    assert fresh.weights_hash() == fitted.weights_hash()


def test_mistakes():
    assert "h.W" in raised("input", "state.unknown", lambda: xor().open()["hW"])
    assert raised("input", "json.syntax", lambda: graphrun.Model("{")).startswith("<text>:1:2")
    raised("input", "split.unknown", lambda: xor().open().evaluate("tset"))
    raised("input", "executor.unknown", lambda: xor().open("gpu"))
    model = xor()
    model.open()
    raised("input", "c.taken", model.open)
    rows = numpy.zeros((256, 2), "float32")
    try:
        xor(data="none").fit(x=rows, y=numpy.zeros((5, 1), "float32"))
    except graphrun.Error as error:
        assert "5 rows" in str(error) and "256" in str(error), error
    else:
        raise AssertionError("x of 256 rows with y of 5 was taken")
    assert xor().verify()["passed"] and graphrun.devices()["devices"]


def test_examples():
    blocks = re.findall(r"```python\n(.*?)```", (source / "docs/c-api.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(source / "models", os.path.join(folder, "models"))
            os.chdir(folder)
            exec(compile(block, "docs/c-api.md", "exec"), {"graphrun": graphrun})
            os.chdir(source)


tests = [value for name, value in list(globals().items()) if name.startswith("test_")]
for test in tests:
    test()
    print(f"{test.__name__}: passed")
