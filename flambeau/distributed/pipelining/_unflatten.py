"""A stage's flat graph as nested modules, those of the model that it was cut from."""
from __future__ import annotations

from typing import Any

from ... import fx, nn
from ...export.graph_signature import InputKind
from ...export.unflatten import Outline, State
from ...fx.graph_module import _get_attr


def _outline_submodules(orig_graph: fx.Graph) -> fx.GraphModule:
    """The module of a graph whose steps say in `nn_module_stack` where they ran: those of one
    module are a module of their own, with its parameters."""
    owner: Any = orig_graph.owning_module
    buffers = dict(owner.named_buffers())

    def state_of(node: fx.Node) -> State | None:
        if node.op != "get_attr":
            return None
        value = _get_attr(owner, str(node.target))
        kind = InputKind.CUSTOM_OBJ
        if isinstance(value, nn.Parameter):
            kind = InputKind.PARAMETER
        elif node.target in buffers:
            kind = InputKind.BUFFER
        return State(str(node.target), value, kind, _is_persistent(owner, str(node.target)))

    root = nn.Module()
    steps = [node for node in orig_graph.nodes if node.op in ("call_function", "call_method")]
    graph = Outline(state_of).fill(root, "", steps, orig_graph.find_nodes(op="placeholder"),
                                   orig_graph.output_node().args[0])
    return fx.GraphModule(root, graph)


def _is_persistent(owner: nn.Module, name: str) -> bool:
    path, _, last = name.rpartition(".")
    return last not in owner.get_submodule(path)._non_persistent_buffers_set
