"""What a backend needs to know of the modules that a graph calls, written into its nodes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import nn
from flambeau.fx.graph_module import GraphModule
from flambeau.ops.view.memory import typename

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name: str, target_version: int) -> str:
    """The name that an attribute has in that version of its module: the same.

    >>> default_matching("weight", 1)
    'weight'
    """
    return name


# Of each class the newest version that is known, its attributes, and their names in older ones.
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    kind: (version, names.split(), default_matching) for kind, version, names in (
        (nn.Linear, 1, "weight bias"),
        (nn.Conv2d, 1, "weight bias kernel_size stride padding dilation groups padding_mode"),
        (nn.BatchNorm2d, 2, "weight bias running_mean running_var eps"),
        (nn.AdaptiveAvgPool2d, 1, ""),
        (nn.MaxPool2d, 1, "kernel_size stride padding dilation return_indices ceil_mode"),
        (nn.ReLU, 1, "inplace"))}


def extract_attrs_for_lowering(mod: nn.Module) -> dict[str, Any]:
    """The attributes of a module of a class in `module_fetch_book`, and the name of its class."""
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{typename(mod)} is not in the module_fetch_book yet: add it")
    version, names, matching = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(f"Fetcher version {version} try to fetch {typename(mod)} version "
                           f"{mod._version}: bring its entry in the module_fetch_book up to date")
    return {"name": typename(mod)} | {
        name: getattr(mod, matching(name, mod._version)) for name in names}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Give the nodes that call modules their attributes as `attrs_for_lowering`, also those of
    graphs inside."""
    submodules = dict(fx_module.named_modules())
    for node in fx_module.graph.find_nodes(op="call_module"):
        called = submodules[node.target]
        if isinstance(called, GraphModule):
            lift_lowering_attrs_to_nodes(called)
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(called)
