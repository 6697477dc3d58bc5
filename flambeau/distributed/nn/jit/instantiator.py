"""Which forward functions a remote module gets."""
from __future__ import annotations

from types import ModuleType
from typing import Any

_FILE_PREFIX = "_remote_module_"


def instantiate_non_scriptable_remote_module_template() -> ModuleType:
    """A module with `_remote_forward`, and the methods `forward` and `forward_async`."""
    from flambeau.distributed.nn.jit.templates import remote_module_template
    return remote_module_template


def instantiate_scriptable_remote_module_template(
        module_interface_cls: Any, enable_moving_cpu_tensors_to_cuda: bool = True) -> ModuleType:
    """The same for a TorchScript interface. NotImplementedError: forwards run in Python."""
    raise NotImplementedError("torch.distributed.nn.RemoteModule: flambeau has no remote modules "
                              "that are called from TorchScript; give no _module_interface_cls")


def get_arg_return_types_from_interface(module_interface: Any) -> tuple[str, str, str]:
    """The arguments of an interface's `forward`, with their types, and what it returns."""
    import inspect
    if not hasattr(module_interface, "forward"):
        raise AssertionError("Expect a TorchScript class interface decorated by "
                             "@torch.jit.interface.")
    found = inspect.signature(module_interface.forward)
    arguments = [p for name, p in found.parameters.items() if name != "self"]
    returned = found.return_annotation
    return (", ".join(p.name for p in arguments), ", ".join(map(str, arguments)),
            "Any" if returned is found.empty else getattr(returned, "__name__", str(returned)))
