"""Hooks whose optimizer steps follow as soon as a bucket of gradients has been shared."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.futures import Future

__all__: list[str] = []

Hook = Callable[[Any, Any], Future]
_FUNCTIONAL_OPTIM_STEP_METHOD_NAME = "step_param"


class _OptimizerHookState:
    """An optimizer that steps for one parameter at a time, and the parameters, by default all."""

    __slots__ = ["functional_optimizer", "params_to_optimize"]

    def __init__(self, functional_optim: Any, params: Any = None):
        self.functional_optimizer = functional_optim
        if not hasattr(functional_optim, _FUNCTIONAL_OPTIM_STEP_METHOD_NAME):
            raise ValueError(f"Class {type(functional_optim)} must implement method "
                             f"{_FUNCTIONAL_OPTIM_STEP_METHOD_NAME}.")
        self._set_params_to_optimize(params)

    def _set_params_to_optimize(self, params: Any) -> None:
        self.params_to_optimize = None if params is None else {id(p) for p in params}


@dataclass
class _OptimInBackwardHookState:
    """There are no streams on the CPU: nothing to wait for."""
    optim_stream: Any
    wait_for_optim_stream_enqueued: bool


def _apply_optim_in_backward_hook(gradient_is_bucket_view: bool) -> Hook:
    """A hook that takes the mean, and steps the `_in_backward_optimizers` of the parameters."""
    def apply_optim_in_backward_hook(hook_state: Any, bucket: Any) -> Future[Tensor]:
        mean = hook_state[0]().reducer._run_allreduce_hook(bucket)

        def step(done: Future) -> Tensor:
            flat = done.value()
            with flambeau.no_grad():
                for parameter, gradient in zip(bucket.parameters(), bucket.gradients()):
                    optimizers = getattr(parameter, "_in_backward_optimizers", ())
                    if optimizers:
                        parameter.grad = gradient
                    for optimizer in optimizers:
                        optimizer.step()
            return flat[0] if isinstance(flat, (list, tuple)) else flat
        return mean.then(step)
    return apply_optim_in_backward_hook


def _hook_then_optimizer(hook: Hook, optimizer_state: _OptimizerHookState) -> Hook:
    """`hook`, and a step of the optimizer for the parameters of the bucket."""
    def hook_then_optimizer_wrapper(hook_state: Any, bucket: Any) -> Future[Tensor]:
        def step(done: Future) -> Tensor:
            done.value()
            wanted = optimizer_state.params_to_optimize
            for gradient, parameter in zip(bucket.gradients(), bucket.parameters()):
                if wanted is None or id(parameter) in wanted:
                    optimizer_state.functional_optimizer.step_param(parameter, gradient)
            return bucket.buffer()
        return hook(hook_state, bucket).then(step)
    return hook_then_optimizer_wrapper
