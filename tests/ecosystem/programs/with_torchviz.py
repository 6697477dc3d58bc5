"""The graph of a loss as a picture's source."""
# needs: torchviz, graphviz
import json
import re

import torch
from torch import nn
from torchviz import make_dot

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
x = torch.randn(5, 3, requires_grad=True)
loss = nn.functional.mse_loss(model(x), torch.zeros(5, 2)) + (x[0] ** 2).sum()
named = {**dict(model.named_parameters()), "x": x}
source = make_dot(loss, params=named).source
more = make_dot(loss, params=named, show_attrs=True, show_saved=True).source
convolution = make_dot(nn.Conv2d(1, 2, 3)(torch.rand(1, 1, 5, 5)).relu().mean()).source
LABEL = re.compile(r'label="?([A-Za-z][\w.]*)')
print(json.dumps({
    "labels": sorted(LABEL.findall(source)),
    "arrows": source.count("->"),
    "convolution": sorted(LABEL.findall(convolution)),
    "nodes": len(re.findall("fillcolor", more)),
}))
