"""NumPy arrays and what can be seen as one. NumPy is imported when the first array is met, for it takes longer than the
rest of this package."""

from typing import TYPE_CHECKING, Any, Sequence, Tuple

from graphrun import _library

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray
else:
    Array = Any

_NAMES = {"f32": "float32", "f64": "float64", "i32": "int32", "u64": "uint64", "bool": "bool"}


def as_array(values: Any) -> Array:
    """As a C-contiguous array, without a copy where it is one: NumPy's, or what __dlpack__ or a buffer shows of the CPU."""
    import numpy

    if not isinstance(values, numpy.ndarray) and hasattr(values, "__dlpack__"):
        values = numpy.from_dlpack(values)
    return numpy.ascontiguousarray(values)


def as_room(values: Any) -> Array:
    """As an array that is written into: NumPy's, or where a tensor of another library lies."""
    import numpy

    if isinstance(values, numpy.ndarray) or not hasattr(values, "__dlpack__"):
        return values
    return numpy.asarray(values) if hasattr(values, "__array__") else numpy.from_dlpack(values)


def converted(name: str, values: Any, dtype: Any) -> Array:
    """As an array of this dtype. Floats are rounded to it; whole numbers stay what they are, or are refused."""
    import numpy

    array, wanted = as_array(values), numpy.dtype(dtype)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name}: an array of {array.dtype} holds no real numbers")
    if wanted.kind in "iu" and array.size > 0:
        if array.dtype.kind == "f":
            raise TypeError(f"{name}: an array of {array.dtype}, not of whole numbers")
        least, most = int(array.min()), int(array.max())
        room = numpy.iinfo(wanted)
        if least < room.min or most > room.max:
            raise ValueError(f"{name}: {least if least < room.min else most} is no number of {wanted}")
    return numpy.ascontiguousarray(array, dtype=wanted)


def rows_like(name: str, values: Any, dtype: Any, sample: Tuple[int, ...]) -> Array:
    """Rows of such a dtype and shape; a list of numbers is a column where a sample is one number."""
    array = converted(name, values, dtype)
    if array.ndim == 1 and sample == (1,):
        array = array.reshape(-1, 1)
    if array.shape[1:] != sample or array.ndim == 0:
        raise ValueError(f"{name}: rows of shape {array.shape[1:]}, not {sample}")
    return array


def near(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches  # only where something is wrong

    found = get_close_matches(name, names, 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def number_of_dtype(name: str, array: Array) -> int:
    if array.dtype.name in _library.DTYPES:
        return _library.DTYPES.index(array.dtype.name)
    raise TypeError(f"{name}: an array of {array.dtype} is none of {', '.join(_library.DTYPES)}")


def numpy_dtype(name: str) -> Any:
    import numpy

    return numpy.dtype(_NAMES[name])


def empty(shape: Sequence[int], dtype: Any) -> Array:
    import numpy

    return numpy.empty(shape, dtype)
