"""The estimators of graphrun.sklearn and scikit-learn's own checks. Exit code 77: scikit-learn is missing or too old.

sklearn_test.py LIBRARY SOURCE; with "installed" as LIBRARY of the package that is installed
"""

import os
import pathlib
import pickle
import subprocess
import sys

try:
    import numpy
    from sklearn.base import clone
    from sklearn.datasets import load_digits, load_iris, make_regression
    from sklearn.exceptions import NotFittedError
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils.estimator_checks import check_estimator
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    import pandas
except ImportError:
    pandas = None
try:
    import pyarrow
except ImportError:
    pyarrow = None

source = pathlib.Path(sys.argv[2]).absolute()
if sys.argv[1] != "installed":
    os.environ["GRAPHRUN_LIBRARY"] = os.path.abspath(sys.argv[1])
    sys.path.insert(0, str(source / "python"))
import graphrun  # noqa: E402
try:
    from graphrun import GraphClassifier, GraphRegressor
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
from exceptions import refused  # noqa: E402

EXPECTED = {"check_sample_weight_equivalence_on_dense_data":
            "minibatches, means and standard deviations are those of the rows, not of their weights"}


def passengers():
    table = pandas.read_csv(source / "examples/tables/passengers.csv")
    return table[["class", "sex", "age", "fare", "port"]], table["survived"]


def test_checks_of_scikit_learn():
    assert len(EXPECTED) <= 3
    for estimator in (GraphRegressor(), GraphClassifier()):
        results = check_estimator(estimator, expected_failed_checks=EXPECTED, on_skip=None)
        assert len(results) > 50 and [one["check_name"] for one in results if one["status"] == "xfail"] == list(EXPECTED)


def test_parameters():
    model = GraphRegressor(hidden=(8, 4), learning_rate=0.02)
    assert clone(model).get_params() == model.get_params() and clone(model).set_params(epochs=7).epochs == 7
    assert repr(model) == "GraphRegressor(hidden=(8, 4), learning_rate=0.02)"
    x, y = make_regression(80, 5, random_state=1)
    fitted = GraphRegressor(hidden=(8, 4), activation="tanh", epochs=3, batch_size=20, optimizer="sgd", learning_rate=0.25,
                            random_state=7, executor="ref", set={"train.clip_norm": 1}).fit(x, y)
    session = fitted.model_.session
    assert session.step == 12 and session["h1.W"].shape == (5, 8) and session["h2.W"].shape == (8, 4)
    assert session.describe()["executor"] == "ref" and not any(s["name"].endswith(":m") for s in session.describe()["states"])
    many = GraphRegressor(epochs=2000, early_stopping=True, patience=2).fit(x, y).model_
    assert many.session.step < 2000 * 3 and many.session.describe()["splits"][1]["samples"] == 8
    assert (GraphRegressor(hidden=8).fit(x, y).predict(x) == GraphRegressor(hidden=(8,)).fit(x, y).predict(x)).all()
    both = GraphRegressor(hidden=()).fit(x, numpy.stack([y, 2 * y], axis=1))
    assert both.predict(x).shape == (80, 2) and both.score(x, numpy.stack([y, 2 * y], axis=1)) > 0.99


def test_tools_of_scikit_learn():
    x, y = load_iris(return_X_y=True)
    assert cross_val_score(GraphClassifier(epochs=50), x, y, cv=3).min() > 0.9
    assert cross_val_score(GraphClassifier(epochs=20), x, y == 1, cv=3, scoring="roc_auc").min() > 0.8
    names = numpy.array(["setosa", "versicolor", "virginica"])[y]
    search = GridSearchCV(make_pipeline(StandardScaler(), GraphClassifier(epochs=20)),
                          {"graphclassifier__hidden": [(2,), (16,)], "graphclassifier__learning_rate": [1e-5, 0.02]}, cv=3)
    search.fit(x, names)
    assert search.best_score_ > 0.9 and search.best_params_["graphclassifier__learning_rate"] == 0.02
    assert search.predict(x[:1]).tolist() == ["setosa"] and search.classes_.tolist() == sorted(set(names))


