"""Stepping other tensors than the ones that an optimiser was made for."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from flambeau.optim.optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(optimizer: Optimizer, swapin_parameters: Any,
                                       swapin_optim_state: dict[Any, Any]) -> Iterator[None]:
    """Let an optimiser work on other parameters and state for a while.

    Inside the context, the optimiser, its hooks included, sees the given tensors; afterwards it
    has its own again.

    Args:
        optimizer: the optimiser; it must have state already.
        swapin_parameters: dict of tensors, in the order of the optimiser's parameters.
        swapin_optim_state: what `optimizer.state_dict()` gives, with the state to use.

    Example::

        >>> import flambeau as torch
        >>> w = torch.ones(2, requires_grad=True)
        >>> optimizer = torch.optim.SGD([w], lr=0.5, momentum=0.9)
        >>> w.grad = torch.ones(2)
        >>> optimizer.step()
        >>> other = torch.zeros(2, requires_grad=True)
        >>> other.grad = torch.ones(2)
        >>> with torch.optim.swap_in_optimizer_params_and_state(
        ...         optimizer, {"w": other}, optimizer.state_dict()):
        ...     optimizer.step()
        >>> other
        tensor([-0.9500, -0.9500], requires_grad=True)
        >>> w
        tensor([0.5000, 0.5000], requires_grad=True)
    """
    own_state, own_groups = optimizer.state, optimizer.param_groups
    tensors = list(swapin_parameters.values())
    wanted = sum(len(group["params"]) for group in own_groups)
    if len(tensors) != wanted:
        raise ValueError(f"swapin_parameters has {len(tensors)} tensors, but the optimizer has "
                         f"{wanted} parameters")
    try:
        groups = [dict(group) for group in swapin_optim_state["param_groups"]]
        for group in groups:
            group["params"] = [tensors[i] for i in group["params"]]
        state: dict[Any, Any] = defaultdict(dict)
        for key, value in swapin_optim_state["state"].items():
            state[tensors[key] if isinstance(key, int) else key] = dict(value)
        optimizer.param_groups, optimizer.state = groups, state
        yield
    finally:
        optimizer.param_groups, optimizer.state = own_groups, own_state
