"""Graphs whose calls are written in one way."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau.fx import GraphModule, Node, Proxy, Transformer
from flambeau.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from flambeau.fx.node import map_aggregate
from flambeau.fx.operator_schemas import create_type_hint, normalize_function, normalize_module


class NormalizeArgs(Transformer):
    """A graph whose calls give all arguments, by name: of functions and modules that have one
    signature, or of which the types of the arguments tell which one is meant.

    >>> from flambeau import fx
    >>> traced = fx.symbolic_trace(lambda x: flambeau.nn.functional.relu(x))
    >>> print(NormalizeArgs(traced).transform().code.strip())
    def forward(self, x):
        relu = torch.nn.functional.relu(input = x, inplace = False);  x = None
        return relu
    """

    def __init__(self, module: GraphModule, normalize_to_only_use_kwargs: bool = True):
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """The node again; what it calls in the one way."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op == "call_function":
            def type_of(value: Any) -> Any:
                return n.meta.get("type") if isinstance(value, Node) else type(value)
            out = self.call_function(
                n.target, args, kwargs,
                tuple([create_type_hint(map_aggregate(a, type_of)) for a in n.args]),
                {k: create_type_hint(map_aggregate(v, type_of)) for k, v in n.kwargs.items()})
        else:
            out = super().run_node(n)
        if n.op != "output":
            self.node_map[out] = n
            out.node.meta, out.node.type = n.meta, n.type
        return out

    def call_function(self, target: Callable[..., Any], args: Any, kwargs: Any,
                      arg_types: Any = None, kwarg_types: Any = None) -> Any:
        """A call of a function."""
        found = normalize_function(target, args, kwargs, arg_types, kwarg_types,
                                   self.normalize_to_only_use_kwargs)
        return super().call_function(target, *(found or (args, kwargs)))

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """A call of a module."""
        found = normalize_module(self.module, target, args, kwargs,
                                 self.normalize_to_only_use_kwargs)
        return super().call_module(target, *(found or (args, kwargs)))


class NormalizeOperators(AnnotateTypesWithSchema):
    """A graph with Python's operators for the functions that do the same.

    >>> from flambeau import fx
    >>> traced = fx.symbolic_trace(lambda x, y: flambeau.add(x, y))
    >>> print(NormalizeOperators(traced).transform().code.strip())
    def forward(self, x, y):
        add = x + y;  x = y = None
        return add
    """

    binary_magic_method_remap: dict[Any, Any] = {
        getattr(flambeau, getattr(flambeau.Tensor, f"__{symbol}__").op.name): getattr(
            operator, symbol)
        for symbol in "add mul sub truediv floordiv mod eq ne lt le gt ge".split()}

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A call of a function, or of the operator."""
        if target in self.binary_magic_method_remap and len(args) == 2 and not kwargs:
            target = self.binary_magic_method_remap[target]
        return super().call_function(target, args, kwargs)


__all__ = ["NormalizeArgs", "NormalizeOperators"]
