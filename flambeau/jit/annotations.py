"""What annotations mean to TorchScript.

>>> ann_to_type(dict[str, int | None], None)
Dict[str, Optional[int]]
"""
from __future__ import annotations

import ast
import enum
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035

import flambeau
from flambeau._jit_internal import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    check_args_exist,
    is_dict,
    is_future,
    is_ignored_fn,
    is_list,
    is_optional,
    is_tuple,
    is_union,
)
from flambeau.core.tensor import Tensor
from flambeau.futures import Future  # noqa: F401
from flambeau.schema import types as _types
from flambeau.schema.types import *  # noqa: F403

_PLAIN = {int: "IntType", float: "FloatType", complex: "ComplexType", str: "StringType",
          bool: "BoolType", type(None): "NoneType", None: "NoneType", Any: "AnyType"}


def is_tensor(ann: Any) -> bool:
    """Is this the class of tensors, or a subclass?"""
    return isinstance(ann, type) and issubclass(ann, Tensor)


def _special(ann: Any) -> str | None:
    """The type of annotations that name something of this library."""
    if ann is flambeau.device:
        return "DeviceObjType"
    if ann is flambeau.Stream:
        return "StreamObjType"
    if ann is flambeau.Generator:
        return "_GeneratorType"
    return "IntType" if ann is flambeau.dtype else None


def try_ann_to_type(ann: Any, loc: Any, rcb: Any = None) -> Any:
    """The type that an annotation means; None if it means none."""
    if ann is inspect.Signature.empty or is_tensor(ann):
        return _types.TensorType.get()
    try:
        name = _PLAIN.get(ann) or _special(ann)
    except TypeError:
        name = None
    if name is not None:
        return getattr(_types, name).get()
    check_args_exist(ann)
    parts = typing.get_args(ann)
    if is_tuple(ann):
        return _types.TupleType([ann_to_type(part, loc) for part in parts if part != ()])
    if is_list(ann):
        return _types.ListType(ann_to_type(parts[0], loc))
    if is_dict(ann):
        return _types.DictType(*(ann_to_type(part, loc) for part in parts))
    if is_union(ann):
        return _types.UnionType([ann_to_type(part, loc) for part in parts])
    if is_future(ann):
        return _types.FutureType(ann_to_type(parts[0], loc))
    if isinstance(ann, type) and issubclass(ann, enum.Enum):
        get_enum_value_type(ann, loc)
    return None


def ann_to_type(ann: Any, loc: Any, rcb: Any = None) -> Any:
    """The type that an annotation means; ValueError if it means none."""
    found = try_ann_to_type(ann, loc, rcb)
    if found is None:
        where = "" if loc is None else f" at {loc}"
        raise ValueError(f"Unknown type annotation: '{ann!r}'{where}")
    return found


def get_enum_value_type(e: type[enum.Enum], loc: Any) -> Any:
    """The type of an enumeration's values."""
    values = [member.value for member in e]
    if not values:
        raise ValueError(f"No enum values defined for: '{e.__class__}'")
    return _types.unify_type_list([ann_to_type(type(value), loc) for value in values])


def is_function_or_method(the_callable: Any) -> bool:
    """Is this a function or method that is written in Python?"""
    return inspect.isfunction(the_callable) or inspect.ismethod(the_callable)


def is_vararg(the_callable: Any) -> bool:
    """Does a callable take any number of arguments?"""
    if not is_function_or_method(the_callable) and callable(the_callable):
        the_callable = the_callable.__call__
    return is_function_or_method(the_callable) and \
        inspect.getfullargspec(the_callable).varargs is not None


def get_param_names(fn: Any, n_args: int) -> list[str]:
    """The names of a callable's parameters."""
    if isinstance(fn, flambeau._ops.OpOverloadPacket):
        fn = fn._function
    if not is_function_or_method(fn) and is_function_or_method(type(fn).__call__):
        fn = fn.__call__
    if is_function_or_method(fn):
        if is_ignored_fn(fn):
            fn = inspect.unwrap(fn)
        return inspect.getfullargspec(fn).args
    return [str(place) for place in range(n_args)]


