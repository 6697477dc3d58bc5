"""Structural pruning: whole channels are removed, with all that depends on them."""
# needs: torch_pruning
import json

import torch
import torch_pruning as tp
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.Conv2d(c, c, 3, padding=1)
        self.na, self.nb = nn.BatchNorm2d(c), nn.BatchNorm2d(c)

    def forward(self, x):
        return (x + self.nb(self.b(self.na(self.a(x)).relu()))).relu()


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 16, 3), Block(16), nn.MaxPool2d(2), Block(16),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))


x = torch.rand(2, 3, 12, 12)
model = network()
before = tp.utils.count_ops_and_params(model, x)
group = tp.DependencyGraph().build_dependency(model, x).get_pruning_group(
    model[0], tp.prune_conv_out_channels, idxs=[2, 6, 9])
size = len(group)
group.prune()
result = {"before": list(before), "group": size, "single": model(x).flatten().tolist(),
          "single shape": list(model[0].weight.shape)}
for name, importance in {"magnitude": tp.importance.MagnitudeImportance(p=2),
                         "taylor": tp.importance.TaylorImportance(),
                         "bn": tp.importance.BNScaleImportance(),
                         "hessian": tp.importance.HessianImportance()}.items():
    model = network()
    pruner = tp.pruner.BasePruner(model, x, importance=importance, pruning_ratio=0.5,
                                  iterative_steps=2, ignored_layers=[model[-1]])
    for _ in range(2):
        if name in {"taylor", "hessian"}:
            loss = model(x).logsumexp(1)
            if name == "hessian":
                importance.zero_grad()
                for part in loss:
                    model.zero_grad()
                    part.backward(retain_graph=True)
                    importance.accumulate_grad(model)
            else:
                loss.sum().backward()
        pruner.step()
    result[name] = [*tp.utils.count_ops_and_params(model, x), model(x).sum().item()]
print(json.dumps(result))
