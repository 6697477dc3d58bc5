"""What is noted on nodes while a program is traced: annotations, and where a node comes from.

>>> import flambeau
>>> from flambeau.fx.experimental.proxy_tensor import make_fx
>>> def f(x):
...     with annotate({"stage": 1}):
...         return x.sin()
>>> with preserve_node_meta():
...     gm = make_fx(f)(flambeau.ones(1))
>>> gm.graph.find_nodes(op="call_function", target=flambeau.ops.aten.sin.default)[0].meta["custom"]
{'stage': 1}
"""
from __future__ import annotations

import contextlib
import copy
import enum
import functools
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._support.scopes import Scope

GRADIENT_ACC_SPECIAL_STACK = "Gradient addition node due to multiple use of tensor around:"
MEMORY_BUDGET_ANNOTATION_KEY = "_region_activation_memory_budget"
current_meta: dict[str, Any] = {}
current_replay_node: Any = None
should_preserve_node_meta = False
_preserve_seq_nr = False
_FX_METADATA_REGISTRY: dict[str, dict[str, Any]] = {}
_region = threading.local()


class NodeSourceAction(enum.Enum):
    """What a pass has done to a node."""
    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """A node from which another was made, and the pass that did so."""

    class NodeInfo:
        """The node, by its name."""

        def __init__(self, name: str, target: str, graph_id: int):
            self.name, self.target, self.graph_id = name, target, graph_id

    def __init__(self, node: Any, pass_name: str = "", action: Any = None):
        self.pass_name = pass_name
        self.action = [] if action is None else action if isinstance(action, list) else [action]
        self.node_info: Any = None if node is None else self.NodeInfo(
            node.name, str(node.target), id(node.graph))
        self.from_node = [] if node is None else copy.deepcopy(node.meta.get("from_node", []))

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """The node's target, as text."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """Which graph the node was in."""
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(a.name.lower() for a in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """This and what it was made from, a line each."""
        if indent > 9:
            return ""
        own = (f"{' ' * indent * 4}(name={self.name}, pass_name={self.pass_name}, "
               f"action={self._get_action_string()}, graph_id={self.graph_id})\n")
        return own + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict."""
        return {"name": self.name, "target": self.target, "graph_id": self.graph_id,
                "pass_name": self.pass_name, "action": self._get_action_string(),
                "from_node": [source.to_dict() for source in self.from_node]}

    @classmethod
    def _from_dict(cls, d: dict[str, Any] | None) -> NodeSource | None:
        if d is None:
            return None
        made = cls(None, d.get("pass_name", ""), [
            NodeSourceAction(a) for a in d.get("action", "").split("+") if a])
        if "name" in d:
            made.node_info = cls.NodeInfo(d["name"], d["target"], d["graph_id"])
        made.from_node = [cls._from_dict(f) for f in d.get("from_node", [])]
        return made

    def __str__(self) -> str:
        return self.print_readable()

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.pass_name, self._get_action_string(), self.graph_id))


# ---- which meta data new nodes get ---------------------------------------------------------------


def has_preserved_node_meta() -> bool:
    """Do new nodes get the current meta data?"""
    return should_preserve_node_meta


class _Scope(Scope):
    """A scope that can also be around the calls of a function."""

    _gives = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)
        return wrapper


class preserve_node_meta(_Scope):
    """Inside, nodes that are made get the current meta data."""

    def __init__(self, enable: bool = True):
        self.enable = enable

    def _changes(self) -> Any:
        return ((globals(), "should_preserve_node_meta", self.enable),
                (globals(), "current_meta", current_meta.copy()))


class annotate(_Scope):
    """Inside, nodes that are made have these entries in `node.meta["custom"]`; `annotate` nests.

    It has an effect inside `preserve_node_meta`.
    """

    def __init__(self, annotation_dict: dict[str, Any]):
        self.entries = annotation_dict

    def _changes(self) -> Any:
        return (current_meta, "custom", {**current_meta.get("custom", {}), **self.entries}),


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: calls of the function are inside `annotate(annotation_dict)`."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)
        return wrapper
    return decorate


def get_current_meta() -> dict[str, Any]:
    """The meta data that nodes get now."""
    return current_meta


class set_current_meta(_Scope):
    """Inside, nodes that are made get the meta data of `node`, and name it as their source."""

    def __init__(self, node: Any, pass_name: str = ""):
        self.node, self.pass_name = node, pass_name

    def _changes(self) -> Any:
        if not (should_preserve_node_meta and self.node.meta):
            return ()
        source = NodeSource(self.node, self.pass_name, NodeSourceAction.CREATE)
        return (globals(), "current_meta", {**self.node.meta, "from_node": [source]}),


