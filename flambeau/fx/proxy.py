"""`Proxy`: a value that writes down what is done with it."""
from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import dis
import enum
import inspect
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.core.tensor import Tensor as CoreTensor
from flambeau.fx import traceback as fx_traceback
from flambeau.fx._codegen import magic_methods, reflectable_magic_methods
from flambeau.fx.node import CONSTANTS, Node, _get_qualified_name, find_in_torch, map_aggregate

_COPY_META_FIELDS = ["nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute",
                     "ac_graph_id", "has_backward_hook", "from_node", "quantization_tag",
                     "_numeric_debug_handle", "custom", "partitioner_tag"]
_INSIDE = tuple(f"/flambeau/{part}" for part in (
    "fx/", "core/", "nn/modules/module.py", "dispatch/", "ops/", "utils/_"))


class TraceError(ValueError):
    """The program does something with a value that cannot be written down."""


class Scope:
    """The module that runs: its dotted name and class."""

    def __init__(self, module_path: str, module_type: Any):
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Inside, `scope` says what `current_scope` says."""

    def __init__(self, scope: Scope, current_scope: Scope):
        self._before = copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: Any) -> None:
        self._scope.module_path = self._before.module_path
        self._scope.module_type = self._before.module_type


def _no_nodes_error(arg: Any) -> None:
    raise RuntimeError("Keys for dictionaries used as an argument cannot contain a Node. Got key: "
                       f"{arg}")


class TracerBase:
    """Makes nodes and the proxies that stand for their values."""

    graph: Any
    record_stack_traces = False
    _record_forward_stack_traces_only = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: dict[str, Any]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Add a node to the graph."""
        if kind == "call_function" and self.check_mutable_operations:
            from flambeau.fx.operator_schemas import check_for_mutable_operation
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = getattr(self, "scope", None)
        if scope is not None:
            self.node_name_to_scope[node.name] = scope.module_path, scope.module_type
        if fx_traceback.has_preserved_node_meta():
            meta = fx_traceback.get_current_meta()
            if meta.get("stack_trace"):
                node.stack_trace = meta["stack_trace"]
            for field in _COPY_META_FIELDS:
                if field in meta:
                    node.meta[field] = copy.copy(meta[field])
        elif getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """What stands for the value of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                     name: str | None = None, type_expr: Any = None,
                     proxy_factory_fn: Callable[[Node], Proxy] | None = None) -> Proxy:
        """Add a node whose arguments are values and proxies; gives its proxy."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        proxy = (proxy_factory_fn or self.proxy)(node)
        if self.record_stack_traces and not node.stack_trace:
            frames = self._filter_traceback_frames(traceback.extract_stack(sys._getframe(1)))
            if frames:
                node.stack_trace = "".join(frames.format()).strip()
        return proxy

    def _filter_traceback_frames(self, summary: Any) -> Any:
        """The frames of the program, without those of the library."""
        return traceback.StackSummary.from_list(
            [f for f in summary if not any(part in f.filename for part in _INSIDE)])

    def _find_user_frame(self) -> Any:
        """The innermost frame of the program."""
        frame = sys._getframe(1)
        while frame and any(part in frame.f_code.co_filename for part in _INSIDE):
            frame = frame.f_back
        return frame

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node."""
        if isinstance(a, Proxy):
            return a.node
        if not isinstance(a, (Node, type)) and hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            found = [self.create_arg(x) for x in a]
            return type(a)(*found) if hasattr(a, "_fields") else tuple(found)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            for key in a:
                map_aggregate(self.create_arg(key),
                              lambda k: _no_nodes_error(k) if isinstance(k, Node) else k)
            return {key: self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*[self.create_arg(x) for x in (a.start, a.stop, a.step)])
        if isinstance(a, range):
            return range(*[self.create_arg(x) for x in (a.start, a.stop, a.step)])
        if isinstance(a, (*CONSTANTS, Node, type, enum.Enum)):
            return a
        if dataclasses.is_dataclass(a):
            values = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), values)
        if callable(a):
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
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: Any) -> None:
    """`assert x`, as a function."""
    assert x


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

    def __getattr__(self, k: str) -> Attribute:
        if k in _OWN_STATE or k in ("tracer", "node"):
            raise AttributeError(k)          # a proxy is no tensor
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        new = {key: value if key in ("tracer", "node") else copy.deepcopy(value, memo)
               for key, value in self.__dict__.items()}
        made = Proxy.__new__(type(self))
        made.__dict__.update(new)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe().f_back
        for instruction in dis.get_instructions(frame.f_code):
            if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                proxy: Any = self                                       # a, b = proxy
                return (proxy[i] for i in range(instruction.argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_asserted(inspect.currentframe().f_back):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
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
        if isinstance(function, flambeau._ops.HigherOrderOperator):
            for value in (*args, *kwargs.values()):
                if callable(value) and not isinstance(value, (Proxy, flambeau.nn.Module)):
                    raise RuntimeError(f"Unable to symbolically trace the HigherOrderOperator "
                                       f"{name} because it received an arbitrary callable argument "
                                       f"{value}. Use make_fx or dynamo tracing instead.")
            return tracer.create_proxy("call_function", function, args, kwargs, name=name)
        is_method = not isinstance(function, flambeau._ops.OperatorBase) \
            and find_in_torch(_get_qualified_name(function)) is not function \
            and hasattr(Tensor, name)
        if is_method:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", function, args, kwargs)


def _is_asserted(frame: Any) -> bool:
    """Is the value that this frame looks at that of an `assert`?"""
    instructions = list(dis.get_instructions(frame.f_code))
    at = next(i for i, ins in enumerate(instructions) if ins.offset == frame.f_lasti)
    following = [ins.opname for ins in instructions[at:at + 3] if ins.opname != "CACHE"]
    if not following or not following[0].startswith("POP_JUMP"):
        return False
    return "LOAD_ASSERTION_ERROR" in following[1:] or any(
        getattr(ins, "argval", None) == "AssertionError" for ins in instructions[at + 1:at + 3])


class MetaProxy(Proxy):
    """A proxy whose shape is found along the way, from the values on its nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None):
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
                           ) -> Any:
        kwargs = kwargs or {}
        proxies = [a for a in args if isinstance(a, MetaProxy)]
        mode = proxies[0].fake_mode if proxies else None
        made = super().__torch_function__(function, types, args, kwargs)
        with mode or contextlib.nullcontext():
            values = [a.node.meta["val"] if isinstance(a, Proxy) else a for a in args]
            made.node.meta["val"] = function(*values, **kwargs)
        return MetaProxy(made.node, made.tracer, mode)


