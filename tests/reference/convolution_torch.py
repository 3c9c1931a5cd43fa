"""Convolutions and pooling, trained for some steps by graphrun and by torch in double from the same weights.

Random extents, windows, strides, dilations, paddings and groups; the relative difference of the
filters and of all weights (norm of the difference / norm) stays below 3e-6. Ends with 77 where torch is not installed.
Usage: convolution_torch.py GRAPHRUN [EXECUTOR...]   (default: ref cpu)
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

kSteps, kRate, kTolerance, kCases = 3, 0.05, 3e-6, 24
F = torch.nn.functional


class Case:
    def __init__(self, seed):
        draw = numpy.random.default_rng(seed)
        pick = lambda low, high: int(draw.integers(low, high + 1))
        self.axes, self.transposed = 1 + seed % 2, seed % 4 == 3
        self.groups = 1 if self.transposed else pick(1, 2)
        self.channels, self.filters = self.groups * pick(1, 3), self.groups * pick(1, 3)
        self.size = [pick(1, 4) for _ in range(self.axes)]
        self.stride = [pick(1, 2) for _ in range(self.axes)]
        self.dilation = [pick(1, 2) for _ in range(self.axes)]
        self.pool = ["max_pool", "avg_pool"][seed % 2]
        self.x = draw.normal(0, 1, [12] + [pick(12, 16) for _ in range(self.axes)] + [self.channels]).astype("f4")
        self.y = draw.normal(0, 1, (12, 1)).astype("f4")

    def model(self):
        layer = {"name": "c", "op": f"conv{'_transpose' if self.transposed else ''}{self.axes}d", "inputs": ["x"],
                 "filters": self.filters, "size": self.size, "stride": self.stride, "dilation": self.dilation,
                 "activation": "tanh", "bias": {"normal": 0.1}}
        if not self.transposed:
            layer["groups"] = self.groups
        return {"format": 1, "name": "convolution",
                "data": {"train": {"npz": "data.npz"}},
                "inputs": {"x": ["batch", *self.x.shape[1:]], "y": ["batch", 1]},
                "graph": [layer, f"p = {self.pool}(c, size=2)", "d = dense(flatten(p), units=1)",
                          "loss = mean(square(d - y))"],
                "outputs": ["d"],
                "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": kRate}}, "epochs": kSteps, "batch": "all"}}

    def predict(self, weights, x):
        x = x.permute(0, self.axes + 1, *range(1, self.axes + 1))
        w = weights["c.W"]  # (window, channels / groups, filters), transposed (window, filters, channels)
        w = w.permute(self.axes + 1, self.axes, *range(self.axes)).contiguous()
        function = {(1, False): F.conv1d, (2, False): F.conv2d, (1, True): F.conv_transpose1d,
                    (2, True): F.conv_transpose2d}[self.axes, self.transposed]
        y = function(x, w, weights["c.b"], stride=self.stride, dilation=self.dilation, groups=self.groups)
        y = torch.tanh(y)
        pool = {("max_pool", 1): F.max_pool1d, ("max_pool", 2): F.max_pool2d, ("avg_pool", 1): F.avg_pool1d,
                ("avg_pool", 2): F.avg_pool2d}[self.pool, self.axes]
        y = pool(y, 2)
        y = y.permute(0, *range(2, self.axes + 2), 1).flatten(1)
        return y @ weights["d.W"] + weights["d.b"]

    def stepped(self, start):
        weights = {name: torch.tensor(array, dtype=torch.float64, requires_grad=True) for name, array in start.items()}
        x, y = torch.tensor(self.x, dtype=torch.float64), torch.tensor(self.y, dtype=torch.float64)
        for _ in range(kSteps):
            loss = ((self.predict(weights, x) - y) ** 2).mean()
            gradients = torch.autograd.grad(loss, list(weights.values()))
            with torch.no_grad():
                for weight, gradient in zip(weights.values(), gradients):
                    weight -= kRate * gradient
        return {name: weight.detach().numpy() for name, weight in weights.items()}


def trained(graphrun, folder, *options):
    subprocess.run([graphrun, folder / "model.json", "--quiet", "--save-weights", folder / "weights.npz", *options],
                   check=True, stdout=subprocess.DEVNULL)
    with numpy.load(folder / "weights.npz") as arrays:
        return {name: arrays[name].copy() for name in ("c.W", "c.b", "d.W", "d.b")}


def main():
    graphrun, executors = sys.argv[1], sys.argv[2:] or ["ref", "cpu"]
    worst = 0.0
    for seed in range(kCases):
        case = Case(seed)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            numpy.savez(folder / "data.npz", x=case.x, y=case.y)
            (folder / "model.json").write_text(json.dumps(case.model()))
            start = trained(graphrun, folder, "--set", "train.optimizer.sgd.lr=0")
            expected = case.stepped(start)
            for executor in executors:
                got = trained(graphrun, folder, f"--executor={executor}")
                assert numpy.abs(got["c.W"] - start["c.W"]).max() > 1e-5, "it has not been trained"
                for names in (["c.W"], list(got)):
                    wanted = numpy.concatenate([expected[name].ravel() for name in names])
                    found = numpy.concatenate([got[name].ravel() for name in names])
                    difference = numpy.linalg.norm(found - wanted) / numpy.linalg.norm(wanted)
                    worst = max(worst, difference)
                    assert difference < kTolerance, f"case {seed} on {executor}: {names} differ by {difference:.2g}"
    print(f"{kCases} networks agree with torch, worst {worst:.2g}")


main()
