"""Splitting a module by the tags of its nodes."""
from __future__ import annotations

import copy
import operator
from dataclasses import dataclass, field
from typing import Any

from flambeau import nn
from flambeau.fx import Graph, GraphModule, Node
from flambeau.fx.node import map_arg


@dataclass(eq=False)
class Component:
    """The nodes of one tag: their graph, and what goes in and out."""
    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None


def getattr_recursive(obj: Any, name: str) -> Any:
    """The attribute of a dotted name; None if there is none."""
    for layer in name.split("."):
        if hasattr(obj, layer):
            obj = getattr(obj, layer)
        elif isinstance(obj, nn.ModuleList) and layer.isdigit():
            obj = obj[int(layer)]
        else:
            return None
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute of a dotted name."""
    path, _, last = attr.rpartition(".")
    setattr(getattr_recursive(obj, path) if path else obj, last, value)


def split_by_tags(gm: GraphModule, tags: list[str], return_fqn_mapping: bool = False,
                  return_tuple: bool = False, GraphModuleCls: Any = GraphModule) -> Any:
    """A module that calls a submodule for each tag: `node.tag` says where a node belongs.

    >>> import flambeau
    >>> from flambeau import fx
    >>> gm = fx.symbolic_trace(lambda x: flambeau.sin(x).cos())
    >>> for node in gm.graph.nodes:
    ...     node.tag = "a" if node.name == "sin" else "b"
    >>> parts = split_by_tags(gm, ["a", "b"])
    >>> [name for name, _ in parts.named_children()]
    ['a', 'b']
    """
    components = {tag: Component(Graph(), i, tag) for i, tag in enumerate(tags)}
    placed: dict[Node, Node] = {}
    owner: dict[Node, Component] = {}
    main, values, names = Graph(), {}, {}
    output = gm.graph.output_node()
    for node in gm.graph.nodes:
        if node.op == "output":
            continue
        if node.op == "placeholder":
            values[node] = main.placeholder(node.target, type_expr=node.type)
            values[node].meta = copy.copy(node.meta)
        elif node.op != "get_attr":
            if not hasattr(node, "tag"):
                raise AssertionError(f"Node {node} does not have tag attribute")
            component = owner[node] = components[node.tag]
            placed[node] = component.graph.node_copy(
                node, lambda n, component=component:  # type: ignore[misc]
                _value(n, component, owner, placed))
    _find_outputs(gm, owner)
    root = nn.Module()
    for component in components.values():
        names.update({node.target: f"{component.name}.{node.target}"
                      for node in component.graph.nodes if node.op in ("call_module", "get_attr")})
        _call(component, gm, root, main, values, placed, return_tuple, GraphModuleCls)
    for node in gm.graph.find_nodes(op="get_attr"):
        if output in node.users:
            values[node] = main.get_attr(node.target)
            setattr_recursive(root, node.target, getattr_recursive(gm, node.target))
    main.output(map_arg(output.args[0], lambda n: values[n]), output.type)
    made = GraphModuleCls(root, main)
    return (made, names) if return_fqn_mapping else made


def _value(used: Node, component: Component, owner: dict[Node, Component],
           placed: dict[Node, Node]) -> Node:
    """What a node of a component uses: another of it, an attribute, or an input."""
    if owner.get(used) is component:
        return placed[used]
    if used.op == "get_attr":
        if used not in component.getattr_maps:
            component.getattr_maps[used] = component.graph.get_attr(used.target, used.type)
        return component.getattr_maps[used]
    if used not in component.orig_inputs:
        component.orig_inputs.append(used)
        made = component.graph.placeholder(used.name, type_expr=used.type)
        made.meta = copy.copy(used.meta)
        component.input_placeholders.append(made)
    return component.input_placeholders[component.orig_inputs.index(used)]


def _find_outputs(gm: GraphModule, owner: dict[Node, Component]) -> None:
    """What others take from each component, in the order in which they come to it."""
    for user in gm.graph.nodes:
        for node in user.all_input_nodes:
            component = owner.get(node)
            if component not in (None, owner.get(user)) and node not in component.orig_outputs:
                component.orig_outputs.append(node)


def _call(component: Component, gm: GraphModule, root: nn.Module, main: Graph,
          values: dict[Node, Any], placed: dict[Node, Node], return_tuple: bool, cls: Any) -> None:
    """Make the module of a component, and call it."""
    results = tuple(placed[n] for n in component.orig_outputs)
    several = return_tuple or len(results) > 1
    component.graph.output(results if several else results[0] if results else None)
    component.gm = cls(gm, component.graph, component.name)
    setattr(root, component.name, component.gm)
    called = main.call_module(component.name, tuple(values[n] for n in component.orig_inputs))
    for i, node in enumerate(component.orig_outputs):
        values[node] = main.call_function(operator.getitem, (called, i)) if several else called
        values[node].meta = copy.copy(node.meta)


__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]
