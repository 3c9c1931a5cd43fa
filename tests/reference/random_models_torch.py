#!/usr/bin/env python3
"""Random models, trained by graphrun and by torch from the same weights: losses, weights and evaluation compared.

    random_models_torch.py GRAPHRUN [--seeds 300] [--first 0] [--executor cpu] [--keep FOLDER]

A seed gives a model: functions of ops.md, layers, shared weights, integer inputs, every optimizer and schedule,
batches of which the last may not be full. torch computes it in double, and that is what counts. How near graphrun's
floats must come is measured with torch alone: it trains again in float, and in double from a start that is a rounding
error away, and graphrun may be kSlack times as far from the truth as the farthest of these. A model that amplifies
roundings until the bound says nothing (kMaxBound of the largest value) is drawn anew; how often is told.
Exit code: 0 all agree, 1 some do not, 77 torch is not installed.
"""

import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch

    from random_models import Recipe, Unfit
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

kSlack = 8  # other orders of sums, functions of 2 ulp, a fused multiply-add more or less
kFloor = 16 * 2.0**-24  # of the largest value that is compared: where all of torch's runs round alike
kMaxBound = 1e-2
torch.set_num_threads(1)


def rate(recipe, step, steps_per_epoch):
    """The learning rate of a step, as ops.md says it."""
    first = recipe.options["lr"]
    if not recipe.schedule:
        return first
    time = step if recipe.unit == "steps" else step / steps_per_epoch
    if time < recipe.warmup:
        start = at(recipe, 0)
        return start * time / recipe.warmup
    return at(recipe, time - recipe.warmup)


def at(recipe, t):
    first, length = recipe.options["lr"], recipe.length
    done = min(t / length, 1)
    if recipe.schedule == "linear":
        return first + (0.001 - first) * done
    if recipe.schedule == "cosine":
        return first + (0.001 - first) * (1 - math.cos(math.pi * done)) / 2
    if recipe.schedule == "step":
        return first * 0.7 ** math.floor(t / length + 1e-9)
    if recipe.schedule == "exponential":
        return first * 0.7 ** (t / length)
    if recipe.schedule == "piecewise":
        return [first, 0.004, 0.001][(t >= length - 1e-9) + (t >= length + 2 - 1e-9)]
    return first


def batches(recipe):
    firsts = range(0, recipe.samples, recipe.capacity)
    return [range(f, min(f + recipe.capacity, recipe.samples)) for f in firsts]


def forward(recipe, parameters, dtype, rows):
    v = recipe.tensors(dtype, rows) | parameters
    for name, compute in recipe.steps:
        v[name] = compute(v)
    return v


def train(recipe, dtype, nudge=None):
    """Losses of all steps, the final parameters, and the evaluation of all samples: loss and metric."""
    start = recipe.parameters | recipe.layers
    parameters, read = {}, sorted(recipe.read)
    for name, value in start.items():
        tensor = torch.tensor(value).to(dtype)
        if nudge is not None:
            tensor = tensor * (1 + 2.0**-24 * (2 * torch.rand(tensor.shape, generator=nudge, dtype=dtype) - 1))
        parameters[name] = tensor.requires_grad_(True)
    o = recipe.options
    groups = [parameters[n] for n in read]
    make = {"sgd": lambda g: torch.optim.SGD(g, lr=1),
            "momentum": lambda g: torch.optim.SGD(g, lr=1, momentum=o["momentum"]),
            "nesterov": lambda g: torch.optim.SGD(g, lr=1, momentum=o["momentum"], nesterov=True),
            "rmsprop": lambda g: torch.optim.RMSprop(g, lr=1, alpha=o["alpha"], eps=o["eps"]),
            "adagrad": lambda g: torch.optim.Adagrad(g, lr=1, eps=o["eps"]),
            "adam": lambda g: torch.optim.Adam(g, lr=1, betas=(o["beta1"], o["beta2"]), eps=o["eps"])}
    optimizer = make["adam" if recipe.kind == "adamw" else recipe.kind](groups)
    trained = [b for b in batches(recipe) if not recipe.drop or len(b) == recipe.capacity]
    losses = []
    for step in range(recipe.epochs * len(trained)):
        v = forward(recipe, parameters, dtype, trained[step % len(trained)])
        loss = recipe.loss([term(v) for term in recipe.terms])
        losses.append(loss.item())
        if not math.isfinite(losses[-1]) or abs(losses[-1]) > 1e4:
            raise Unfit("diverges")
        if not loss.requires_grad:
            raise Unfit("nothing to train")
        optimizer.zero_grad()
        loss.backward()
        for name in read:
            if parameters[name].grad is None:
                parameters[name].grad = torch.zeros_like(parameters[name])
        if recipe.clip:
            torch.nn.utils.clip_grad_norm_([parameters[n] for n in read], recipe.clip)
        lr = rate(recipe, step, len(trained))
        with torch.no_grad():
            for n in read:
                if recipe.decays.get(n, True):  # both of the weights as they were
                    parameters[n].grad.add_(parameters[n], alpha=o["l2"])
                    parameters[n].mul_(1 - lr * o["weight_decay"])
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
    with torch.no_grad():
        means, absolute, squares = [0.0] * len(recipe.terms), 0.0, 0.0
        for batch in batches(recipe):
            v = forward(recipe, parameters, dtype, batch)
            means = [m + len(batch) / recipe.samples * term(v).item() for m, term in zip(means, recipe.terms)]
            absolute += v[recipe.ratio].abs().sum().item()
            squares += v[recipe.ratio].square().sum().item()
        whole = [recipe.loss(torch.tensor(means, dtype=torch.float64)).item(), absolute / (0.5 + squares)]
    final = {n: t.detach().double().numpy() for n, t in parameters.items()}
    return numpy.array(losses), final, whole


