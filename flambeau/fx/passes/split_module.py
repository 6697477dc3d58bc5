"""`split_module`: a graph as several, which call each other."""
from __future__ import annotations

from collections.abc import Callable
from operator import getitem as _getitem
from typing import Any

from flambeau import nn
from flambeau.fx import Graph, GraphModule, Node
from flambeau.fx.graph_module import _get_attr
from flambeau.fx.node import map_arg


class Partition:
    """The nodes of one of the new graphs, and what goes in and out."""

    def __init__(self, name: str):
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n "
                f"outputs: {self.outputs},\n partitions depended on: {self.dependencies},\n "
                f"partition dependents: {self.dependents}")


def split_module(m: GraphModule, root_m: nn.Module, split_callback: Callable[[Node], Any],
                 qualname_map: dict[str, str] | None = None, keep_original_order: bool = False,
                 keep_original_node_name: bool = False,
                 keep_original_input_name: bool = True, *, partition_affix: str | None = None,
                 tuple_return: bool = False) -> GraphModule:
    """A module that calls a submodule `submod_<n>` for the nodes of `m` to which `split_callback`
    gives `n`.

    >>> import flambeau
    >>> from flambeau import fx
    >>> gm = fx.symbolic_trace(lambda x: flambeau.sin(x).cos() + 1)
    >>> parts = split_module(gm, gm, lambda node: int(node.name != "sin"))
    >>> print(parts.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    affix = f"{partition_affix}_" if partition_affix else ""
    of: dict[Node, Partition] = {}
    partitions: dict[str, Partition] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        name = affix + str(split_callback(node))
        part = partitions.setdefault(name, Partition(name))
        part.node_names.append(node.name)
        of[node] = part
    _connect(m, of, partitions)
    order = _sorted(partitions)             # which refuses cycles
    if keep_original_order:
        order = list(partitions.values())
    for node in m.graph.nodes:
        if node in of:
            _copy_node(m, node, of[node], qualname_map, keep_original_node_name,
                       keep_original_input_name)
    return _assembled(m, of, order, tuple_return)


def _connect(m: GraphModule, of: dict[Node, Partition], partitions: dict[str, Partition]) -> None:
    """Find what each part takes and gives."""
    for user in m.graph.nodes:
        for used in user.all_input_nodes:
            source, target = of.get(used), of.get(user)
            if source is target:
                continue
            if source is not None:
                source.outputs.setdefault(used.name)
            if target is not None:
                target.inputs.setdefault(used.name)
            if source is not None and target is not None:
                target.dependencies.setdefault(source.name)
                source.dependents.setdefault(target.name)


def _sorted(partitions: dict[str, Partition]) -> list[Partition]:
    """The parts, each after those that it needs."""
    waiting = {name: len(part.dependencies) for name, part in partitions.items()}
    ready = [name for name, count in waiting.items() if not count]
    found: list[Partition] = []
    while ready:
        part = partitions[ready.pop(0)]
        found.append(part)
        for name in part.dependents:
            waiting[name] -= 1
            if not waiting[name]:
                ready.append(name)
    if len(found) != len(partitions):
        raise RuntimeError("cycle exists between partitions!")
    return found


def _copy_node(m: GraphModule, node: Node, part: Partition, qualname_map: Any,
               keep_name: bool, keep_input_name: bool) -> None:
    """Put a node into the graph of its part."""
    def value(used: Node) -> Node:
        if used not in part.environment:
            name = used.name if keep_input_name else \
                f"arg_{len(part.graph.find_nodes(op='placeholder'))}"
            made = part.graph.placeholder(name, type_expr=used.type)
            made.meta = used.meta.copy()
            part.environment[used] = made
        return part.environment[used]
    args, kwargs = map_arg(node.args, value), map_arg(node.kwargs, value)
    target = node.target
    if node.op == "call_module":
        target = node.target.replace(".", "_")
        part.targets[target] = m.get_submodule(node.target)
        if qualname_map is not None:
            qualname_map[f"{part.submod_name}.{target}"] = node.target
    made = part.graph.create_node(node.op, target, args, kwargs, node.name if keep_name else None,
                                  node.type)
    made.meta = node.meta.copy()
    part.environment[node] = made


def _assembled(m: GraphModule, of: dict[Node, Partition], order: list[Partition],
               tuple_return: bool) -> GraphModule:
    """The module that calls the parts."""
    by_name = {node.name: node for node in m.graph.nodes}
    graph = Graph()
    root: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = {"default_value": node.args[0]} if node.args else {}
            values[node.name] = graph.placeholder(node.target, type_expr=node.type, **default)
            values[node.name].meta = node.meta.copy()
        elif node.op == "get_attr":         # the parts get what it holds
            values[node.name] = graph.get_attr(node.target)
            values[node.name].meta = node.meta.copy()
    for part in order:
        _order_inputs(part, by_name)
        results = [part.environment[by_name[name]] for name in part.outputs]
        single = len(results) == 1 and not tuple_return
        if results:
            part.graph.output(results[0] if single else tuple(results))
        root[part.submod_name] = GraphModule(_holder(part), part.graph)
        called = graph.call_module(part.submod_name, tuple(
            values[node.name] for node in part.environment if node.name in part.inputs))
        for i, name in enumerate(part.outputs):
            values[name] = called if single else graph.call_function(_getitem, (called, i))
    for node in graph.find_nodes(op="get_attr"):
        root[node.target] = _get_attr(m, node.target)
    output = m.graph.output_node()
    graph.output(map_arg(output.args[0], lambda n: values[n.name])).meta = output.meta.copy()
    return GraphModule(root, graph)


def _order_inputs(part: Partition, by_name: dict[str, Node]) -> None:
    """Put the placeholders of a part first, in the order in which they were met."""
    places = [n for n in part.graph.nodes if n.op == "placeholder"]
    first = next(iter(part.graph.nodes))
    for node in places:
        if node is not first:
            first.prepend(node)
    met = [part.environment[n] for n in part.environment if n.name in part.inputs]
    for node in reversed(met):
        head = next(iter(part.graph.nodes))
        if head is not node:
            head.prepend(node)


def _holder(part: Partition) -> nn.Module:
    holder = nn.Module()
    for name, value in part.targets.items():
        setattr(holder, name, value)
    return holder


__all__ = ["Partition", "split_module"]
