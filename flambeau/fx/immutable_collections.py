"""Lists and dicts that do not change: the arguments of a node.

>>> immutable_list([1]).append(2)
Traceback (most recent call last):
TypeError: 'immutable_list' object does not support mutation. If you are attempting to modify the \
kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:
<BLANKLINE>
    new_args = ...  # copy and mutate args
    node.args = new_args
<BLANKLINE>
"""
from __future__ import annotations

from typing import Any, NoReturn

from flambeau.utils import _pytree

_HELP = ("If you are attempting to modify the kwargs or args of a torch.fx.Node object,\ninstead "
         "create a new copy of it and assign the copy to the node:\n\n    new_args = ...  # copy "
         "and mutate args\n    node.args = new_args\n")


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises TypeError: graphs share it, so it never changes."""
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_HELP}")


class immutable_list(list):
    """A list that does not change."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = append = clear = _no_mutation
    extend = insert = pop = remove = reverse = sort = _no_mutation

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict that does not change."""

    __delitem__ = __ior__ = __setitem__ = clear = pop = popitem = _no_mutation
    setdefault = update = _no_mutation

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


def _register(cls: type, plain: type) -> None:
    node = _pytree.SUPPORTED_NODES[plain]
    _pytree.register_pytree_node(
        cls, node.flatten_fn, lambda values, context: cls(node.unflatten_fn(values, context)),
        serialized_type_name=f"torch.fx.immutable_collections.{cls.__name__}",
        flatten_with_keys_fn=node.flatten_with_keys_fn)


_register(immutable_list, list)
_register(immutable_dict, dict)
__all__ = ["immutable_dict", "immutable_list"]
