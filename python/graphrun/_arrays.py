"""Conversions to NumPy arrays. The first array imports NumPy, which takes longer than the rest of this package."""

import numbers
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Sequence, Tuple

from graphrun import _library

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray
else:
    Array = Any

_MARKERS = ("NA", "N/A", "NaN", "nan", "null", "NULL", "?")  # missing values of a CSV file (data.md)
_PARTS_OF_DATES = tuple(f"{one}(" for one in ("seconds", "year", "month", "day", "weekday", "hour", "minute"))  # data.md
_NAMES = {"f32": "float32", "f64": "float64", "i32": "int32", "u64": "uint64", "bool": "bool"}


def as_array(values: Any) -> Array:
    """Returns a C-contiguous array. Contiguous arrays, and CPU tensors through DLPack or a buffer, are not copied."""
    import numpy

    if not isinstance(values, numpy.ndarray) and hasattr(values, "__dlpack__"):
        values = numpy.from_dlpack(values)
    return numpy.ascontiguousarray(values)


def as_output(values: Any) -> Array:
    """Returns an array to write results to: the given one, or a view of a tensor of another library."""
    import numpy

    if isinstance(values, numpy.ndarray) or not hasattr(values, "__dlpack__"):
        return values
    return numpy.asarray(values) if hasattr(values, "__array__") else numpy.from_dlpack(values)


def converted(name: str, values: Any, dtype: Any) -> Array:
    """Returns an array of this dtype. Floats are rounded. Raises TypeError or ValueError if an integer would change."""
    import numpy

    array, wanted = as_array(values), numpy.dtype(dtype)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name}: an array of {array.dtype} holds no real numbers")
    if wanted.kind in "iu" and array.size > 0:
        if array.dtype.kind == "f":
            raise TypeError(f"{name}: expected an array of integers, got {array.dtype}")
        least, most = int(array.min()), int(array.max())
        room = numpy.iinfo(wanted)
        if least < room.min or most > room.max:
            raise ValueError(f"{name}: {least if least < room.min else most} is out of range for {wanted}")
    return numpy.ascontiguousarray(array, dtype=wanted)


def has_more_digits(values: Array) -> bool:
    """Returns whether float32 can round these numbers. They are then passed as float64, which the transforms of a
    model take without rounding."""
    return values.dtype.kind in "iuf" and values.dtype.itemsize > 3 and values.dtype.name != "float32"


def precise_dtype(dtype: Any) -> Any:
    """Returns float64 for float32, other dtypes as they are."""
    import numpy

    return numpy.dtype("float64") if numpy.dtype(dtype) == numpy.float32 else dtype


def rows_like(name: str, values: Any, dtype: Any, sample: Tuple[int, ...]) -> Array:
    """Returns rows of this dtype and sample shape. A 1-D array is a column if the sample shape is (1,)."""
    array = converted(name, values, dtype)
    if array.ndim == 1 and sample == (1,):
        array = array.reshape(-1, 1)
    if array.shape[1:] != sample or array.ndim == 0:
        raise ValueError(f"{name}: rows of shape {array.shape[1:]}, not {sample}")
    return array


def near(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches  # imported only on errors

    folded = {one.casefold(): one for one in names}
    found = get_close_matches(name.casefold(), list(folded), 1)
    return f"; did you mean {folded[found[0]]!r}?" if found else ""


def as_table(values: Any) -> Any:
    """Returns a table of another library (Arrow C stream, dataframe interchange) as one of pyarrow, other values as
    they are."""
    protocol = next((one for one in ("__arrow_c_stream__", "__dataframe__") if hasattr(values, one)), None)
    if protocol is None or hasattr(values, "__array__"):
        return values
    try:
        from pyarrow import interchange, table  # type: ignore[import-not-found]
    except ImportError as error:
        raise ImportError(f"a table of {type(values).__module__} needs pyarrow: pip install pyarrow") from error
    return table(values) if protocol == "__arrow_c_stream__" else interchange.from_dataframe(values)


def column_names(values: Any) -> List[str]:
    """Returns the column names of a table of pandas, polars or pyarrow, or an empty list if it has none that are
    strings."""
    names = getattr(values, "column_names", getattr(values, "columns", ())) if hasattr(values, "__getitem__") else ()
    return list(names) if all(isinstance(one, str) for one in names) else []


def is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return (value is None or type(value).__name__ in ("NAType", "NaTType")
            or isinstance(value, numbers.Real) and value != value)


def write_table(table: Any, path: str) -> None:
    """Writes a table as a CSV file that a model reads exactly: numbers in their shortest form, missing values empty."""
    import csv

    names = column_names(table)
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise ValueError(f"the table has two columns {twice!r}")
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*(_cells(name, table[name]) for name in names)))


