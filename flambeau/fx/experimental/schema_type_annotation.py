"""Annotating a graph with the types that the signatures of its calls say."""
from __future__ import annotations

import inspect
from typing import Any

from flambeau import Tensor, nn
from flambeau.fx import GraphModule, Proxy, Transformer


class AnnotateTypesWithSchema(Transformer):
    """A graph whose nodes have the types of what they give, where functions, modules or attributes
    say so.

    >>> from flambeau import fx
    >>> typed = AnnotateTypesWithSchema(fx.symbolic_trace(nn.Linear(2, 2))).transform()
    >>> [node.type for node in typed.graph.nodes if node.op == "get_attr"]
    [<class 'torch.Tensor'>, <class 'torch.Tensor'>]
    """

    def __init__(self, module: nn.Module, annotate_functionals: bool = True,
                 annotate_modules: bool = True, annotate_get_attrs: bool = True):
        assert isinstance(module, GraphModule)
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def _typed(self, proxy: Proxy, kind: Any) -> Proxy:
        proxy.node.type = proxy.node.type or (None if kind is inspect.Signature.empty else kind)
        return proxy

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A call; of a function of `nn.functional`, with the type that its signature says."""
        kind = None
        if self.annotate_functionals and target.__module__ == "flambeau.nn.functional":
            kind = _returned(target)
        return self._typed(super().call_function(target, args, kwargs), kind)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """A call of a module, with the type that its `forward` says."""
        module = self.fetch_attr(target)
        own = self.annotate_modules and hasattr(nn, type(module).__name__)
        kind = _returned(type(module).forward) if own else None
        return self._typed(super().call_module(target, args, kwargs), kind)

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        """An attribute, with its type."""
        proxy = super().get_attr(target, args, kwargs)
        if self.annotate_get_attrs and isinstance(self.fetch_attr(target), Tensor):
            self._typed(proxy, Tensor)
        return proxy


def _returned(function: Any) -> Any:
    kind = inspect.signature(function).return_annotation
    return Tensor if kind == "Tensor" else None if isinstance(kind, str) else kind


__all__ = ["AnnotateTypesWithSchema"]
