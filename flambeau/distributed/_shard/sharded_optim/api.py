"""`ShardedOptimizer`: an optimizer of the pieces that this process has."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from flambeau import Tensor
from flambeau.distributed._shard.sharded_tensor import ShardedTensor
from flambeau.optim import Optimizer


class ShardedOptimizer(Optimizer):
    """Wraps an optimizer of parameters, and of this process's pieces of sharded ones."""

    def __init__(self, named_params: Mapping[str, Tensor | ShardedTensor], optimizer_class: Any,
                 *optimizer_args: Any, **optimizer_kwargs: Any):
        tensors: list[Tensor] = []
        for value in named_params.values():
            if isinstance(value, ShardedTensor):
                tensors.extend(shard.tensor for shard in value.local_shards())
            else:
                tensors.append(value)
        self._optimizer_step_pre_hooks = OrderedDict()
        self._optimizer_step_post_hooks = OrderedDict()
        self.named_params = named_params
        self._optim = optimizer_class(tensors, *optimizer_args, **optimizer_kwargs)
        self.param_groups, self.state = self._optim.param_groups, self._optim.state

    def add_param_group(self, param_group: Any) -> None:
        """Not there: in PyTorch neither."""
        raise NotImplementedError("ShardedOptimizer add_param_group not implemented yet!")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self._optim.zero_grad(set_to_none)

    def step(self, closure: Any = None) -> None:
        """A step of the optimizer."""
        self._optim.step(closure)

    def state_dict(self) -> dict[str, Any]:
        """Not there: in PyTorch neither."""
        raise NotImplementedError("ShardedOptimizer state_dict not implemented yet!")

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Not there: in PyTorch neither."""
        raise NotImplementedError("ShardedOptimizer load_state_dict not implemented yet!")
