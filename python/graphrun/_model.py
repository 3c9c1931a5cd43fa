"""Models: a model file with its data, or with arrays in their place."""

import ctypes
import json
import os

import numpy

from graphrun import _library
from graphrun._session import Session, as_array, check_dtype


class Model:
    """A model file, its text as a str or a dict, or a safetensors file of weights with its model inside.

    set: changes as the command line's --set makes them, {"train.epochs": 5}. data: "values", "sizes" or "none".
    """

    def __init__(self, source, *, set=None, data_dir=None, weights=None, data="values"):
        options = {"data": data}
        for key, value in (("set", set), ("data_dir", data_dir), ("weights", weights)):
            if value is not None:
                options[key] = os.fspath(value) if key != "set" else value
        self._handle = ctypes.c_void_p()
        self._given = {}
        if isinstance(source, dict):
            source = json.dumps(source)
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        self._source = source if is_text else os.fspath(source)
        self._options = options
        function = "gr_model_parse" if is_text else "gr_model_load"
        _library.call(function, os.fsencode(self._source), _library.encoded(options), ctypes.byref(self._handle))

    def __del__(self):
        if getattr(self, "_handle", None):
            _library.lib.gr_model_free(self._handle)

    def set_data(self, split, **columns):
        """Sets columns of a split ("train", "validation", "test") by input: set_data("train", x=..., y=...)."""
        for name, values in columns.items():
            array = as_array(values)
            if array.dtype == numpy.float64:
                array = array.astype(numpy.float32)
            kind = _library.Type(dtype=check_dtype(name, array), rank=array.ndim)
            for axis, extent in enumerate(array.shape):
                kind.shape[axis] = extent
            _library.call("gr_model_set_data", self._handle, split.encode(), name.encode(), ctypes.byref(kind),
                          array.ctypes.data)
        return self

    def open(self, executor="cpu", **options):
        """Plans the model and allocates all that it needs: a Session. It takes the model, which is then used up."""
        handle = ctypes.c_void_p()
        _library.call("gr_session_open", self._handle, _library.encoded({"executor": executor, **options}),
                      ctypes.byref(handle))
        return Session(handle)

    def fit(self, executor="cpu", on_report=None, validation=None, **columns):
        """Trains with these columns, fit(x=..., y=...), and gives the trained Session."""
        if columns:
            self.set_data("train", **columns)
        if validation:
            self.set_data("validation", **validation)
        session = self.open(executor)
        session.train(on_report)
        return session

    def verify(self, executor="cpu", **options):
        """Compares an executor with the reference, step by step; uses the model up."""
        return json.loads(_library.text("gr_verify", self._handle, _library.encoded({"executor": executor, **options})))
