"""Finds the BLAS that a process has loaded, from its memory map, and rejects those that make timings meaningless.

>>> mapped("7f00-7f01 r-xp 0 08:01 7 /usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0\\n")
['/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0']
>>> refusal(mapped("7f00-7f01 r-xp 0 08:01 7 /usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0\\n"))
'the reference BLAS (/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0), which is many times slower than others'
>>> refusal(mapped("7f00-7f01 r-xp 0 08:01 7 /usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3\\n"))
>>> refusal(mapped("7f00-7f01 r-xp 0 08:01 7 /v/numpy.libs/libscipy_openblas64_-ff651d7f.so\\n"))
>>> refusal(mapped("7f00-7f01 r-xp 0 08:01 7 /usr/lib/x86_64-linux-gnu/libc.so.6\\n"))
'no BLAS at all'
"""
import re

FAST = re.compile(r"openblas|mkl|blis|atlas|flexiblas|nvpl|armpl|accelerate", re.I)


def mapped(maps):
    """Returns the BLAS libraries among the files of /proc/PID/maps."""
    files = sorted({line.split(maxsplit=5)[5] for line in maps.splitlines() if len(line.split(maxsplit=5)) == 6})
    return [f for f in files if re.search(r"lib[^/]*(blas|mkl_rt|mkl_core|blis|atlas|armpl)[^/]*\.so", f, re.I)]


def loaded():
    with open("/proc/self/maps") as maps:
        return mapped(maps.read())


def refusal(libraries):
    """Returns the reason to reject timings with these libraries, or None."""
    if not libraries:
        return "no BLAS at all"
    if not any(FAST.search(library) for library in libraries):
        return f"the reference BLAS ({', '.join(libraries)}), which is many times slower than others"
    return None


if __name__ == "__main__":
    import doctest
    import sys

    sys.exit(1 if doctest.testmod().failed else 0)
