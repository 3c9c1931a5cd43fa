"""Random models for random_models_torch.py: a model file, and the functions by which torch computes the same.

A Recipe draws functions of ops.md, layers, shared weights, integer inputs, a loss, a metric, and how it is trained;
every draw follows from the seed. What does not fit is drawn again: each function is tried by torch on the first batch.
"""

import json
import math
import random
import re

import numpy
import torch
import torch.nn.functional as F

kLargest = 30.0  # of a value, so that nothing overflows while it trains


class Unfit(Exception):
    """What was drawn does not go together; another is drawn."""


class Draws(random.Random):
    def pick(self, items):
        return items[self.randrange(len(items))]

    def chance(self, p):
        return self.random() < p


# Text of the model file, and what torch does: {0} and {1} are operands.

UNARY = {
    "neg": ("-{0}", lambda a: -a),
    "abs": ("abs({0})", torch.abs),
    "sign": ("sign({0})", torch.sign),
    "square": ("square({0})", torch.square),
    "sqrt": ("sqrt(square({0}) + 0.1)", lambda a: torch.sqrt(a * a + 0.1)),
    "rsqrt": ("rsqrt(square({0}) + 0.1)", lambda a: torch.rsqrt(a * a + 0.1)),
    "reciprocal": ("reciprocal(square({0}) + 0.5)", lambda a: torch.reciprocal(a * a + 0.5)),
    "exp": ("exp(tanh({0}))", lambda a: torch.exp(torch.tanh(a))),
    "expm1": ("expm1(0.5 * tanh({0}))", lambda a: torch.expm1(0.5 * torch.tanh(a))),
    "log": ("log(square({0}) + 0.2)", lambda a: torch.log(a * a + 0.2)),
    "log1p": ("log1p(abs({0}))", lambda a: torch.log1p(torch.abs(a))),
    "sin": ("sin({0})", torch.sin),
    "cos": ("cos({0})", torch.cos),
    "tan": ("tan(tanh({0}))", lambda a: torch.tan(torch.tanh(a))),
    "tanh": ("tanh({0})", torch.tanh),
    "sigmoid": ("sigmoid({0})", torch.sigmoid),
    "softplus": ("softplus({0})", F.softplus),
    "relu": ("relu({0})", torch.relu),
    "leaky_relu": ("leaky_relu({0}, slope=0.125)", lambda a: F.leaky_relu(a, 0.125)),
    "elu": ("elu({0}, alpha=0.75)", lambda a: F.elu(a, 0.75)),
    "selu": ("selu({0})", torch.selu),
    "gelu": ("gelu({0})", F.gelu),
    "gelu_tanh": ("gelu_tanh({0})", lambda a: F.gelu(a, approximate="tanh")),
    "silu": ("silu({0})", F.silu),
    "erf": ("erf({0})", torch.erf),
    "floor": ("floor({0})", torch.floor),
    "ceil": ("ceil({0})", torch.ceil),
    "round": ("round({0})", torch.round),
    "clip": ("clip({0}, low=-0.75, high=1.25)", lambda a: torch.clamp(a, -0.75, 1.25)),
    "pow_number": ("{0}^3", lambda a: a**3),
    "pow_real": ("(square({0}) + 0.1)^1.5", lambda a: (a * a + 0.1) ** 1.5),
    "mod_number": ("{0} % 0.75", lambda a: torch.remainder(a, 0.75)),
    "dropout": ("dropout({0}, rate=0)", lambda a: a),
    "random_normal": ("{0} + random_normal({0}, mean=0.25, deviation=0)", lambda a: a + 0.25),
    "random_uniform": ("{0} * random_uniform({0}, low=0.5, high=0.5)", lambda a: a * 0.5),
    # Quotients that are whole numbers, where an approximate division would decide otherwise.
    "floor_quotient": ("{0} * floor(2 * (square({0}) + 0.5) / (square({0}) + 0.5))",
                       lambda a: a * torch.floor(2 * (a * a + 0.5) / (a * a + 0.5))),
    "compared_quotient": ("where(4 * (square({0}) + 0.5) / (square({0}) + 0.5) >= 4, {0}, 0.5)",
                          lambda a: torch.where(4 * (a * a + 0.5) / (a * a + 0.5) >= 4, a, 0.5)),
    "mod_itself": ("{0} + (square({0}) + 0.5) % (square({0}) + 0.5)",
                   lambda a: a + torch.remainder(a * a + 0.5, a * a + 0.5)),
    "scaled": ("0.3 * {0} - 1/8", lambda a: 0.3 * a - 0.125),
}
BINARY = {
    "add": ("{0} + {1}", torch.add),
    "sub": ("{0} - {1}", torch.sub),
    "mul": ("{0} * {1}", torch.mul),
    "div": ("{0} / (square({1}) + 0.5)", lambda a, b: a / (b * b + 0.5)),
    "mod": ("{0} % (square({1}) + 0.5)", lambda a, b: torch.remainder(a, b * b + 0.5)),
    "pow": ("(square({0}) + 0.1)^tanh({1})", lambda a, b: (a * a + 0.1) ** torch.tanh(b)),
    "minimum": ("minimum({0}, {1})", torch.minimum),
    "maximum": ("maximum({0}, {1})", torch.maximum),
    "where_greater": ("where({0} > {1}, {0}, tanh({1}))", lambda a, b: torch.where(a > b, a, torch.tanh(b))),
    "where_less": ("where({0} < {1}, 0.5, {1})", lambda a, b: torch.where(a < b, 0.5, b)),
    "where_logical": (
        "where({0} >= {1} and not {1} <= 0.1 or {0} < -0.5, {0}, {1})",
        lambda a, b: torch.where(((a >= b) & ~(b <= 0.1)) | (a < -0.5), a, b),
    ),
    "counted": ("cast({0} != {1}, dtype=f32) * {0}", lambda a, b: (a != b).to(a.dtype) * a),
    "equal": ("where({0} == {1}, {0}, {1})", lambda a, b: torch.where(a == b, a, b)),
    "sigmoid_cross_entropy": (
        "sigmoid_cross_entropy({0}, sigmoid({1}))",
        lambda a, b: F.binary_cross_entropy_with_logits(a, torch.sigmoid(b), reduction="none"),
    ),
}
REDUCTIONS = {
    "sum": lambda a, axis, keep: a.sum(axis, keepdim=keep),
    "mean": lambda a, axis, keep: a.mean(axis, keepdim=keep),
    "max": lambda a, axis, keep: a.amax(axis, keepdim=keep),
    "min": lambda a, axis, keep: a.amin(axis, keepdim=keep),
    "logsumexp": lambda a, axis, keep: a.logsumexp(axis, keepdim=keep),
    "variance": lambda a, axis, keep: a.var(axis, unbiased=False, keepdim=keep),
}
ACTIVATIONS = ["tanh", "relu", "sigmoid", "gelu", "silu", "softplus"]


