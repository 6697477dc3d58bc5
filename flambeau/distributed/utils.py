"""What modules that run in several processes share: arguments, storages and first values."""
from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Container
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed._c10d.collectives import broadcast_coalesced

__all__: list[str] = []


# ---- arguments ----------------------------------------------------------------------------------

def _pack_kwargs(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """All arguments in one tuple, and the names of the last of them.

    >>> _pack_kwargs(1, a=2)
    ((1, 2), ('a',))
    """
    return (*args, *kwargs.values()), tuple(kwargs)


def _unpack_kwargs(flat_args: tuple[Any, ...],
                   kwarg_keys: tuple[str, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What `_pack_kwargs` has packed."""
    assert len(kwarg_keys) <= len(flat_args), (
        f"too many keys {len(kwarg_keys)} vs. {len(flat_args)}")
    count = len(flat_args) - len(kwarg_keys)
    return flat_args[:count], dict(zip(kwarg_keys, flat_args[count:]))


def _apply_to_tensors(fn: Callable[[Tensor], Any], container: Any) -> Any:
    """`container` with `fn(tensor)` in the place of each tensor, in nested lists, tuples, dicts,
    sets, data classes and packed sequences."""
    def apply(x: Any) -> Any:
        if isinstance(x, Tensor):
            return fn(x)
        if isinstance(x, nn.utils.rnn.PackedSequence):
            apply(x.data)
            return x
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            return dataclasses.replace(x, **{f.name: apply(getattr(x, f.name))
                                             for f in dataclasses.fields(x) if f.init})
        if isinstance(x, dict):
            found = x.__class__() if type(x) is not dict else {}
            found.update((key, apply(value)) for key, value in x.items())
            return found
        if _is_named_tuple(x):
            return type(x)(*map(apply, x))
        if isinstance(x, (list, tuple, set)):
            return type(x)(apply(value) for value in x)
        return x
    return apply(container)


def _is_named_tuple(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields")


def _cast_forward_inputs(dtype: flambeau.dtype | None, *args: Any,
                         **kwargs: Any) -> tuple[Any, Any]:
    """The arguments, whose floating point tensors have become `dtype`."""
    if dtype is None:
        return args, kwargs

    def cast(x: Tensor) -> Tensor:
        return x.to(dtype) if x.is_floating_point() and x.dtype != dtype else x
    return _apply_to_tensors(cast, args), _apply_to_tensors(cast, kwargs)


def _recursive_to(inputs: Any, target_device: flambeau.device,
                  use_side_stream_for_tensor_copies: bool) -> list[Any]:
    """A list of one: the inputs, whose tensors have moved to a device."""
    if inputs is None:
        return []
    return [_apply_to_tensors(lambda x: x.to(target_device), inputs)]


def _to_kwargs(inputs: tuple[Any, ...], kwargs: dict[str, Any] | None,
               target_device: flambeau.device, use_side_stream_for_tensor_copies: bool
               ) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """The arguments of a call on a device: tuples of one, as for one of several devices."""
    return (tuple(_recursive_to(inputs, target_device, use_side_stream_for_tensor_copies)),
            tuple(_recursive_to(kwargs or {}, target_device, use_side_stream_for_tensor_copies)))


# ---- storages and checks ------------------------------------------------------------------------

def _p_assert(cond: Any, s: str, raise_assertion_error: bool = True) -> None:
    """Like `assert`, for code that runs in the backward pass: the stack is printed as well."""
    if not cond:
        print(s)
        traceback.print_stack()
        if raise_assertion_error:
            raise AssertionError(s)


def _alloc_storage(tensor: Tensor, size: flambeau.Size) -> None:
    """Give a tensor's storage room for a shape."""
    needed = size.numel() * tensor.element_size()
    if tensor.untyped_storage().size() == needed:
        return
    tensor_storage_size = tensor.untyped_storage().size()
    _p_assert(tensor_storage_size == 0,
              f"Tensor storage should have been resized to be 0 but got {tensor_storage_size}")
    tensor.untyped_storage().resize_(needed)


def _free_storage(tensor: Tensor) -> None:
    """Give back the memory of a tensor, which has a storage of its own."""
    size = tensor.untyped_storage().size()
    if not size:
        return
    _p_assert(tensor.storage_offset() == 0,
              "Freeing a tensor's storage is unsafe when it is not the sole occupant\n"
              f"storage offset: {tensor.storage_offset()}\n"
              f"storage size: {size // tensor.element_size()}\ntensor shape: {tensor.shape}")
    tensor.untyped_storage().resize_(0)
    if tensor.untyped_storage().size():
        raise NotImplementedError("_free_storage: an array of NumPy keeps its memory")


def _data_ptr_allocated(tensor: Tensor) -> bool:
    """Has the tensor memory?"""
    return tensor.untyped_storage().size() > 0 and tensor.untyped_storage().data_ptr() > 0


def _get_root_modules(modules: list[nn.Module]) -> list[nn.Module]:
    """Those of the modules that are in no other of them."""
    inner = {id(child) for module in modules for child in module.modules() if child is not module}
    return [module for module in modules if id(module) not in inner]


def _replace_by_prefix(state_dict: dict[str, Any], old_prefix: str, new_prefix: str) -> None:
    """Let the names that begin with a prefix begin with another."""
    if old_prefix == new_prefix:
        raise ValueError("old_prefix and new_prefix must be distinct")
    for key in [key for key in state_dict if key.startswith(old_prefix)]:
        state_dict[new_prefix + key.removeprefix(old_prefix)] = state_dict.pop(key)


# ---- the same first values everywhere -----------------------------------------------------------

def _verify_param_shape_across_processes(process_group: Any, tensors: list[Tensor],
                                         logger: Any = None) -> None:
    """Raise if another process has tensors of other shapes."""
    from flambeau._C._distributed_c10d import _verify_params_across_processes
    _verify_params_across_processes(process_group, tensors, logger)


def _sync_module_states(module: nn.Module, process_group: Any, broadcast_bucket_size: int,
                        src: int, params_and_buffers_to_ignore: Container[str],
                        broadcast_buffers: bool = True) -> None:
    """Let a module's parameters and buffers be those of process `src`."""
    states = [parameter.detach() for name, parameter in module.named_parameters()
              if name not in params_and_buffers_to_ignore]
    if broadcast_buffers:
        states += [buffer.detach() for name, buffer in module.named_buffers()
                   if name not in params_and_buffers_to_ignore]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def _sync_params_and_buffers(process_group: Any, module_states: list[Tensor],
                             broadcast_bucket_size: int, src: int) -> None:
    """Let the tensors be those of process `src`."""
    if module_states:
        broadcast_coalesced(process_group, module_states, broadcast_bucket_size, src)
