"""`replicate`: a module whose gradients all processes share, as in `DistributedDataParallel`."""
from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, NoReturn

from flambeau import nn
from flambeau.distributed._composable.contract import _get_registry, contract
from flambeau.distributed._composable_state import _State
from flambeau.nn.parallel import DistributedDataParallel


class _ReplicateState(_State):
    """The `DistributedDataParallel` that shares the gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.module: nn.Module = nn.Module()
        self.has_initialized = False
        self._ddp_weakref: Any = None


def unimplemented_deepcopy(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to copy a module whose gradients are shared."""
    raise AssertionError("DDP does not support deepcopy. Please use state dict for serialization.")


class DDP:
    """What modules given to `replicate` are, too."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Are gradients shared?"""
        ddp = replicate.state(self)._ddp_weakref
        ddp.require_backward_grad_sync = ddp.reducer.enabled = requires_gradient_sync

    def register_comm_hook(self, *args: Any, **kwargs: Any) -> None:
        """`DistributedDataParallel.register_comm_hook`."""
        replicate.state(self)._ddp_weakref.register_comm_hook(*args, **kwargs)


@contract(_ReplicateState)
def replicate(module: nn.Module, ignored_modules: Iterable[nn.Module] | None = None,
              **kwargs: Any) -> nn.Module:
    """Let all processes share a module's gradients; its names stay. `kwargs` are those of
    `DistributedDataParallel`.

    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> layer = replicate(nn.Linear(2, 1))
    >>> layer(flambeau.ones(1, 2)).sum().backward()
    >>> layer.weight.grad
    tensor([[1., 1.]])
    >>> dist.destroy_process_group()
    """
    if "device_id" in kwargs and not isinstance(kwargs["device_id"], (int, type(None))) \
            and not hasattr(kwargs["device_id"], "type"):
        raise RuntimeError("Expected device_id to be int or torch.device, but got "
                           f"{type(kwargs['device_id'])}")
    kwargs.pop("device_id", None)
    if _is_fully_sharded(module):
        raise RuntimeError("Cannot apply `replicate()` on a Module already managed by "
                           "`fully_shard`")
    state = replicate.state(module)
    ignored = [name for path, inner in module.named_modules() if inner in set(ignored_modules or ())
               for name in (f"{path}.{n}" for n, _ in inner.named_parameters())]
    if ignored:
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, ignored)
    # The wrapper sees a module with the parameters and nothing to call.
    ddp = DistributedDataParallel(module, **kwargs)
    state.module, state.has_initialized = module, True
    state._ddp_weakref = ddp
    reference = weakref.ref(ddp)

    def before(_module: nn.Module, args: Any, call_kwargs: Any) -> Any:
        return reference()._pre_forward(*args, **call_kwargs)

    def after(_module: nn.Module, _args: Any, output: Any) -> Any:
        return reference()._post_forward(output)
    module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
    module.register_forward_hook(after)
    cls = module.__class__
    module.__class__ = type(f"DDP{cls.__name__}", (DDP, cls),
                            {"__deepcopy__": unimplemented_deepcopy})
    return module


def _is_fully_sharded(module: nn.Module) -> bool:
    """Has `fully_shard` been applied to it?"""
    return "fully_shard" in (_get_registry(module) or {})
