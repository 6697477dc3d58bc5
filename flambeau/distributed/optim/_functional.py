"""Optimizers that are given gradients, instead of finding them at the parameters."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.optim import Optimizer


class FunctionalOptimizer:
    """Steps of an optimizer for gradients that are given.

    A subclass says which optimizer, in `optimizer_class`. `defaults` holds its numbers; switches
    are attributes.
    """

    optimizer_class: type[Optimizer]

    def __init__(self, params: list[Tensor], allow_empty: bool, numbers: dict[str, Any],
                 switches: dict[str, Any], **more: Any):
        if not params and not allow_empty:
            raise ValueError("optimizer got an empty parameter list")
        self.defaults = dict(numbers)
        for name, value in switches.items():
            setattr(self, name, value)
        options = {**_joined(numbers), **switches, **more}
        for name in ("foreach", "fused"):       # not asking is None there
            if name in options:
                options[name] = options[name] or None
        placeholder = flambeau.empty(0, requires_grad=True)
        self._optimizer = self.optimizer_class(params or [placeholder], **options)
        self.param_group = self._optimizer.param_groups[0]
        if not params:
            self.param_group["params"].clear()

    @property
    def state(self) -> dict[Tensor, dict[str, Any]]:
        """What the optimizer keeps for each parameter."""
        return self._optimizer.state

    def step(self, gradients: list[Tensor | None]) -> None:
        """A step along these gradients, one for each parameter."""
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError("the gradients passed in does not equal to the size of the "
                             f"parameters!Params length: {len(params)}. "
                             f"Gradients length: {len(gradients)}")
        self._step(params, gradients)

    def _step(self, params: list[Tensor], gradients: list[Tensor | None]) -> None:
        before, every = [p.grad for p in params], self.param_group["params"]
        self.param_group["params"] = params
        self.param_group.update(_joined(self.defaults))
        try:
            for param, gradient in zip(params, gradients):
                param.grad = gradient
            self._optimizer.step()
        finally:
            self.param_group["params"] = every
            for param, gradient in zip(params, before):
                param.grad = gradient


class StepsSingly(FunctionalOptimizer):
    """One that can also step for a single parameter."""

    def step_param(self, param: Tensor, grad: Tensor | None) -> None:
        """A step for one parameter."""
        self._step([param], [grad])


def _joined(numbers: dict[str, Any]) -> dict[str, Any]:
    """`beta1` and `beta2` as one argument, `betas`; what only the form knows left out."""
    found = {name: value for name, value in numbers.items()
             if not name.startswith("warmup") and name not in ("beta1", "beta2")}
    if "beta1" in numbers:
        found["betas"] = numbers["beta1"], numbers["beta2"]
    return found
