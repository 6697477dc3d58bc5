"""What type annotations of programs mean to a compiler: containers, optionals, futures."""
from __future__ import annotations

import types
import typing
import warnings
from typing import Any

from flambeau._support.own_methods import shown_as
from flambeau.core.tensor import Tensor
from flambeau.futures import Future

_NAMES = {list: "list", dict: "dict", tuple: "tuple", typing.List: "List",  # noqa: UP006
          typing.Dict: "Dict", typing.Tuple: "Tuple", typing.Optional: "Optional"}  # noqa: UP006


def _uncompiled() -> set[type]:
    from flambeau import nn
    return {nn.Module, Tensor}


def _is_exception(obj: Any) -> bool:
    return isinstance(obj, type) and issubclass(obj, Exception)


def is_final(ann: Any) -> bool:
    """Is this `Final[...]`, the annotation of a constant?"""
    return ann is typing.Final or typing.get_origin(ann) is typing.Final


def raise_error_container_parameter_missing(target_type: str) -> None:
    """Raise because an annotation does not say what is in the container."""
    plural, example = ("s", "int, int") if target_type.endswith("ict") else ("", "int")
    article = "" if plural else "a "
    raise RuntimeError(f"Attempted to use {target_type} without {article}contained type{plural}. "
                       f"Please add {article}contained type, e.g. {target_type}[{example}]")


def check_args_exist(target_type: Any) -> None:
    """Raise for the annotation of a container that does not say what is in it."""
    if target_type in _NAMES:
        raise_error_container_parameter_missing(_NAMES[target_type])


def _has_origin(ann: Any, origin: Any, bare: Any) -> bool:
    if ann is bare:
        check_args_exist(ann)
    return typing.get_origin(ann) is origin


def is_tuple(ann: Any) -> bool:
    """Is this the annotation of a tuple?"""
    return _has_origin(ann, tuple, typing.Tuple)  # noqa: UP006


def is_list(ann: Any) -> bool:
    """Is this the annotation of a list?"""
    return _has_origin(ann, list, typing.List)  # noqa: UP006


def is_dict(ann: Any) -> bool:
    """Is this the annotation of a dict?"""
    return _has_origin(ann, dict, typing.Dict)  # noqa: UP006


def is_union(ann: Any) -> bool:
    """Is this a union?"""
    return _has_origin(ann, typing.Union, typing.Union) or isinstance(ann, types.UnionType)


def is_optional(ann: Any) -> bool:
    """Is this a union of None and one other type?"""
    if ann is typing.Optional:
        check_args_exist(ann)
    args = typing.get_args(ann)
    return is_union(ann) and len(args) == 2 and type(None) in args


def is_future(ann: Any) -> bool:
    """Is this `Future[...]`?"""
    if ann is Future:
        raise RuntimeError("Attempted to use Future without a contained type. Please add a "
                           "contained type, e.g. Future[int]")
    return typing.get_origin(ann) is Future


def is_rref_instance(obj: Any) -> bool:
    """Is this a reference to a value of another process? There are none."""
    return False


def check_empty_containers(obj: Any) -> None:
    """Warn that an empty container is of every type."""
    if obj in ([], {}, ()):
        warnings.warn("The inner type of a container is lost when calling torch.jit.isinstance in "
                      "eager mode. For example, List[int] would become list and therefore falsely "
                      "return True for List[float] or List[str].", stacklevel=2)


def container_checker(obj: Any, target_type: Any) -> bool:
    """Is this an instance of a type that says what containers hold?

    >>> container_checker([1, 2], list[int]), container_checker([1, "a"], list[int])
    (True, False)
    """
    check_args_exist(target_type)
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return isinstance(obj, target_type)
    check_empty_containers(obj)
    if is_union(target_type):
        return any(_isinstance(obj, t) for t in args)
    if not isinstance(obj, origin):
        return False
    if origin is dict:
        return all(_isinstance(k, args[0]) and _isinstance(v, args[1]) for k, v in obj.items())
    if origin is tuple and args[-1:] != (Ellipsis,):
        return len(obj) == len(args) and all(map(_isinstance, obj, args))
    return all(_isinstance(value, args[0]) for value in obj)


@shown_as("isinstance")
def _isinstance(obj: Any, target_type: Any) -> bool:
    """`isinstance` for types that may say what containers hold."""
    if isinstance(target_type, tuple):
        return any(_isinstance(obj, t) for t in target_type)
    if target_type is None:
        return obj is None
    check_args_exist(target_type)
    if typing.get_origin(target_type) is not None:
        return container_checker(obj, target_type)
    return isinstance(obj, target_type)
