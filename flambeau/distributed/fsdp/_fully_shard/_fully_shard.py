"""`fully_shard`, and what modules can do to which it has been applied."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from flambeau import nn
from flambeau.distributed._composable.contract import contract
from flambeau.distributed.fsdp._fully_shard._fsdp_api import (
    AllGather,
    DataParallelMeshDims,
    MixedPrecisionPolicy,
    OffloadPolicy,
    ReduceScatter,
)
from flambeau.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo
from flambeau.distributed.fsdp._fully_shard._fsdp_init import (
    _get_device_from_mesh,
    _get_managed_modules,
    _get_managed_states,
    _get_mesh_info,
    _get_post_forward_mesh_info,
    _init_default_mesh,
    _validate_module,
)
from flambeau.distributed.fsdp._fully_shard._fsdp_param_group import FSDPCommContext, FSDPParamGroup
from flambeau.distributed.fsdp._fully_shard._fsdp_state import FSDPState, _get_module_fsdp_state
from flambeau.distributed.utils import _get_root_modules

__all__ = ["FSDPModule", "UnshardHandle", "disable_fsdp_module_new_init", "fully_shard",
           "get_cls_to_fsdp_cls", "register_fsdp_forward_method", "share_comm_ctx"]

cls_to_fsdp_cls: dict[type, type] = {}
_enable_fsdp_module_new_init = True


def get_cls_to_fsdp_cls() -> dict[type, type]:
    """The classes that modules get, by those that they had."""
    return cls_to_fsdp_cls


@contextlib.contextmanager
def disable_fsdp_module_new_init() -> Iterator[None]:
    """Inside, instances of classes that `fully_shard` has made are not initialised."""
    global _enable_fsdp_module_new_init
    before, _enable_fsdp_module_new_init = _enable_fsdp_module_new_init, False
    try:
        yield
    finally:
        _enable_fsdp_module_new_init = before


def _unimplemented_deepcopy(*args: Any, **kwargs: Any) -> NoReturn:
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


@contract(state_cls=FSDPState)
def fully_shard(module: Any, *, mesh: Any = None,
                reshard_after_forward: bool | int | None = None,
                shard_placement_fn: Callable[[nn.Parameter], Any] | None = None,
                mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),
                offload_policy: OffloadPolicy = OffloadPolicy(),
                ignored_params: set[nn.Parameter] | None = None,
                dp_mesh_dims: DataParallelMeshDims | None = None) -> Any:
    """`module`, of whose parameters each process keeps a piece.

    The parameters become `DTensor`s, cut along their first dimension (or what `shard_placement_fn`
    gives for a parameter). They are gathered for the forward pass, given back after it, gathered
    again for the backward pass; there the gradients are averaged, and each process gets those of
    its pieces. Apply it to layers first and then to the whole model: parameters that belong
    together are sent together.

    Parameters
    ----------
    mesh
        the processes; of two dimensions, parameters are copied along the first and cut along the
        second
    reshard_after_forward
        are parameters given back after the forward pass? A number: each process keeps a larger
        piece, of those that so many processes share. By default they are, but not the root's
    mp_policy, offload_policy
        types to compute in, and where parameters wait
    ignored_params
        parameters that stay as they are

    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> for layer in (model[0], model[2], model):
    ...     layer = fully_shard(layer)
    >>> optimizer = flambeau.optim.AdamW(model.parameters())
    >>> model(flambeau.ones(3, 4)).sum().backward()
    >>> model[0].weight.grad.placements
    (Shard(dim=0),)
    >>> optimizer.step()
    >>> dist.destroy_process_group()
    """
    for one in (module,) if isinstance(module, nn.Module) else tuple(module):
        _validate_module(one, "fully_shard")
    mesh = mesh or _init_default_mesh()
    mesh_info = _get_mesh_info(mesh, dp_mesh_dims)
    auto = reshard_after_forward is None
    if auto:
        reshard_after_forward = True
    post_forward = _get_post_forward_mesh_info(reshard_after_forward, mesh_info) \
        if isinstance(mesh_info, FSDPMeshInfo) else None
    arguments = (mesh_info, post_forward, _get_device_from_mesh(mesh), shard_placement_fn,
                 mp_policy, offload_policy)
    _shard_modules(fully_shard.state, module, auto, ignored_params, arguments,
                   (cls_to_fsdp_cls, FSDPModule, "FSDP"))
    return module


def _shard_modules(state_of: Any, module: Any, auto_reshard: bool, ignored_params: Any,
                   arguments: tuple[Any, ...], classes: tuple[dict[type, type], type, str],
                   **options: Any) -> None:
    """Make pieces of the parameters of modules, and watch their passes. `classes`: those made
    before, what they are, too, and what their names begin with."""
    modules = (module,) if isinstance(module, nn.Module) else tuple(
        _get_root_modules(list(module)))
    state = state_of(modules[0])
    device, mp_policy = arguments[2], arguments[4]
    state.init(modules, device, mp_policy, auto_reshard)
    managed = _get_managed_modules(modules, ignored_params, **options)
    params, _ = _get_managed_states(managed, ignored_params)
    if params:
        state._fsdp_param_group = FSDPParamGroup(params, modules, *arguments)
    for inner in managed:
        inner._is_fsdp_managed_module = True
        inner._fsdp_use_orig_params = True
    known, kind, prefix = classes
    for one in modules:
        cls = type(one)
        if cls not in known:
            known[cls] = type(f"{prefix}{cls.__name__}", (kind, cls),
                              {"__deepcopy__": _unimplemented_deepcopy})
        one.__class__ = known[cls]


class UnshardHandle:
    """What `FSDPModule.unshard(async_op=True)` gives: to be waited for."""

    def wait(self) -> None:
        """The parameters are whole now."""


class _UnshardHandleImpl(UnshardHandle):
    def __init__(self, fsdp_param_group: FSDPParamGroup | None):
        self._group = fsdp_param_group

    def wait(self) -> None:
        """The parameters are whole now."""
        if self._group is not None:
            self._group.wait_for_unshard()
            self._group.use_parameters()
            self._group = None


class FSDPModule:
    """What modules are, too, to which `fully_shard` has been applied."""

    _orig_cls_mro_index = 2

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance of the class that the module had: of what is made of it anew, nobody has cut
        anything."""
        original = cls.__mro__[cls._orig_cls_mro_index]
        self = original.__new__(original, *args, **kwargs)
        if _enable_fsdp_module_new_init:
            self.__init__(*args, **kwargs)
        return self

    def _get_fsdp_state(self) -> FSDPState:
        state = _get_module_fsdp_state(self)                    # type: ignore[arg-type]
        if state is None:
            raise AssertionError(f"No FSDP state found on {self}")
        return state

    def _states(self, recurse: bool) -> list[FSDPState]:
        modules = self.modules() if recurse else [self]         # type: ignore[attr-defined]
        return [m._get_fsdp_state() for m in modules if isinstance(m, FSDPModule)]

    def _groups(self, recurse: bool) -> list[FSDPParamGroup]:
        return [s._fsdp_param_group for s in self._states(recurse) if s._fsdp_param_group]

    # ---- by hand --------------------------------------------------------------------------------

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather this module's parameters (not those of modules in it that have their own); with
        `async_op` they are there when the handle has been waited for."""
        state = self._get_fsdp_state()
        group = state._fsdp_param_group
        if group is not None:
            group.lazy_init()
            group.unshard(async_op=async_op)
        handle = _UnshardHandleImpl(group)
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Keep what is this process's share; give the memory back."""
        group = self._get_fsdp_state()._fsdp_param_group
        if group is not None:
            group.reshard()

    def reset_iter_state(self) -> None:
        """Forget a forward pass that an exception has ended, or that no backward pass follows."""
        self._get_fsdp_state()._reset_iter_state()

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        """`Module._apply`, on pieces."""
        for group in self._groups(True):
            group.reshard()
        found = super()._apply(*args, **kwargs)                 # type: ignore[misc]
        for group in self._groups(True):
            group._checked = False
            for param in group.fsdp_params:
                param.adopt()
        return found

    # ---- what is set ----------------------------------------------------------------------------

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *,
                                   recurse: bool = True) -> None:
        """Are gradients shared with the other processes, or kept until they are?"""
        for group in self._groups(recurse):
            group.reduce_grads = group.all_reduce_grads = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Are gradients shared among copies, or only summed up among those with pieces of one?"""
        for group in self._groups(recurse):
            group.all_reduce_grads = requires_all_reduce

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Is the next backward pass the last before a step?"""
        self._get_fsdp_state()._state_ctx.is_last_backward = is_last_backward

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Are whole parameters given back after a forward pass?"""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError("reshard_after_forward should be a bool, got "
                             f"{type(reshard_after_forward)}")
        for state in self._states(recurse):
            state._auto_reshard_after_forward = False
            group = state._fsdp_param_group
            if group is not None and isinstance(group.mesh_info, FSDPMeshInfo):
                group.post_forward_mesh_info = _get_post_forward_mesh_info(
                    reshard_after_forward, group.mesh_info)

    def set_reshard_after_backward(self, reshard_after_backward: bool, *,
                                   recurse: bool = True) -> None:
        """Are they given back after a backward pass?"""
        for group in self._groups(recurse):
            group.reshard_after_backward = reshard_after_backward

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Are parameters gathered for backward passes?"""
        for group in self._groups(False):
            group.unshard_in_backward = unshard_in_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Whose parameters are asked for when this module's forward pass begins."""
        _assert_all_fsdp_modules(modules)
        self._get_fsdp_state()._states_to_forward_prefetch = [
            m._get_fsdp_state() for m in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Whose parameters are asked for when this module's backward pass begins; by default those
        of the module whose forward pass has ended before."""
        _assert_all_fsdp_modules(modules)
        self._get_fsdp_state()._states_to_backward_prefetch = [
            m._get_fsdp_state() for m in modules]

    def set_custom_all_gather(self, comm: AllGather) -> None:
        """How this module's parameters are gathered."""
        for group in self._groups(False):
            group._all_gather_comm = comm

    def set_custom_reduce_scatter(self, comm: ReduceScatter) -> None:
        """How this module's gradients are reduced."""
        for group in self._groups(False):
            group._reduce_scatter_comm = comm

    def set_all_reduce_hook(self, hook: Callable[[Any], None], *, stream: Any = None) -> None:
        """`hook` is called with the reduced gradients, one flat tensor, which it may change."""
        for group in self._groups(False):
            group._all_reduce_hook = hook

    def set_post_optim_event(self, event: Any) -> None:
        """What the next pass waits for: on CPUs a step has ended when it returns."""
        self._get_fsdp_state()._state_ctx.post_optim_event = event

    def set_gradient_divide_factor(self, factor: float) -> None:
        """By what sums of gradients are divided, in the place of the number of processes."""
        for group in self._groups(False):
            group.gradient_divide_factor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Are gradients summed up and divided here? They always are."""
        for group in self._groups(False):
            group.force_sum_reduction_for_comms = enable

    def set_reduce_scatter_unused_params(self, reduce_scatter_unused_params: bool, *,
                                         recurse: bool = True) -> None:
        """Do parameters without a gradient take part with zeros? For processes that use different
        ones."""
        for group in self._groups(recurse):
            group.reduce_scatter_unused_params = reduce_scatter_unused_params

    def set_reduce_scatter_max_input_buffers(self, max_input_buffers: int, *,
                                             recurse: bool = True) -> None:
        """How many messages may be on their way: each is waited for here."""
        if not isinstance(max_input_buffers, int) or max_input_buffers < 1:
            raise ValueError(f"max_input_buffers must be a positive int, got {max_input_buffers}")
        for group in self._groups(recurse):
            group.reduce_scatter_max_input_buffers = max_input_buffers

    def set_separate_reduce_scatter_group(self, enable: bool = True, *,
                                          recurse: bool = True) -> None:
        """Do gradients travel on connections of their own? On CPUs they wait for no others."""

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """Is memory for messages that which the group of processes gives?"""
        for group in self._groups(False):
            group.set_allocate_memory_from_process_group(enable)

    def set_symm_mem_for_comm(self, backend: str = "NCCL") -> None:
        """Symmetric memory is one of GPUs."""
        raise RuntimeError(f"SymmetricMemory does not find allocation backend {backend}")

    def _set_unshard_async_op(self, async_op: bool) -> None:
        for group in self._groups(True):
            group.unshard_async_op = async_op


def _assert_all_fsdp_modules(modules: Any) -> None:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(module)}: {module}")


def register_fsdp_forward_method(module: nn.Module, method_name: str) -> None:
    """Also `method_name` is a forward pass, for which parameters are gathered. Does nothing where
    `fully_shard` has not been applied."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    original = getattr(module, method_name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        state = module._get_fsdp_state()
        args, kwargs = state._pre_forward(module, args, kwargs)
        return state._post_forward(module, args, original(*args, **kwargs))
    setattr(module, method_name, wrapped)


def share_comm_ctx(modules: list[FSDPModule]) -> None:
    """Let roots know of each other's passes, as the stages of a pipeline do."""
    if not modules:
        return
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects list of FSDPModules but got {module}")
    shared: FSDPCommContext = modules[0]._get_fsdp_state()._comm_ctx
    for module in modules:
        for state in module._states(True):
            state._comm_ctx = shared
            if state._fsdp_param_group:
                state._fsdp_param_group.comm_ctx = shared
