#!/usr/bin/env python3
"""Values and gradients of torch.nn.RNN, GRU and LSTM in double, as JSON on standard output.

tests/executors/recurrent_test.cpp builds the same layers and compares with the recorded output, recurrent.json in this
folder:
    python3 recurrent_torch.py > recurrent.json
All numbers of the start are multiples of 1/32, exact in every format. The loss is the mean of the squared outputs.
"""

import json
import random
import sys

import torch

GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def pattern(shape, a, modulus, divisor):
    """Element i in row-major order is ((a i) mod modulus - floor(modulus / 2)) / divisor."""
    count = torch.Size(shape).numel()
    numbers = [((a * i) % modulus - modulus // 2) / divisor for i in range(count)]
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape).requires_grad_()


def run(case):
    units, features, gates = case["units"], case["features"], GATES[case["layer"]]
    shift = pattern((case["steps"], features), 0, 1, 1)  # zeros: its gradient is that of x, summed over the batch
    x = pattern((case["batch"], case["steps"], features), 7, 19, 8).detach()
    weights = {
        "W": pattern((features, gates * units), 5, 17, 16),
        "R": pattern((units, gates * units), 3, 13, 16),
        "b": pattern((gates * units,), 3, 7, 32),
    }
    bias = torch.zeros(gates * units, dtype=torch.float64)
    if case["layer"] == "gru":
        weights["c"] = pattern((units,), 2, 5, 16)
        bias = torch.cat([bias[: 2 * units], weights["c"]])
    layer = getattr(torch.nn, case["layer"].upper())(features, units, batch_first=True).double()
    copied = {"weight_ih_l0": weights["W"].T, "weight_hh_l0": weights["R"].T, "bias_ih_l0": weights["b"], "bias_hh_l0": bias}
    sequence = x + shift
    if case["reverse"]:
        sequence = sequence.flip(1)
    y, _ = torch.func.functional_call(layer, copied, (sequence,))
    if case["return"] == "last":
        y = y[:, -1]
    elif case["reverse"]:
        y = y.flip(1)
    (y**2).mean().backward()
    results = {"y": y, "shift": shift.grad}
    for name, weight in weights.items():
        results[name] = torch.zeros_like(weight) if weight.grad is None else weight.grad
    return {name: [round(number, 9) for number in value.flatten().tolist()] for name, value in results.items()}


def cases():
    chosen = random.Random(47)
    for layer in GATES:
        for steps in (1, 2, 3, 5, 8, 9, 11, 17, 64):
            yield {
                "layer": layer,
                "steps": steps,
                "features": chosen.randint(1, 4),
                "units": chosen.randint(1, 2 if steps > 9 else 5),
                "batch": chosen.randint(1, 2 if steps > 9 else 4),
                "reverse": chosen.random() < 0.5,
                "return": chosen.choice(["last", "sequence"]),
            }


if __name__ == "__main__":
    lines = ",\n".join(json.dumps({**case, "results": run(case)}) for case in cases())
    sys.stdout.write(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')
