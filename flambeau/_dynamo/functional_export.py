"""The graph of a module's call, for `torch.export`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.fx import GraphModule


def dynamo_graph_capture_for_export(mod: Any, constraints: Any = None,
                                    restore_state_dict: bool = False) -> Callable[..., GraphModule]:
    """A function that, called with arguments, gives the graph of what `mod` does with them.

    >>> import flambeau
    >>> dynamo_graph_capture_for_export(flambeau.nn.ReLU())(flambeau.ones(1))(-flambeau.ones(1))
    tensor([0.])
    """
    from flambeau import nn
    from flambeau.export import export

    def inner(*args: Any, **kwargs: Any) -> GraphModule:
        module: Any = mod
        if not isinstance(mod, nn.Module):
            module = nn.Module()
            module.forward = mod
        return export(module, args, kwargs).module(check_guards=False)
    return inner


__all__ = ["dynamo_graph_capture_for_export"]
