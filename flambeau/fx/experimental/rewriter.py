"""Tracing of functions whose source is rewritten first: what Python does with values that a tracer
never sees, assertions and annotated variables, becomes calls that it records.
"""
from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

from flambeau import _assert
from flambeau.fx._symbolic_trace import Tracer
from flambeau.fx.annotate import annotate
from flambeau.fx.graph import Graph
from flambeau.nn import Module

_ASSERT, _ANNOTATE = "_fx_rewritten_assert", "_fx_rewritten_annotate"


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites functions: `assert a, b` calls `torch._assert`, `x: T = y` calls `annotate`."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """The function with its assertions and annotations as calls, in the same globals."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
        definition = self.visit(tree.body[0])
        definition.decorator_list = []
        known = {_ASSERT: _assert, _ANNOTATE: annotate}
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
        # A function around it gives it these names and those that it closes over.
        outer = ast.parse(f"def _around({', '.join([*known, *cells])}):\n    return {fn.__name__}")
        around = outer.body[0]
        assert isinstance(around, ast.FunctionDef)
        around.body.insert(0, definition)
        made: dict[str, Any] = {}
        code = compile(ast.fix_missing_locations(outer), inspect.getfile(fn), "exec")
        exec(code, fn.__globals__, made)
        result = made["_around"](*known.values(), *[cell.cell_contents for cell in cells.values()])
        result.__kwdefaults__, result.__defaults__ = fn.__kwdefaults__, fn.__defaults__
        return result

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """A call of `torch._assert`, with the message or an empty one."""
        call = ast.Call(func=ast.Name(id=_ASSERT, ctx=ast.Load()),
                        args=[node.test, node.msg or ast.Constant("")], keywords=[])
        return ast.copy_location(ast.Expr(value=call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """An assignment of the annotated value; a mere declaration stays."""
        if node.value is None:
            return node
        call = ast.Call(func=ast.Name(id=_ANNOTATE, ctx=ast.Load()),
                        args=[node.value, node.annotation], keywords=[])
        return ast.copy_location(ast.Assign(targets=[node.target], value=call), node)


class RewritingTracer(Tracer):
    """A tracer that rewrites the function, or the module's `forward`, before it traces it.

    >>> def checked(x):
    ...     assert x.shape, "no scalars"
    ...     return x + 1
    """

    def trace(self, root: Module | Callable[..., Any],
              concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of the rewritten function or module."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Module | Callable[..., Any]) -> Any:
    if not isinstance(fn, Module):
        assert isinstance(fn, FunctionType)
        return AST_Rewriter().rewrite(fn)

    class RewrittenModule(Module):
        """A module with the same parts."""

        def __init__(self, orig: Module):
            super().__init__()
            self.__dict__ = copy.copy(orig.__dict__)

    forward = type(fn).forward
    assert isinstance(forward, FunctionType)
    RewrittenModule.forward = AST_Rewriter().rewrite(forward)
    return RewrittenModule(fn)


__all__ = ["AST_Rewriter", "RewritingTracer"]
