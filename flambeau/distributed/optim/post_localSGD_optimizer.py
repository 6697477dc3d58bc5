"""`PostLocalSGDOptimizer`: steps of one's own, and averages from time to time."""
from __future__ import annotations

import warnings
from typing import Any

from flambeau.optim import Optimizer


class PostLocalSGDOptimizer(Optimizer):
    """Calls `averager.average_parameters` after each step of `optim`.

    Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", 2018,
    https://arxiv.org/abs/1808.07217.
    """

    def __init__(self, optim: Optimizer, averager: Any):
        self.optim, self.averager = optim, averager
        super().__init__([{**group} for group in optim.param_groups], optim.defaults)
        self.param_groups, self.state = optim.param_groups, optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The state of `optim`, and the averager's step."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        if "step" not in state_dict:
            warnings.warn("Loaded state dict does not contain a step counter for an averager. "
                          "Setting step counter to 0.", stacklevel=2)
        self.averager.step = state_dict.get("step", 0)
        self.optim.load_state_dict({k: v for k, v in state_dict.items() if k != "step"})
        self.param_groups, self.state = self.optim.param_groups, self.optim.state

    def step(self) -> None:
        """A step of `optim`, then the average."""
        self.optim.step()
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters."""
        if self.__dict__.get("param_groups") is self.optim.param_groups:
            self.optim.add_param_group(param_group)
        else:
            super().add_param_group(param_group)
