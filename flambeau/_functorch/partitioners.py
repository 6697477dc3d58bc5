"""Cutting a joint graph into that of the forward pass and that of the backward pass."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flambeau.fx import Graph, GraphModule, Node
from flambeau.fx.experimental.proxy_tensor import is_sym_node, py_sym_types
from flambeau.utils import _pytree
from flambeau.utils.checkpoint import CheckpointPolicy


@dataclass
class OpTypes:
    """Sets of ops, for deciding what may be computed again."""
    fusible_ops: set[Any] = field(default_factory=set)
    compute_intensive_ops: set[Any] = field(default_factory=set)
    random_ops: set[Any] = field(default_factory=set)
    view_ops: set[Any] = field(default_factory=set)
    recomputable_ops: set[Any] = field(default_factory=set)

    def is_fusible(self, node: Node) -> bool:
        """Can the op be computed together with others?"""
        return _packet(node) in self.fusible_ops

    def is_compute_intensive(self, node: Node) -> bool:
        """Is the op expensive?"""
        return _packet(node) in self.compute_intensive_ops

    def is_random(self, node: Node) -> bool:
        """Does the op draw random numbers?"""
        return _packet(node) in self.random_ops

    def is_view(self, node: Node) -> bool:
        """Does the op look at memory that is there?"""
        return _packet(node) in self.view_ops

    def is_recomputable(self, node: Node) -> bool:
        """May the op be computed again?"""
        return _packet(node) in self.recomputable_ops


def _packet(node: Node) -> Any:
    return getattr(node.target, "overloadpacket", node.target)


class InvalidNodeBase:
    """Stands for a node that a graph cannot have."""

    def __repr__(self) -> str:
        return "Invalid Node"


InvalidNode = InvalidNodeBase()


def get_default_op_list() -> OpTypes:
    """The ops that a partitioner may compute again, and those that are expensive.

    >>> import flambeau
    >>> flambeau.ops.aten.mm in get_default_op_list().compute_intensive_ops
    True
    """
    import flambeau
    from flambeau.dispatch.aten.schemas import recorded
    aten = flambeau.ops.aten
    intensive = {getattr(aten, name) for name in (
        "mm", "convolution", "convolution_backward", "bmm", "addmm", "_scaled_mm",
        "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
        "upsample_bilinear2d")}
    pointwise = {getattr(aten, name) for name, overloads in recorded().items()
                 if any("pointwise" in o.facts for o in overloads.values())
                 and not name.endswith("_")}
    views = {getattr(aten, name) for name, overloads in recorded().items()
             if any("(a)" in o.line for o in overloads.values())}
    random = {getattr(aten, name) for name, overloads in recorded().items()
              if any("nondeterministic_seeded" in o.facts for o in overloads.values())
              and not name.endswith("_")}
    return OpTypes(pointwise | views, intensive, random, views, pointwise | views | random)


def must_recompute(node: Node) -> bool:
    """Does selective checkpointing ask that a node is computed again?"""
    return node.meta.get("recompute") in (CheckpointPolicy.MUST_RECOMPUTE,
                                          CheckpointPolicy.PREFER_RECOMPUTE)


def has_recomputable_ops(fx_g: GraphModule) -> bool:
    """Is there a node that has to be computed again?"""
    return any(must_recompute(node) for node in fx_g.graph.nodes)


def has_recomputable_rng_ops(fx_g: GraphModule) -> bool:
    """Is there such a node that draws random numbers?"""
    return any(must_recompute(node) and getattr(node.target, "_nondeterministic_seeded", False)
               for node in fx_g.graph.nodes)


def sym_node_size(node: Node) -> int:
    """The memory of a number, in bytes."""
    return 1 if isinstance(node.meta.get("val"), py_sym_types) else 4


def _is_primal(node: Node) -> bool:
    return node.op == "placeholder" and "tangents" not in str(node.target)


def _is_tangent(node: Node) -> bool:
    return node.op == "placeholder" and "tangents" in str(node.target)


def _extract_fwd_bwd_outputs(joint_module: GraphModule, *, num_fwd_outputs: int
                             ) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """What the two passes give, and what is noted of it."""
    output = joint_module.graph.output_node()
    outputs = list(_pytree.tree_leaves(output.args[0], is_leaf=lambda v: isinstance(v, Node)))
    descs: list[Any] = list(output.meta.get("desc", [None] * len(outputs)))
    return (outputs[:num_fwd_outputs], outputs[num_fwd_outputs:], descs[:num_fwd_outputs],
            descs[num_fwd_outputs:])


def _extract_graph_with_inputs_outputs(joint_graph: Graph, inputs: list[Node], outputs: list[Any],
                                       outputs_descs: Any = None, subgraph: str | None = None,
                                       ignore_must_be_in_fw_bw: bool = False) -> Graph:
    """The graph that computes `outputs` from `inputs`, of the nodes of another."""
    new = Graph()
    env: dict[Node, Any] = {}
    for node in inputs:
        env[node] = new.placeholder(node.name)
        env[node].meta = node.meta
    for node in joint_graph.nodes:
        if node in env:
            continue
        if node.op == "placeholder":
            env[node] = InvalidNode
        elif node.op in ("call_function", "call_method", "call_module"):
            used = node.all_input_nodes
            env[node] = InvalidNode if any(isinstance(env[n], InvalidNodeBase) for n in used) \
                else new.node_copy(node, lambda n: env[n])
        elif node.op == "get_attr":
            env[node] = new.node_copy(node, lambda n: env[n])
    values: list[Any] = []
    for each in outputs:
        if isinstance(each, Node):
            if isinstance(env.get(each, InvalidNode), InvalidNodeBase):
                raise AssertionError(f"Node {each} was invalid, but is output")
            values.append(env[each])
        else:
            values.append(each)
    new.output(tuple(values))
    new.eliminate_dead_code()
    return new


def default_partition(joint_module: GraphModule, _joint_inputs: Any, *, num_fwd_outputs: int,
                      static_lifetime_input_indices: Any = None,
                      static_lifetime_input_nodes: Any = None, **_: Any
                      ) -> tuple[GraphModule, GraphModule]:
    """The forward graph computes what the function gives, and hands on what the backward graph
    needs of it."""
    graph = joint_module.graph
    primals = [n for n in graph.find_nodes(op="placeholder") if _is_primal(n)]
    tangents = [n for n in graph.find_nodes(op="placeholder") if _is_tangent(n)]
    outputs, grads = _extract_fwd_bwd_outputs(joint_module, num_fwd_outputs=num_fwd_outputs)[:2]
    forward: set[Node] = set()
    pending = [n for n in outputs if isinstance(n, Node)]
    while pending:
        node = pending.pop()
        if node not in forward:
            forward.add(node)
            pending += node.all_input_nodes
    backward = [n for n in graph.nodes if n not in forward
                and n.op not in ("placeholder", "output", "get_attr")]
    saved = list(dict.fromkeys(
        n for node in backward for n in node.all_input_nodes
        if (n in forward or n in primals) and n.op != "get_attr"))
    saved += [g for g in grads if isinstance(g, Node) and (g in forward or g in primals)
              and g not in saved]
    return _partitioned(joint_module, primals, tangents, outputs, grads, saved)


def _partitioned(joint: GraphModule, primals: list[Node], tangents: list[Node], outputs: list[Any],
                 grads: list[Any], saved: list[Node]) -> tuple[GraphModule, GraphModule]:
    forward = _extract_graph_with_inputs_outputs(joint.graph, primals, [*outputs, *saved])
    backward = _extract_graph_with_inputs_outputs(joint.graph, [*saved, *tangents], grads)
    return GraphModule(joint, forward), GraphModule(joint, backward)


def min_cut_rematerialization_partition(joint_module: GraphModule, _joint_inputs: Any,
                                        compiler: str = "inductor", *, num_fwd_outputs: int,
                                        **options: Any) -> tuple[GraphModule, GraphModule]:
    """The cut of `default_partition`: what is kept between the passes, and so the results, are the
    same; nothing is computed again to save memory."""
    return default_partition(joint_module, _joint_inputs, num_fwd_outputs=num_fwd_outputs)


def draw_graph(traced: GraphModule, fname: str, figname: str = "fx_graph", **options: Any) -> None:
    """Not offered: pictures of graphs need Graphviz."""
    raise NotImplementedError("draw_graph: pictures of graphs need pydot and Graphviz")


__all__ = ["default_partition", "get_default_op_list", "has_recomputable_ops",
           "has_recomputable_rng_ops", "is_sym_node", "min_cut_rematerialization_partition",
           "must_recompute"]
