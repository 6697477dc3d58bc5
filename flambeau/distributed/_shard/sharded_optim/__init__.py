"""Optimizers of modules with sharded parameters."""
from __future__ import annotations

from collections.abc import Iterator

from flambeau import nn
from flambeau.distributed._shard.sharded_optim.api import ShardedOptimizer
from flambeau.distributed._shard.sharded_tensor import ShardedTensor


def named_params_with_sharded_tensor(module: nn.Module, prefix: str = "", recurse: bool = True
                                     ) -> Iterator[tuple[str, nn.Parameter | ShardedTensor]]:
    """The parameters of a module, and attributes that are sharded tensors, with their names."""
    modules = module.named_modules(prefix=prefix) if recurse else [(prefix, module)]
    seen = set()
    for path, part in modules:
        for name, value in vars(part).items():
            if isinstance(value, ShardedTensor) and value not in seen:
                seen.add(value)
                yield path + ("." if path else "") + name, value
    for name, value in module.named_parameters():
        if value not in seen:
            seen.add(value)
            yield name, value
