"""torch's step of models/linear_regression.json in a CUDA graph.

python3 bench/linear_regression_torch.py models/data/realestate.json   (needs torch and a CUDA device)
Prints the median microseconds per step over 7 blocks of 2000 steps, ten steps in one graph, and the final training loss.
"""
import json
import statistics
import sys
import time

import torch

data = json.load(open(sys.argv[1]))
x = torch.tensor(data["x"], dtype=torch.float64).view(data["m"], data["n"])
x = ((x - x.mean(0)) / x.std(0, unbiased=False)).float().cuda()
y = torch.tensor(data["y"], dtype=torch.float32).view(-1, 1).cuda()
model = torch.nn.Linear(data["n"], 1).cuda()
torch.nn.init.zeros_(model.weight)
torch.nn.init.zeros_(model.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
STEPS = 10
with torch.cuda.graph(graph):
    for _ in range(STEPS):
        loss = step()
times = []
for _ in range(9):
    start = time.perf_counter()
    for _ in range(2000 // STEPS):
        graph.replay()
    torch.cuda.synchronize()
    times.append((time.perf_counter() - start) / 2000 * 1e6)
print(f"torch {torch.__version__} step in a CUDA graph: {statistics.median(times[2:]):.2f} us/step, loss {loss.item():.6f}")
