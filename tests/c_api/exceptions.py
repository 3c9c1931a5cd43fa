"""Exceptions of the Python package, for its tests."""


def refused(kind, call):
    """Returns the message of the exception of this kind that the call raises."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError("the call raised no exception")