def test_same_bits():
    x, y = load_iris(return_X_y=True)
    one, two, other = (GraphClassifier(epochs=5, random_state=seed).fit(x, y).predict_proba(x) for seed in (3, 3, 4))
    assert (one == two).all() and (one != other).any()
    for seed in (numpy.random.RandomState(5), numpy.int64(5)):
        GraphClassifier(epochs=1, random_state=seed).fit(x, y)
    for model in (GraphClassifier(epochs=5, random_state=3).fit(x, y), GraphRegressor(epochs=5).fit(x, x[:, 0]),
                  GraphRegressor(epochs=2, executor="ref").fit(x, x[:, 0])):
        copy = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model))))
        assert (copy.predict(x) == model.predict(x)).all() and copy.score(x, model.predict(x)) == 1
        assert (copy.fit(x, y).predict(x) == clone(model).fit(x, y).predict(x)).all()
        code = ("import pickle, sys; given = pickle.load(sys.stdin.buffer); "
                "sys.stdout.buffer.write(given[0].predict(given[1]).tobytes())")
        package = str(pathlib.Path(graphrun.__file__).parents[1])
        output = subprocess.run([sys.executable, "-c", code], input=pickle.dumps((model, x)), capture_output=True, check=True,
                              cwd="/", env={**os.environ, "PYTHONPATH": package}).stdout
        assert output == model.predict(x).tobytes(), "another process"


def test_sample_weight():
    x = numpy.random.default_rng(1).normal(size=(200, 2))
    y = (x[:, 0] > 0) ^ (numpy.arange(200) % 2 == 0)  # labels of even rows have errors
    weight = numpy.arange(200) % 2
    assert GraphClassifier(epochs=60).fit(x, y, weight).score(x[1::2], y[1::2]) > 0.95
    assert GraphClassifier(epochs=60, early_stopping=True).fit(x, y, weight * 7.0).score(x[1::2], y[1::2]) > 0.9
    assert GraphRegressor(epochs=60).fit(x, numpy.where(weight, x[:, 0], 5), weight).score(x[1::2], x[1::2, 0]) > 0.95
    assert "Negative" in refused(ValueError, lambda: GraphClassifier().fit(x, y, -weight))


def test_callbacks():
    x, y = load_iris(return_X_y=True)
    epochs = []
    GraphClassifier(epochs=3000).fit(x, y, on_report=lambda report: epochs.append(report.epoch) or report.epoch == 5)
    assert epochs == [1, 2, 3, 4, 5], epochs
    refused(ZeroDivisionError, lambda: GraphClassifier().fit(x, y, on_report=lambda report: 1 / 0))