class Recipe:
    """A random model: its graph entries, and a function for each that computes it from the tensors before."""

    def __init__(self, seed):
        self.d = Draws(seed)
        self.entries, self.steps = [], []
        self.parameters, self.layers, self.rows = {}, {}, {}  # rows: name -> shape of a sample
        self.couples = False
        d = self.d
        self.samples = d.pick([1, 5, 7, 16, 17, 24, 33])
        self.batch = d.pick(["all", 1, 3, 4, 5, 8, 16])
        if self.batch != "all":
            self.batch = min(self.batch, self.samples)
        self.capacity = self.samples if self.batch == "all" else self.batch
        self.width, self.classes = d.pick([1, 2, 3, 4, 6]), d.pick([2, 3, 5])
        f32 = lambda *shape: numpy.float32(numpy.random.default_rng(d.getrandbits(48)).normal(size=shape))
        integers = lambda high, *shape: numpy.random.default_rng(d.getrandbits(48)).integers(0, high, shape)
        n = self.samples
        self.data = {"x": f32(n, self.width), "m": f32(n, 2, 3), "t": f32(n, 1)}
        self.data |= {"k": integers(self.classes, n).astype(numpy.int32), "q": integers(6, n, 2).astype(numpy.int32)}
        self.env = self.tensors(torch.float64, range(self.capacity))
        for name in ("x", "m"):
            self.rows[name] = self.data[name].shape[1:]
        wanted = d.randint(3, 14)
        tries = 0
        while len(self.entries) < wanted:
            tries += 1
            if tries > 300:
                raise Unfit("no function fits any more")
            try:
                d.pick([self.unary] * 4 + [self.binary] * 4 + [self.moved] * 3 + [self.reduced] * 2 + [self.product] * 3
                       + [self.dense] * 2 + [self.looked_up, self.normalized, self.coupled, self.tied])()
            except Unfit:
                continue
        self.finish()
        self.read = self.read_by_the_loss()
        if not self.read:
            raise Unfit("nothing to train")
        self.training()

    def read_by_the_loss(self):
        """Parameters that the loss is computed from; no others move. Those it reads without a gradient only decay."""
        words = lambda entry: set(re.findall(r"[a-z]\w*(?:\.W)?", json.dumps(entry)))
        read = words(self.entries[-1])
        for name, entry in reversed(list(zip((n for n, _ in self.steps), self.entries))):
            if name in read:
                read |= words(entry) | ({f"{name}.W", f"{name}.b"} if isinstance(entry, dict) else set())
        return read & (set(self.parameters) | set(self.layers))

    # -- the pool

    def tensors(self, dtype, rows):
        rows = list(rows)
        take = lambda a: torch.tensor(a[rows]).to(dtype if a.dtype == numpy.float32 else torch.int64)
        return {name: take(a) for name, a in self.data.items()}

    def parameter(self, *shape):
        for name, value in self.parameters.items():
            if value.shape == shape and self.d.chance(0.3):
                return name  # shared
        name = f"p{len(self.parameters)}"
        values = numpy.random.default_rng(self.d.getrandbits(48)).normal(size=shape) * 0.7
        self.add_parameter(name, numpy.float32(values))
        return name

    def add_parameter(self, name, values):
        self.parameters[name] = values
        self.env[name] = torch.tensor(values).to(torch.float64)

    def add(self, kind, text, compute, rows=True, entry=None):
        name = f"v{len(self.entries)}"
        value = compute(self.env)
        if not torch.isfinite(value).all() or value.abs().max() > kLargest or value.numel() > 2000:
            raise Unfit(name)
        self.env[name] = value
        self.entries.append(entry(name) if entry else f"{name} = {text}")
        self.steps.append((name, compute))
        if rows:
            self.rows[name] = tuple(value.shape[1:])
        return name

    def row(self, rank=None):
        names = [n for n, s in self.rows.items() if rank is None or len(s) == rank]
        if not names:
            raise Unfit("rank")
        return self.d.pick(names[-4:] if self.d.chance(0.6) else names)

    # -- what is drawn

    def unary(self):
        kind = self.d.pick(list(UNARY))
        text, function = UNARY[kind]
        a = self.row()
        self.add(kind, text.format(a), lambda v: function(v[a]))

    def binary(self):
        kind = self.d.pick(list(BINARY))
        text, function = BINARY[kind]
        a = self.row()
        same = [n for n, s in self.rows.items() if s == self.rows[a]]
        shape = self.rows[a]
        alike = kind == "sigmoid_cross_entropy"  # losses do not broadcast
        b = self.d.pick(same) if alike or self.d.chance(0.6) else self.parameter(*self.d.pick([shape, shape[-1:], ()]))
        if self.d.chance(0.2):
            a, b = b, a
        self.add(kind, text.format(a, b), lambda v: function(*torch.broadcast_tensors(v[a], v[b])))

    def moved(self):
        d, a = self.d, self.row()
        shape = self.rows[a]
        size, rank = math.prod(shape), len(shape)
        kind = d.pick(["reshape", "transpose", "slice", "pad", "concat", "split"])
        if kind == "reshape":
            divisor = d.pick([i for i in range(1, size + 1) if size % i == 0])
            wanted = d.pick([(size,), (divisor, size // divisor), (1, size), (size, 1)])
            self.add(kind, f"reshape({a}, shape={[-1, *wanted]})", lambda v: v[a].reshape(-1, *wanted))
            return
        if rank == 0:
            raise Unfit(kind)
        axis = d.randint(1, rank)
        extent = shape[axis - 1]
        said = axis if d.chance(0.5) else axis - rank - 1
        if kind == "transpose":
            order = list(range(1, rank + 1))
            d.shuffle(order)
            self.add(kind, f"transpose({a}, axes={[0, *order]})", lambda v: v[a].permute(0, *order))
        elif kind == "slice":
            start, length = d.randrange(extent), 1
            length = d.randint(1, extent - start)
            stop = f", stop={start + length}" if start + length < extent or d.chance(0.5) else ""
            self.add(kind, f"slice({a}, axis={said}, start={start}{stop})", lambda v: v[a].narrow(axis, start, length))
        elif kind == "pad":
            before, after = d.randint(0, 2), d.randint(0, 2)
            where = [0, 0] * (rank - axis) + [before, after]
            self.add(kind, f"pad({a}, axis={said}, before={before}, after={after}, value=0.5)",
                     lambda v: F.pad(v[a], where, value=0.5))
        elif kind == "concat":
            b = d.pick([n for n, s in self.rows.items() if len(s) == rank])
            if any(self.rows[b][i] != shape[i] for i in range(rank) if i != axis - 1):
                raise Unfit(kind)
            self.add(kind, f"concat({a}, {b}, {a}, axis={said})", lambda v: torch.cat([v[a], v[b], v[a]], axis))
        else:
            parts = d.pick([i for i in range(1, extent + 1) if extent % i == 0])
            index = d.randrange(parts)
            self.add(kind, f"split({a}, parts={parts}, index={index}, axis={said})",
                     lambda v: v[a].split(extent // parts, axis)[index])

    def reduced(self):
        d, a = self.d, self.row()
        rank = len(self.rows[a])
        if rank == 0:
            raise Unfit("scalar")
        kind = d.pick([*REDUCTIONS, "prod", "argmax", "argmin"])
        axis, keep = d.randint(1, rank), d.chance(0.5)
        if kind in REDUCTIONS:
            several = rank > 1 and d.chance(0.3)
            axes = tuple(range(1, rank + 1)) if several else (axis,)
            function = REDUCTIONS[kind]
            said = list(axes) if several else axis
            self.add(kind, f"{kind}({a}, axis={said}, keepdims={str(keep).lower()})", lambda v: function(v[a], axes, keep))
        elif kind == "prod":
            self.add(kind, f"prod({a}, axis={axis}, keepdims={str(keep).lower()})", lambda v: v[a].prod(axis, keepdim=keep))
        else:
            function = getattr(torch, kind)
            self.add(kind, f"0.1 * cast({kind}({a}, axis={axis}), dtype=f32)",
                     lambda v: 0.1 * function(v[a], axis).to(v[a].dtype))

    def product(self):
        d, a = self.d, self.row()
        shape = self.rows[a]
        units = d.randint(1, 5)
        if len(shape) == 0:
            raise Unfit("product")
        if len(shape) == 2 and d.chance(0.4):
            b = d.pick([n for n, s in self.rows.items() if len(s) == 2 and s[1] == shape[1]])
            self.add("matmul", f"0.3 * matmul({a}, {b}, transpose_b=true)", lambda v: 0.3 * v[a] @ v[b].transpose(1, 2))
        elif d.chance(0.3):
            w = self.parameter(units, shape[-1])
            self.add("matmul", f"matmul({a}, {w}, transpose_b=true)", lambda v: v[a] @ v[w].T)
        else:
            w = self.parameter(shape[-1], units)
            self.add("matmul", f"{a} @ {w}", lambda v: v[a] @ v[w])

    def dense(self):
        d, a = self.d, self.row(1)
        units, activation = d.randint(1, 6), d.pick(ACTIVATIONS)
        name = f"v{len(self.entries)}"
        w = numpy.float32(numpy.random.default_rng(d.getrandbits(48)).normal(size=(self.rows[a][0], units)) * 0.5)
        self.env[f"{name}.W"], self.env[f"{name}.b"] = torch.tensor(w).double(), torch.zeros(units).double()
        function = UNARY[activation][1]
        self.add("dense", "", lambda v: function(v[a] @ v[f"{name}.W"] + v[f"{name}.b"]),
                 entry=lambda n: {"name": n, "op": "dense", "inputs": [a], "units": units, "activation": activation,
                                  "init": w.tolist(), "bias": [0.0] * units})
        self.layers |= {f"{name}.W": w, f"{name}.b": numpy.zeros(units, numpy.float32)}

    def tied(self):
        layers = [n for n in self.layers if n.endswith(".W")]
        if not layers:
            raise Unfit("no layer")
        w = self.d.pick(layers)
        units = self.layers[w].shape[1]
        fitting = [n for n, s in self.rows.items() if s and s[-1] == units]
        if not fitting:
            raise Unfit("tied")
        a = self.d.pick(fitting)
        self.add("transpose", f"{a} @ transpose({w})", lambda v: v[a] @ v[w].T)

    def looked_up(self):
        if self.d.chance(0.5):
            table = self.parameter(6, self.d.randint(1, 4))
            self.add("gather", f"gather({table}, q)", lambda v: v[table][v["q"]])
        else:
            self.add("one_hot", f"one_hot(k, classes={self.classes})",
                     lambda v: F.one_hot(v["k"], self.classes).to(v["x"].dtype))

    def normalized(self):
        a = self.row()
        if not self.rows[a]:
            raise Unfit("scalar")
        kind, axis = self.d.pick(["softmax", "log_softmax"]), self.d.randint(1, len(self.rows[a]))
        function = getattr(F, kind)
        self.add(kind, f"{kind}({a}, axis={axis})", lambda v: function(v[a], axis))

    def coupled(self):  # rows of a batch that know of each other
        a = self.row()
        kind = self.d.pick(["mean", "sum", "max", "min", "logsumexp", "variance", "scatter_add"])
        if kind == "scatter_add":
            return self.sums_of_groups()
        function = REDUCTIONS[kind]
        self.add(f"{kind}_of_rows", f"{a} - 0.3 * {kind}({a}, axis=0)", lambda v: v[a] - 0.3 * function(v[a], 0, False))
        self.couples = True

    def sums_of_groups(self):
        a = self.row(1)
        width = self.rows[a][0]
        classes = self.classes
        self.add("scatter_add", f"{a} - 0.1 * gather(scatter_add(k, {a}, entries={classes}), k)",
                 lambda v: v[a] - 0.1 * v[a].new_zeros(classes, width).index_add(0, v["k"], v[a])[v["k"]])
        self.couples = True

    def finish(self):
        """A loss: one to three terms, each of a value or a head of it."""
        d, terms = self.d, []
        for _ in range(d.randint(1, 3)):
            a = self.row()
            flat = math.prod(self.rows[a])
            kind = d.pick(["mse", "mae", "classes", "one_hot", "bce", "mean", "square"])
            if kind == "mean":
                terms.append((f"mean(softplus({a}))", lambda v, a=a: F.softplus(v[a]).mean()))
            elif kind == "square":
                terms.append((f"mean(sum(square(reshape({a}, shape=[-1, {flat}])), axis=1))",
                              lambda v, a=a, flat=flat: v[a].reshape(-1, flat).square().sum(1).mean()))
            else:
                units = self.classes if kind in ("classes", "one_hot") else 1
                head = self.parameter(flat, units)
                z = self.add("head", f"reshape({a}, shape=[-1, {flat}]) @ {head}",
                             lambda v, a=a, flat=flat, head=head: v[a].reshape(-1, flat) @ v[head])
                if kind in ("mse", "mae"):
                    function = F.mse_loss if kind == "mse" else F.l1_loss
                    terms.append((f"{kind}({z}, t)", lambda v, z=z, f=function: f(v[z], v["t"])))
                elif kind == "classes":
                    terms.append((f"mean(softmax_cross_entropy({z}, k))", lambda v, z=z: F.cross_entropy(v[z], v["k"])))
                elif kind == "one_hot":
                    hot = f"one_hot(k, classes={units})"
                    terms.append((f"mean(softmax_cross_entropy({z}, {hot}))",
                                  lambda v, z=z: F.cross_entropy(v[z], v["k"])))
                else:
                    terms.append((f"mean(sigmoid_cross_entropy({z}, sigmoid(t)))",
                                  lambda v, z=z: F.binary_cross_entropy_with_logits(v[z], torch.sigmoid(v["t"]))))
        for w in self.parameters:
            if d.chance(0.2):
                terms.append((f"0.01 * sum(square({w}))", lambda v, w=w: 0.01 * v[w].square().sum()))
        self.terms = [function for _, function in terms]
        total = " + ".join(text for text, _ in terms)
        self.root = d.chance(0.2)  # a loss that is no mean over samples
        self.entries.append(f"loss = sqrt(0.01 + square({total}))" if self.root else f"loss = {total}")
        self.ratio = self.row()  # a metric that is no mean
        self.metric = f"ratio = sum(abs({self.ratio})) / (0.5 + sum(square({self.ratio})))"

    def loss(self, values):
        total = sum(values)
        return torch.sqrt(0.01 + total * total) if self.root else total

    def training(self):
        d = self.d
        self.kind = d.pick(["sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam", "adamw"])
        self.epochs, self.drop = d.randint(2, 4), d.chance(0.3)
        if self.drop and self.samples < self.capacity:
            self.drop = False
        rate = d.pick([0.002, 0.01, 0.03])
        self.options = {"lr": rate}
        if self.kind in ("momentum", "nesterov"):
            self.options["momentum"] = d.pick([0.5, 0.9])
        if self.kind == "rmsprop":
            self.options |= {"alpha": d.pick([0.8, 0.99]), "eps": 1e-3}
        if self.kind == "adagrad":
            self.options["eps"] = 1e-3
        if self.kind in ("adam", "adamw"):
            self.options |= {"beta1": d.pick([0.8, 0.9]), "beta2": d.pick([0.95, 0.999]), "eps": 1e-3}
        self.options["weight_decay"] = d.pick([0, 0, 0.1])
        self.options["l2"] = d.pick([0, 0, 0.05])
        self.clip = d.pick([0, 0, 0.5])
        self.decays = {name: d.chance(0.7) for name in self.parameters}
        self.schedule = d.pick([None, None, "constant", "linear", "cosine", "step", "exponential", "piecewise"])
        self.unit, self.length = d.pick(["steps", "epochs"]), d.randint(1, 4)
        self.warmup = d.pick([0, 0, 2])

    # -- as a model file

    def file(self):
        options = dict(self.options)
        if self.schedule:
            fields = {"from": options["lr"], self.unit: self.length, "warmup": self.warmup}
            if self.schedule in ("linear", "cosine"):
                fields["to"] = 0.001
            if self.schedule in ("step", "exponential"):
                fields["factor"] = 0.7
            if self.schedule == "constant":
                fields["value"] = fields.pop("from")
            if self.schedule == "piecewise":
                fields["values"] = [fields.pop("from"), 0.004, 0.001]
                fields[self.unit] = [self.length, self.length + 2]
            options["lr"] = {self.schedule: fields}
        train = {"minimize": "loss", "metrics": ["ratio"], "optimizer": {self.kind: options}, "batch": self.batch,
                 "epochs": self.epochs, "last_batch": "drop" if self.drop else "keep"}
        if self.clip:
            train["clip_norm"] = self.clip
        shape = lambda a: ["batch", *a.shape[1:]]
        start = lambda a: a.tolist() if a.shape else {"constant": a.item()}
        dtype = lambda a: "f32" if a.dtype == numpy.float32 else "i32"
        return {
            "format": 1, "name": "random", "data": {"train": {"inline": {n: a.tolist() for n, a in self.data.items()}}},
            "inputs": {n: {"shape": shape(a), "dtype": dtype(a)} for n, a in self.data.items()},
            "parameters": {n: {"shape": list(a.shape), "init": start(a), "decay": self.decays[n]}
                           for n, a in self.parameters.items()},
            "graph": [*self.entries, self.metric], "outputs": sorted({self.steps[-1][0], self.ratio} - set(self.data)),
            "train": train}

    def words(self):
        """Functions and the like that the file uses, operators by their functions' names."""
        text = json.dumps(self.file())
        graph = json.dumps([*self.entries, self.metric])
        signs = {"==": "equal", "!=": "not_equal", "<=": "less_equal", ">=": "greater_equal", "<": "less", ">": "greater",
                 "+": "add", "-": "sub", "*": "mul", "/": "div", "@": "matmul", "%": "mod", "and": "logical_and",
                 "or": "logical_or", "not": "logical_not"}
        found = set(re.findall(r"\w+", text)) | {name for sign, name in signs.items() if f" {sign} " in graph}
        tight = {"^": "pow", "= -": "neg"}
        return found | {name for sign, name in tight.items() if sign in graph}
