"""Optimizers that step for a parameter as soon as its gradient is there."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau import nn
from flambeau.optim import Optimizer

__all__: list[str] = []


def _apply_optimizer_in_backward(optimizer_class: type[Optimizer], params: Iterable[nn.Parameter],
                                 optimizer_kwargs: dict[str, Any],
                                 register_hook: bool = True) -> None:
    """Let an optimizer of its own step for each parameter in the backward pass, and take the
    gradient away. Without `register_hook` somebody else calls it.

    >>> layer = nn.Linear(2, 1)
    >>> _apply_optimizer_in_backward(flambeau.optim.SGD, layer.parameters(), {"lr": 0.1})
    >>> layer(flambeau.ones(1, 2)).sum().backward()
    >>> layer.weight.grad is None
    True
    """
    def apply(param: Any) -> None:
        optimizer = optimizer_class([param], **optimizer_kwargs)
        if not hasattr(param, "_in_backward_optimizers"):
            param._in_backward_optimizers = []
            param._optimizer_classes, param._optimizer_kwargs = [], []
            param._optimizer_hook_handles = []
        param._in_backward_optimizers.append(optimizer)
        param._optimizer_classes.append(optimizer_class)
        param._optimizer_kwargs.append(optimizer_kwargs)
        if register_hook and len(param._in_backward_optimizers) == 1:
            param._optimizer_hook_handles.append(
                param.register_post_accumulate_grad_hook(step))

    def step(param: Any) -> None:
        for optimizer in param._in_backward_optimizers:
            optimizer.step()
        param.grad = None
    for param in params:
        apply(param)


def _get_in_backward_optimizers(module: nn.Module) -> list[Optimizer]:
    """The optimizers that step in the backward pass of a module's parameters."""
    return [optimizer for param in module.parameters()
            for optimizer in getattr(param, "_in_backward_optimizers", ())]
