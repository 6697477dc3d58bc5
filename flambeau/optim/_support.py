"""What optimisers written for PyTorch take from `torch.optim.optimizer` besides the base class."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import flambeau
from flambeau import Tensor
from flambeau._support.scopes import within
from flambeau.core.modes import grad_mode
from flambeau.nn.parameter import Parameter
from flambeau.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)

_T = TypeVar("_T", bound=Callable[..., Any])

ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
StateDict = dict[str, Any]
DeviceDict = dict[flambeau.device | None, Tensor]
DeviceDtypeDict = dict[tuple[flambeau.device, flambeau.dtype] | None, Tensor]
TensorListList = list[list[Tensor | None]]
Indices = list[int]
GlobalOptimizerPreHook = Callable[[Any, Args, Kwargs], tuple[Args, Kwargs] | None]
GlobalOptimizerPostHook = Callable[[Any, Args, Kwargs], None]

_foreach_supported_types = [Tensor, Parameter]

# Lines for the documentation of an optimiser's arguments.
_params_doc = "params: the parameters, or groups of them, or pairs of a name and a parameter."
_foreach_doc = "foreach: let one op take all parameters; None lets the optimiser choose."
_fused_doc = "fused: let one kernel take the step of all parameters."
_maximize_doc = "maximize: climb instead of descending."
_differentiable_doc = "differentiable: let gradients flow through the step."
_capturable_doc = "capturable: keep what a graph of CUDA kernels needs; for accelerators only."


def _use_grad_for_differentiable(func: _T) -> _T:
    """Decorate a `step`: gradients are recorded in it if the option `differentiable` is set."""
    @functools.wraps(func)
    def step(*args: Any, **kwargs: Any) -> Any:
        return within(grad_mode, args[0].defaults["differentiable"], func, *args, **kwargs)
    return step                                                     # type: ignore[return-value]


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[_T], _T]:
    """Decorate a step for lists of tensors. Nothing is compiled here, so nothing changes."""
    return lambda func: func


def _get_value(x: Any) -> Any:
    """The number in a tensor of one element; other values as they are."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dimensions; other values as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _stack_if_compiling(x: Any) -> Any:
    """The values as they are: nothing is being compiled."""
    return x


def _get_scalar_dtype(is_fused: bool | None = None) -> flambeau.dtype:
    """The dtype in which steps are counted."""
    if not is_fused and flambeau.get_default_dtype() is flambeau.float64:
        return flambeau.float64
    return flambeau.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The types of devices on which steps can be captured."""
    return ["cuda", "xpu", "hpu", "privateuseone"] + ["xla"] * supports_xla


def _default_to_fused_or_foreach(params: list[Tensor], differentiable: bool,
                                 use_fused: bool = False) -> tuple[bool, bool]:
    """Shall a step of these parameters be fused, and shall it take lists of tensors?"""
    if differentiable:
        return False, False
    plain = all(p is None or type(p) in _foreach_supported_types for p in params)
    kinds = [p.device.type for p in params if p is not None]
    fused = use_fused and plain and all(
        kind in _get_fused_kernels_supported_devices() for kind in kinds) and all(
        p is None or p.is_floating_point() for p in params)
    foreach = not fused and plain and all(
        kind in _get_foreach_kernels_supported_devices() for kind in kinds)
    return fused, foreach


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Fused kernels know real floating numbers on some devices only."""
    kinds = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        kinds.remove("cuda")
    if p.device.type not in kinds or not p.is_floating_point():
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors of "
                           f"supported devices: {kinds} but {p.dtype} and {p.device.type}")


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace the complex parameters in a list, and what belongs to them, by pairs of reals."""
    for i, p in enumerate(params):
        if p.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[i] = flambeau.view_as_real(tensors[i])


__all__ = ["Args", "DeviceDict", "DeviceDtypeDict", "GlobalOptimizerPostHook",
           "GlobalOptimizerPreHook", "Indices", "Kwargs", "ParamsT", "StateDict",
           "TensorListList", "_capturable_doc", "_default_to_fused_or_foreach",
           "_device_dtype_check_for_fused", "_differentiable_doc",
           "_disable_dynamo_if_unsupported", "_foreach_doc", "_foreach_supported_types",
           "_fused_doc", "_get_capturable_supported_devices",
           "_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices",
           "_get_scalar_dtype", "_get_value", "_group_tensors_by_device_and_dtype",
           "_maximize_doc", "_params_doc", "_stack_if_compiling", "_to_scalar",
           "_use_grad_for_differentiable", "_view_as_real"]
