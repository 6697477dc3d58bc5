"""Whole parameters outside of passes."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import flambeau
from flambeau import nn
from flambeau.distributed.fsdp._common_utils import HandleTrainingState, TrainingState

FLAT_PARAM = "_flat_param"


def _deregister_flat_param(state: Any, module: nn.Module) -> None:
    """Let the flat parameter not be one of the module's."""
    if state._handle is not None:
        state._fsdp_wrapped_module._parameters.pop(FLAT_PARAM, None)


def _register_flat_param(state: Any, module: nn.Module) -> None:
    """Let the flat parameter be one of the module's, unless its parts are."""
    if state._handle is not None and not state._use_orig_params:
        state._fsdp_wrapped_module._parameters[FLAT_PARAM] = state._handle.flat_param


def _validate_unshard_params_args(state: Any, writeback: bool, rank0_only: bool,
                                  offload_to_cpu: bool, with_grads: bool) -> None:
    if with_grads and (offload_to_cpu or not state._use_orig_params):
        raise NotImplementedError(
            f"with_grads={with_grads}, use_orig_params={state._use_orig_params}, "
            f"offload_to_cpu={offload_to_cpu} is not supported yet")
    if offload_to_cpu and state._handle and not state._handle.uses_sharded_strategy:
        raise NotImplementedError("offload_to_cpu=True and NO_SHARD is not supported yet")
    if writeback and rank0_only:
        raise NotImplementedError("writeback=True and rank0_only=True is not supported yet")


@contextlib.contextmanager
def _unshard_fsdp_state_params(module: nn.Module, state: Any, writeback: bool, rank0_only: bool,
                               offload_to_cpu: bool, with_grads: bool) -> Iterator[None]:
    """Inside, one wrapped module has its whole parameters."""
    _validate_unshard_params_args(state, writeback, rank0_only, offload_to_cpu, with_grads)
    handle = state._handle
    if handle is None:
        yield
        return
    if state.training_state is TrainingState.SUMMON_FULL_PARAMS:
        raise AssertionError("Expects state to be IDLE, but it has whole parameters already")
    with flambeau.no_grad():
        tensors = handle.full_tensors()
        gradients = handle.full_tensors(handle.flat_param.grad) \
            if with_grads and handle.flat_param.grad is not None else None
    keeps = not rank0_only or state.rank == 0
    state.training_state = TrainingState.SUMMON_FULL_PARAMS
    handle._training_state = HandleTrainingState.SUMMON_FULL_PARAMS
    before = handle._views
    _deregister_flat_param(state, module)
    if keeps:
        handle._views = tensors
        handle.use_unsharded_views(as_params=True)
        if gradients is not None:
            for info, gradient in zip(handle.flat_param._param_infos, gradients):
                info.module._parameters[info.param_name].grad = gradient
    try:
        yield
    finally:
        if keeps:
            now = [getattr(info.module, info.param_name)
                   for info in handle.flat_param._param_infos]
            if writeback:
                handle.write_back(now)
            if gradients is not None and writeback:
                flat = flambeau.cat([(flambeau.zeros_like(p) if p.grad is None else p.grad)
                                     .reshape(-1) for p in now])
                handle.flat_param.grad.copy_(handle.part_of(flat))
        handle._views = before
        handle.remove_views()
        if handle._use_orig_params:
            handle.use_sharded_views()
        _register_flat_param(state, module)
        state.training_state = TrainingState.IDLE
        handle._training_state = HandleTrainingState.IDLE


@contextlib.contextmanager
def _unshard_params(module: nn.Module, recurse: bool, writeback: bool, rank0_only: bool,
                    offload_to_cpu: bool, with_grads: bool) -> Iterator[None]:
    """Inside, wrapped modules have their whole parameters."""
    from flambeau.distributed.fsdp._traversal_utils import _get_fsdp_states_with_modules
    if recurse:
        states, modules = _get_fsdp_states_with_modules(module)
    else:
        own: list[Any] = [module] if hasattr(module, "_handle") else []
        states, modules = own, own
    with contextlib.ExitStack() as stack:
        for state, inner in zip(states, modules):
            stack.enter_context(_unshard_fsdp_state_params(
                inner, state, writeback, rank0_only, offload_to_cpu, with_grads))
        yield
