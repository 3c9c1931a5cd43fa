"""Bindings of libgraphrun.so: search path, function signatures, and errors as exceptions."""

import ctypes
import json
import os
from typing import Any, Dict, List, Optional

ABI_VERSION = 5
MAX_RANK = 8
DTYPES = ("float32", "float64", "int32", "uint64", "bool")  # index: gr_dtype
KINDS = {1: "run", 2: "input", 3: "check", 4: "device"}


class Error(Exception):
    """Error of the library, whose text has all diagnostics. kind is "run" (failed run), "input" (invalid model, data or
    options), "check" (failed check) or "device". diagnostics is a list of dicts with code, message, hint, file, line,
    column, pointer and source_line; attributes repeat the fields of the first."""

    def __init__(self, kind: str, message: str, diagnostics: List[Dict[str, Any]]):
        super().__init__(message)
        self.kind = kind
        self.diagnostics = diagnostics
        first = diagnostics[0] if diagnostics else {}
        self.code: str = first.get("code", "")
        self.file: str = first.get("file", "")
        self.line: int = first.get("line", 0)  # 0: unknown
        self.column: int = first.get("column", 0)
        self.pointer: str = first.get("pointer", "")  # JSON pointer into the model file


class Type(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * MAX_RANK)]


class Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Report(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("epoch", ctypes.c_int64), ("epochs", ctypes.c_int64),
                ("step", ctypes.c_uint64), ("loss", ctypes.c_double), ("validation_loss", ctypes.c_double),
                ("seconds", ctypes.c_double), ("steps_per_second", ctypes.c_double),
                ("objective_count", ctypes.c_size_t), ("objectives", ctypes.POINTER(ctypes.c_double))]


OnReport = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Report))


class TrainOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("on_report", OnReport), ("user", ctypes.c_void_p)]


OnNetworkReport = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(Report))


class TrainManyOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("at_once", ctypes.c_size_t), ("on_report", OnNetworkReport),
                ("user", ctypes.c_void_p)]


class TrainResult(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("epochs", ctypes.c_int64), ("steps", ctypes.c_uint64),
                ("seconds", ctypes.c_double), ("cancelled", ctypes.c_int)]


class Advanced(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("steps", ctypes.c_uint64), ("finite", ctypes.c_int),
                ("loss", ctypes.c_double)]


def _candidates() -> List[str]:
    """Returns $GRAPHRUN_LIBRARY if it is set, else the library in the wheel and the names for the system loader."""
    if "GRAPHRUN_LIBRARY" in os.environ:
        return [os.environ["GRAPHRUN_LIBRARY"]]
    bundled = os.path.join(os.path.dirname(__file__), "lib", "libgraphrun.so.0")
    return ([bundled] if os.path.exists(bundled) else []) + ["libgraphrun.so.0", "libgraphrun.so"]


def _load() -> ctypes.CDLL:
    reasons = []
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise ImportError("libgraphrun.so is not found: " + "; ".join(reasons) + ". $GRAPHRUN_LIBRARY may name it")


# Load order matters: NVRTC has no search path for its builtins.
_CUDA_WHEELS = ("libnvrtc-builtins.so.13.*", "libnvrtc.so.13", "libnvJitLink.so.13", "libcublasLt.so.13")
_cuda_libraries: Optional[List[ctypes.CDLL]] = None


def load_cuda_wheels() -> None:
    """Loads the libraries of the NVIDIA wheels that graphrun[cuda13] installs, so that libgraphrun_cuda.so finds them.
    Without these wheels it does nothing, and the system loader searches for them."""
    global _cuda_libraries
    if _cuda_libraries is not None:
        return
    _cuda_libraries = []
    import glob
    import sys

    for folder in sys.path:
        for pattern in _CUDA_WHEELS:
            for name in sorted(glob.glob(os.path.join(folder, "nvidia", "cu13", "lib", pattern))):
                _cuda_libraries.append(ctypes.CDLL(name, ctypes.RTLD_GLOBAL))
        if _cuda_libraries:
            return


def prepare(executor: str) -> None:
    """Loads the libraries that this executor needs. Call it before a session opens on the executor."""
    if executor.startswith("cuda") or executor == "auto":
        load_cuda_wheels()


