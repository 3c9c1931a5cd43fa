"""A function that follows training, epoch by epoch, and stops it. Needs NumPy."""

import graphrun
import numpy

random = numpy.random.default_rng(1)
x = random.uniform(-3, 3, (500, 1))
y = numpy.sin(x) + random.normal(0, 0.1, x.shape)

graph = graphrun.GraphBuilder()
value, target = graph.input("x", 1), graph.input("y", 1)
graph.estimate = graph.dense("out", graph.dense("h", value, 20, activation="tanh"), 1)
graph.loss = ((graph.estimate - target) ** 2).mean()
model = graph.model(outputs={"estimate": "y"}, optimizer={"adam": {"lr": 0.02}}, batch=50, epochs=500, log_every=1)

losses = []


def follow(report):
    losses.append(report.loss)
    if report.epoch % 20 == 0:
        print(f"epoch {report.epoch}: loss {report.loss:.4f}")
    return report.loss < 0.015  # a true value stops training


model.fit(x[:400], y[:400], validation=(x[400:], y[400:]), on_report=follow)
print(f"stopped after {len(losses)} epochs; R2 on other rows {model.score(x[400:], y[400:]):.3f}")
