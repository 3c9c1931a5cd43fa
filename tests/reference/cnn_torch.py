#!/usr/bin/env python3
"""Writes cnn_torch.onnx, a network that PyTorch exported, and prints its outputs for the test of import-onnx.

    cnn_torch.py FILE
"""

import sys

import torch
from torch import nn

torch.manual_seed(3)
network = nn.Sequential(
    nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(6, 8, 3, stride=2, padding=1, groups=2), nn.ReLU(),
    nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1), nn.Tanh(), nn.AvgPool2d(2),
    nn.Flatten(), nn.Linear(16, 3))
network[1].running_mean.uniform_(-1, 1)
network[1].running_var.uniform_(0.5, 2)
network.eval()
x = torch.sin(torch.arange(128, dtype=torch.float32)).reshape(2, 1, 8, 8)
torch.onnx.export(network, x, sys.argv[1], dynamo=False, input_names=["x"], output_names=["logits"],
                  dynamic_axes={"x": {0: "N"}, "logits": {0: "N"}})
print(network(x).tolist())
