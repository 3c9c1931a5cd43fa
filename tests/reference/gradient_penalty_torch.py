"""A critic with the gradient penalty of WGAN-GP (Gulrajani et al., 2017), trained by graphrun and by torch in double.

The penalty holds the length of the critic's gradient at each row to 1, so that training differentiates twice. Both start
from the same weights and take three steps; the weights must agree. Ends with 77 where torch is not installed.
Usage: gradient_penalty_torch.py GRAPHRUN
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

kSteps, kRate, kTolerance = 3, 0.1, 2e-6
kActivations = {"tanh": torch.tanh, "softplus": torch.nn.functional.softplus, "silu": torch.nn.functional.silu,
                "sigmoid": torch.sigmoid}


def model(activation, real, made):
    columns = {"real": real.tolist(), "made": made.tolist()}
    return {
        "format": 1, "name": "critic", "data": {"train": {"inline": columns}},
        "inputs": {"real": ["batch", 2], "made": ["batch", 2]},
        "graph": [
            f"C.h = dense(real, units=16, activation={activation})",
            "C.true = dense(C.h, units=1)",
            "h_made = dense(made, share=C.h)",
            "made_out = dense(h_made, share=C.true)",
            "between = 0.25 * real + 0.75 * made",
            "h_between = dense(between, share=C.h)",
            "between_out = dense(h_between, share=C.true)",
            "slope = gradient(sum(between_out), between)",
            "length = sqrt(sum(square(slope), axis=1))",
            "loss = mean(made_out) - mean(C.true) + 10 * mean((length - 1)^2)"],
        "outputs": ["C.true"],
        "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": kRate}}, "epochs": kSteps, "batch": "all"}}


def trained(graphrun, folder, text, *options):
    path, weights = folder / "critic.json", folder / "weights.npz"
    path.write_text(json.dumps(text))
    subprocess.run([graphrun, path, "--quiet", "--save-weights", weights, *options], check=True,
                   stdout=subprocess.DEVNULL)
    with numpy.load(weights) as arrays:
        return {name: arrays[name].copy() for name in arrays.files if name.startswith("C.")}


def stepped(start, activation, real, made):
    weights = {name: torch.tensor(array, dtype=torch.float64, requires_grad=True) for name, array in start.items()}
    real, made = torch.tensor(real, dtype=torch.float64), torch.tensor(made, dtype=torch.float64)

    def critic(x):
        h = kActivations[activation](x @ weights["C.h.W"] + weights["C.h.b"])
        return h @ weights["C.true.W"] + weights["C.true.b"]

    for _ in range(kSteps):
        between = (0.25 * real + 0.75 * made).requires_grad_()
        slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        length = slope.square().sum(1).sqrt()
        loss = critic(made).mean() - critic(real).mean() + 10 * ((length - 1) ** 2).mean()
        gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
        with torch.no_grad():
            for weight, gradient in zip(weights.values(), gradients):
                if gradient is not None:
                    weight -= kRate * gradient
    return {name: weight.detach().numpy() for name, weight in weights.items()}


def main():
    graphrun = sys.argv[1]
    worst = 0.0
    for seed, activation in enumerate(kActivations):
        draw = numpy.random.default_rng(seed)
        real, made = draw.normal(1, 0.5, (32, 2)).astype("f4"), draw.normal(-1, 0.7, (32, 2)).astype("f4")
        text = model(activation, real, made)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            start = trained(graphrun, folder, text, "--set", "train.optimizer.sgd.lr=0")
            expected = stepped(start, activation, real, made)
            for executor in ("ref", "cpu"):
                got = trained(graphrun, folder, text, f"--executor={executor}")
                assert set(got) == {"C.h.W", "C.h.b", "C.true.W", "C.true.b"}, sorted(got)
                assert numpy.abs(got["C.h.W"] - start["C.h.W"]).max() > 1e-3, "it has not been trained"
                for name, array in got.items():
                    difference = numpy.abs(array - expected[name]).max() / max(1, numpy.abs(expected[name]).max())
                    worst = max(worst, difference)
                    assert difference < kTolerance, f"{activation} on {executor}: {name} differs by {difference:.2g}"
    print(f"{len(kActivations)} critics agree with torch, worst {worst:.2g}")


main()
