#!/usr/bin/env python3
"""Gradients of torch where a function has a corner, an end, or an infinity: one line each, "op x y dx dy".

tests/graph/singular_gradients_test.cpp compares ours with the recorded output, singular_gradients.txt beside this file:
    python3 singular_gradients_torch.py > singular_gradients.txt
"""

import torch
import torch.nn.functional as F

inf, nan, tiny = float("inf"), float("nan"), 1e-40  # tiny is subnormal
POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, inf, -inf, tiny, -tiny, 1e-38, 3e38, nan]
UNARY = {
    "abs": torch.abs, "sign": torch.sign, "square": torch.square, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal, "exp": torch.exp, "expm1": torch.expm1, "log": torch.log, "log1p": torch.log1p,
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
    "softplus": F.softplus, "relu": torch.relu, "leaky_relu": F.leaky_relu, "elu": F.elu, "selu": torch.selu,
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "erf": torch.erf,
    "floor": torch.floor, "ceil": torch.ceil, "round": torch.round,
    "clip": lambda x: torch.clamp(x, -1.0, 1.0),
}
PAIRS = [
    (0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (0.0, 3.0), (0.0, -1.0), (0.0, 0.5), (0.0, -0.5), (-0.0, 0.0), (-0.0, 1.0),
    (-0.0, -1.0), (tiny, 2.0), (tiny, 0.0), (tiny, 1.0), (tiny, 0.5), (tiny, -0.5), (tiny, tiny), (-1.0, 2.0),
    (-1.0, 0.5), (-2.0, 3.0), (-2.0, 0.0), (-2.0, 1.0), (inf, 0.0), (inf, 1.0), (inf, 2.0), (inf, -1.0), (2.0, inf),
    (0.5, inf), (1.0, inf), (2.0, -inf), (-inf, 1.0), (inf, inf), (1.0, 1.0), (1.0, 0.0), (5.0, 2.0), (nan, 0.0),
    (0.0, nan), (1.0, nan),
]
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "mod": torch.remainder, "pow": torch.pow,
    "minimum": torch.minimum, "maximum": torch.maximum,
}
# Vectors, which take the place of x; y is empty.
VECTORS = {
    "sum": ([[0.0, inf], [nan, 1.0]], torch.sum),
    "max": ([[1.0, 1.0, 0.0], [inf, inf, 0.0], [-inf, -inf, -inf], [2.0, 2.0, 2.0]], torch.amax),
    "min": ([[1.0, 1.0, 0.0], [inf, inf, inf], [-inf, -inf, 0.0]], torch.amin),
    "prod": ([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [-0.0, 2.0, 3.0], [1.0, 2.0, 3.0]], torch.prod),
    "logsumexp": ([[-inf, 0.0], [inf, 0.0], [-inf, -inf], [3e38, 3e38], [1000.0, 0.0]],
                  lambda x: torch.logsumexp(x, 0)),
    "softmax": ([[-inf, 0.0], [inf, 0.0], [1000.0, 0.0]], lambda x: torch.softmax(x, 0)[0]),
    "log_softmax": ([[-inf, 0.0], [1000.0, 0.0]], lambda x: torch.log_softmax(x, 0)[0]),
    "norm": ([[0.0, 0.0], [3.0, 4.0]], lambda x: torch.sqrt(torch.square(x).sum())),
    # The gradient of the sum of the gradients.
    "second_prod": ([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]], None),
}


def text(values):
    return ",".join(f"{float(v):.9g}" for v in values)


def main():
    for name, function in UNARY.items():
        for point in POINTS:
            x = torch.tensor(point, requires_grad=True)
            function(x).backward()
            print(name, text([point]), "-", text([x.grad]), "-")
    for name, function in BINARY.items():
        for pair in PAIRS:
            x, y = (torch.tensor(v, requires_grad=True) for v in pair)
            function(x, y).backward()
            print(name, text([pair[0]]), text([pair[1]]), text([x.grad]), text([y.grad]))
    for name, (vectors, function) in VECTORS.items():
        for vector in vectors:
            x = torch.tensor(vector, requires_grad=True)
            if function is None:
                (first,) = torch.autograd.grad(torch.prod(x), x, create_graph=True)
                (second,) = torch.autograd.grad(first.sum(), x)
                print(name, text(vector), "-", text(second), "-")
            else:
                function(x).backward()
                print(name, text(vector), "-", text(x.grad), "-")


if __name__ == "__main__":
    main()
