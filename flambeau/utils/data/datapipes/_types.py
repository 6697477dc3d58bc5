"""What a data pipe says of its elements' type, and whether values keep to it."""

from functools import reduce
from operator import or_
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin


class DataPipeType:
    """The type of a pipe's elements, such as `int` of an `IterDataPipe[int]`."""

    def __init__(self, param):
        self.param = param

    def __repr__(self):
        return getattr(self.param, "__name__", None) or repr(self.param)

    def issubtype(self, other):
        """Is every element of this type one of the `other` type?"""
        return is_subtype(self.param, other.param)

    def issubtype_of_instance(self, value):
        """Is `value` of this type?"""
        return fits(value, self.param)


def is_subtype(left, right):
    """Is each value of the hint `left` one of the hint `right`?"""
    left, right = _plain(left), _plain(right)
    if right is Any or left == right:
        return True
    if left is Any:
        return False
    if get_origin(left) in (Union, UnionType):
        return all(is_subtype(part, right) for part in get_args(left))
    if get_origin(right) in (Union, UnionType):
        return any(is_subtype(left, part) for part in get_args(right))
    a, b = get_origin(left) or left, get_origin(right) or right
    if not (isinstance(a, type) and isinstance(b, type) and issubclass(a, b)):
        return False
    wanted, given = get_args(right), get_args(left)
    return not wanted or (len(given) == len(wanted)
                          and all(map(is_subtype, given, wanted)))


def fits(value, hint):
    """Is the value one of the hint? Containers are looked into."""
    hint = _plain(hint)
    if hint is Any:
        return True
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in args)
    if origin is None:
        return isinstance(value, hint)
    if not isinstance(value, origin):
        return False
    if origin is tuple and not (len(args) == 2 and args[1] is ...):
        return len(value) == len(args) and all(map(fits, value, args))
    if isinstance(value, dict):
        return all(fits(k, args[0]) and fits(v, args[1]) for k, v in value.items())
    return all(fits(v, args[0]) for v in value)


def _plain(hint):
    if isinstance(hint, TypeVar):
        several = hint.__constraints__
        return reduce(or_, several) if several else hint.__bound__ or Any
    return type(None) if hint is None else hint
