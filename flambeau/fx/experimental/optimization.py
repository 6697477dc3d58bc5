"""Optimizations of modules for inference, on their graphs."""
from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from flambeau import fx, nn
from flambeau.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval


def matches_module_pattern(pattern: Iterable[type], node: fx.Node, modules: dict[str, Any]) -> bool:
    """Does a node call a module of the second type of what a module of the first gave?"""
    if not node.args:
        return False
    for expected, current in zip(pattern, (node.args[0], node)):
        if not isinstance(current, fx.Node) or current.op != "call_module" \
                or type(modules.get(str(current.target))) is not expected:
            return False
    return True


def replace_node_module(node: fx.Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Let a node call another module under the same name."""
    parent, _, name = str(node.target).rpartition(".")
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """A model in evaluation mode with each normalisation over batches made part of the convolution
    or the linear layer before it.

    >>> model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)).eval()
    >>> [name for name, _ in fuse(model).named_children()]
    ['0']
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, fx.GraphModule) else fx.symbolic_trace(model)
    modules = dict(traced.named_modules())
    pairs = [((conv, norm), fuse_conv_bn_eval) for conv, norm in (
        (nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d))]
    for pattern, join in (*pairs, ((nn.Linear, nn.BatchNorm1d), fuse_linear_bn_eval)):
        for node in traced.graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            before: Any = node.args[0]
            norm = modules[node.target]
            if len(before.users) > 1 or not norm.track_running_stats:
                continue
            replace_node_module(before, modules, join(modules[before.target], norm))
            node.replace_all_uses_with(before)
            traced.graph.erase_node(node)
    return fx.GraphModule(traced, traced.graph)


def remove_dropout(model: nn.Module) -> nn.Module:
    """The model as a graph without its dropout layers.

    >>> print(remove_dropout(nn.Sequential(nn.Dropout(), nn.ReLU())).code.strip())
    def forward(self, input):
        input_1 = input
        _1 = getattr(self, "1")(input_1);  input_1 = None
        return _1
    """
    traced = fx.symbolic_trace(model)

    class DropoutRemover(fx.Transformer):
        def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
            if isinstance(self.submodules[target], nn.Dropout):
                assert len(args) == 1
                return args[0]
            return super().call_module(target, args, kwargs)
    return DropoutRemover(traced).transform()


def extract_subgraph(orig_module: nn.Module, nodes: list[fx.Node], inputs: list[fx.Node],
                     outputs: list[fx.Node]) -> fx.GraphModule:
    """The nodes as a module of its own, from these inputs to these outputs."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for given in inputs:
        copies[given] = graph.placeholder(given.name)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return fx.GraphModule(orig_module, graph)


__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout",
           "replace_node_module"]
