"""The signatures of ops, and arguments of calls in the form that a signature gives them."""
from __future__ import annotations

import inspect
import numbers
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor
from flambeau._ops import OpOverload, OpOverloadPacket
from flambeau.dispatch.aten.schemas import name_of, recorded
from flambeau.fx.immutable_collections import immutable_list
from flambeau.fx.node import _get_qualified_name, find_in_torch
from flambeau.schema.function_schema import FunctionSchema
from flambeau.schema.types import (
    BoolType,
    DeviceObjType,
    FloatType,
    IntType,
    ListType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
)


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


# ---- signatures ----------------------------------------------------------------------------------

_PYTHON: dict[Any, Any] = {
    TensorType: Tensor, IntType: int, FloatType: float, BoolType: bool, StringType: str,
    NumberType: numbers.Number, DeviceObjType: flambeau.device}


def _python_type(kind: Type) -> Any:
    if isinstance(kind, OptionalType):
        return typing.Optional[_python_type(kind.getElementType())]       # noqa: UP045
    if isinstance(kind, ListType):
        return typing.List[_python_type(kind.getElementType())]  # type: ignore[misc]  # noqa: UP006
    if isinstance(kind, TupleType):
        return typing.Tuple[tuple(map(_python_type, kind.elements()))]    # noqa: UP006
    return _PYTHON.get(type(kind), Any)


def _signature_of(schema: FunctionSchema) -> inspect.Signature:
    """A schema as a signature of Python's; `self` is called `input`."""
    parameters: list[inspect.Parameter] = []
    for argument in schema.arguments:
        kind: Any = inspect.Parameter.KEYWORD_ONLY if argument.keyword_only else \
            inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = argument.default if argument.has_default_value() else inspect.Parameter.empty
        name = "input" if argument.name == "self" else argument.name
        if name == "from":
            # a word of Python's own: the argument can only be passed by position
            kind = inspect.Parameter.POSITIONAL_ONLY
            parameters = [p.replace(kind=kind) for p in parameters]
            name = "from_"
        parameters.append(inspect.Parameter(name, kind, default=default,
                                            annotation=_python_type(argument.type)))
    returns = [_python_type(r.type) for r in schema.returns]
    result = returns[0] if len(returns) == 1 else tuple(returns) if returns else None
    return inspect.Signature(parameters, return_annotation=result)


def _schemas_of(op: Any) -> list[FunctionSchema] | None:
    if isinstance(op, OpOverload):
        return [op._schema]
    if isinstance(op, OpOverloadPacket):
        return [op.overload(name)._schema for name in op.overloads()]
    name = getattr(op, "__name__", "")
    if not name or name in ("nonzero", "_assert"):
        return None
    if find_in_torch(f"torch.{name}") is not op:
        name = name_of(op)
    return _recorded(name) if name in recorded() else None


