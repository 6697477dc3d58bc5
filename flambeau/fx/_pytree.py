"""Taking containers apart whose shape is known: generated code calls `tree_flatten_spec`.

>>> from flambeau.utils import _pytree
>>> spec = _pytree.tree_structure([1, {"a": 2}])
>>> tree_flatten_spec([5, {"a": 6}], spec)
[5, 6]
"""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from flambeau.fx.immutable_collections import immutable_dict, immutable_list
from flambeau.utils import _pytree
from flambeau.utils._pytree import PyTree, TreeSpec

FlattenFuncSpec = Callable[[PyTree, TreeSpec], list[Any]]
FlattenFuncExactMatchSpec = Callable[[PyTree, TreeSpec], bool]
SUPPORTED_NODES: dict[Any, Any] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, Any] = {}


def register_pytree_flatten_spec(cls: Any, flatten_fn_spec: FlattenFuncSpec,
                                 flatten_fn_exact_match_spec: Any = None) -> None:
    """Say how instances of a class are taken apart, given the shape that they should have."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: Any) -> None:
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    """The leaves of a container that has, as far as `spec` goes, that shape."""
    if spec.is_leaf():
        return [pytree]
    if spec.type in SUPPORTED_NODES:
        parts = SUPPORTED_NODES[spec.type](pytree, spec)
    elif spec.type in _pytree.SUPPORTED_NODES:
        parts = _pytree.SUPPORTED_NODES[spec.type].flatten_fn(pytree)[0]
    else:
        raise RuntimeError(f"{type(pytree)} does not have a flatten_fn_spec associated with it. "
                           "Please register one with torch.fx._pytree.register_pytree_flatten_spec."
                           "  If you have serialized your model, make sure that any custom "
                           "pytrees have been registered before loading it.")
    found: list[Any] = []
    for child, child_spec in zip(parts, spec.children_specs):
        found += tree_flatten_spec(child, child_spec)
    return found


def _dict_flatten_spec(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[k] for k in spec.context]


def _list_flatten_spec(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[i] for i in range(spec.num_children)]


def _exact_length(d: Any, spec: TreeSpec) -> bool:
    return len(d) == spec.num_children


for _cls, _rule in ((dict, _dict_flatten_spec), (immutable_dict, _dict_flatten_spec),
                    (list, _list_flatten_spec), (immutable_list, _list_flatten_spec),
                    (tuple, _list_flatten_spec), (namedtuple, _list_flatten_spec)):
    register_pytree_flatten_spec(_cls, _rule, _exact_length)
_tuple_flatten_spec = _namedtuple_flatten_spec = _list_flatten_spec
_dict_flatten_spec_exact_match = _list_flatten_spec_exact_match = _exact_length
_tuple_flatten_spec_exact_match = _namedtuple_flatten_spec_exact_match = _exact_length

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]