def try_real_annotations(fn: Any, loc: Any) -> Any:
    """The types of a function's parameters, and of its result, from its annotations; None if it has
    none."""
    try:
        signature = inspect.signature(fn)
    except ValueError:
        return None
    annotations = [signature.return_annotation,
                   *(p.annotation for p in signature.parameters.values())]
    if all(ann is signature.empty for ann in annotations):
        return None
    result, *params = (ann_to_type(ann, loc) for ann in annotations)
    return params, result


def get_signature(fn: Any, rcb: Callable[[str], Any] | None, loc: Any, is_method: bool) -> Any:
    """The types of a function's parameters, and of its result, from its annotations or from the
    comment `# type: (...) -> ...`; None if it has neither."""
    found = try_real_annotations(fn, loc)
    if found is not None:
        return (found[0][1:] if is_method else found[0]), found[1]
    try:
        line = get_type_line(inspect.getsource(fn))
    except (OSError, TypeError):
        return None
    return None if line is None else parse_type_line(line, rcb, loc)


_TYPE_COMMENT = re.compile(r"#\s*type:\s*(\(.*\)\s*->\s*.+?)\s*(?:#.*)?$", re.MULTILINE)


def get_type_line(source: str) -> str | None:
    """The comment of a function that says its type."""
    found = _TYPE_COMMENT.search(source)
    return f"# type: {found[1]}" if found else None


def split_type_line(type_line: str) -> tuple[str, str]:
    """The parts of `# type: (int, str) -> bool`: `(int, str)` and `bool`.

    >>> split_type_line("# type: (int) -> bool")
    ('(int) ', 'bool')
    """
    start = type_line.find("# type:") + len("# type:")
    arrow = type_line.index("->")
    return type_line[start:arrow].lstrip(), type_line[arrow + 2:].strip()


def parse_type_line(type_line: str, rcb: Callable[[str], Any] | None, loc: Any
                    ) -> tuple[list[Any], Any]:
    """The types that the comment `# type: (int, str) -> bool` says."""
    params, result = split_type_line(type_line)
    known = {**vars(typing), "torch": flambeau, "Tensor": Tensor, "BroadcastingList1": list,
             "BroadcastingList2": list, "BroadcastingList3": list}

    def read(text: str) -> Any:
        tree = ast.parse(text.strip(), mode="eval")
        if any(isinstance(node, ast.Call) for node in ast.walk(tree)):
            raise RuntimeError("Type annotation should not contain calls, but "
                               f"'{text.strip()}' does")
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(known)
        scope = {**known, **{n: rcb(n) for n in names if rcb is not None and rcb(n) is not None}}
        return eval(compile(tree, "<type line>", "eval"), scope)

    try:
        arguments, returned = read(params), read(result)
    except (NameError, SyntaxError) as error:
        raise RuntimeError(f"Failed to parse the type line {type_line!r}: {error}") from error
    if not isinstance(arguments, tuple):
        arguments = (arguments,)
    return [ann_to_type(ann, loc) for ann in arguments], ann_to_type(returned, loc)


def check_fn(fn: Any, loc: Any) -> None:
    """Raise if the source of a function is not one function."""
    try:
        body = ast.parse(inspect.cleandoc(inspect.getsource(fn))).body
    except (OSError, TypeError, SyntaxError):
        return
    if len(body) != 1 or not isinstance(body[0], (ast.FunctionDef, ast.ClassDef)):
        raise RuntimeError("Expected a single top-level function")


Module: Any = types.ModuleType                  # what holds names, when annotations are evaluated
__all__ = ["Any", "AnyType", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3",  # noqa: F405
           "ComplexType", "Dict", "DictType", "FloatType", "IntType", "List", "ListType", "Module",
           "StringType", "TensorType", "Tuple", "TupleType", "ann_to_type", "check_fn",
           "get_param_names", "get_signature", "get_type_line", "is_dict", "is_list", "is_optional",
           "is_tuple", "is_union", "parse_type_line", "split_type_line", "try_ann_to_type",
           "try_real_annotations"]
