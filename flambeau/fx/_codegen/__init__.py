"""A graph as Python code."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from flambeau.fx._codegen.names import (
    Namespace,
    _custom_builtins,
    _CustomBuiltin,
    _format_target,
    _register_custom_builtin,
    reserved_names,
    snake_case,
)
from flambeau.fx._codegen.writer import (
    Style,
    Writer,
    _override_sym_repr,
    inplace_methods,
    last_uses,
    magic_methods,
    reflectable_magic_methods,
)
from flambeau.fx.node import Node


@dataclass
class PythonCode:
    """Code, the objects that it names, and the node of each line, by number."""
    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


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

    def generate_output(self, output_args: Any, *, descs: Any = None,
                        repr_fn: Callable[[Any], str] | None = None) -> str:
        """The line that returns; nodes in `output_args` are shown by name."""
        return f"return {(repr_fn or repr)(output_args)}"

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
                comment = comments.before(node)
                if comment:
                    writer.body.append(f"\n{writer.colored(comment, 'dim')}\n")
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
            drop = writer.colored(" = ".join([*map(repr, dead), "None"]), "dim")
            writer.body.append(f";  {drop}\n" if dead else "\n")
        body = writer.body or ["pass\n"]
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        return self._finished(writer, body)

    def _finished(self, writer: Writer, body: list[str]) -> PythonCode:
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        prologue = self.gen_fn_def(writer.parameters, writer.returns,
                                   **({"expanded_def": True} if writer.style.expanded_def else {}))
        lines: list[str] = []
        counted: dict[int, int | None] = {}
        node: int | None = None
        for line in "".join(body).split("\n"):
            marker = re.match(r"# COUNTER: (\d+)", line)
            if marker:
                node = int(marker[1])
                continue
            if not line and not lines:          # before the first comment
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

    def before(self, node: Node) -> str:
        """The comment in front of a step, if the place has changed."""
        if node.op in ("placeholder", "output"):
            return ""
        summary = "No stacktrace found for following nodes"
        if node.stack_trace:
            parsed = _parse_stack_trace(node.stack_trace)
            summary = parsed.get_summary_str() if parsed else ""
        if summary == self.before_last:
            return ""
        self.before_last = summary
        return f"# {summary}"


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

    def generate_output(self, output_args: Any, *, descs: Any = None,
                        repr_fn: Callable[[Any], str] | None = None) -> str:
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
