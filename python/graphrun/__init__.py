"""graphrun from Python: model files, sessions and predictions over NumPy arrays.

    import graphrun
    model = graphrun.Model("models/digits.json").fit()
    print(model.evaluate("test"))
    labels = model.predict(images)

Everything here is a call of the C interface (graphrun/c.h) of libgraphrun.so; arrays are read and written where they
lie. A mistake is a graphrun.Error, which has the diagnostics as the command line prints them and as a list.
"""

from graphrun._graph import GraphBuilder, Value
from graphrun._library import Error, devices, help, version  # pylint: disable=redefined-builtin
from graphrun._model import Model
from graphrun._session import Advanced, Report, Session

__all__ = ["Advanced", "Error", "GraphBuilder", "Model", "Report", "Session", "Value", "devices", "help", "version"]
__version__ = version()
