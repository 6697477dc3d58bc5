"""A module that lives in another process."""
from __future__ import annotations

import io
import types
from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

from flambeau import nn
from flambeau._support.signatures import signed
from flambeau.distributed import rpc
from flambeau.distributed.nn.jit import instantiator
from flambeau.distributed.remote_device import _remote_device
from flambeau.distributed.rpc.internal import _internal_rpc_pickler

__all__ = ["RemoteModule"]

_REMOTE_MODULE_PICKLED_ATTRIBUTES = ("on", "device", "is_device_map_set", "is_scriptable",
                                     "generated_methods", "module_rref")


class _SerializedRemoteModule(NamedTuple):
    """What of a remote module travels."""

    on: str
    device: str
    is_device_map_set: bool
    is_scriptable: bool
    generated_methods: Any
    module_rref: Any


def _create_module(module_cls: Any, args: Any, kwargs: Any, device: str) -> nn.Module:
    module = module_cls(*args, **kwargs)
    if not isinstance(module, nn.Module):
        raise ValueError("Expect `module_cls(*args, **kwargs)` returns an instance of <class "
                         f"nn.Module>, but it returns an instance of {type(module)}.")
    return module.to(device)


def _create_module_with_interface(module_cls: Any, args: Any, kwargs: Any, device: str,
                                  module_interface_cls: Any) -> Any:
    from flambeau import jit
    return rpc.RRef(jit.script(_create_module(module_cls, args, kwargs, device)),
                    module_interface_cls)


def _param_rrefs(module_rref: Any, recurse: bool) -> list[Any]:
    return [rpc.RRef(param) for param in module_rref.local_value().parameters(recurse)]


def _raise_not_supported(name: str) -> None:
    raise ValueError(f"Method ``{name}`` not supported for RemoteModule")


class _RemoteModule(nn.Module):
    def __init__(self, remote_device: str, module_cls: type[nn.Module],
                 args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
                 _module_interface_cls: Any = None):
        super().__init__()
        self._prepare_init(remote_device)
        self._init_template(_module_interface_cls, self.is_device_map_set)
        self.module_rref: Any = rpc.rpc_sync(
            self.on, _make, (module_cls, args or (), kwargs or {}, self.device))
        self._install_generated_methods()
        self._check_attribute_picklability()

    def remote_parameters(self, recurse: bool = True) -> list[Any]:
        """References to the parameters, where they are: for `DistributedOptimizer`."""
        return rpc.rpc_sync(self.on, _param_rrefs, (self.module_rref, recurse))

    def get_module_rref(self) -> Any:
        """The reference to the module."""
        return self.module_rref

    def __getstate__(self) -> Any:
        raise RuntimeError("Cannot pickle RemoteModule in python pickler. RemoteModule can only be "
                           "pickled when using RPC")

    def __setstate__(self, state: Any) -> None:
        raise RuntimeError("Cannot unpickle RemoteModule in python pickler. RemoteModule can only "
                           "be unpickled when using RPC")

    def train(self, mode: bool = True) -> Any:
        """Set the mode of the module, where it is."""
        return self.module_rref.rpc_sync().train(mode)

    def eval(self) -> Any:
        """Set evaluation mode of the module, where it is."""
        return self.module_rref.rpc_sync().eval()

    def _prepare_init(self, remote_device_str: str) -> bool:
        """Find out where the module is to be; may tensors on the CPU be moved there?"""
        if not rpc._is_current_rpc_agent_set():
            raise AssertionError("RemoteModule only works in RPC.")
        place = _remote_device(remote_device_str)
        name = place.worker_name()
        self.on = place.rank() if name is None else name
        self.device = str(place.device())
        agent = rpc._get_current_rpc_agent()
        self.is_device_map_set = bool(agent._get_device_map(agent.get_worker_info(self.on)))
        return self.device.startswith("cuda")

    def _init_template(self, module_interface_cls: Any, enable_moving_cpu_tensors_to_cuda: bool
                       ) -> None:
        self.is_scriptable = module_interface_cls is not None
        template = (instantiator.instantiate_scriptable_remote_module_template(
            module_interface_cls, enable_moving_cpu_tensors_to_cuda) if self.is_scriptable
            else instantiator.instantiate_non_scriptable_remote_module_template())
        self.generated_methods = template._generated_methods

    def _check_attribute_picklability(self) -> None:
        """Only what is known here travels: attributes of subclasses would be lost."""
        for name in vars(self):
            if name not in _REMOTE_MODULE_PICKLED_ATTRIBUTES and \
                    name not in _REMOTE_MODULE_ATTRIBUTES_IGNORE_FOR_PICKLING:
                raise AttributeError(
                    f"Attribute {name} must be either in ``_REMOTE_MODULE_PICKLED_ATTRIBUTES`` or "
                    "``_REMOTE_MODULE_ATTRIBUTES_IGNORE_FOR_PICKLING``.")

    def _install_generated_methods(self) -> None:
        for method in self.generated_methods:
            object.__setattr__(self, method.__name__, types.MethodType(method, self))

    @staticmethod
    def init_from_module_rref(remote_device: str, module_rref: Any,
                              _module_interface_cls: Any = None) -> Any:
        """A remote module for a module that is there, by its reference."""
        found = object.__new__(RemoteModule)
        nn.Module.__init__(found)
        found._prepare_init(remote_device)
        found._init_template(_module_interface_cls, found.is_device_map_set)
        found.module_rref = module_rref
        found._install_generated_methods()
        found._check_attribute_picklability()
        return found


