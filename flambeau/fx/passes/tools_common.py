"""What passes over graphs have in common."""
from __future__ import annotations

import collections
import heapq
from collections.abc import Mapping
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.fx import GraphModule, Node

Tensors = tuple[Tensor] | list[Tensor]
TensorOrTensors = Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Mapping[str, nn.Module], node: Node) -> str:
    """The name of what a node calls: the class of a module, the qualified name of a function."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found "
                             f"{node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        return flambeau.typename(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        from flambeau.fx.node import _get_qualified_name
        function: Any = node.target
        return f"acc_ops.{function.__name__}" if "acc_ops" in (function.__module__ or "") \
            else _get_qualified_name(function)
    return str(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Does a node give a tensor? Its type has to be noted."""
    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, Tensor)


def get_acc_ops_name(k: Any) -> str:
    """The name of a function, as tables of supported functions have it."""
    if isinstance(k, str):
        return k
    module = k.__module__.replace("torch._ops", "torch.ops")
    return f"acc_ops.{k.__name__}" if "acc_ops" in module else f"{module}.{k.__name__}"


class FxNetAccFusionsFinder:
    """Groups nodes that pass each other what is no tensor: they cannot be split."""

    def __init__(self, module: GraphModule, acc_nodes: NodeSet):
        self.module, self.nodes, self.acc_nodes = module, list(module.graph.nodes), acc_nodes

    def __call__(self) -> dict[Node, NodeSet]:
        found: dict[Node, NodeSet] = {}
        for node in self.nodes:
            if node.op in CALLABLE_NODE_OPS and node in self.acc_nodes \
                    and "tensor_meta" not in node.meta and node not in found:
                group = self._group(node)
                if group <= self.acc_nodes:
                    found.update(dict.fromkeys(group, group))
                else:
                    self.acc_nodes -= group
        return found

    def _group(self, node: Node) -> NodeSet:
        group, queue = {node}, [node]
        while queue:
            current = queue.pop()
            near = [u for u in current.users if u.op in CALLABLE_NODE_OPS] \
                if "tensor_meta" not in current.meta else []
            near += [n for n in current.all_input_nodes
                     if n.op in CALLABLE_NODE_OPS and "tensor_meta" not in n.meta]
            for other in near:
                if other not in group:
                    group.add(other)
                    queue.append(other)
        return group


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes in an order in which each comes after those that it uses."""
    return _reordered(gm, {})


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """`legalize_graph` that changes the order as little as can be."""
    order = {node: i for i, node in enumerate(gm.graph.nodes)}
    return _reordered(gm, order)


def _reordered(gm: GraphModule, order: dict[Node, int]) -> GraphModule:
    waiting = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    place = order or {node: i for i, node in enumerate(gm.graph.nodes)}
    ready = [(place[n], n.name, n) for n, count in waiting.items() if not count]
    heapq.heapify(ready)
    fifo = collections.deque(n for _, _, n in sorted(ready))
    new = flambeau.fx.Graph()
    values: dict[Any, Any] = {}
    new._codegen = gm.graph._codegen
    done = 0
    while ready if order else fifo:
        node = heapq.heappop(ready)[2] if order else fifo.popleft()
        values[node] = new.node_copy(node, lambda n: values[n])
        done += 1
        for user in node.users:
            waiting[user] -= 1
            if not waiting[user]:
                if order:
                    heapq.heappush(ready, (place[user], user.name, user))
                else:
                    fifo.append(user)
    if done < len(gm.graph.nodes):
        raise RuntimeError(f"Input graph has cycles, unable to add "
                           f"{[n for n, count in waiting.items() if count]}")
    gm.graph = new
    return gm


__all__ = ["FxNetAccFusionsFinder", "get_acc_ops_name", "get_node_target", "is_node_output_tensor",
           "legalize_graph", "stable_topological_sort"]