class ParameterProxy(Proxy):
    """A proxy for a parameter: what its shape and type are is known while the program runs."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any):
        super().__init__(node, tracer)
        assert isinstance(param, flambeau.nn.Parameter), type(param)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape of the parameter."""
        return self.param.shape

    def size(self) -> Any:
        """The shape of the parameter."""
        return self.param.size()

    def dim(self) -> int:
        """The number of the parameter's dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The number of the parameter's dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """How many elements the parameter has."""
        return self.param.numel()

    def nelement(self) -> int:
        """How many elements the parameter has."""
        return self.param.nelement()


class Attribute(Proxy):
    """An attribute of a proxy; a node only if it is more than a method that is called."""

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr = root, attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The node that reads the attribute; made when it is first asked for."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr,
                                                  (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator_method(name: str, swapped: bool = False) -> Any:
    function = getattr(operator, name)

    def method(*args: Any, **kwargs: Any) -> Proxy:
        return args[0].tracer.create_proxy("call_function", function, args, kwargs)

    def reflected(self: Proxy, rhs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (rhs, self), {})
    return reflected if swapped else method


for _name in magic_methods:
    if _name != "div":
        setattr(Proxy, f"__{_name.strip('_')}__", _operator_method(_name))
for _name in reflectable_magic_methods:
    if _name not in ("getitem", "div"):
        setattr(Proxy, f"__r{_name.strip('_')}__", _operator_method(_name, swapped=True))

__all__ = ["Attribute", "GraphAppendingTracer", "MetaProxy", "ParameterProxy", "Proxy", "Scope",
           "ScopeContextManager", "TraceError", "TracerBase"]