def set_stack_trace(stack: list[str]) -> None:
    """Let nodes that are made say that they come from here."""
    if should_preserve_node_meta and stack:
        current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Where the program is; while a graph is replayed, where its node came from."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Say which node of autograd's graph runs its derivative."""
    if should_preserve_node_meta:
        current_meta["grad_fn_seq_nr"] = [*current_meta.get("grad_fn_seq_nr", []), seq_nr]
        current_meta["in_grad_fn"] = current_meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr() -> None:
    """Take back what `set_grad_fn_seq_nr` has said."""
    if not should_preserve_node_meta:
        return
    level = current_meta.get("in_grad_fn", 0)
    if level <= 1:
        current_meta.pop("in_grad_fn", None)
        current_meta.pop("grad_fn_seq_nr", None)
    else:
        current_meta["in_grad_fn"] = level - 1
        current_meta["grad_fn_seq_nr"] = current_meta["grad_fn_seq_nr"][:-1]


def get_current_replay_node() -> Any:
    """The node that a replayed graph has come to."""
    return current_replay_node


class set_current_replay_node(_Scope):
    """Inside, a replayed graph has come to this node."""

    def __init__(self, node: Any):
        self._changes = ((globals(), "current_replay_node", node),)


def _is_preserving_node_seq_nr() -> bool:
    return _preserve_seq_nr


class _preserve_node_seq_nr(_Scope):
    def __init__(self, preserve_seq_nr: bool = True):
        self._changes = ((globals(), "_preserve_seq_nr", preserve_seq_nr),)


@contextlib.contextmanager
def _set_autograd_backward(enable: bool = True) -> Iterator[None]:
    before = current_meta.get("autograd_backward")
    if enable:
        _mark_autograd_backward()
    try:
        yield
    finally:
        if before is None:
            _reset_autograd_backward()


def _mark_autograd_backward() -> None:
    current_meta["autograd_backward"] = True


def _reset_autograd_backward() -> None:
    current_meta.pop("autograd_backward", None)


def _get_regional_inductor_subgraph_name() -> str | None:
    return getattr(_region, "name", None)


@contextlib.contextmanager
def _set_regional_inductor_subgraph_name(name: str | None) -> Iterator[None]:
    before, _region.name = getattr(_region, "name", None), name
    try:
        yield
    finally:
        _region.name = before


def _get_memory_budget_annotation(node: Any) -> float | None:
    return node.meta.get("custom", {}).get(MEMORY_BUDGET_ANNOTATION_KEY)


def _register_fx_metadata(module_name: str, metadata: dict[str, Any]) -> None:
    _FX_METADATA_REGISTRY[module_name] = metadata


# ---- reading it ----------------------------------------------------------------------------------


def get_graph_provenance_json(graph: Any) -> dict[str, Any]:
    """The sources of each call in a graph, by the name of its node."""
    return {node.name: [source.to_dict() for source in node.meta.get("from_node", [])]
            for node in graph.nodes if node.op == "call_function"}


def _get_custom_metadata(gm: Any) -> str:
    """All annotations in a module and its modules, a line a node."""
    from flambeau.fx.graph_module import GraphModule
    lines = []
    for name, module in gm.named_modules():
        if isinstance(module, GraphModule):
            lines += [f"{(node.op, f'{name}.{node.name}' if name else node.name)}: "
                      f"{node.meta['custom']}" for node in module.graph.nodes
                      if "custom" in node.meta]
    return "\n".join(lines)


def _get_ordered_seq_nr_groups(gm: Any) -> list[list[str]]:
    """The names of nodes that belong to one op of the program, in the order of the ops."""
    groups: dict[int, list[str]] = {}
    for module in gm if isinstance(gm, list) else [gm]:
        for node in module.graph.nodes:
            if "seq_nr" in node.meta:
                groups.setdefault(node.meta["seq_nr"], []).append(node.name)
    return [groups[number] for number in sorted(groups)]


__all__ = ["NodeSource", "NodeSourceAction", "annotate", "annotate_fn", "format_stack",
           "get_current_meta", "get_current_replay_node", "get_graph_provenance_json",
           "has_preserved_node_meta", "preserve_node_meta", "reset_grad_fn_seq_nr",
           "set_current_meta", "set_current_replay_node", "set_grad_fn_seq_nr", "set_stack_trace"]
