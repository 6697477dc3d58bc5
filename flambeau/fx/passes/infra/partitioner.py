"""The parts of a graph that a backend can run, as large as may be, as modules of their own."""
from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence

from flambeau import nn
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node, _get_qualified_name
from flambeau.fx.passes.operator_support import OperatorSupportBase
from flambeau.fx.passes.utils.fuser_utils import downstream, fuse_by_partitions

logger = logging.getLogger(__name__)
_VIEWS = ("torch.ops.aten.view", "_operator.getitem")


class Partition:
    """Some nodes of a graph, by a number."""

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None,
                 node_orders: Iterable[int] | None = None) -> None:
        self.id = id
        given = list(nodes or ())
        orders = [None] * len(given) if node_orders is None else list(node_orders)
        self.nodes: dict[Node, int | None] = dict(zip(given, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Take a node in."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Let a node go."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of nodes."""
        return len(self.nodes)


class _DependencyViewer:
    """What uses each node, directly or not."""

    def __init__(self, graph_module: GraphModule) -> None:
        self.downstreams = {node: downstream([node]) - {node}
                            for node in reversed(graph_module.graph.nodes)}

    def downstreams_of(self, node: Node) -> set[Node]:
        """All that use this node, directly or not."""
        return self.downstreams[node]


class CapabilityBasedPartitioner:
    """Divides a graph by what `operator_support` says that a backend can run.

    Partitions of one node, `non_compute_ops` apart, are left as they are, unless
    `allows_single_node_partition`, or the op is one of `allowed_single_node_partition_ops`. With
    `skip_horizontal_fusion` a node joins only partitions that use its result.
    """

    def __init__(self, graph_module: GraphModule, operator_support: OperatorSupportBase,
                 allows_single_node_partition: bool = False,
                 non_compute_ops: Sequence[str] | None = None,
                 allowed_single_node_partition_ops: Sequence[str] | None = None,
                 skip_horizontal_fusion: bool = False) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops if non_compute_ops is not None else []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self.dependency_viewer = _DependencyViewer(graph_module)

    def _is_node_supported(self, node: Node) -> bool:
        modules: Mapping[str, nn.Module] = dict(self.graph_module.named_modules())
        return self.operator_support.is_node_supported(modules, node)

    def propose_partitions(self) -> list[Partition]:
        """The partitions, the last of the graph first."""
        owner: dict[Node, Partition] = {}
        partitions: dict[int, Partition] = {}
        numbers = itertools.count()
        order = {node: i for i, node in enumerate(self.graph_module.graph.nodes)}
        for node in reversed(self.graph_module.graph.nodes):
            if not self._is_node_supported(node) or node in owner:
                continue
            own = Partition(next(numbers), [node], [order[node]])
            owner[node] = own
            users = {owner.get(user) for user in node.users}
            for other in list(partitions.values()):
                if self.skip_horizontal_fusion and other not in users:
                    continue
                if not _has_cycle([*own.nodes, *other.nodes], owner):
                    own = self._merged(own, other, owner, partitions)
            assert own.id is not None
            partitions[own.id] = own
        self._keep_parts_together(owner)
        found = [p for p in partitions.values() if p.nodes]
        for partition in found:
            partition.nodes = dict(sorted(partition.nodes.items(), key=lambda at: order[at[0]]))
        if not self.allows_single_node_partition:
            found = [p for p in found if self._computes(p) > 1]
        return found

    @staticmethod
    def _merged(one: Partition, other: Partition, owner: dict[Node, Partition],
                partitions: dict[int, Partition]) -> Partition:
        """The larger of two partitions with the nodes of both."""
        if one.size() < other.size():
            one, other = other, one
        one.nodes.update(other.nodes)
        owner.update(dict.fromkeys(other.nodes, one))
        if other.id is not None:
            partitions.pop(other.id, None)
        return one

    def _keep_parts_together(self, owner: dict[Node, Partition]) -> None:
        """What takes an item of a result goes where the result is."""
        for node in self.graph_module.graph.nodes:
            users = list(node.users)
            if not users or not all(_takes_item(user) for user in users):
                continue
            own = owner.get(node)
            for user in users:
                if owner.get(user) is not own:
                    if user in owner:
                        owner.pop(user).remove_node(user)
                    if own is not None:
                        own.add_node(user)
                        owner[user] = own

    def _computes(self, partition: Partition) -> int:
        """The number of nodes that count."""
        count = 0
        for node in partition.nodes:
            if node.op == "call_function":
                name = _get_qualified_name(node.target)
                count += name not in {*_VIEWS, *self.non_compute_ops}
                count += name in self.allowed_single_node_partition_ops
        return count

    def fuse_partitions(self, partitions: list[Partition],
                        prefix: str = "fused_") -> GraphModule:
        """Let each partition be one call of a module."""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Leave out of partitions what begins or ends them without computing anything."""
        left_out = set(self.non_compute_ops)

        def idle(node: Node) -> bool:
            return node.op == "call_function" and _get_qualified_name(node.target) in left_out
        for partition in partitions:
            while True:
                outer = [node for node in partition.nodes if idle(node) and (
                    all(used not in partition.nodes for used in node.all_input_nodes)
                    or all(user not in partition.nodes for user in node.users))]
                if not outer:
                    break
                for node in outer:
                    partition.remove_node(node)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Propose partitions, and let each be one call of a module."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _takes_item(node: Node) -> bool:
    return node.op == "call_function" and \
        _get_qualified_name(node.target) == "_operator.getitem"


def _has_cycle(nodes: list[Node], owner: dict[Node, Partition]) -> bool:
    """Would a partition of these need what it gives? Other partitions run as a whole."""
    inside = set(nodes)
    waiting = [user for node in nodes for user in node.users if user not in inside]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in inside:
            return True
        if node in seen:
            continue
        seen.add(node)
        waiting += node.users
        if node in owner:
            waiting += [n for n in owner[node].nodes if n not in seen and n not in inside]
    return False