def test_models_of_the_user():
    x, y = load_digits(return_X_y=True)
    model = GraphClassifier(model=source / "models/digits.json", epochs=4, random_state=1, set={"graph.h.units": 32})
    assert clone(model).fit(x, y).score(x, y) > 0.9
    known = model.fit(x[y < 9], y[y < 9])
    assert known.model_.session["h.W"].shape == (64, 32)
    assert known.classes_.tolist() == list(range(10)) and known.predict_proba(x[:3]).shape == (3, 10)
    graph = graphrun.GraphBuilder()
    given, target = graph.input("x", 64), graph.input("y", dtype="i32")
    weight = graph.input("sample_weight", 1)
    graph.logits = graph.dense("out", given, 10)
    graph.loss = (graph.call("softmax_cross_entropy", graph.logits, target) * weight.mean(axis=1)).mean()
    built = graph.model(outputs={"logits": "y"}, optimizer={"adam": {"lr": 0.01}}, batch=32, epochs=3)
    model = GraphClassifier(model=built, learning_rate=0.005, early_stopping=True)
    assert cross_val_score(model, x, y, cv=3).min() > 0.8 and model.fit(x, y, y + 1.0).score(x, y) > 0.8
    assert model.model_.session["out.W"].shape == (64, 10)
    text = {"format": 1, "data": {"train": {"csv": "t.csv", "x": ["a"], "y": "y"},
                                  "transform": {"y": [{"classes": ["no", "yes", "maybe"]}]}},
            "inputs": {"x": ["batch", 1], "y": {"dtype": "i32", "shape": ["batch"]}},
            "graph": ["out = dense(x, units=3)", "loss = mean(softmax_cross_entropy(out, y))"], "outputs": {"out": "y"},
            "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.3}}, "epochs": 200}}
    words = numpy.array(["maybe", "no", "yes"])[numpy.arange(30) % 3]
    model = GraphClassifier(model=text).fit((numpy.arange(30) % 3).reshape(-1, 1), words)
    assert model.classes_.tolist() == ["maybe", "no", "yes"] and model.predict([[0], [1], [2]]).tolist() == ["maybe", "no", "yes"]
    assert "'nope' is not one of the classes" in refused(ValueError, lambda: model.fit([[0], [1]], ["no", "nope"]))
    for name in ("epochs", "batch_size", "patience", "early_stopping", "verbose"):
        output = refused(TypeError, lambda: graphrun.GraphRegressor(**{name: "3"}).fit([[0.0], [1.0]], [0.0, 1.0]))
        assert output.startswith(f"{name}: expected "), output
    assert "no input of this name" in refused(TypeError, lambda: model.fit([[0], [1]], ["no", "yes"], [1, 2]))
    assert "3" in refused(ValueError, lambda: GraphClassifier(model={**text, "data": {"train": {"npz": "t.npz"}}}).fit(
        [[0], [1]], ["a", "b"]))


def test_columns_by_name():
    x, y = passengers()
    assert x["age"].isna().any() and x["port"].isna().any()
    model = GraphClassifier(epochs=40, random_state=1).fit(x, y)
    assert model.score(x, y) > 0.85 and model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == list(x.columns) and model.n_features_in_ == 5
    wanted = model.predict_proba(x)
    assert (model.predict_proba(x.assign(more=1)[["more", *reversed(x.columns)]]) == wanted).all()
    out = model.predict_frame(x[7:10])
    assert list(out.columns) == ["survived", "probability.no", "probability.yes"] and out.index.tolist() == [7, 8, 9]
    assert (out["survived"] == model.predict(x[7:10])).all() and (out["probability.yes"] == wanted[7:10, 1]).all()
    prices = GraphRegressor(epochs=5).fit(x, x[["fare", "age"]].fillna(0)).predict_frame(x[3:5])
    assert list(prices.columns) == ["fare", "age"] and prices.index.tolist() == [3, 4]
    unnamed = GraphRegressor(epochs=1).fit(x, x[["fare", "age"]].fillna(0).to_numpy()).predict_frame(x[:2])
    assert list(unnamed.columns) == ["y0", "y1"]
    assert "missing:\n- sex" in refused(ValueError, lambda: model.predict(x.drop(columns="sex")))
    assert "'age' contains infinity" in refused(ValueError, lambda: model.fit(x.assign(age=numpy.inf), y))
    unseen = model.predict_proba(x.assign(port="Belfast"))
    weights, names = model.model_.session["h1.W"], ["class", "female", "male", "other", "age", "fare", "C", "Q", "S", "other"]
    assert (weights[[names.index("other"), 9]] == 0).all() and (weights[:3] != 0).any() and (unseen != wanted).any()
    assert (unseen == model.predict_proba(x.assign(port="Oslo"))).all()
    odd = pandas.DataFrame({"x": [1, 2, 3, 4] * 9, "y": ["1", "a", "1", "a"] * 9, "other": ["other", "b", "", "c"] * 9})
    assert GraphRegressor(hidden=(), epochs=1000).fit(odd, odd["x"]).score(odd, odd["x"]) > 0.9
    assert cross_val_score(GraphClassifier(epochs=40), x, y).min() > 0.8
    converted = [x.astype({"sex": "category", "port": "category"}), x.convert_dtypes()]
    if pyarrow is not None:
        table = pyarrow.Table.from_pandas(x)

        class Stream:
            def __arrow_c_stream__(self, requested_schema=None):
                return table.__arrow_c_stream__(requested_schema)
        converted += [table, x.convert_dtypes(dtype_backend="pyarrow"), Stream()]
    for given in converted:
        same = clone(model).fit(given, y)
        assert (same.predict_proba(given) == wanted).all() and (same.predict_proba(x) == wanted).all(), type(given)


def test_tables_in_place_of_files():
    x, y = passengers()
    path = source / "examples/tables/passengers.csv"
    text = {"format": 1, "data": {"source": {"csv": str(path), "x": ["class", "sex", "age", "days(boarded)"], "y": "survived",
                                             "missing": {"age": "median"}},
                                  "split": [0.8, 0, 0.2], "stratify": "y",
                                  "transform": {"sex": ["one_hot"], "x": ["standardize"], "y": ["classes"]}},
            "inputs": {"x": ["batch", 5], "y": ["batch", 1]},
            "graph": ["p = dense(x, units=1)", "loss = mean(sigmoid_cross_entropy(p, y))"], "outputs": {"p": "y"},
            "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.01}}, "batch": 32, "epochs": 5}}
    read, table = graphrun.Model(text).fit(progress=False), pandas.read_csv(path)
    text["data"]["source"]["csv"] = "missing.csv"
    dated = table.assign(boarded=pandas.to_datetime(table["boarded"]))
    tables = [table, dated, table.astype({"sex": "category"}), table.convert_dtypes()]
    if pyarrow is not None:
        tables += [pyarrow.Table.from_pandas(table), pyarrow.Table.from_pandas(dated.astype({"sex": "category"}))]
    for one in tables:
        model = graphrun.Model(text).fit(one, progress=False)
        assert model.session.weights_hash() == read.session.weights_hash() and model.evaluate() == read.evaluate(), type(one)
    assert "no column 'sex'" in refused(graphrun.Error, lambda: graphrun.Model(text).fit(table.drop(columns="sex")))
    assert "expected a number" in refused(graphrun.Error, lambda: graphrun.Model(text).fit(table.assign(age="old")))
    assert "no rows" in refused(graphrun.Error, lambda: graphrun.Model(text).fit(table[:0]))


def test_dates():
    days = numpy.arange(19000, 19060)
    moments = pandas.to_datetime(days, unit="D")
    rows = pandas.DataFrame({"start": days, "a": numpy.sin(days)})
    y = (rows["a"] > 0).astype(int)
    wanted = GraphClassifier(epochs=3).fit(rows, y).predict_proba(rows)
    dated = [rows.assign(start=one) for one in (moments, moments.tz_localize("UTC"), moments.date)]
    if pyarrow is not None:
        dated += [pyarrow.Table.from_pandas(one) for one in dated]
    for one in dated:
        assert numpy.array_equal(GraphClassifier(epochs=3).fit(one, y).predict_proba(one), wanted), type(one)
    gap = rows.assign(start=moments.where(days != 19003))
    assert numpy.isfinite(GraphClassifier(epochs=3).fit(gap, y).predict_proba(gap)).all()
    half = rows.assign(start=(moments + pandas.Timedelta(hours=14)).tz_localize("Etc/GMT-2"))
    assert numpy.array_equal(GraphClassifier(epochs=3).fit(half, y).predict_proba(half),
                             GraphClassifier(epochs=3).fit(rows.assign(start=days + 0.5), y).predict_proba(rows.assign(start=days + 0.5)))
    spans = rows.assign(start=moments - moments[0])
    assert "total_seconds" in refused(TypeError, lambda: GraphClassifier(epochs=3).fit(spans, y))


def test_mistakes():
    x, y = load_iris(return_X_y=True)
    refused(NotFittedError, lambda: GraphClassifier().predict(x))
    assert "did you mean 'relu'" in refused(graphrun.Error, lambda: GraphClassifier(activation="rellu").fit(x, y))
    assert "did you mean 'adam'" in refused(graphrun.Error, lambda: GraphClassifier(optimizer="adm").fit(x, y))
    assert "did you mean 'epochs'" in refused(graphrun.Error, lambda: GraphClassifier(set={"train.epoch": 1}).fit(x, y))
    assert "units must be an integer" in refused(graphrun.Error, lambda: GraphClassifier(hidden=(2.5,)).fit(x, y))
    for name, value, text in (("activation", "rellu", "activation: there is no"), ("hidden", (0,), "hidden: units must"),
                              ("batch_size", 0, "batch_size: must be"), ("optimizer", "adm", "optimizer: there is no"),
                              ("learning_rate", -1.0, "learning_rate: lr must"), ("random_state", -5, "random_state: must be")):
        assert refused(graphrun.Error, lambda: GraphClassifier(**{name: value}).fit(x, y)).startswith(text), name
    assert "validation_fraction: " in refused(ValueError, lambda: GraphClassifier(validation_fraction=2).fit(x, y))
    assert GraphClassifier(hidden=numpy.array([2, 3]), epochs=1).fit(x, y).model_.session["h2.W"].shape == (2, 3)
    diverged = refused(graphrun.Error, lambda: GraphClassifier(learning_rate=1e30).fit(x, y))
    assert diverged.startswith("the loss is "), diverged  # without a place in a file that the user does not have
    assert "only one class, 0" in refused(ValueError, lambda: GraphClassifier().fit(x, y * 0))
    refused(ValueError, lambda: GraphRegressor().fit(x, numpy.where(y == 1, numpy.nan, y)))
    refused(AttributeError, lambda: graphrun.GraphClasifier)


def test_packages_are_optional():
    package = str(pathlib.Path(graphrun.__file__).parents[1])
    code = ("import sys; sys.modules.update(sklearn=None, numpy=None); import graphrun; print(graphrun.version())\n"
            "try: graphrun.GraphRegressor\nexcept ImportError as error: print(error)")
    output = subprocess.run([sys.executable, "-c", code], text=True, check=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": package}).stdout
    assert "pip install scikit-learn" in output, output


tests = [value for name, value in list(globals().items()) if name.startswith("test_")]
for test in tests:
    if pandas is None and test in (test_columns_by_name, test_tables_in_place_of_files, test_dates):
        print(f"{test.__name__}: skipped, pandas is not installed")
        continue
    test()
    print(f"{test.__name__}: passed")
