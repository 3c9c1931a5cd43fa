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


def rows_like(name: str, values: Any, dtype: Any, sample: Tuple[int, ...]) -> Array:
    """Rows of such a dtype and shape; a list of numbers is a column where a sample is one number."""
    import numpy

    array = numpy.ascontiguousarray(as_array(values), dtype=dtype)
    if array.ndim == 1 and sample == (1,):
        array = array.reshape(-1, 1)
    if array.shape[1:] != sample or array.ndim == 0:
        raise ValueError(f"{name}: rows of shape {array.shape[1:]}, not {sample}")
    return array


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
