"""Stages of linear layers in one process, and what the whole model gives."""
from __future__ import annotations

import flambeau
from flambeau import nn
from flambeau.distributed.pipelining import PipelineStage

CPU = flambeau.device("cpu")

loss_fn = nn.functional.mse_loss

x = flambeau.randn(4, 3, generator=flambeau.Generator().manual_seed(1))


def linears(count=2):
    flambeau.manual_seed(0)
    return [nn.Linear(3, 3) for _ in range(count)]


def stages(count=2):
    return [PipelineStage(module, place, count, CPU)
            for place, module in enumerate(linears(count))]


def reference(count=2, factor=1.0):
    model = nn.Sequential(*linears(count))
    output = model(x)
    (loss_fn(output, x * factor)).backward()
    return output, [parameter.grad for parameter in model.parameters()]


def grads(found):
    return [parameter.grad for stage in found for parameter in stage.submod.parameters()]
