"""Writes the steps of a graph as lines of Python."""
from __future__ import annotations

import builtins
import contextlib
import re
import types
import typing
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import flambeau
from flambeau._library.operator import OperatorBase
from flambeau.fx._codegen.names import Namespace, _format_target
from flambeau.fx.node import (
    Node,
    _get_qualified_name,
    _type_repr,
    dtype_abbrs,
    find_in_torch,
    map_arg,
)

reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}",
    "truediv": "{} / {}", "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}",
    "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}"}
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "pos": "+{}", "neg": "-{}", "invert": "~{}", **reflectable_magic_methods}
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}",
    "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}"}
_sym_repr: ContextVar[Callable[[Any], str]] = ContextVar("sym_repr", default=repr)


@contextlib.contextmanager
def _override_sym_repr(override: Callable[[Any], str]) -> Iterator[None]:
    """Inside, symbolic numbers are written as `override` says."""
    token = _sym_repr.set(override)
    try:
        yield
    finally:
        _sym_repr.reset(token)


@dataclass
class Style:
    """How much the code says besides what runs."""
    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    expanded_def: bool = False
    additional_meta: list[str] = field(default_factory=list)


_COLORS = {"red": "31", "blue": "34", "dim": "2", "dim_blue": "2m\x1b[34",
           "dim_green": "2m\x1b[32"}


