"""PyTorch versions of the workloads of bench/models/steps/: ops that a dense network does not have.

A function takes torch, the inputs x and y, and the parameters by the names of the model file. It returns the loss.
"""


def softmax_10k(t, x, y, p):
    return t.nn.functional.cross_entropy(t.addmm(p["c"], x, p["W"]), y)


def gram(t, x, y, p):
    z = x.view(1, -1, p["w"].numel()) * p["w"]
    g = z @ z.transpose(1, 2)
    return (g - 1).square().mean() + (g.mean(2) - y).square().mean()


def pairs(t, x, y, p):
    z = x.view(len(x), -1, p["w"].numel()) * p["w"]
    d = z[:, :, None, :] - z[:, None, :, :]
    return (d.square().sum(3).flatten(1) - y).square().mean()


def logsumexp(t, x, y, p):
    z = x * p["w"]
    return t.logsumexp(z, 0).square().mean() + (z.mean(1, keepdim=True) - y).square().mean()


def mlp(t, x, y, p):
    for i in (1, 2):
        x = t.relu(t.addmm(p[f"b{i}"], x, p[f"W{i}"]))
    return t.nn.functional.mse_loss(t.addmm(p["b3"], x, p["W3"]), y)


def attention(t, x, y, p):
    width = len(p["q"])
    x = x.view(len(x), -1, width)
    s = t.softmax((x @ p["q"]) @ (x @ p["k"]).transpose(1, 2) * round(width**-0.5, 6), -1)
    return ((s @ (x @ p["v"])).flatten(1) - y).square().mean()


def transpose(t, x, y, p):
    z = x.view(len(x), -1, p["w"].numel()) * p["w"]
    return (z.transpose(1, 2).flatten(1) - y).square().mean()


STEPS = {f.__name__: f for f in (softmax_10k, gram, pairs, logsumexp, mlp, attention, transpose)}


def step_of(name):
    """Returns the function of a workload, whose name is that of the function with sizes appended."""
    return next(step for start, step in STEPS.items() if name.startswith(start))
