"""Initial weights of the mnist_mlp reference: python3 bench/mlp_init.py DATA_FOLDER writes mnist/mlp_init.npz there.

tests/models starts models/mnist_mlp.json from it to compare losses with tests/models/losses/mnist.json. The samples are
those of that reference: legacy RandomState(123), normal with standard deviation 0.1, in the order W1 W2 W3 b1 b2 b3.
NumPy keeps this stream equal in all versions.
"""
import pathlib
import sys

import numpy as np

if len(sys.argv) != 2:
    sys.exit(__doc__)
draw = np.random.RandomState(123)
shapes = {"W1": (784, 256), "W2": (256, 100), "W3": (100, 10), "b1": (256,), "b2": (100,), "b3": (10,)}
arrays = {name: draw.normal(scale=0.1, size=shape).astype(np.float32) for name, shape in shapes.items()}
folder = pathlib.Path(sys.argv[1]) / "mnist"
folder.mkdir(parents=True, exist_ok=True)
np.savez(folder / "mlp_init.npz", **arrays)
print(folder / "mlp_init.npz")
