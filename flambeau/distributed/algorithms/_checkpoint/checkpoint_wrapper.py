"""Modules whose activations are computed again in the backward pass, or wait in main memory."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from flambeau import nn
from flambeau.autograd.graph import save_on_cpu
from flambeau.distributed.utils import _replace_by_prefix
from flambeau.utils.checkpoint import checkpoint

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Which of the two ways of `flambeau.utils.checkpoint.checkpoint`."""
    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(nn.Module, ABC):
    """A module in another, whose names stay those of the module: in state dicts and in
    `named_parameters`, the wrapper is not seen."""

    def __init__(self, mod: nn.Module):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self._register_load_state_dict_pre_hook(self._pre_load_state_dict_hook, with_module=True)

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module.__getitem__(key)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters of the module, under their names in it."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module: nn.Module, state_dict: dict[str, Any], prefix: str,
                              *args: Any) -> dict[str, Any]:
        _replace_by_prefix(state_dict, f"{prefix}{_CHECKPOINT_PREFIX}", prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module: nn.Module, state_dict: dict[str, Any], prefix: str,
                                  *args: Any) -> None:
        _replace_by_prefix(state_dict, prefix, f"{prefix}{_CHECKPOINT_PREFIX}")


class OffloadWrapper(ActivationWrapper):
    """What the module saves for its backward pass waits in main memory."""

    def __init__(self, mod: nn.Module):
        super().__init__(mod)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """What the module needs for its backward pass is computed again there."""

    def __init__(self, mod: nn.Module,
                 checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
                 checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = checkpoint
            checkpoint_fn_kwargs = {
                "use_reentrant": checkpoint_impl is CheckpointImpl.REENTRANT,
                **checkpoint_fn_kwargs}
        self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        module = self._checkpoint_wrapped_module
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(module, *args, **kwargs)
        # The reentrant way takes tensors by position only.
        names, count = tuple(kwargs), len(args)

        def call(*inputs: Any) -> Any:
            return module(*inputs[:count], **dict(zip(names, inputs[count:])))
        return self.checkpoint_fn(call, *args, *kwargs.values())


def offload_wrapper(module: nn.Module) -> nn.Module:
    """`module`, whose saved activations wait in main memory: see `OffloadWrapper`."""
    return OffloadWrapper(module)


def checkpoint_wrapper(module: nn.Module,
                       checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
                       checkpoint_fn: Callable[..., Any] | None = None,
                       **checkpoint_fn_kwargs: Any) -> nn.Module:
    """`module`, whose activations are computed again in the backward pass.

    `checkpoint_fn(function, *args, **checkpoint_fn_kwargs)` takes the place of
    `flambeau.utils.checkpoint.checkpoint`.

    >>> layer = checkpoint_wrapper(nn.Linear(2, 1))
    >>> list(layer.state_dict())
    ['weight', 'bias']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
        model: nn.Module, checkpoint_wrapper_fn: Callable[..., nn.Module] = checkpoint_wrapper,
        check_fn: Callable[[nn.Module], bool] = lambda _: True,
        auto_wrap_policy: Any = None) -> None:
    """Wrap the modules in `model` that `check_fn`, or an FSDP wrapping policy, chooses.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    >>> apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, nn.Linear))
    >>> type(model[0]).__name__, type(model[1]).__name__
    ('CheckpointWrapper', 'Tanh')
    """
    from flambeau.distributed.fsdp.wrap import (
        _construct_wrap_fn,
        _Policy,
        _post_order_apply,
        _recursive_wrap,
        lambda_auto_wrap_policy,
    )
    if isinstance(auto_wrap_policy, _Policy):
        targets = auto_wrap_policy._run_policy(model, ignored_modules=set(), root_kwargs={})
        _post_order_apply(model, _construct_wrap_fn(model, targets, checkpoint_wrapper_fn))
        return
    _recursive_wrap(model, auto_wrap_policy or partial(lambda_auto_wrap_policy,
                                                       lambda_fn=check_fn),
                    checkpoint_wrapper_fn, set(), set(), only_wrap_children=True)
