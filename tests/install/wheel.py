"""What pyproject.toml makes a wheel of, without the build that a wheel is: the component "wheel" of an installed build beside
python/graphrun, used as a stranger would. Exit code 77: NumPy or readelf is not installed.

wheel.py CMAKE BUILD SOURCE
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

cmake, build, source = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)
if shutil.which("readelf") is None:
    print("skipped: readelf is not installed")
    sys.exit(77)

text = (source / "pyproject.toml").read_text()
pattern = re.search(r"regex = '''(.*)'''", text).group(1)
version = re.search(pattern, (source / "CMakeLists.txt").read_text()).group("value")
with tempfile.TemporaryDirectory() as folder:
    site = pathlib.Path(folder)
    subprocess.run([cmake, "--install", build, "--prefix", folder, "--component", "wheel"], check=True, capture_output=True)
    installed = sorted(str(path.relative_to(site)) for path in site.rglob("*") if path.is_file())
    assert installed in (["graphrun/lib/libgraphrun.so.0"],
                         ["graphrun/lib/libgraphrun.so.0", "graphrun/lib/libgraphrun_cuda.so"]), installed
    shutil.copytree(source / "python/graphrun", site / "graphrun", dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))
    # A library that another one asks for lies there under the name by which it is asked for.
    for path in (site / "graphrun/lib").iterdir():
        needed = re.findall(r"NEEDED.*\[(libgraphrun[^]]*)\]", subprocess.run(["readelf", "-d", path], check=True, text=True,
                                                                              capture_output=True).stdout)
        assert all((path.parent / name).exists() for name in needed), (path.name, needed)
    assert (site / "graphrun/py.typed").exists()
    environment = {key: value for key, value in os.environ.items() if key not in ("GRAPHRUN_LIBRARY", "LD_LIBRARY_PATH")}
    environment["PYTHONPATH"] = folder
    code = """
import graphrun
from graphrun import _library
assert _library.lib._name.endswith("graphrun/lib/libgraphrun.so.0"), _library.lib._name
print(graphrun.__version__, graphrun.Model("models/xor.json").fit(progress=False).score([[0, 0], [0, 1]], [0, 1]))
"""
    said = subprocess.run([sys.executable, "-B", "-c", code], cwd=source, env=environment, check=True, text=True,
                          capture_output=True).stdout.split()
    assert said[0] == version and float(said[1]) > 0.9, said
print(f"graphrun {version}: {len(installed)} libraries and the package")