def _make(module_cls: Any, args: Any, kwargs: Any, device: str) -> Any:
    return rpc.RRef(_create_module(module_cls, args, kwargs, device))


def _unsupported(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "parameters":
            raise ValueError("Method ``parameters`` not supported for RemoteModule. Please use "
                             "``remote_parameters`` instead.")
        _raise_not_supported(name)
    signed(signature(getattr(nn.Module, name)))(method)
    method.__name__, method.__qualname__ = name, f"_RemoteModule.{name}"
    method.__doc__ = "ValueError: the module is not here."
    return method


for _name in ("register_buffer register_parameter add_module apply cuda ipu xpu cpu type float "
              "double half bfloat16 to register_backward_hook register_forward_pre_hook "
              "register_forward_hook state_dict load_state_dict parameters named_parameters "
              "buffers named_buffers children named_children modules named_modules "
              "requires_grad_ zero_grad share_memory extra_repr").split():
    setattr(_RemoteModule, _name, _unsupported(_name))
_REMOTE_MODULE_ATTRIBUTES_IGNORE_FOR_PICKLING = (
    *vars(nn.Module()), "forward_async", "forward", "_extra_state")


class RemoteModule(_RemoteModule):
    """A module in another process: it is made there, and calling it runs it there.

    Args:
        remote_device: where: "worker/cpu" or "rank:1/cpu".
        module_cls: the class of the module.
        args: arguments of the class.
        kwargs: its arguments by name.

    `forward_async` gives a future of the output, `remote_parameters` references to the parameters.

    >>> linear = RemoteModule("worker1/cpu", nn.Linear, args=(20, 30))        # doctest: +SKIP
    >>> linear(flambeau.randn(128, 20)).shape                                 # doctest: +SKIP
    torch.Size([128, 30])
    """

    def __init__(self, remote_device: str, module_cls: type[nn.Module],
                 args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None):
        super().__init__(remote_device, module_cls, args, kwargs)


def _remote_module_receiver(*remote_module_pickled_attrs: Any) -> RemoteModule:
    """The remote module that has come from another process."""
    found: Any = object.__new__(RemoteModule)
    nn.Module.__init__(found)
    vars(found).update(_SerializedRemoteModule._make(remote_module_pickled_attrs)._asdict())
    found.module_rref = rpc.PyRRef._deserialize(found.module_rref)
    found._install_generated_methods()
    return found


def _remote_module_reducer(remote_module: RemoteModule) -> tuple[Any, ...]:
    attributes = {name: getattr(remote_module, name) for name in _REMOTE_MODULE_PICKLED_ATTRIBUTES}
    attributes["module_rref"] = attributes["module_rref"]._serialize()
    return _remote_module_receiver, tuple(attributes.values())


def _recursive_script_module_receiver(recursive_script_module_serialized: bytes) -> Any:
    """The scripted module of these bytes."""
    from flambeau import jit
    return jit.load(io.BytesIO(recursive_script_module_serialized))


def _recursive_script_module_reducer(recursive_script_module: Any) -> Any:
    """A scripted module as bytes."""
    from flambeau import jit
    file = io.BytesIO()
    jit.save(recursive_script_module, file)
    return _recursive_script_module_receiver, (file.getvalue(),)


_internal_rpc_pickler._register_reducer(RemoteModule, _remote_module_reducer)
