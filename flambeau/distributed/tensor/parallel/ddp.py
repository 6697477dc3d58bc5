"""Tensor parallelism under `DistributedDataParallel`, which wants local parameters: they are
distributed ones during the forward pass only."""
from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.core.tensor import Tensor
from flambeau.distributed.tensor.parallel._data_parallel_utils import (
    _flatten_tensor,
    _unflatten_tensor,
)

__all__: list[str] = []


def _get_submodule_n_params(module: nn.Module, path: str) -> tuple[nn.Module, str]:
    """The module that has the parameter of this path, and its name there."""
    parent, _, name = path.rpartition(".")
    return module.get_submodule(parent), name


def _update_module_param(param_list: list[tuple[nn.Module, str, Tensor]]) -> None:
    """Put tensors in the place of parameters."""
    for module, path, tensor in param_list:
        parent, name = _get_submodule_n_params(module, path)
        delattr(parent, name)
        setattr(parent, name, tensor)


def _reconstruct_dtensor(module: nn.Module, _input: Any) -> None:
    """Make distributed tensors of local parameters that were ones."""
    found = []
    for name, parameter in module.named_parameters(remove_duplicate=False):
        spec = getattr(parameter, "_st_info", None)
        if spec is not None:
            whole = _unflatten_tensor(parameter, spec)
            whole._local_parameter = parameter                  # type: ignore[attr-defined]
            found.append((module, name, whole))
    _update_module_param(found)  # type: ignore[arg-type]


def _localize_dtensor(module: nn.Module, *_: Any, ignored_params: set[nn.Parameter] | None = None
                      ) -> None:
    """Make local parameters of distributed ones; of those that were local ones before, these."""
    ignored = ignored_params or set()
    found: list[tuple[nn.Module, str, Tensor]] = []
    made: dict[nn.Parameter, nn.Parameter] = {}
    for part in module.modules():
        for name, value in vars(part).items():
            if hasattr(value, "_local_parameter"):
                found.append((part, name, value._local_parameter))
        for name, parameter in part.named_parameters(recurse=False):
            if parameter in ignored:
                continue
            local, spec = _flatten_tensor(parameter)
            if spec is not None:
                if parameter not in made:
                    made[parameter] = nn.Parameter(local, parameter.requires_grad)
                    made[parameter]._st_info = spec             # type: ignore[attr-defined]
                found.append((part, name, made[parameter]))
    _update_module_param(found)


def _pre_dp_module_transform(module: nn.Module) -> None:
    """Let a module with distributed parameters be given to `DistributedDataParallel`, which then
    shares the gradients of the local ones."""
    _localize_dtensor(module, None, None)
    module.register_forward_pre_hook(_reconstruct_dtensor)
    module.register_forward_hook(_localize_dtensor)