class Writer:
    """Writes the function of one graph."""

    def __init__(self, names: Namespace, root: str, style: Style):
        self.root, self.style = root, style
        self.globals: dict[str, Any] = {}
        self.names = names
        self.parameters: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returns = ""
        self.body: list[str] = []

    def name_of(self, hint: str, obj: Any) -> str:
        """The name under which the code sees an object of the program's."""
        if obj is not flambeau.device and hint.startswith("torch.") and (
                isinstance(obj, OperatorBase) or find_in_torch(hint) is obj):
            self.globals.setdefault("torch", flambeau)
            return hint
        name = hint.replace(".", "_") if hint.isidentifier() or "." in hint else \
            self.names.create_name(hint, obj)
        if self.globals.get(name) is not obj:
            if getattr(builtins, hint, None) is obj:
                name = hint
            elif name in self.globals:
                name = self.names.create_name(name, obj)
        self.globals[name] = obj
        return name

    def literal(self, arg: Any) -> str:
        """An argument as code."""
        if isinstance(arg, tuple):
            if hasattr(arg, "_fields"):
                name = self.name_of(_get_qualified_name(type(arg)), type(arg))
                return f"{name}({', '.join(map(self.literal, arg))})"
            return f"({', '.join(map(self.literal, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.literal, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.literal(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({', '.join(map(self.literal, (arg.start, arg.stop, arg.step)))})"
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, type):
            return self.annotation(arg)
        if isinstance(arg, (types.FunctionType, types.BuiltinFunctionType, OperatorBase)):
            return self.name_of(_get_qualified_name(arg), arg)
        if isinstance(arg, (flambeau.SymInt, flambeau.SymFloat, flambeau.SymBool)):
            return _sym_repr.get()(arg)
        import enum
        if isinstance(arg, enum.Enum):
            cls = type(arg)
            return f"{self.name_of(cls.__name__, cls)}.{arg.name}"
        return repr(arg)

    def annotation(self, value: Any) -> str:
        """A type as code."""
        text = _type_repr(value)
        origin = typing.get_origin(value)
        if origin is None:
            if isinstance(value, type) and value.__module__ == "builtins":
                return text
            return self.name_of(text, value) if isinstance(value, type) else \
                self.name_of(re.sub(r"\W+", "_", text).strip("_"), value)
        args = typing.get_args(value)
        if getattr(value, "_name", None) or origin in (list, dict, tuple, set, frozenset):
            alias = {list: typing.List, dict: typing.Dict, tuple: typing.Tuple,  # noqa: UP006
                     set: typing.Set, frozenset: typing.FrozenSet}.get(origin, origin)  # noqa: UP006
            base = self.name_of(_type_repr(alias), alias)
            inner = ",".join(self.annotation(a) if a is not ... else "..." for a in args)
            return f"{base}[{inner}]" if args else base
        return self.name_of(re.sub(r"\W+", "_", text).strip("_"), value)

    def arguments(self, args: Any, kwargs: dict[str, Any]) -> str:
        """The arguments of a call."""
        return ", ".join([self.literal(a) for a in args]
                         + [f"{k} = {self.literal(v)}" for k, v in kwargs.items()])

    # ---- what is said besides -------------------------------------------------------------------

    def colored(self, text: str, color: str) -> str:
        """Text in a colour, if there are to be any."""
        return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if self.style.colored else text

    def typed(self, node: Node) -> str:
        """The annotation of a node's value: its type, or in verbose code what it looks like."""
        if node.type is not None:
            return f" : {self.annotation(node.type)}"
        if self.style.verbose:
            value = node.meta.get("val", node.meta.get(
                "example_value", node.meta.get("tensor_meta")))
            text = self.looks(value, node.meta.get("sizes", getattr(value, "shape", None)))
            if text:
                return f': "{text}"'
        return ""

    def looks(self, value: Any, sizes: Any) -> str:
        """`f32[2, 3]`, or `Sym(s0)` of a number that a graph leaves open."""
        if isinstance(value, (flambeau.SymInt, flambeau.SymFloat, flambeau.SymBool)) \
                or getattr(value, "is_symbolic", False):
            return f"Sym({value})"
        dtype = getattr(value, "dtype", None)
        if dtype is None or sizes is None:
            return ""
        stride = device = ""
        if self.style.include_stride and hasattr(value, "stride"):
            stride = str(list(value.stride() if callable(value.stride) else value.stride))
        if self.style.include_device and hasattr(value, "device"):
            device = str(value.device)
        return (self.colored(str(dtype_abbrs.get(dtype, dtype)), "red")
                + self.colored(str(list(sizes)), "blue")
                + self.colored(stride, "dim_blue")
                + self.colored(device, "dim_green"))

    # ---- steps ----------------------------------------------------------------------------------

    def emit(self, node: Node, codegen: Any) -> None:
        """Write one step."""
        typed = "" if node.op in ("output",) else self.typed(node)
        name = repr(node)
        if node.op == "placeholder":
            raw = node.target.replace("*", "")
            default = f" = {self.literal(node.args[0])}" if node.args else ""
            self.parameters.append(f"{node.target}{typed}{default}")
            if raw != name:
                self.body.append(f"{name} = {raw}\n")
        elif node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.annotation(node.type)}"
            self.body.append(codegen._generate_output(node, self.literal))
        elif node.op == "get_attr":
            self.body.append(f"{name}{typed} = {_format_target(self.root, node.target)}")
        elif node.op == "call_module":
            self.body.append(f"{name}{typed} = {_format_target(self.root, node.target)}"
                             f"({self.arguments(node.args, node.kwargs)})")
        elif node.op == "call_method":
            self.body.append(f"{name}{typed} = "
                             f"{_format_target(self.literal(node.args[0]), node.target)}"
                             f"({self.arguments(node.args[1:], node.kwargs)})")
        else:
            self.body.append(self.function(node, name, typed))

    def function(self, node: Node, name: str, typed: str) -> str:
        """A call of a function, as an operator where Python has one."""
        target, args = node.target, node.args
        called = getattr(target, "__name__", "")
        if getattr(target, "__module__", "") == "_operator" and not node.kwargs:
            if called in magic_methods and len(args) == magic_methods[called].count("{}"):
                text = magic_methods[called].format(*map(self.literal, args))
                return f"{name}{typed} = {text}"
            if called in inplace_methods:
                text = inplace_methods[called].format(*map(self.literal, args))
                return f"{text};  {name}{typed} = {self.literal(args[0])}"
        if target is getattr and len(args) == 2 and isinstance(args[1], str) \
                and args[1].isidentifier():
            return f"{name}{typed} = {_format_target(self.literal(args[0]), args[1])}"
        called = self.name_of(_get_qualified_name(target), target)
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(called)
        return f"{name}{typed} = {called}({self.arguments(args, node.kwargs)})"


def last_uses(nodes: Any) -> dict[Node, list[Node]]:
    """For each node the values that nobody needs after it."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for user in reversed(nodes):
        def register(node: Node, user: Node = user) -> Node:
            if node not in seen:
                seen.add(node)
                found.setdefault(user, []).append(node)
            return node
        map_arg(user.args, register)
        map_arg(user.kwargs, register)
    return found