def _recorded(name: str) -> list[FunctionSchema]:
    return [FunctionSchema(found.schema) for found in recorded()[name].values()]


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of the overloads of an op; None for what is a Python function.

    >>> import flambeau
    >>> len(get_signature_for_torch_op(flambeau.relu))
    2
    """
    schemas = _schemas_of(op)
    signatures = None if schemas is None else [_signature_of(s) for s in schemas]
    return (signatures, schemas) if return_schemas else signatures


# ---- types ---------------------------------------------------------------------------------------


def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple of types; anything else as it is.

    >>> create_type_hint([int, int])
    list[int]
    """
    if not isinstance(x, (list, tuple)):
        return x
    list_, tuple_ = list, tuple         # which a type checker would read as annotations
    container: Callable[[Any], Any] = (lambda inner: list_[inner]) if isinstance(x, list) else (
        lambda inner: tuple_[inner, ...])
    if not x:
        return container(Any)
    base: Any = x[0]
    for each in x:
        if not (isinstance(base, type) and isinstance(each, type)):
            return container(Any)
        if issubclass(each, base):
            continue
        if not issubclass(base, each):
            return container(Any)
        base = each
    return container(base)


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Can an argument of one type be passed for a parameter of the other?"""
    origin = typing.get_origin(signature_type) or signature_type
    if signature_type is argument_type:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(type_matches(c, argument_type) for c in typing.get_args(signature_type))
    args = typing.get_args(signature_type)
    if origin is list and args == (int,) and argument_type is int:
        return True                         # int[] takes a single number
    if origin in (list, immutable_list):
        contained = args[0] if args else Any
        if type(argument_type) is not type and typing.get_origin(argument_type) in (list, tuple):
            inner = [a for a in typing.get_args(argument_type) if a is not ...]
            return bool(inner) and all(type_matches(contained, a) for a in inner)
        return False
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type)
    return False


def check_for_mutable_operation(target: Callable[..., Any], args: tuple[Any, ...],
                                kwargs: dict[str, Any]) -> None:
    """Raise if a call writes to its arguments."""
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    if not (signatures and schemas):
        return
    matched = [schema for signature, schema in zip(signatures, schemas)
               if _binds(signature, args, kwargs)]

    def refuse(schema: FunctionSchema) -> None:
        if schema.is_mutable:
            raise RuntimeError(f"Tried to trace mutable operation {schema}. FX only supports "
                               "functional code, so operations that mutate operands in-place (e.g. "
                               "via `out` arguments) are not supported")
    if matched and all(schema.is_mutable == matched[0].is_mutable for schema in matched):
        refuse(matched[0])


def _binds(signature: inspect.Signature, args: Any, kwargs: Any) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


# ---- arguments -----------------------------------------------------------------------------------


def normalize_function(target: Callable[..., Any], args: tuple[Any, ...],
                       kwargs: dict[str, Any] | None = None, arg_types: Any = None,
                       kwarg_types: Any = None, normalize_to_only_use_kwargs: bool = False
                       ) -> ArgsKwargsPair | None:
    """The arguments of a call with defaults filled in, and with names where asked for.

    Where several overloads fit, `arg_types` and `kwarg_types` decide. None: there is no signature.

    >>> from flambeau.nn import functional as F
    >>> normalize_function(F.relu, (3,), normalize_to_only_use_kwargs=True).kwargs
    {'input': 3, 'inplace': False}
    """
    kwargs = kwargs or {}
    if not (callable(target) or isinstance(target, str)):
        return None
    signatures = get_signature_for_torch_op(target)
    if signatures is None:
        return _by_own_signature(target, args, kwargs, normalize_to_only_use_kwargs)
    matched = [s for s in signatures if _binds(s, args, kwargs)]
    if not matched:
        return None
    if len(matched) > 1:
        if arg_types is None and kwarg_types is None:
            text = "\n".join(map(str, signatures))
            raise RuntimeError(f"Tried to normalize arguments to {_get_qualified_name(target)} but "
                               "the schema match was ambiguous! Please provide argument types to "
                               f"the normalize_arguments() call. Available schemas:\n{text}")
        matched = [s for s in matched if _types_fit(s, arg_types or (), kwarg_types or {})][:1]
    if not matched:
        return None
    return _normalized(matched[0], args, kwargs, normalize_to_only_use_kwargs)


def _types_fit(signature: inspect.Signature, arg_types: Any, kwarg_types: Any) -> bool:
    try:
        bound = signature.bind(*arg_types, **kwarg_types)
    except TypeError:
        return False
    return all(type_matches(signature.parameters[name].annotation, given)
               for name, given in bound.arguments.items())


def _by_own_signature(target: Any, args: Any, kwargs: Any, only_kwargs: bool
                      ) -> ArgsKwargsPair | None:
    if isinstance(target, types.BuiltinFunctionType) and target.__module__ in (
            "builtins", "_operator", "math"):
        return None
    try:
        signature = inspect.signature(inspect.unwrap(target))
    except (TypeError, ValueError):
        return None
    return _normalized(signature, args, kwargs, only_kwargs)


def normalize_module(root: Any, target: str, args: tuple[Any, ...],
                     kwargs: dict[str, Any] | None = None,
                     normalize_to_only_use_kwargs: bool = False) -> ArgsKwargsPair | None:
    """`normalize_function` for a call of a module of `torch.nn`, by its dotted name."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have "
                           "that target!") from error
    if getattr(flambeau.nn, type(module).__name__, None) is not type(module):
        return None
    return _normalized(inspect.signature(inspect.unwrap(module.forward)), args, kwargs or {},
                       normalize_to_only_use_kwargs)


def _normalized(signature: inspect.Signature, args: Any, kwargs: Any, only_kwargs: bool
                ) -> ArgsKwargsPair | None:
    """The arguments bound to a signature, defaults among them."""
    supported = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature.parameters
    if any(p.kind not in supported for p in parameters.values()) \
            and list(parameters) != ["input", "from_", "to", "generator"]:
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    new_args, new_kwargs = [], {}
    for i, (name, parameter) in enumerate(parameters.items()):
        keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        if not only_kwargs and not keyword and i < len(args):
            new_args.append(bound.arguments[name])
        else:
            new_kwargs[name] = bound.arguments[name]
    return ArgsKwargsPair(tuple(new_args), new_kwargs)


__all__ = ["ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint",
           "get_signature_for_torch_op", "normalize_function", "normalize_module", "type_matches"]
