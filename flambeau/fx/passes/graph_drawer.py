"""Pictures of graphs, in the language of Graphviz; the package `pydot` draws them."""
from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

from flambeau import nn
from flambeau.core.tensor import Tensor
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node, _format_arg, _get_qualified_name
from flambeau.fx.operator_schemas import normalize_function
from flambeau.fx.passes.shape_prop import TensorMetadata
from flambeau.ops.view.memory import typename

__all__ = ["FxGraphDrawer"]

_COLOR_MAP = {"placeholder": '"AliceBlue"', "call_module": "LemonChiffon1", "get_param": "Yellow2",
              "get_attr": "LightGrey", "output": "PowderBlue"}
_HASH_COLOR_MAP = (
    "CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1 LavenderBlush1 LightSkyBlue "
    "MistyRose1 MistyRose2 PaleTurquoise2 PeachPuff1 Salmon Thistle1 Thistle3 Wheat1").split()
_FILLED = {"style": '"filled,rounded"', "fontcolor": "#000000"}
_FRAME = re.compile(r'File "(.*)", line (\d+), in .*\n\s*(.*)')


class FxGraphDrawer:
    """The picture of a graph, and of those of the graph modules that it calls.

    `FxGraphDrawer(gm, "name").get_dot_graph().write_svg("name.svg")` needs `pydot`.
    """

    def __init__(self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
                 ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
                 parse_stack_trace: bool = False, dot_graph_shape: str | None = None,
                 normalize_args: bool = False):
        try:
            import pydot
        except ImportError:
            raise RuntimeError("FXGraphDrawer requires the pydot package to be installed. Please "
                               "install pydot through your favorite Python package manager."
                               ) from None
        self._pydot = pydot
        self._name, self.dot_graph_shape = name, dot_graph_shape or "record"
        self.normalize_args, self._ignore_getattr = normalize_args, ignore_getattr
        self._ignore_parameters_and_buffers = ignore_parameters_and_buffers
        self._skip_node_names_in_args = skip_node_names_in_args
        self._parse_stack_trace = parse_stack_trace
        self._dot_graphs = {name: self._to_dot(graph_module, name)}
        for node in graph_module.graph.find_nodes(op="call_module"):
            leaf = graph_module.get_submodule(node.target)
            if isinstance(leaf, GraphModule):
                inner = FxGraphDrawer(
                    leaf, f"{name}_{node.target}", ignore_getattr, ignore_parameters_and_buffers,
                    skip_node_names_in_args, parse_stack_trace, dot_graph_shape, normalize_args)
                self._dot_graphs.update(inner._dot_graphs)

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The picture of the whole, or of a graph module that it calls."""
        return self.get_main_dot_graph() if submod_name is None \
            else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """The picture of the graph itself."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """The picture of a graph module that it calls."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """All pictures, by name."""
        return self._dot_graphs

    # ---- nodes ----------------------------------------------------------------------------------

    def _to_dot(self, graph_module: GraphModule, name: str) -> Any:
        drawn = self._pydot.Dot(name, rankdir="TB")
        nodes = [node for node in graph_module.graph.nodes
                 if not (self._ignore_getattr and node.op == "get_attr")]
        for node in nodes:
            drawn.add_node(self._pydot.Node(node.name, label=self._get_node_label(
                graph_module, node), **self._get_node_style(node)))
            if node.op == "call_module" and not self._ignore_parameters_and_buffers:
                self._draw_state(drawn, node, graph_module.get_submodule(node.target))
        for node in nodes:
            for user in node.users:
                drawn.add_edge(self._pydot.Edge(node.name, user.name))
        return drawn

    def _draw_state(self, drawn: Any, node: Node, module: nn.Module) -> None:
        if isinstance(module, GraphModule):
            return
        for name, value in chain(module.named_parameters(), module.named_buffers()):
            own = f"{node.target}.{name}"
            what = r"buffer\l" if not isinstance(value, nn.Parameter) else \
                f"{own}|op_code=get_parameter"
            label = f"{{{what}{_tensor_label(value)}}}"
            drawn.add_node(self._pydot.Node(own, label=label, fillcolor="Salmon", **_FILLED,
                                            shape=self.dot_graph_shape))
            drawn.add_edge(self._pydot.Edge(own, node.name))

    def _get_node_style(self, node: Node) -> dict[str, str]:
        """Shape and colour: of calls that of a hash of what they call."""
        color = _COLOR_MAP.get(node.op)
        if color is None:
            digest = hashlib.md5(node._pretty_print_target(node.target).encode()).hexdigest()
            color = _HASH_COLOR_MAP[int(digest[:8], 16) % len(_HASH_COLOR_MAP)]
        return {"shape": self.dot_graph_shape, "fillcolor": color, **_FILLED}

    def _get_node_label(self, module: GraphModule, node: Node) -> str:
        """Name, kind, target, arguments, and what is known of the value."""
        label = rf"{{name=%{node.name}|op_code={node.op}\n"
        if node.op == "call_module":
            leaf = module.get_submodule(node.target)
            constants = r"\n".join(f"{key}: {getattr(leaf, key)}"
                                   for key in getattr(leaf, "__constants__", ()))
            label += rf"\n{typename(leaf)}\n|{constants}\n"
        else:
            args, kwargs = self._arguments(node)
            label += rf"|target={_typename(node.target)}\n"
            label += self._listed(r"|args=(\l", map(_shown, args), r",\n)\l")
            label += self._listed(r"|kwargs={\l", (f"{key}: {_shown(value)}" for key, value
                                                   in kwargs.items()), r",\n}\l")
            label += rf"|num_users={len(node.users)}\n"
        label += _metadata_label(node.meta.get("tensor_meta"))
        frames = _FRAME.findall(node.meta.get("stack_trace") or "") \
            if self._parse_stack_trace else ()
        if frames:
            file, line, code = frames[-1]
            label += rf"|file={'/'.join(file.split('/')[-2:])}:{line} {code}".replace(
                "{", r"\{").replace("}", r"\}") + r"\n"
        return label + "}"

    def _arguments(self, node: Node) -> tuple[Any, Any]:
        if self.normalize_args and node.op == "call_function":
            named = normalize_function(node.target, node.args, node.kwargs,
                                       normalize_to_only_use_kwargs=True)
            if named is not None:
                return named
        return node.args, node.kwargs

    def _listed(self, before: str, items: Iterable[str], after: str) -> str:
        kept = [item for item in items if not self._skip_node_names_in_args or "%" not in item]
        if not kept:
            return ""
        text = before + r",\n".join(kept) + after
        if len(kept) == 1:
            text = text.replace(r"\l", "").replace(r"\n", "")
        return text.replace("{", r"\{").replace("}", r"\}")


def _shown(value: Any) -> str:
    return _format_arg(value, max_list_len=8)


def _typename(target: Any) -> str:
    return target if isinstance(target, str) else _get_qualified_name(target)


def _tensor_label(tensor: Tensor) -> str:
    return rf"{tensor.dtype}{list(tensor.shape)}\n"


def _metadata_label(meta: Any) -> str:
    """What `ShapeProp` noted of a value, or of all that are in it."""
    if isinstance(meta, TensorMetadata):
        facts: dict[str, Any] = {
            "dtype": meta.dtype, "shape": tuple(meta.shape), "requires_grad": meta.requires_grad,
            "stride": meta.stride}
        if meta.is_quantized:
            facts |= {name: meta.qparams[name] for name in ("qscheme", "scale", "zero_point")
                      if name in meta.qparams}
        return "".join(rf"|{name}={value}\n" for name, value in facts.items())
    if isinstance(meta, dict):
        return "".join(map(_metadata_label, meta.values()))
    if isinstance(meta, list | tuple):
        return "".join(map(_metadata_label, meta))
    return ""
