"""`Proxy`: a value that writes down what is done with it."""
from __future__ import annotations

import dis
import inspect
import operator
import sys
from collections.abc import Iterator
from typing import Any

from flambeau import Tensor
from flambeau.core.tensor import Tensor as CoreTensor
from flambeau.fx.node import BASE_TYPES, Node, find_in_torch, qualified_name


class TraceError(ValueError):
    """The program does something with a value that cannot be written down."""


class TracerBase:
    """Makes nodes and the proxies that stand for their values."""

    graph: Any
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False

    def create_node(self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Add a node to the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """What stands for the value of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                     name: str | None = None, type_expr: Any = None, proxy_factory_fn: Any = None
                     ) -> Proxy:
        """Add a node whose arguments are values and proxies; gives its proxy."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        if self.record_stack_traces:
            import traceback
            node.stack_trace = "".join(traceback.format_stack(sys._getframe(1)))
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            found = [self.create_arg(x) for x in a]
            return type(a)(*found) if hasattr(a, "_fields") else tuple(found)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            if any(isinstance(key, Proxy) for key in a):
                raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a "
                                   f"Node. Got key: {next(k for k in a if isinstance(k, Proxy))}")
            return {key: self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*[self.create_arg(x) for x in (a.start, a.stop, a.step)])
        if isinstance(a, range):
            return range(*[self.create_arg(x) for x in (a.start, a.stop, a.step)])
        if isinstance(a, (*BASE_TYPES, Node, type)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Called when a proxy decides where the program goes."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called when a proxy is iterated over."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on "
            "pytorch.org for a more detailed explanation of what types of control flow can be "
            "traced, and check out the Proxy docstring for help troubleshooting Proxy iteration "
            "errors")

    def keys(self, obj: Proxy) -> Any:
        """Called when a proxy is used as `**proxy`."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a graph that is there."""

    def __init__(self, graph: Any):
        self.graph = graph


_OWN_STATE = frozenset({*CoreTensor.__slots__, "_array", "_edge"} - {"__dict__", "__weakref__"})


class Proxy:
    """Stands for a value while a program is traced: operators, methods, attributes and functions
    of it are written down as nodes, and give further proxies.

    >>> import flambeau
    >>> from flambeau import fx
    >>> graph = fx.Graph()
    >>> x = Proxy(graph.placeholder("x"))
    >>> y = flambeau.relu(x) + 1
    >>> [node.name for node in graph.nodes]
    ['x', 'relu', 'add']
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name in _OWN_STATE or name in ("tracer", "node"):
            raise AttributeError(name)          # a proxy is no tensor
        return Attribute(self, name)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        import copy
        made = Proxy.__new__(Proxy)
        made.__dict__.update({"tracer": self.tracer, "node": copy.copy(self.node)})
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe().f_back
        for instruction in dis.get_instructions(frame.f_code):
            if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                return (self[i] for i in range(instruction.argval))     # a, b = proxy
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Used by `**proxy`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError("'len' is not supported in symbolic tracing by default. If you want "
                           "this call to be recorded, please call torch.fx.wrap('len') at module "
                           "scope")

    def __hash__(self) -> int:
        return id(self)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
                           ) -> Any:
        kwargs = kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def find(value: Any) -> None:
            if isinstance(value, Proxy):
                tracers.setdefault(value.tracer)
            elif isinstance(value, (tuple, list)):
                for each in value:
                    find(each)
            elif isinstance(value, dict):
                find(list(value.values()))
        find((args, kwargs))
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} while trying to "
                               f"trace operations {function}")
        tracer = next(iter(tracers))
        name = function.__name__
        if name == "__get__":
            return tracer.create_proxy("call_function", getattr, (args[0], function.__self__), {})
        is_method = find_in_torch(qualified_name(function)) is not function \
            and hasattr(Tensor, name)
        if is_method:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", function, args, kwargs)


class Attribute(Proxy):
    """An attribute of a proxy; a node only if it is more than a method that is called."""

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr = root, attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:         # type: ignore[override]
        """The node that reads the attribute; made when it is first asked for."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr,
                                                  (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator_method(name: str, swapped: bool = False) -> Any:
    function = getattr(operator, name)

    def method(self: Proxy, *args: Any) -> Proxy:
        operands = (args[0], self) if swapped else (self, *args)
        return self.tracer.create_proxy("call_function", function, operands, {})
    return method


REFLECTED = ("add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul getitem")
for _name in f"eq ne lt gt le ge pos neg invert abs {REFLECTED}".split():
    setattr(Proxy, f"__{_name.strip('_')}__", _operator_method(_name))
for _name in REFLECTED.split():
    if _name != "getitem":
        setattr(Proxy, f"__r{_name.strip('_')}__", _operator_method(_name, swapped=True))

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "TracerBase"]
