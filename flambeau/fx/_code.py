"""A graph as Python code."""
from __future__ import annotations

import builtins
import keyword
import math
import re
import types
from dataclasses import dataclass
from typing import Any

import flambeau
from flambeau.fx.node import Node, find_in_torch, map_arg, qualified_name, type_repr

BINARY = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "add": "+",
          "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**",
          "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "matmul": "@"}
UNARY = {"pos": "+", "neg": "-", "invert": "~"}
INPLACE = {"iadd": "+=", "iand": "&=", "ifloordiv": "//=", "ilshift": "<<=", "imod": "%=",
           "imul": "*=", "imatmul": "@=", "ior": "|=", "ipow": "**=", "irshift": ">>=",
           "isub": "-=", "itruediv": "/=", "ixor": "^="}
RESERVED = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": flambeau,
            "device": flambeau.device}


@dataclass
class PythonCode:
    """Code, and the objects that it names."""
    src: str
    globals: dict[str, Any]


class Namespace:
    """Names that are taken, and new ones like them."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.names: dict[Any, str] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like `candidate` that is legal and free, for an object that may have one."""
        if obj is not None and id(obj) in self.names:
            return self.names[id(obj)]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, 0)
        while candidate in self.used or self._illegal(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self.used.add(candidate)
        if obj is not None:
            self.names[id(obj)] = candidate
        return candidate

    @staticmethod
    def _illegal(name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        for known in (vars(builtins), RESERVED):
            if name in known:
                return known[name] is not obj
        return False


def snake_case(name: str) -> str:
    """`SomeName` as `some_name`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def format_target(base: str, target: str) -> str:
    """The expression for a dotted name below `base`; parts that are no names use getattr."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


class _Writer:
    """Writes the function of one graph."""

    def __init__(self, graph: Any, root: str):
        self.graph, self.root = graph, root
        self.globals: dict[str, Any] = {}
        self.names = Namespace()
        self.names.used.update(graph._names.used)
        self.parameters: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returns = ""
        self.body: list[str] = []

    def name_of(self, hint: str, obj: Any) -> str:
        """The name under which the code sees an object of the program's."""
        if obj is not flambeau.device and find_in_torch(hint) is obj and hint.startswith("torch."):
            return hint
        name = hint.replace(".", "_")
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
                name = self.name_of(qualified_name(type(arg)), type(arg))
                return f"{name}({', '.join(map(self.literal, arg))})"
            return f"({', '.join(map(self.literal, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.literal, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.literal(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({', '.join(map(self.literal, (arg.start, arg.stop, arg.step)))})"
        if isinstance(arg, Node):
            return arg.name
        if isinstance(arg, type):
            return self.annotation(arg)
        if isinstance(arg, (types.FunctionType, types.BuiltinFunctionType)):
            return self.name_of(qualified_name(arg), arg)
        return repr(arg)

    def annotation(self, value: Any) -> str:
        text = type_repr(value)
        if isinstance(value, type) and value.__module__ != "builtins":
            return self.name_of(text, value)
        if isinstance(value, type):
            return text
        return self.name_of(re.sub(r"\W+", "_", text).strip("_"), value)

    def arguments(self, args: Any, kwargs: dict[str, Any]) -> str:
        return ", ".join([self.literal(a) for a in args]
                         + [f"{k} = {self.literal(v)}" for k, v in kwargs.items()])

    def emit(self, node: Node) -> None:
        """Write one step."""
        typed = "" if node.type is None else f" : {self.annotation(node.type)}"
        if node.op == "placeholder":
            raw = node.target.replace("*", "")
            default = f" = {self.literal(node.args[0])}" if node.args else ""
            self.parameters.append(f"{node.target}{typed}{default}")
            if raw != node.name:
                self.body.append(f"{node.name} = {raw}\n")
        elif node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.annotation(node.type)}"
            self.body.append(f"return {self.literal(node.args[0])}")
        elif node.op == "get_attr":
            self.body.append(f"{node.name}{typed} = {format_target(self.root, node.target)}")
        elif node.op == "call_module":
            self.body.append(f"{node.name}{typed} = {format_target(self.root, node.target)}"
                             f"({self.arguments(node.args, node.kwargs)})")
        elif node.op == "call_method":
            self.body.append(f"{node.name}{typed} = "
                             f"{format_target(self.literal(node.args[0]), node.target)}"
                             f"({self.arguments(node.args[1:], node.kwargs)})")
        else:
            self.body.append(self.function(node, typed))

    def function(self, node: Node, typed: str) -> str:
        target, args = node.target, node.args
        name = target.__name__
        if getattr(target, "__module__", "") == "_operator" and not node.kwargs:
            if name in BINARY and len(args) == 2:
                return f"{node.name}{typed} = {self.literal(args[0])} {BINARY[name]} " \
                       f"{self.literal(args[1])}"
            if name in UNARY:
                return f"{node.name}{typed} = {UNARY[name]}{self.literal(args[0])}"
            if name in INPLACE:
                return f"{self.literal(args[0])} {INPLACE[name]} {self.literal(args[1])};  " \
                       f"{node.name}{typed} = {self.literal(args[0])}"
            if name == "getitem":
                return f"{node.name}{typed} = {self.literal(args[0])}[{self.literal(args[1])}]"
        if target is getattr and len(args) == 2 and isinstance(args[1], str) \
                and args[1].isidentifier():
            return f"{node.name}{typed} = {format_target(self.literal(args[0]), args[1])}"
        called = self.name_of(qualified_name(target), target)
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(called)
        return f"{node.name}{typed} = {called}({self.arguments(args, node.kwargs)})"


def _last_uses(graph: Any) -> dict[Node, list[Node]]:
    """For each node the values that nobody needs after it."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for user in reversed(graph.nodes):
        def register(node: Node, user: Node = user) -> Node:
            if node not in seen:
                seen.add(node)
                found.setdefault(user, []).append(node)
            return node
        map_arg(user.args, register)
        map_arg(user.kwargs, register)
    return found


def python_code(graph: Any, root: str) -> PythonCode:
    """The code of a graph; values are dropped after their last use."""
    writer, last = _Writer(graph, root), _last_uses(graph)
    writer.globals.update(RESERVED)
    for node in graph.nodes:
        writer.emit(node)
        if node.op == "placeholder":
            continue
        if node.op == "output":
            writer.body.append("\n")
            continue
        dead = list(last.get(node, ()))
        if not node.users:
            dead.append(node)
        drop = f";  {' = '.join([n.name for n in dead] + ['None'])}" if dead else ""
        writer.body.append(f"{drop}\n")
    body = "".join(writer.body) or "pass\n"
    lines = "\n".join("    " + line for line in body.split("\n"))
    wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
    parameters = ", ".join([root, *writer.parameters])
    return PythonCode(f"\n{wraps}\n\ndef forward({parameters}){writer.returns}:\n{lines}",
                      writer.globals)
