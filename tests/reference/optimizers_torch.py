#!/usr/bin/env python3
"""The optimizers of torch.optim on a small network: the parameters after 20 steps, as JSON on standard output.

tests/graph/optimizers_test.cpp trains the same network with the same cases and compares to 1e-5. It runs this file
where torch is installed, and reads a recorded output (optimizers.json beside this file) where there is one.
All numbers of the start are multiples of 1/32, exact in every format. torch computes in double here.
"""

import json
import sys

import torch

ROWS, INPUTS, HIDDEN, OUTPUTS, STEPS = 8, 3, 4, 2, 20


def pattern(rows, columns, a, b, modulus, divisor):
    """Element (i, j) is ((a i + b j) mod modulus - floor(modulus / 2)) / divisor."""
    return torch.tensor(
        [[((a * i + b * j) % modulus - modulus // 2) / divisor for j in range(columns)] for i in range(rows)],
        dtype=torch.float64,
    )


# name: (class, its options, decoupled weight decay, largest gradient norm, do the biases decay[, largest element])
CASES = {
    "sgd": ("SGD", {"lr": 0.1}, 0, 0, True),
    "sgd_weight_decay": ("SGD", {"lr": 0.1}, 0.2, 0, True),
    "sgd_l2": ("SGD", {"lr": 0.1, "weight_decay": 0.4}, 0, 0, True),
    "sgd_clip_norm": ("SGD", {"lr": 0.5}, 0, 0.25, True),
    "sgd_clip_value": ("SGD", {"lr": 0.5}, 0, 0, True, 0.02),
    "sgd_clip_value_and_norm": ("SGD", {"lr": 0.5}, 0, 0.25, True, 0.1),
    "momentum": ("SGD", {"lr": 0.05, "momentum": 0.9}, 0, 0, True),
    "momentum_half": ("SGD", {"lr": 0.1, "momentum": 0.5}, 0, 0, True),
    "nesterov": ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}, 0, 0, True),
    "rmsprop": ("RMSprop", {"lr": 0.002, "alpha": 0.99, "eps": 1e-8}, 0, 0, True),
    "rmsprop_alpha": ("RMSprop", {"lr": 0.01, "alpha": 0.8, "eps": 1e-3}, 0, 0, True),
    "adagrad": ("Adagrad", {"lr": 0.05, "eps": 1e-10}, 0, 0, True),
    "adam": ("Adam", {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8}, 0, 0, True),
    "adam_betas": ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-4}, 0, 0, True),
    "adam_l2": ("Adam", {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1}, 0, 0, True),
    "adamw": ("AdamW", {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}, 0, 0, True),
    "adamw_all": ("AdamW", {"lr": 0.02, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.5}, 0, 0.25, False),
    "sgd_weights_only": ("SGD", {"lr": 0.1, "weight_decay": 0.3}, 0, 0.25, False),
    "rprop": ("Rprop", {"lr": 0.01, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50)}, 0, 0, True),
    "rprop_keys": ("Rprop", {"lr": 0.02, "etas": (0.25, 1.5), "step_sizes": (0.004, 0.06)}, 0, 0, True),
}


def train(name):
    kind, options, decoupled, max_norm, biases_decay, *max_value = CASES[name]
    parameters = {
        "W1": pattern(INPUTS, HIDDEN, 5, 7, 17, 16),
        "b1": pattern(1, HIDDEN, 0, 3, 7, 32)[0],
        "W2": pattern(HIDDEN, OUTPUTS, 3, 5, 13, 16),
        "b2": pattern(1, OUTPUTS, 0, 2, 5, 8)[0],
    }
    for tensor in parameters.values():
        tensor.requires_grad_(True)
    weights, biases = [parameters["W1"], parameters["W2"]], [parameters["b1"], parameters["b2"]]
    groups = [{"params": weights}, {"params": biases}]
    if not biases_decay:
        groups[1]["weight_decay"] = 0
    optimizer = getattr(torch.optim, kind)(groups, **options)
    x = pattern(ROWS, INPUTS, 7, 3, 11, 4)
    y = pattern(ROWS, OUTPUTS, 5, 4, 9, 4)
    for _ in range(STEPS):
        optimizer.zero_grad()
        hidden = torch.tanh(x @ parameters["W1"] + parameters["b1"])
        loss = ((hidden @ parameters["W2"] + parameters["b2"] - y) ** 2).mean()
        loss.backward()
        if max_value:
            torch.nn.utils.clip_grad_value_(list(parameters.values()), max_value[0])
        if max_norm > 0:
            torch.nn.utils.clip_grad_norm_(list(parameters.values()), max_norm)
        with torch.no_grad():  # as AdamW does it: before the step
            for tensor in weights + (biases if biases_decay else []):
                tensor.mul_(1 - options["lr"] * decoupled)
        optimizer.step()
    return {key: tensor.detach().flatten().tolist() for key, tensor in parameters.items()}


if __name__ == "__main__":
    json.dump({"torch": torch.__version__, "cases": {name: train(name) for name in CASES}}, sys.stdout, indent=1)
    print()