def _cells(name: str, column: Any) -> Iterable[Any]:
    import warnings

    import numpy

    def text(value: Any) -> Any:
        if isinstance(value, str) and value.strip() in _MARKERS:
            warnings.warn(f"column {name!r}: the string {value!r} is read as a missing value", stacklevel=5)
        return "" if is_missing(value) else str(value).lower() if isinstance(value, bool) else value

    array, kind = numpy.asarray(column), str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    if array.dtype.kind in "iu" or array.dtype.kind == "f" and ("float" in kind or "double" in kind):
        return array.tolist()
    listed = next(getattr(column, one) for one in ("to_pylist", "to_list", "tolist") if hasattr(column, one))
    return map(text, listed())


def in_columns(name: str, values: Any, columns: Sequence[Dict[str, Any]]) -> Any:
    """Returns the columns of an input as a 2-D array. Columns of a DataFrame are selected by name; categorical values
    become class indices. Other values are returned as they are."""
    import numpy

    given, wanted = column_names(values), [one["name"] for one in columns]
    if given and wanted:
        for one in wanted:
            if one not in given:
                computed = ("; the model computes it from columns of a file: pass its values as a column of this name, or "
                            "use graphrun predict with a CSV file" if "(" in one else near(one, given))
                raise ValueError(f"{name}: there is no column {one!r} among {', '.join(given)}{computed}")
            if given.count(one) > 1:
                raise ValueError(f"{name}: there are {given.count(one)} columns {one!r}")
        table = [values[one] for one in wanted]
    else:
        if given or not isinstance(values, (list, tuple, numpy.ndarray)):
            return values
        array = numpy.asarray(values)
        array = array.reshape(-1, 1) if array.ndim == 1 and len(wanted) == 1 else array
        if array.dtype.kind not in "OUS" or array.ndim != 2 or array.shape[1] != len(wanted):
            return values
        table = list(array.T)
    return numpy.stack([_numbers(name, one, values) for one, values in zip(columns, table)], axis=1)


def _numbers(name: str, column: Dict[str, Any], values: Any) -> Array:
    import numpy

    array, words = numpy.asarray(values), column["words"]
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind in "OUS" and words:
        return numpy.array([_class(name, column["name"], words, one) for one in array.tolist()])
    listed = array.astype("datetime64[us]") if array.dtype.kind == "M" else array
    try:
        if array.dtype.kind == "m" or array.dtype.kind == "M" and column["name"].startswith(_PARTS_OF_DATES):
            raise TypeError
        return numpy.array([_number(one) for one in listed.tolist()], "float64")
    except (TypeError, ValueError):
        advice = ("convert it to numbers, as with .dt.total_seconds()" if array.dtype.kind in "mM" else
                  f"words are taken where the model lists its classes: \"transform\": {{\"{column['name']}\": "
                  "[{\"one_hot\": [...]}]}, and by fit(table), whose table has the targets too")
        raise TypeError(f"{name}: the column {column['name']!r} of {array.dtype} holds no numbers; {advice}") from None


def _number(value: Any) -> Any:
    """Returns a number, and for a date the days since 1970-01-01, in UTC."""
    from datetime import timezone

    if is_missing(value):
        return float("nan")
    if not hasattr(value, "toordinal"):
        return value
    if getattr(value, "tzinfo", None):
        value = value.astimezone(timezone.utc)
    hours = value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600 if hasattr(value, "hour") else 0
    return value.toordinal() - 719163 + hours / 24


def _class(name: str, column: str, words: Sequence[str], value: Any) -> float:
    if is_missing(value):
        return float("nan")
    if not isinstance(value, str):
        return float(value)
    word = value.strip()
    if word not in words and words[-1] != "other":
        try:
            return float(word)
        except ValueError:
            raise ValueError(f"{name}, column {column!r}: {word!r} is not one of {', '.join(words)}"
                             + near(word, words)) from None
    return float(words.index(word) if word in words else len(words) - 1)


def number_of_dtype(name: str, array: Array) -> int:
    if array.dtype.name in _library.DTYPES:
        return _library.DTYPES.index(array.dtype.name)
    raise TypeError(f"{name}: dtype {array.dtype} is not one of {', '.join(_library.DTYPES)}")


def numpy_dtype(name: str) -> Any:
    import numpy

    return numpy.dtype(_NAMES[name])


def empty(shape: Sequence[int], dtype: Any) -> Array:
    import numpy

    return numpy.empty(shape, dtype)
