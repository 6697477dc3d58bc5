"""Masks as parametrizations, and modules by their names."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor, nn
from flambeau.nn.utils import parametrize

__all__ = ["FakeSparsity", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_contains_param",
           "module_to_fqn", "swap_module"]


class FakeSparsity(nn.Module):
    """A parametrization that multiplies a tensor by a mask of the same shape.

    The mask is a buffer; it stays the same tensor while its elements change, and is not in the
    `state_dict` of the model: that of the sparsifier has it.

    >>> FakeSparsity(flambeau.tensor([1.0, 0.0]))(flambeau.tensor([2.0, 3.0]))
    tensor([2., 0.])
    """

    mask: Tensor

    def __init__(self, mask: Tensor):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        """The product with the mask."""
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Empty."""
        return {}


def module_contains_param(module: nn.Module, parametrization: type[nn.Module]) -> bool:
    """Has a tensor of `module` a parametrization of this class?"""
    return parametrize.is_parametrized(module) and any(
        isinstance(each, parametrization)
        for chain in module.parametrizations.values() for each in chain)


def swap_module(mod: nn.Module, mapping: dict[type[nn.Module], type[nn.Module]]) -> nn.Module:
    """The module that `mapping` has for the class of `mod`, made by its `from_dense`; `mod` itself
    where there is none. Hooks before and after `forward` move along."""
    made: Any = mapping.get(parametrize.type_before_parametrizations(mod))
    if made is None or not module_contains_param(mod, FakeSparsity):
        return mod
    swapped: nn.Module = made.from_dense(mod)
    for hook in mod._forward_pre_hooks.values():
        swapped.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        swapped.register_forward_hook(hook)
    devices = {tensor.device for tensor in (*mod.parameters(), *mod.buffers())}
    if len(devices) > 1:
        raise AssertionError("swap_module only works with cpu or single-device CUDA modules, but "
                             f"got devices {devices}")
    return swapped


def module_to_fqn(model: nn.Module, module: nn.Module, prefix: str = "") -> str | None:
    """The name of `module` in `model`, "" for the model itself, None where it has no part in it.

    >>> model = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh()))
    >>> module_to_fqn(model, model[1][0])
    '1.0'
    """
    return next((prefix + name for name, each in model.named_modules() if each is module), None)


def fqn_to_module(model: nn.Module | None, path: str) -> Any:
    """The module or the tensor of `model` with that name; None where there is none.

    >>> fqn_to_module(nn.Sequential(nn.Linear(3, 2)), "0.weight").shape
    torch.Size([2, 3])
    """
    found: Any = model
    for name in path.split(".") if path else ():
        found = getattr(found, name, None)
    return found


def get_arg_info_from_tensor_fqn(model: nn.Module, tensor_fqn: str) -> dict[str, Any]:
    """What the name of a tensor says: its module, the name of that, and its own name there.

    >>> get_arg_info_from_tensor_fqn(nn.Sequential(nn.ReLU()), "0.weight")
    {'module_fqn': '0', 'module': ReLU(), 'tensor_name': 'weight', 'tensor_fqn': '0.weight'}
    """
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {"module_fqn": module_fqn, "module": fqn_to_module(model, module_fqn),
            "tensor_name": tensor_name, "tensor_fqn": tensor_fqn}