_text, _handle, _size = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
_out = ctypes.POINTER(ctypes.c_void_p)
# Argument types of the functions that return an error.
_FALLIBLE = {
    "gr_model_load": [_text, _text, _out],
    "gr_model_parse": [_text, _text, _out],
    "gr_model_describe": [_handle, _out],
    "gr_model_set_data": [_handle, _text, _text, ctypes.POINTER(Type), ctypes.c_void_p],
    "gr_session_open": [_handle, _text, _out],
    "gr_session_describe": [_handle, _out],
    "gr_session_train": [_handle, ctypes.POINTER(TrainOptions), ctypes.POINTER(TrainResult)],
    "gr_train_many": [_out, _size, ctypes.POINTER(TrainManyOptions), ctypes.POINTER(TrainResult), _out],
    "gr_session_advance_until": [_handle, ctypes.c_uint64, ctypes.c_int64, ctypes.POINTER(Advanced)],
    "gr_session_loss": [_handle, ctypes.POINTER(ctypes.c_double)],
    "gr_session_evaluate": [_handle, _text, _out],
    "gr_session_find": [_handle, _text, ctypes.POINTER(ctypes.c_uint32)],
    "gr_session_type": [_handle, ctypes.c_uint32, ctypes.POINTER(Type)],
    "gr_session_read": [_handle, ctypes.c_uint32, ctypes.c_void_p, _size],
    "gr_session_write": [_handle, ctypes.c_uint32, ctypes.c_void_p, _size],
    "gr_session_write_rows": [_handle, ctypes.c_uint32, ctypes.c_int64, ctypes.c_void_p, _size],
    "gr_session_set_rows": [_handle, _text, ctypes.c_int64],
    "gr_session_state_bytes": [_handle, ctypes.POINTER(_size)],
    "gr_session_save_state": [_handle, ctypes.c_void_p, _size],
    "gr_session_load_state": [_handle, ctypes.c_void_p, _size],
    "gr_session_predict": [_handle, ctypes.POINTER(Bytes), _size, ctypes.POINTER(Bytes), _size],
    "gr_session_predict_double": [_handle, ctypes.POINTER(Bytes), _size, ctypes.POINTER(Bytes), _size],
    "gr_session_save_weights": [_handle, _text],
    "gr_session_load_weights": [_handle, _text],
    "gr_session_weights_hash": [_handle, ctypes.c_char_p],
    "gr_verify": [_handle, _text, _out],
    "gr_devices": [_out],
    "gr_help": [_text, _out],
}

lib = _load()
if lib.gr_abi_version() < ABI_VERSION:
    raise ImportError(f"libgraphrun.so offers version {lib.gr_abi_version()} of its C interface; {ABI_VERSION} is needed")
for _name, _arguments in _FALLIBLE.items():
    getattr(lib, _name).argtypes = _arguments
    getattr(lib, _name).restype = ctypes.c_void_p
for _name, _arguments, _result in (
        ("gr_version", [], _text), ("gr_error_kind", [_handle], ctypes.c_int), ("gr_error_message", [_handle], _text),
        ("gr_error_json", [_handle], _text), ("gr_error_free", [_handle], None), ("gr_text_free", [_handle], None),
        ("gr_model_free", [_handle], None), ("gr_session_free", [_handle], None),
        ("gr_session_cancel", [_handle], None), ("gr_session_step", [_handle], ctypes.c_uint64)):
    getattr(lib, _name).argtypes = _arguments
    getattr(lib, _name).restype = _result


def call(name: str, *arguments: Any) -> None:
    """Calls a function of _FALLIBLE. Raises its error."""
    error = getattr(lib, name)(*arguments)
    if error:
        raise taken_error(error)


def taken_error(handle: int) -> Error:
    """Returns the error of a handle and frees the handle."""
    try:
        return Error(KINDS[lib.gr_error_kind(handle)], lib.gr_error_message(handle).decode(),
                     json.loads(lib.gr_error_json(handle)))
    finally:
        lib.gr_error_free(handle)


def text(name: str, *arguments: Any) -> str:
    """Calls a function of _FALLIBLE. Returns the text of its last argument, an output."""
    given = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(given))
    try:
        return ctypes.string_at(given).decode()  # type: ignore[arg-type]
    finally:
        lib.gr_text_free(given)


def encoded(options: Dict[str, Any]) -> bytes:
    def plain(value: Any) -> Any:
        if hasattr(value, "tolist"):  # NumPy scalars and arrays
            return value.tolist()
        raise TypeError(f"{value!r} is not a JSON value")

    return json.dumps(options, default=plain).encode()


def version() -> str:
    return lib.gr_version().decode()


def devices() -> Dict[str, Any]:
    """Returns {"devices": [...], "missing": [...]}: available devices, and unavailable executors with reasons."""
    load_cuda_wheels()
    return json.loads(text("gr_devices"))


def help(topic: str) -> str:  # pylint: disable=redefined-builtin
    """Returns the text of `graphrun help TOPIC`, with topics such as "adam", "dense" or "optimizers"."""
    return text("gr_help", topic.encode())
