"""Means of parameters over processes."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import flambeau
from flambeau import nn
from flambeau.distributed import distributed_c10d as dist

__all__ = ["average_parameters", "average_parameters_or_parameter_groups",
           "get_params_to_average"]

Parameters = Iterable[nn.Parameter] | Iterable[dict[str, Any]]


def average_parameters(params: Iterator[nn.Parameter], process_group: Any) -> None:
    """Let each parameter be the mean over the processes."""
    group = dist.group.WORLD if process_group is None else process_group
    if dist.get_rank(group) < 0:
        return
    parameters = list(params)
    if not parameters:
        return
    with flambeau.no_grad():
        flat = flambeau.cat([p.detach().reshape(-1) for p in parameters])
        flat /= dist.get_world_size(group)
        dist.all_reduce(flat, group=group)
        for parameter, mean in zip(parameters, flat.split([p.numel() for p in parameters])):
            parameter.data = mean.view_as(parameter).type_as(parameter)


def get_params_to_average(params: Parameters) -> list[nn.Parameter]:
    """The parameters, of a model or of an optimizer's groups, that have gradients."""
    found = []
    for param in params:
        if isinstance(param, nn.Parameter):
            found += [param] if param.grad is not None else []
        elif isinstance(param, dict):
            found += [p for p in param["params"] if p.grad is not None]
        else:
            raise NotImplementedError(f"Parameter input of type {type(param)} is not supported")
    return found


def average_parameters_or_parameter_groups(params: Parameters, process_group: Any) -> None:
    """Average the parameters, of a model or of an optimizer's groups, that have gradients."""
    average_parameters(iter(get_params_to_average(params)), process_group)
