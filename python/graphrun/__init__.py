"""Python package of graphrun: model files, sessions and predictions over NumPy arrays.

    import graphrun
    model = graphrun.Model("models/digits.json").fit()
    print(model.evaluate("test"))
    labels = model.predict(images)

The package calls the C API (graphrun/c.h) of libgraphrun.so, which reads and writes arrays in place. The library raises
graphrun.Error, with the diagnostics that the command line prints. Invalid arguments raise TypeError or ValueError.
"""

from typing import Any

from graphrun._graph import GraphBuilder, Value
from graphrun._library import Error, devices, help, version  # pylint: disable=redefined-builtin
from graphrun._model import Ensemble, Model
from graphrun._session import Advanced, Report, Session, train_many

__all__ = ["Advanced", "Ensemble", "Error", "GraphBuilder", "Model", "Report", "Session", "Value", "devices", "help", "train_many", "version"]
__version__ = version()


def __getattr__(name: str) -> Any:
    if name not in ("GraphClassifier", "GraphRegressor"):
        raise AttributeError(f"module 'graphrun' has no attribute {name!r}")
    from graphrun import sklearn  # imports scikit-learn

    return getattr(sklearn, name)
