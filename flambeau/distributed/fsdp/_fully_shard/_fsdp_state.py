"""`FSDPState`: what happens before and after the passes of a module."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.autograd.variable import Variable
from flambeau.distributed._composable_state import _get_module_state, _insert_module_state, _State
from flambeau.distributed.fsdp._fully_shard._fsdp_api import MixedPrecisionPolicy
from flambeau.distributed.fsdp._fully_shard._fsdp_common import TrainingState, _cast_fp_tensor
from flambeau.distributed.fsdp._fully_shard._fsdp_param_group import (
    FSDPCommContext,
    FSDPParamGroup,
    _Pass,
)
from flambeau.distributed.utils import _apply_to_tensors
from flambeau.utils._pytree import tree_map


class FSDPStateContext:
    """What all modules below one root share."""

    def __init__(self) -> None:
        self.all_states: list[FSDPState] = []
        self.iter_forward_root: FSDPState | None = None
        self.post_backward_final_callback_queued = False
        self.is_last_backward = True
        self.post_optim_event: Any = None


class FSDPState(_State):
    """The state of one `fully_shard`: its parameters, and what its modules are doing."""

    _state_name = "FSDP"

    def __init__(self) -> None:
        super().__init__()
        self._fsdp_param_group: FSDPParamGroup | None = None
        self._is_root: bool | None = None       # unknown until the first pass
        self._state_ctx = FSDPStateContext()
        self._comm_ctx = FSDPCommContext()
        self._training_state = TrainingState.IDLE
        self._states_to_forward_prefetch: list[FSDPState] = []
        self._states_to_backward_prefetch: list[FSDPState] = []
        self._modules_to_run_forward: set[nn.Module] = set()
        self._auto_reshard_after_forward = False
        self._modules: tuple[nn.Module, ...] = ()
        self._pass: _Pass | None = None

    def init(self, modules: tuple[nn.Module, ...], device: flambeau.device,
             mp_policy: MixedPrecisionPolicy, auto_reshard_after_forward: bool) -> None:
        """Watch the passes of modules."""
        for module in modules:
            _insert_module_state(module, self)
        self._modules, self._device, self._mp_policy = modules, device, mp_policy
        self._auto_reshard_after_forward = auto_reshard_after_forward
        if len(modules) == 1:
            modules[0].register_forward_pre_hook(self._pre_forward, prepend=True, with_kwargs=True)
            modules[0].register_forward_hook(self._post_forward, prepend=False)
        else:
            _register_group_forward_hooks(modules, self._pre_forward, self._post_forward,
                                          self._modules_to_run_forward, self._cast_output_dtype)

    # ---- the root -------------------------------------------------------------------------------

    def _lazy_init(self) -> None:
        """At the first pass: this is the root of the modules below it."""
        if self._is_root is not None:
            return
        self._is_root = True
        if len(self._modules) > 1:
            raise RuntimeError(f"FSDP requires a single root module but got {self._modules}")
        root = self._modules[0]
        states = {}
        for name, module in root.named_modules():
            state = _get_module_state(module)
            if isinstance(state, FSDPState) and state not in states:
                if state is not self and state._is_root is not None:
                    raise RuntimeError("FSDP state has already been lazily initialized for "
                                       f"{name}\nFSDP requires running forward through the root "
                                       "module first")
                states[state] = name
        for state in states:
            state._is_root = state is self
            self._state_ctx.all_states.append(state)
        if self._fsdp_param_group and self._auto_reshard_after_forward:
            self._fsdp_param_group.post_forward_mesh_info = None    # needed at once in backward
        self._init_fqns()
        for state in states:
            state._state_ctx, state._comm_ctx = self._state_ctx, self._comm_ctx
            if state._fsdp_param_group:
                state._fsdp_param_group.comm_ctx = self._comm_ctx
                state._fsdp_param_group.lazy_init()

    def _init_fqns(self) -> None:
        root = self._modules[0]
        names = {id(p): name for name, p in root.named_parameters(remove_duplicate=False)}
        modules = {id(m): name for name, m in root.named_modules()}
        for state in self._state_ctx.all_states:
            group = state._fsdp_param_group
            if group:
                for param in group.fsdp_params:
                    param._param_fqn = names.get(id(param.sharded_param))
                group._module_fqn = ", ".join(modules.get(id(m), "") for m in group.modules)

    def _root_pre_forward(self) -> None:
        self._lazy_init()
        if self._state_ctx.iter_forward_root is not None:
            return
        self._state_ctx.iter_forward_root = self
        self._comm_ctx.post_forward_order.clear()

    def _reset_iter_state(self) -> None:
        """Forget a forward pass that no backward pass has followed."""
        self._state_ctx.iter_forward_root = None
        for state in self._state_ctx.all_states or [self]:
            state._training_state = TrainingState.IDLE
            if state._fsdp_param_group:
                state._fsdp_param_group.finalize_backward()

    # ---- forward --------------------------------------------------------------------------------

    def _pre_forward(self, module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        if self._training_state is TrainingState.PRE_BACKWARD:      # computed again
            return self._cast_forward_inputs(args, kwargs)
        self._root_pre_forward()
        self._training_state = TrainingState.FORWARD
        args, kwargs = self._cast_forward_inputs(args, kwargs)
        if self._fsdp_param_group:
            self._pass = self._fsdp_param_group.pre_forward()
        for state in self._states_to_forward_prefetch:
            if state._fsdp_param_group:
                state._fsdp_param_group.unshard(async_op=True)
        return args, kwargs

    def _post_forward(self, module: nn.Module, input: Any, output: Any) -> Any:
        if self._training_state is TrainingState.PRE_BACKWARD:
            return self._cast_output_dtype(output)
        this, self._pass = self._pass, None
        output = self._register_pre_backward_hook(output, this)
        if self._fsdp_param_group:
            self._fsdp_param_group.post_forward()
        self._training_state = TrainingState.IDLE
        if self._state_ctx.iter_forward_root is self:
            self._state_ctx.iter_forward_root = None
        return self._cast_output_dtype(output)

    def _cast_forward_inputs(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        dtype = self._mp_policy.param_dtype
        if dtype is None or not self._mp_policy.cast_forward_inputs:
            return args, kwargs
        return tree_map(lambda x: _cast_fp_tensor(dtype, x), (args, kwargs))

    def _cast_output_dtype(self, output: Any) -> Any:
        dtype = self._mp_policy.output_dtype
        if dtype is None:
            return output
        return tree_map(lambda x: _cast_fp_tensor(dtype, x), output)

    # ---- backward -------------------------------------------------------------------------------

    def _register_pre_backward_hook(self, output: Any, of: _Pass | None = None) -> Any:
        """Be told when the gradient of an output arrives."""
        if not flambeau.is_grad_enabled():
            return output
        views = []

        def register(tensor: Tensor) -> Tensor:
            if tensor.requires_grad:
                tensor.register_hook(lambda grad: self._pre_backward(grad, of))
                if tensor._is_view():
                    views.append(tensor)
            return tensor
        _apply_to_tensors(register, output)
        if views:
            warnings.warn(f"{self._state_name}-wrapped module ({type(self._modules[0]).__name__}) "
                          "returned a view tensor. An in-place op on it replaces it in the graph: "
                          "write `out = out + y` rather than `out += y`, or clone it before.",
                          stacklevel=2)
        return output

    def _pre_backward(self, grad: Tensor, of: _Pass | None = None) -> Tensor:
        self._training_state = TrainingState.PRE_BACKWARD
        self._register_root_post_backward_final_callback()
        group = self._fsdp_param_group
        if group:
            group.pre_backward(of)
            if self._states_to_backward_prefetch:
                for state in self._states_to_backward_prefetch:
                    if state._fsdp_param_group:
                        state._fsdp_param_group.unshard(async_op=True)
            else:
                group.prefetch_backward()
        return grad

    def _register_root_post_backward_final_callback(self) -> None:
        if not self._state_ctx.post_backward_final_callback_queued:
            self._state_ctx.post_backward_final_callback_queued = True
            Variable._execution_engine.queue_callback(self._root_post_backward_final_callback)

    def _root_post_backward_final_callback(self) -> None:
        for state in self._state_ctx.all_states:
            state._training_state = TrainingState.IDLE
            if state._fsdp_param_group and self._state_ctx.is_last_backward:
                state._fsdp_param_group.finalize_backward()
        if self._state_ctx.is_last_backward:
            self._comm_ctx.post_forward_order.clear()
        self._state_ctx.post_backward_final_callback_queued = False


def _get_module_fsdp_state(module: nn.Module) -> FSDPState | None:
    """What `fully_shard` knows of a module; None if it has not been applied."""
    state = _get_module_state(module)
    return state if isinstance(state, FSDPState) else None


def _register_group_forward_hooks(modules: Sequence[nn.Module], pre_hook: Any, post_hook: Any,
                                  modules_to_run: set[nn.Module], cast_output_dtype: Any) -> None:
    """Run a hook before the first of some modules, and one after the last."""
    expected = set(modules)

    def before(module: nn.Module, args: Any, kwargs: Any) -> Any:
        if not modules_to_run:
            modules_to_run.update(expected)
            return pre_hook(module, args, kwargs)
        return args, kwargs

    def after(module: nn.Module, args: Any, output: Any) -> Any:
        modules_to_run.discard(module)
        return post_hook(module, args, output) if not modules_to_run else cast_output_dtype(output)
    for module in modules:
        module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
        module.register_forward_hook(after, always_call=True)
