"""When parameters are gathered and given back, and gradients shared."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.autograd.variable import Variable
from flambeau.distributed.fsdp._common_utils import HandleTrainingState, TrainingState
from flambeau.distributed.fsdp._flat_param import (
    RESHARD_AFTER_FORWARD_HANDLE_STRATEGIES,
    FlatParamHandle,
)
from flambeau.distributed.utils import _apply_to_tensors, _cast_forward_inputs


def _unshard(state: Any, handle: FlatParamHandle | None) -> None:
    """Let a module have its whole parameters."""
    if handle is not None:
        handle.unshard()


def _reshard(state: Any, handle: FlatParamHandle | None,
             free_unsharded_flat_param: bool) -> None:
    """Let a module have what this process has of its parameters; give the memory back."""
    if handle is None:
        return
    if free_unsharded_flat_param:
        handle.free()
    handle.use_sharded_views()


# ---- forward ------------------------------------------------------------------------------------

def _lazy_init(state: Any, root_module: nn.Module) -> None:
    """Before the first pass: the outermost of the wrapped modules is the root."""
    if state._is_root is not None:
        return
    state._is_root = True
    for module in root_module.modules():
        if module is not root_module and hasattr(module, "_fsdp_wrapped_module"):
            module._is_root = False
            module.__dict__["_root"] = state    # no submodule of it
    if state.mixed_precision.buffer_dtype is not None:
        for module in root_module.modules():
            for name, buffer in module._buffers.items():
                if buffer is not None and buffer.is_floating_point():
                    module._buffers[name] = buffer.to(state.mixed_precision.buffer_dtype)


def _pre_forward(state: Any, handle: FlatParamHandle | None, module: nn.Module,
                 args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Gather the parameters. Where a pass is only computed again, they are there."""
    if handle is not None and handle._training_state is HandleTrainingState.BACKWARD_PRE:
        return args, kwargs
    state.training_state = TrainingState.FORWARD_BACKWARD
    if handle is not None:
        handle._training_state = HandleTrainingState.FORWARD
    precision = state.mixed_precision
    casts = precision.cast_root_forward_inputs if state._is_root else precision.cast_forward_inputs
    if precision.param_dtype is not None and casts:
        args, kwargs = _cast_forward_inputs(precision.param_dtype, *args, **kwargs)
    _unshard(state, handle)
    return args, kwargs


def _post_forward(state: Any, handle: FlatParamHandle | None, output: Any) -> Any:
    """Give the memory back, and be told when the output's gradient comes."""
    if handle is None:
        state.training_state = TrainingState.IDLE
        return output
    if handle._training_state is HandleTrainingState.BACKWARD_PRE:
        return output
    if flambeau.is_grad_enabled():
        output = _register_pre_backward_hooks(state, handle, output)
    frees = handle._sharding_strategy in RESHARD_AFTER_FORWARD_HANDLE_STRATEGIES \
        or not flambeau.is_grad_enabled()
    _reshard(state, handle, frees)
    handle._freed = frees
    state.training_state = TrainingState.IDLE
    handle._training_state = HandleTrainingState.IDLE
    return output


def _register_pre_backward_hooks(state: Any, handle: FlatParamHandle, output: Any) -> Any:
    def register(tensor: Tensor) -> Tensor:
        if tensor.requires_grad:
            tensor.register_hook(lambda _: _pre_backward_hook(state, handle))
        return tensor
    _apply_to_tensors(register, output)
    return output


# ---- backward -----------------------------------------------------------------------------------

def _pre_backward_hook(state: Any, handle: FlatParamHandle) -> None:
    """Gather the values that the backward pass needs."""
    if handle._training_state is HandleTrainingState.BACKWARD_PRE:
        return
    root = state._root if state._root is not None else state
    if not root._callback_queued:
        root._callback_queued = True
        Variable._execution_engine.queue_callback(
            lambda: _post_backward_final_callback(root, root))
    state.training_state = TrainingState.FORWARD_BACKWARD
    handle._training_state = HandleTrainingState.BACKWARD_PRE
    if handle._freed:
        handle.refill()
        handle._freed = False
    handle.use_unsharded_views()
    root._in_backward.append((state, handle))


@flambeau.no_grad()
def _post_backward_hook(state: Any, handle: FlatParamHandle, flat_param: Any,
                        *unused: Any) -> None:
    """Share the gradient of the whole, which is there; give the memory back."""
    gradient = handle._unsharded_grad
    handle._unsharded_grad = None
    handle._training_state = HandleTrainingState.BACKWARD_POST
    if gradient is None:
        return
    if handle._waiting_grad is not None:
        gradient = handle._waiting_grad + gradient
        handle._waiting_grad = None
    _reshard(state, handle, True)
    if not state._sync_gradients:
        handle._waiting_grad = gradient.detach().clone()
        handle._reduced_grad = None
        return
    handle._reduced_grad = handle.reduce_gradient(gradient)


@flambeau.no_grad()
def _post_backward_final_callback(state: Any, module: Any) -> None:
    """At the end of a backward pass: everything is given back."""
    for inner, handle in state._in_backward:
        if handle._training_state is not HandleTrainingState.BACKWARD_POST:
            _reshard(inner, handle, True)
        handle._training_state = HandleTrainingState.IDLE
        inner.training_state = TrainingState.IDLE
    state._in_backward.clear()
    state._callback_queued = False
    state.training_state = TrainingState.IDLE