def flat(run):
    """Everything that is compared, by name."""
    losses, final, whole = run
    return {"losses": losses, "evaluation": numpy.array(whole)} | {f"weight {n}": a.ravel() for n, a in final.items()}


def bounds(recipe, truth):
    """How far from the truth each may be; None where roundings decide what comes out."""
    runs = [train(recipe, torch.float32)]
    for i in range(3):
        nudge = torch.Generator().manual_seed(i)
        runs += [train(recipe, torch.float64, nudge), train(recipe, torch.float32, nudge)]
    found = {}
    for name, right in truth.items():
        scale = max(1e-3, float(numpy.abs(right).max(initial=0)))
        farthest = max(float(numpy.abs(flat(run)[name] - right).max(initial=0)) for run in runs)
        found[name] = kSlack * farthest + kFloor * scale
        if not found[name] < kMaxBound * scale:
            return None
    return found


def draw(seed):
    for tries in range(200):
        try:
            recipe = Recipe(f"{seed}.{tries}")
            truth = flat(train(recipe, torch.float64))
            allowed = bounds(recipe, truth)
        except Unfit:
            continue
        if allowed is not None:
            return recipe, truth, allowed, tries
    raise SystemExit(f"seed {seed}: no model that can be compared")


def run_graphrun(binary, recipe, folder, executor):
    model = os.path.join(folder, "model.json")
    with open(model, "w") as file:
        json.dump(recipe.file(), file)
    losses, weights = os.path.join(folder, "losses.txt"), os.path.join(folder, "weights.npz")
    command = [binary, "train", model, "--json", "--quiet", "--executor", executor, "--threads", "1",
               "--losses", losses, "--save-weights", weights]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
    checked = subprocess.run([binary, "check", model], capture_output=True, text=True)
    if checked.returncode != 0:
        raise RuntimeError(f"check: exit code {checked.returncode}: {checked.stderr.strip()}")
    with numpy.load(weights) as saved:
        final = {n: saved[n].astype(float) for n in recipe.parameters | recipe.layers}
    return numpy.loadtxt(losses, ndmin=1), final, [json.loads(done.stdout)["train"][n] for n in ("loss", "ratio")]


def documented():
    """Functions, layers, optimizers and schedules of ops.md."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "reference", "ops.md")) as file:
        sections = re.split(r"^## ", file.read(), flags=re.M)
    wanted = [s for s in sections if s.split("\n")[0] in ("Functions", "Layers", "Optimizers", "Schedules")]
    names = re.findall(r"^\| `(\w+)` \|", "".join(wanted), flags=re.M)
    return [name for name in names if name != "accuracy"]  # a jump: a rounding may decide it


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("graphrun")
    arguments.add_argument("--seeds", type=int, default=300)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--executor", default="cpu")
    arguments.add_argument("--keep", help="a folder for the model files of seeds that do not agree")
    options = arguments.parse_args()
    words, redrawn, worst, failed = collections.Counter(), 0, 0.0, []
    for seed in range(options.first, options.first + options.seeds):
        recipe, truth, allowed, tries = draw(seed)
        redrawn += tries
        words.update(recipe.words())
        with tempfile.TemporaryDirectory() as folder:
            try:
                got = flat(run_graphrun(options.graphrun, recipe, folder, options.executor))
                apart = {}
                for name, right in truth.items():
                    if got[name].shape != right.shape:
                        raise RuntimeError(f"{name}: {got[name].size} numbers, expected {right.size}")
                    difference = float(numpy.abs(got[name] - right).max(initial=0))
                    worst = max(worst, difference / allowed[name]) if difference == difference else math.inf
                    if not difference <= allowed[name]:
                        apart[name] = f"{name}: {difference:.3g} apart, {allowed[name]:.3g} allowed"
                problem = "; ".join(apart.values())
            except RuntimeError as error:
                problem = str(error)
        if problem:
            failed.append(seed)
            print(f"seed {seed}: {problem}")
            if options.keep:
                with open(os.path.join(options.keep, f"seed{seed}.json"), "w") as file:
                    json.dump(recipe.file(), file, indent=1)
    missing = [name for name in documented() if name not in words] if options.seeds >= 300 else []
    if missing:
        print("never drawn:", ", ".join(missing))
    print(f"{options.seeds - len(failed)} of {options.seeds} models agree with torch {torch.__version__} "
          f"(worst {worst:.2g} of its bound, {redrawn} drawn anew)")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
