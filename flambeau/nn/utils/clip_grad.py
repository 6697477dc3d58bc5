"""Keeping gradients within bounds."""

from __future__ import annotations

import types
import warnings

import flambeau
from flambeau import Tensor
from flambeau.ops.python.list_updates import are_plain, update_list
from flambeau.utils._foreach_utils import (
    _group_tensors_by_device_and_dtype,
    _has_foreach_support,
)

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]


def _as_list(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _grads(parameters):
    return [param.grad for param in _as_list(parameters) if param.grad is not None]


def _groups(tensors):
    """The tensors of each device and type."""
    return [group for (group,), _ in _group_tensors_by_device_and_dtype([tensors]).values()]


def _takes_lists(tensors, foreach: bool | None) -> bool:
    """Are they treated as a list, by one op, unless that is not wanted?"""
    return foreach is not False and _has_foreach_support(tensors, tensors[0].device)


@flambeau.no_grad()
def _get_total_norm(tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: bool | None = None) -> Tensor:
    """The norm of all `tensors` as if they were one vector.

    Example:
        >>> nn.utils.get_total_norm([flambeau.tensor([3.0]), flambeau.tensor([4.0])])
        tensor(5.)
    """
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return flambeau.tensor(0.0)
    device = tensors[0].device
    norms = [norm.to(device) for group in _groups(tensors)
             for norm in (flambeau._foreach_norm(group, norm_type) if _takes_lists(group, foreach)
                          else [flambeau.linalg.vector_norm(t, norm_type) for t in group])]
    total_norm = flambeau.linalg.vector_norm(flambeau.stack(norms), norm_type)
    if error_if_nonfinite and bool(flambeau.logical_or(total_norm.isnan(), total_norm.isinf())):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from "
                           "`parameters` is non-finite, so it cannot be clipped. To disable "
                           "this error and scale the gradients by the non-finite norm anyway, "
                           "set `error_if_nonfinite=False`")
    return total_norm


@flambeau.no_grad()
def _clip_grads_with_norm_(parameters, max_norm: float, total_norm: Tensor,
                           foreach: bool | None = None) -> None:
    """Scale all gradients by max_norm / total_norm where that is less than 1."""
    grads = _grads(parameters)
    max_norm = float(max_norm)
    if not grads:
        return
    scale = flambeau.clamp(max_norm / (total_norm + 1e-6), max=1.0)
    if not (are_plain(grads) and update_list("scale", grads, numbers=[(scale.item(),)])):
        for group in _groups(grads):
            if _takes_lists(group, foreach):
                flambeau._foreach_mul_(group, scale.to(group[0].device))
            else:
                for grad in group:
                    grad.mul_(scale.to(grad.device))


@flambeau.no_grad()
def clip_grad_norm_(parameters, max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Scale the gradients of `parameters`, in place, so that their total norm is at most
    `max_norm`; returns the norm before.

    Example:
        >>> param = nn.Parameter(flambeau.zeros(2))
        >>> param.grad = flambeau.tensor([3.0, 4.0])
        >>> nn.utils.clip_grad_norm_(param, max_norm=1.0)
        tensor(5.)
        >>> param.grad
        tensor([0.6000, 0.8000])
    """
    is_generator = isinstance(parameters, types.GeneratorType)
    parameters = _as_list(parameters)
    if is_generator and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.",
                      stacklevel=3)
    total_norm = _get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    _clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(parameters, max_norm: float, norm_type: float = 2.0,
                   error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated "
        "in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@flambeau.no_grad()
def clip_grad_value_(parameters, clip_value: float, foreach: bool | None = None) -> None:
    """Clip every element of the gradients to [-clip_value, clip_value], in place."""
    clip_value = float(clip_value)
    grads = _grads(parameters)
    if not grads:
        _group_tensors_by_device_and_dtype([grads])         # refuses it
    if not update_list("clamp", grads, numbers=[(-clip_value, clip_value)]):
        for group in _groups(grads):
            if _takes_lists(group, foreach):
                flambeau._foreach_clamp_min_(group, -clip_value)
                flambeau._foreach_clamp_max_(group, clip_value)
            else:
                for grad in group:
                    grad.clamp_(min=-clip_value, max=clip_value)
