"""A graph as Python code."""
from __future__ import annotations

import builtins
import contextlib
import keyword
import math
import re
import types
import typing
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import flambeau
from flambeau._library.operator import OperatorBase
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


class _CustomBuiltin(NamedTuple):
    """A name that all generated code may use: the statement that brings it, and the object."""
    import_str: str
    obj: Any


_custom_builtins: dict[str, _CustomBuiltin] = {}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin("torch", "import torch", flambeau)
_register_custom_builtin("device", "from torch import device", flambeau.device)


def reserved_names() -> dict[str, Any]:
    """What every piece of code can name."""
    if "fx_pytree" not in _custom_builtins:
        from flambeau.fx import _pytree as fx_pytree
        from flambeau.utils import _pytree as pytree
        _register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
        _register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)
    return {name: value.obj for name, value in _custom_builtins.items()}


@dataclass
class PythonCode:
    """Code, the objects that it names, and the node of each line, by number."""
    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class Namespace:
    """Names that are taken, and new ones like them."""

    def __init__(self) -> None:
        self._used_names: set[str] = set()
        self._obj_to_name: dict[Any, str] = {}
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like `candidate` that is legal and free, for an object that may have one."""
        if obj is not None and id(obj) in self._obj_to_name:
            return self._obj_to_name[id(obj)]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, None)
        if number is None or candidate in self._used_names:
            number = self._base_count.get(candidate, 0)
        while candidate in self._used_names or self._illegal(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self.associate_name_with_obj(candidate, obj)
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Let an object have a name."""
        self._obj_to_name[id(obj)] = name

    @staticmethod
    def _illegal(name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        if name in _custom_builtins:
            return _custom_builtins[name].obj is not obj
        return name in vars(builtins) and vars(builtins)[name] is not obj


def snake_case(name: str) -> str:
    """`SomeName` as `some_name`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _format_target(base: str, target: str) -> str:
    """The expression for a dotted name below `base`; parts that are no names use getattr."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


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


_COLORS = {"yellow": "33", "cyan": "36", "green": "32", "blue": "34", "red": "31", "dim": "2",
           "dim_blue": "2;34", "dim_green": "2;32"}


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
            alias = {list: typing.List, dict: typing.Dict, tuple: typing.Tuple,     # noqa: UP006
                     set: typing.Set, frozenset: typing.FrozenSet}.get(origin, origin)  # noqa: UP006
            base = self.name_of(_type_repr(alias), alias)
            inner = ", ".join(self.annotation(a) if a is not ... else "..." for a in args)
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
            text = self.looks(node.meta.get("val", node.meta.get(
                "example_value", node.meta.get("tensor_meta"))))
            if text:
                return f': {self.colored(chr(34) + text + chr(34), "blue")}'
        return ""

    def looks(self, value: Any) -> str:
        """`f32[2, 3]`."""
        if isinstance(value, (flambeau.SymInt, flambeau.SymFloat, flambeau.SymBool)):
            return f"Sym({value})"
        dtype = getattr(value, "dtype", None)
        if dtype is None or not hasattr(value, "shape"):
            return ""
        text = f"{dtype_abbrs.get(dtype, dtype)}{list(value.shape)}"
        if self.style.include_stride and hasattr(value, "stride"):
            stride = value.stride() if callable(value.stride) else value.stride
            text += str(list(stride))
        if self.style.include_device and hasattr(value, "device"):
            text += str(value.device)
        return text

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


_STEP = re.compile(r'^ *File "(?P<file>.*?)", line (?P<line>\d+), in (?P<name>.*)$')


@dataclass(frozen=True)
class _ParsedStackTrace:
    """The innermost line of a stack trace."""
    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        """The line on one line."""
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


def _parse_stack_trace(stack_trace: str, filter_fn: Any = None) -> _ParsedStackTrace | None:
    """The innermost line of a stack trace that `filter_fn(file, name, code)` accepts."""
    lines = stack_trace.strip().split("\n")
    for i in range(len(lines) - 2, -1, -1):
        match = _STEP.match(lines[i])
        if match is None:
            continue
        code = lines[i + 1].strip()
        if filter_fn is None or filter_fn(match["file"], match["name"], code):
            return _ParsedStackTrace(match["file"], match["line"], match["name"], code)
    return None


# ---- the parts that a program may change ---------------------------------------------------------


class CodeGen:
    """How a graph becomes a function; subclass it, and `Graph.set_codegen`, to change that."""

    def __init__(self) -> None:
        self._body_transformer: Any = None
        self._func_name = "forward"

    def _format_multiline_args(self, args: list[str]) -> str:
        return "".join([f"{arg},\n" for arg in args])

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *,
                   expanded_def: bool = False) -> str:
        """The first line: the function's name and parameters."""
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self", *free_vars]
        if expanded_def:
            inner = "".join(f"    {v},\n" for v in free_vars)
            return f"def {self._func_name}(\n{inner}){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, descs: Any = None) -> str:
        """The line that returns; nodes in `output_args` are shown by name."""
        return f"return {output_args!r}"

    def _generate_output(self, node: Node, literal: Callable[[Any], str]) -> str:
        if type(self).generate_output is CodeGen.generate_output:
            return f"return {literal(node.args[0])}"
        return self.generate_output(node.args[0])

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the graph, of those of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result of a call, of that of the graph."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the code needs, with their objects."""
        return []

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: Namespace, *,
                         verbose: bool = False, include_stride: bool = False,
                         include_device: bool = False, colored: bool = False,
                         expanded_def: bool = False, record_func: bool = False,
                         additional_meta: list[str] | None = None) -> PythonCode:
        """The code of a graph; values are dropped after their last use."""
        style = Style(verbose, include_stride, include_device, colored, expanded_def,
                      additional_meta or [])
        writer = Writer(namespace, root_module, style)
        writer.globals.update(reserved_names())
        for name, value in self.additional_globals():
            writer.globals[name] = value
        last = last_uses(nodes)
        comments = _Comments() if verbose else None
        for i, node in enumerate(nodes):
            if comments is not None:
                writer.body += comments.before(node)
            writer.body.append(f"# COUNTER: {i}\n")
            writer.emit(node, self)
            if node.op == "placeholder":
                continue
            if node.op == "output":
                writer.body.append("\n")
                continue
            dead = list(last.get(node, ()))
            if not node.users:
                dead.append(node)
            drop = f";  {' = '.join([*map(repr, dead), 'None'])}" if dead else ""
            writer.body.append(f"{writer.colored(drop, 'dim') if drop else ''}\n")
        body = writer.body or ["pass\n"]
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        return self._finished(writer, body)

    def _finished(self, writer: Writer, body: list[str]) -> PythonCode:
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        prologue = self.gen_fn_def(writer.parameters, writer.returns,
                                   **({"expanded_def": True} if writer.style.expanded_def else {}))
        lines, counted = [], {}
        node: int | None = None
        for line in "".join(body).split("\n"):
            marker = re.match(r"# COUNTER: (\d+)", line)
            if marker:
                node = int(marker[1])
                continue
            lines.append("    " + line)
            counted[len(lines) + prologue.count("\n")] = node
        code = "\n".join(lines)
        start = f"\n{wraps}\n\n{prologue}"
        return PythonCode(f"{start}\n{code}", writer.globals, counted, start.count("\n") + 1)


