"""graphrun from Python: model files, sessions and predictions over NumPy arrays.

    import graphrun
    session = graphrun.Model("models/digits.json").open()
    session.train()
    print(session.evaluate("test"))
    labels = session.predict(images).argmax(axis=1)

Everything here is a call of the C interface (graphrun/c.h) of libgraphrun.so; arrays are read and written where they
lie. A mistake is a graphrun.Error, which has the diagnostics as the command line prints them and as a list.
"""

from graphrun._library import Error, devices, help, version
from graphrun._model import Model
from graphrun._session import Report, Session

__all__ = ["Error", "Model", "Report", "Session", "devices", "help", "version"]
__version__ = version()
