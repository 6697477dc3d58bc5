"""What TorchScript knows of modules that it compiles. Nothing is compiled here: modules run as
Python, and what asks for compiled types is told so."""
from __future__ import annotations

import collections
import inspect
from typing import Any

from flambeau import nn, typename
from flambeau._jit_internal import _get_overloaded_methods
from flambeau.jit._script import RecursiveScriptModule, as_script

ScriptMethodStub = collections.namedtuple(
    "ScriptMethodStub", ("resolution_callback", "def_", "original_method"))
PropertyStub = collections.namedtuple("PropertyStub", ("resolution_callback", "def_"))

ignored_attributes = [
    "_version", "_parameters", "_buffers", "_non_persistent_buffers_set", "_backward_hooks",
    "_backward_pre_hooks", "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
    "_modules", "_initializing", "dump_patches"]


class ConcreteTypeStore:
    """The types of the modules that have been compiled: none."""

    def __init__(self) -> None:
        self.type_store: dict[type, list[Any]] = {}
        self.methods_compiled: set[Any] = set()

    def get_or_create_concrete_type(self, nn_module: nn.Module) -> Any:
        """Not offered: there are no compiled types."""
        raise NotImplementedError("ConcreteTypeStore.get_or_create_concrete_type: flambeau has no "
                                  "TorchScript")


concrete_type_store = ConcreteTypeStore()


def create_script_module(nn_module: nn.Module, stubs_fn: Any, share_types: bool = True,
                         is_tracing: bool = False) -> Any:
    """A module under its type in TorchScript, running as Python."""
    check_module_initialized(nn_module)
    return as_script(nn_module)


def check_module_initialized(mod: nn.Module) -> None:
    """Raise if the module's class does not call `super().__init__()`."""
    if "_parameters" not in mod.__dict__:
        raise RuntimeError(f"'{type(mod).__module__}.{type(mod).__qualname__}' has not been "
                           "initialized, did you forget to call 'super()'?")
    for name, value in (*mod._parameters.items(), *mod._buffers.items()):
        if isinstance(value, nn.parameter.UninitializedTensorMixin):
            raise RuntimeError(f"'{typename(type(mod))}' has uninitialized parameters {name}. Did "
                               "you forget to run a forward pass?")


def jit_ignored_properties(module: Any) -> set[str]:
    """The properties of a module that scripting leaves out."""
    owner = module if isinstance(module, type) else type(module)
    return {name for name in getattr(owner, "__jit_ignored_attributes__", ())
            if isinstance(vars(owner).get(name), property)}


def get_overload_annotations(mod: nn.Module, jit_ignored_properties: Any) -> dict[Any, Any]:
    """The methods of a module that have several declared signatures, and those."""
    found = {}
    for name in dir(type(mod)):
        if name in jit_ignored_properties:
            continue
        member = inspect.getattr_static(type(mod), name, None)
        overloads = _get_overloaded_methods(member, type(mod)) if callable(member) else None
        if overloads:
            found[member] = [(f"{name}__{i}", overload) for i, overload in enumerate(overloads)]
    return found


def get_annotations(obj: Any) -> dict[str, Any]:
    """The annotations of an object, without those that it inherits."""
    return inspect.get_annotations(obj)


def script_model_defines_attr(script_model: RecursiveScriptModule, attr: str) -> bool:
    """Has the class of a scripted module's original this member?"""
    return hasattr(type(script_model._original), attr)


def wrap_cpp_module(cpp_module: Any) -> Any:
    """Not offered: there are no modules of TorchScript."""
    raise NotImplementedError("torch.jit._recursive.wrap_cpp_module: flambeau has no TorchScript")


__all__ = ["ConcreteTypeStore", "PropertyStub", "ScriptMethodStub", "check_module_initialized",
           "concrete_type_store", "create_script_module", "get_annotations",
           "get_overload_annotations", "ignored_attributes", "jit_ignored_properties",
           "script_model_defines_attr", "wrap_cpp_module"]