class _Comments:
    """Says in verbose code where the steps come from."""

    def __init__(self) -> None:
        self.before_last = ""

    def before(self, node: Node) -> list[str]:
        """The comment in front of a step, if the place has changed."""
        if node.op in ("placeholder", "output"):
            return []
        summary = "No stacktrace found for following nodes"
        if node.stack_trace:
            parsed = _parse_stack_trace(node.stack_trace)
            summary = parsed.get_summary_str() if parsed else ""
        if summary == self.before_last:
            return []
        self.before_last = summary
        return [f"# {summary}\n"] if "No stacktrace" in summary else [f"\n# {summary}\n"]


class _BoxedCodeGen(CodeGen):
    """A function that takes one list of arguments, and empties it."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *,
                   expanded_def: bool = False) -> str:
        """The first lines: the list is taken apart."""
        names = [v.partition(":")[0].partition("=")[0].strip() for v in free_vars if v != "self"]
        lines = [f"def {self._func_name}(self, args_list){maybe_return_annotation}:"]
        if names:
            lines.append(f"    {', '.join(names)}, = args_list")
        lines.append("    args_list.clear()")
        return "\n".join(lines)


class _PyTreeInfo(NamedTuple):
    """The parameters of a function whose graph has the leaves of their values as inputs."""
    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class _PyTreeCodeGen(CodeGen):
    """A function that takes and gives nested containers; the graph has their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        """The leaves of the arguments."""
        from flambeau.utils import _pytree
        return _pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        """The container of the leaves that the graph gives."""
        from flambeau.utils import _pytree
        if not isinstance(out, (list, tuple)):
            out = [out]
        if self.pytree_info.out_spec is None:
            raise AssertionError("pytree_info.out_spec is None")
        return _pytree.tree_unflatten(out, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *,
                   expanded_def: bool = False) -> str:
        """The first lines: the arguments are flattened."""
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation,
                                      expanded_def=expanded_def)
        orig = list(self.pytree_info.orig_args)
        has_self = bool(orig) and orig[0] == "self"
        free_vars = free_vars if not free_vars or free_vars[0] != "self" else free_vars[1:]
        head = super().gen_fn_def(orig, maybe_return_annotation, expanded_def=expanded_def)
        names = [v.partition(":")[0].partition("=")[0].strip() for v in free_vars]
        if not free_vars:
            return head
        lines = [head]
        typed = [v for v in free_vars if ":" in v]
        if typed and expanded_def:
            lines += [f"    {v}" for v in typed]
        elif typed:
            lines.append("    " + "".join(f"{v}; " for v in typed) + "\n")
        given = orig[1:] if has_self else orig
        flat = self._flatten_call(given)
        lines.append(f"    {', '.join(names)}, = fx_pytree.tree_flatten_spec({flat}, "
                     "self._in_spec)")
        return "\n".join(lines)

    def _flatten_call(self, given: list[str]) -> str:
        spec = self.pytree_info.in_spec
        shape = spec.type is tuple and spec.num_children == 2 \
            and spec.child(0).type is tuple and spec.child(1).type is dict
        if shape:
            count = spec.child(0).num_children
            named = ", ".join(f"{key!r}:{name}"
                              for key, name in zip(spec.child(1).context, given[count:]))
            return f"([{', '.join(given[:count])}], {{{named}}})"
        return f"[{', '.join(given)}]"

    def generate_output(self, output_args: Any, *, descs: Any = None) -> str:
        """The line that returns: the leaves are put together."""
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        inner = repr(output_args) if isinstance(output_args, (list, tuple)) \
            else f"[{output_args!r}]"
        return f"return pytree.tree_unflatten({inner}, self._out_spec)"

    def _generate_output(self, node: Node, literal: Callable[[Any], str]) -> str:
        if self.pytree_info.out_spec is None:
            return f"return {literal(node.args[0])}"
        return self.generate_output(node.args[0])


__all__ = ["CodeGen", "Namespace", "PythonCode", "Writer", "last_uses", "snake_case"]
