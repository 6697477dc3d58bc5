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
    saved_groups, saved_state = _checked(optimizer, swapin_optim_state)
    tensors = list(swapin_parameters.values())
    wanted = [number for group in saved_groups for number in group["params"]]
    if len(tensors) < len(wanted):
        raise RuntimeError(f"{_NAME} requires the explicit parameter state to match "
                           "optimizer.param_groups ordering.")
    unknown = [key for key in saved_state if key not in wanted]
    if unknown:
        raise RuntimeError(f"{_NAME} requires swapin_optim_state['state'] to be keyed only by "
                           "packed parameter ids from param_groups[*]['params']; got extra keys "
                           f"{unknown}.")
    if not all(isinstance(kept, dict) for kept in saved_state.values()):
        raise RuntimeError(f"{_NAME} requires per-parameter optimizer state entries to be "
                           "dictionaries.")
    standing_for = dict(zip(wanted, tensors))
    state: dict[Any, Any] = defaultdict(dict)
    state.update({standing_for[key]: dict(kept) for key, kept in saved_state.items()})
    groups = [{**group, "params": [standing_for[number] for number in group["params"]]}
              for group in saved_groups]
    optimizer.param_groups, optimizer.state = groups, state
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = own_groups, own_state


_NAME = "swap_in_optimizer_params_and_state"


def _checked(optimizer: Optimizer, saved: Any) -> tuple[list[dict[str, Any]], dict[Any, Any]]:
    """The groups and the state in what `state_dict` of such an optimiser gave."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(saved, dict):
        raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    state, groups = saved.get("state"), saved.get("param_groups")
    if not isinstance(state, dict):
        raise RuntimeError(f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping "
                           "packed parameter ids to per-param state dicts, got "
                           f"{type(state).__name__}.")
    if not isinstance(groups, list):
        raise RuntimeError(f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of "
                           f"param-group dicts, got {type(groups).__name__}.")
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than "
                           "the live optimizer.")
    for i, (group, live) in enumerate(zip(groups, optimizer.param_groups)):
        if "params" not in group:
            raise RuntimeError(f"{_NAME} requires optimizer.state_dict()-style "
                               "param_groups[*]['params'] entries keyed by packed parameter ids.")
        if len(group["params"]) != len(live["params"]):
            raise RuntimeError(f"swapin_optim_state param group {i} has a different number of "
                               "params than the live optimizer param group.")
        if group.keys() != live.keys():
            raise RuntimeError(
                f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match "
                f"the live optimizer group keys for group {i}. Keys only in swap-in: "
                f"{sorted(group.keys() - live.keys())}. Keys only in live: "
                f"{sorted(live.keys() - group.keys())}.")
    return groups, state
