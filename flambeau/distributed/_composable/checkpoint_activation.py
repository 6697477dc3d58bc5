"""`checkpoint`: a module whose activations are computed again in the backward pass."""
from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.distributed._composable.contract import contract
from flambeau.distributed._composable_state import _State
from flambeau.utils.checkpoint import checkpoint as _checkpoint


class _CheckpointState(_State):
    """Are activations computed again?"""
    enable_hook: bool = False


@contract(_CheckpointState)
def checkpoint(module: nn.Module, **kwargs: Any) -> nn.Module:
    """Let a module's activations be computed again in the backward pass; its class and the names
    in it stay. `kwargs` go to `flambeau.utils.checkpoint.checkpoint`.

    >>> layer = checkpoint(nn.Linear(2, 1))
    >>> layer(flambeau.ones(1, 2)).sum().backward()
    >>> layer.weight.grad
    tensor([[1., 1.]])
    """
    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError("use_reentrant=True is not supported in composable checkpoint. "
                                  "Please use torch.utils.checkpoint.checkpoint instead.")
    checkpoint.state(module).enable_hook = True
    forward = module.forward

    def again(*args: Any, **call_kwargs: Any) -> Any:
        return _checkpoint(forward, *args, use_reentrant=False, **kwargs, **call_kwargs)
    module.forward = again
    return module
