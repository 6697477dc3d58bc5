"""Which forward functions a remote module gets."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

_FILE_PREFIX = "_remote_module_"


def instantiate_non_scriptable_remote_module_template() -> ModuleType:
    """A module with `_remote_forward`, and the methods `forward` and `forward_async`."""
    from flambeau.distributed.nn.jit.templates import remote_module_template
    return remote_module_template


def instantiate_scriptable_remote_module_template(
        module_interface_cls: Any, enable_moving_cpu_tensors_to_cuda: bool = True) -> ModuleType:
    """The same for an interface, whose `forward` says what the two take."""
    if not getattr(module_interface_cls, "__torch_script_interface__", False):
        raise ValueError(f"module_interface_cls {module_interface_cls} must be a type object "
                         "decorated by @torch.jit.interface")
    declared = inspect.signature(module_interface_cls.forward)
    plain = instantiate_non_scriptable_remote_module_template()
    found = ModuleType(f"{_FILE_PREFIX}{module_interface_cls.__name__}")
    found._generated_methods = [                            # type: ignore[attr-defined]
        _taking(declared, method) for method in plain._generated_methods]
    return found


def _taking(declared: inspect.Signature, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method with the arguments of another."""
    @wraps(method)
    def bound(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = declared.bind(self, *args, **kwargs)
        given.apply_defaults()
        return method(*given.args, **given.kwargs)
    bound.__signature__ = declared                          # type: ignore[attr-defined]
    return bound


def get_arg_return_types_from_interface(module_interface: Any) -> tuple[str, str, str]:
    """The arguments of an interface's `forward`, with their types, and what it returns."""
    if not hasattr(module_interface, "forward"):
        raise AssertionError("Expect a TorchScript class interface decorated by "
                             "@torch.jit.interface.")
    found = inspect.signature(module_interface.forward)
    arguments = [p for name, p in found.parameters.items() if name != "self"]
    returned = found.return_annotation
    return (", ".join(p.name for p in arguments), ", ".join(map(str, arguments)),
            "Any" if returned is found.empty else getattr(returned, "__name__", str(returned)))
