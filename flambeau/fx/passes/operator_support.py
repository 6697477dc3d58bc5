"""Which nodes a backend supports: `OperatorSupport` and its combinations."""
from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

import flambeau
from flambeau import nn
from flambeau.fx import Node
from flambeau.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target

SupportedArgumentDTypes = tuple[Any, dict[str, Any]] | None
SupportDict = Mapping[str, SupportedArgumentDTypes]
IsNodeSupported = Callable[[Mapping[str, nn.Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """Says of nodes whether they are supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Is this node supported?"""
        raise NotImplementedError


class OperatorSupport(OperatorSupportBase):
    """Support by a table: names of targets to the element types that they take (None: any)."""

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Is the node's target in the table, for the types of its arguments?"""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        entry = self._support_dict[target]
        if entry is None:
            return True
        arg_types, kwarg_types = entry
        pairs = [*zip(arg_types, node.args), *((kinds, node.kwargs[name])
                                               for name, kinds in kwarg_types.items()
                                               if name in node.kwargs)]
        return all(_dtype_of(value) in kinds for kinds, value in pairs if isinstance(value, Node))


def _dtype_of(node: Node) -> Any:
    meta = node.meta.get("tensor_meta")
    return getattr(meta, "dtype", None)


class _Predicate(OperatorSupportBase):
    def __init__(self, function: IsNodeSupported):
        self.function = function

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        return self.function(submodules, node)


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """Support as a function says."""
    return _Predicate(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Support of what all support."""
    return create_op_support(lambda submodules, node: all(
        s.is_node_supported(submodules, node) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Support of what any supports."""
    return create_op_support(lambda submodules, node: any(
        s.is_node_supported(submodules, node) for s in op_support))


class OpSupports:
    """Common kinds of support."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: flambeau.dtype) -> OperatorSupportBase:
        """Support of nodes none of whose inputs has this type."""
        return create_op_support(lambda submodules, node: all(
            _dtype_of(n) is not dtype for n in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Support of nodes whose names are not in a set."""
        return create_op_support(lambda submodules, node: node.name not in disallow_set)


__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain",
           "create_op_support"]
