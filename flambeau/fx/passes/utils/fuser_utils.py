"""Parts of a graph as modules of their own: `fuse_by_partitions`."""
from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Sequence

from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node
from flambeau.fx.passes.tools_common import stable_topological_sort

Nodes = tuple[Node, ...]


def topo_sort(nodes: list[Node]) -> list[Node]:
    """The nodes, each after those of them that it uses."""
    waiting = {node: sum(used in nodes for used in node.all_input_nodes) for node in nodes}
    ready = deque(node for node, count in waiting.items() if not count)
    found = []
    while ready:
        node = ready.popleft()
        found.append(node)
        for user in node.users:
            if user in waiting:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
    if len(found) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return found


def validate_partition(partition: list[Node]) -> bool:
    """Can these be one node? Not if what uses one of them is used by another."""
    inside = set(partition)
    outside = {user for node in partition for user in node.users if user not in inside}
    return not (downstream(outside) & inside)


def downstream(nodes: Iterable[Node]) -> set[Node]:
    """The nodes, and all that use them, directly or not."""
    found, waiting = set(nodes), list(nodes)
    while waiting:
        for user in waiting.pop().users:
            if user not in found:
                found.add(user)
                waiting.append(user)
    return found


def fuse_as_graphmodule(gm: GraphModule, nodes: list[Node], module_name: str,
                        partition_lookup_table: dict[Node, int | None] | None = None, *,
                        always_return_tuple: bool = False) -> tuple[GraphModule, Nodes, Nodes]:
    """A module that does what these nodes do, the nodes that it needs, and those of the nodes that
    others use. Graph and module stay as they are."""
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module "
                                 f"{gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    inside = dict.fromkeys(nodes) if partition_lookup_table is None else partition_lookup_table
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    graph, copies, needed = Graph(), dict[Node, Node](), dict[Node, Node]()

    def copied(used: Node) -> Node:
        if used in inside:
            return copies[used]
        if used not in needed:
            needed[used] = graph.placeholder(used.name, type_expr=used.type)
            needed[used].meta = used.meta.copy()
        return needed[used]

    for node in nodes:
        copies[node] = graph.node_copy(node, copied)
    given = {node: copies[node] for node in nodes
             if any(user not in inside for user in node.users)}
    results = tuple(given.values())
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    graph.lint()
    made = GraphModule(gm, graph, class_name=module_name)
    return made, tuple(needed), tuple(given)


def insert_subgm(gm: GraphModule, sub_gm: GraphModule, orig_inputs: Nodes, orig_outputs: Nodes,
                 insertion_point: Node | None = None) -> GraphModule:
    """Let a call of `sub_gm` stand for nodes: what used `orig_outputs` uses what it gives."""
    name = sub_gm.__class__.__name__
    gm.add_submodule(name, sub_gm)
    with gm.graph.inserting_after(insertion_point):
        called = gm.graph.call_module(name, args=orig_inputs, kwargs=None)
        result = next(iter(reversed(sub_gm.graph.nodes))).args[0]
        if len(orig_outputs) == 1 and not isinstance(result, tuple):
            orig_outputs[0].replace_all_uses_with(called, propagate_meta=True)
        else:
            with gm.graph.inserting_after(called):
                for i, node in enumerate(orig_outputs):
                    part = gm.graph.call_function(operator.getitem, (called, i))
                    node.replace_all_uses_with(part, propagate_meta=True)
            called.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: Sequence[Node]) -> None:
    """Take out nodes that nothing else uses; they are given in the order in which they run."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(gm: GraphModule, partitions: list[dict[Node, int | None]],
                       prefix: str = "fused_", always_return_tuple: bool = False) -> GraphModule:
    """Let each of these sets of nodes be one call of a module."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made, needed, given = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple)
        insert_subgm(gm, made, needed, given, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
