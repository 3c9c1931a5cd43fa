"""The shared library: where it is, its functions, and its errors as exceptions."""

import ctypes
import ctypes.util
import json
import os
import pathlib

ABI_VERSION = 1
MAX_RANK = 8
DTYPES = ("float32", "float64", "int32", "uint64", "bool")  # by gr_dtype
KINDS = {1: "run", 2: "input", 3: "check", 4: "device"}


class Error(Exception):
    """kind: "run", "input", "check" or "device". diagnostics: a dict each, with code, message, hint, file, line, ..."""

    def __init__(self, kind, message, diagnostics):
        super().__init__(message)
        self.kind = kind
        self.diagnostics = diagnostics


class Type(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * MAX_RANK)]


class Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Report(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("epoch", ctypes.c_int64), ("epochs", ctypes.c_int64),
                ("step", ctypes.c_uint64), ("loss", ctypes.c_double), ("validation_loss", ctypes.c_double),
                ("seconds", ctypes.c_double), ("steps_per_second", ctypes.c_double)]


OnReport = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Report))


class TrainOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("on_report", OnReport), ("user", ctypes.c_void_p)]


class TrainResult(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("epochs", ctypes.c_int64), ("steps", ctypes.c_uint64),
                ("seconds", ctypes.c_double), ("cancelled", ctypes.c_int)]


def _candidates():
    """$GRAPHRUN_LIBRARY alone where it is set; else beside this package, then where the system looks."""
    if "GRAPHRUN_LIBRARY" in os.environ:
        return [os.environ["GRAPHRUN_LIBRARY"]]
    beside = pathlib.Path(__file__).parent / "lib" / "libgraphrun.so"
    return ([str(beside)] if beside.exists() else []) + ["libgraphrun.so.0", "libgraphrun.so"]


def _load():
    reasons = []
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise ImportError("libgraphrun.so is not found: " + "; ".join(reasons) + ". $GRAPHRUN_LIBRARY may name it")


_text, _handle = ctypes.c_char_p, ctypes.c_void_p
_out = ctypes.POINTER(ctypes.c_void_p)
# Of the functions that give an error: their arguments.
_FALLIBLE = {
    "gr_model_load": [_text, _text, _out],
    "gr_model_parse": [_text, _text, _out],
    "gr_model_set_data": [_handle, _text, _text, ctypes.POINTER(Type), ctypes.c_void_p],
    "gr_session_open": [_handle, _text, _out],
    "gr_session_describe": [_handle, _out],
    "gr_session_train": [_handle, ctypes.POINTER(TrainOptions), ctypes.POINTER(TrainResult)],
    "gr_session_advance": [_handle, ctypes.c_uint64],
    "gr_session_loss": [_handle, ctypes.POINTER(ctypes.c_double)],
    "gr_session_evaluate": [_handle, _text, _out],
    "gr_session_find": [_handle, _text, ctypes.POINTER(ctypes.c_uint32)],
    "gr_session_type": [_handle, ctypes.c_uint32, ctypes.POINTER(Type)],
    "gr_session_read": [_handle, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t],
    "gr_session_write": [_handle, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t],
    "gr_session_write_rows": [_handle, ctypes.c_uint32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t],
    "gr_session_predict": [_handle, ctypes.POINTER(Bytes), ctypes.c_size_t, ctypes.POINTER(Bytes), ctypes.c_size_t],
    "gr_session_save_weights": [_handle, _text],
    "gr_session_load_weights": [_handle, _text],
    "gr_session_weights_hash": [_handle, ctypes.c_char_p],
    "gr_verify": [_handle, _text, _out],
    "gr_devices": [_out],
    "gr_help": [_text, _out],
}

lib = _load()
for _name, _arguments in _FALLIBLE.items():
    getattr(lib, _name).argtypes = _arguments
    getattr(lib, _name).restype = ctypes.c_void_p
for _name, _arguments, _result in (
        ("gr_abi_version", [], ctypes.c_uint32), ("gr_version", [], _text),
        ("gr_error_kind", [_handle], ctypes.c_int), ("gr_error_message", [_handle], _text),
        ("gr_error_json", [_handle], _text), ("gr_error_free", [_handle], None), ("gr_text_free", [_handle], None),
        ("gr_model_free", [_handle], None), ("gr_session_free", [_handle], None),
        ("gr_session_cancel", [_handle], None), ("gr_session_step", [_handle], ctypes.c_uint64)):
    getattr(lib, _name).argtypes = _arguments
    getattr(lib, _name).restype = _result
if lib.gr_abi_version() < ABI_VERSION:
    raise ImportError(f"libgraphrun.so offers version {lib.gr_abi_version()} of its C interface; {ABI_VERSION} is needed")


def call(name, *arguments):
    """Calls a function of _FALLIBLE; raises its error."""
    error = getattr(lib, name)(*arguments)
    if not error:
        return
    try:
        raise Error(KINDS[lib.gr_error_kind(error)], lib.gr_error_message(error).decode(),
                    json.loads(lib.gr_error_json(error)))
    finally:
        lib.gr_error_free(error)


def text(name, *arguments):
    """The text that such a function gives through its last argument."""
    given = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(given))
    try:
        return ctypes.string_at(given).decode()
    finally:
        lib.gr_text_free(given)


def encoded(options):
    return json.dumps(options).encode()


def version():
    return lib.gr_version().decode()


def devices():
    """What could run a model here: {"devices": [...], "missing": [...]}."""
    return json.loads(text("gr_devices"))


def help(topic):
    """What `graphrun help TOPIC` prints: "adam", "dense", "optimizers"."""
    return text("gr_help", topic.encode())
