"""What is done with tensors of layout `jagged`, by the overload that a call is of.

`lookup_jagged` finds the function of an overload; `register_jagged_func` adds one, or replaces
what flambeau does, for calls of the overload and of the public function of that name.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._ops import aten
from flambeau.nested import jagged, rules
from flambeau.nested.calls import dispatch
from flambeau.nested.jagged import raggedness_matches, squeeze_leading_ones
from flambeau.nested.tensors import NestedTensor

JAGGED_OPS_TABLE: dict[Any, Callable[..., Any]] = {}


def extract_kwargs(arg: NestedTensor) -> dict[str, Any]:
    """What makes, with other values, a tensor of the same parts: `NestedTensor(values, **kwargs)`.

    >>> from flambeau.nested._internal.ops import extract_kwargs
    >>> x = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)
    >>> extract_kwargs(x)["offsets"]
    tensor([0, 1, 3])
    """
    return {"offsets": arg.offsets(), "lengths": arg.lengths(),
            "_metadata_cache": arg._metadata_cache, "_ragged_idx": arg._ragged_idx}


# ---- dimensions ---------------------------------------------------------------------------------

def _outer_to_inner_dim(ndim: int, dim: int, ragged_dim: int, canonicalize: bool = False) -> int:
    """A dimension of the tensor as one of its values, which have no dimension of parts."""
    if canonicalize:
        dim = _canonical(ndim, dim)
    return ragged_dim - 1 if dim == 0 else dim - 1


def _canonical(ndim: int, dim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, "
                         f"{ndim - 1}], but got {dim})")
    return dim % ndim


def _wrap_jagged_dim(ndim: int, dim: int, ragged_dim: int, op_name: str,
                     convert_to_inner_dim: bool = True, allow_ragged_dim: bool = False,
                     allow_batch_dim: bool = False) -> int:
    """A dimension that an op may take, of the values unless told otherwise."""
    wrapped = _canonical(ndim, dim)
    if wrapped == ragged_dim and not allow_ragged_dim:
        raise RuntimeError(f"{op_name}(): not supported for NestedTensor on ragged dim")
    if wrapped == 0 and not allow_batch_dim:
        raise RuntimeError(f"{op_name}(): not supported for NestedTensor on dim=0")
    return _outer_to_inner_dim(ndim, wrapped, ragged_dim) if convert_to_inner_dim else wrapped


def _wrap_jagged_dims(ndim: int, dims: Iterable[int], op_name: str, ragged_idx: int = 1
                      ) -> tuple[tuple[int, ...], bool, bool, bool]:
    """Dimensions of the values, and whether the parts', the ragged and others are among them."""
    wrapped = [_canonical(ndim, dim) for dim in dims]
    batch, ragged = 0 in wrapped, ragged_idx in wrapped
    other = any(dim not in (0, ragged_idx) for dim in wrapped)
    inner = [_outer_to_inner_dim(ndim, dim, ragged_idx) for dim in wrapped]
    return tuple(sorted(set(inner))), batch, ragged, other


# ---- checks -------------------------------------------------------------------------------------

def _is_jagged(value: Any) -> bool:
    return isinstance(value, NestedTensor) and value.layout == flambeau.jagged


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "t": (lambda x: isinstance(x, Tensor), "Tensor"),
    "jt": (lambda x: _is_jagged(x) and x._lengths is None and x._ragged_idx == 1,
           "contiguous jagged layout NestedTensor"),
    "jt_all": (_is_jagged, "jagged layout NestedTensor"),
    "any": (lambda x: True, "any"),
}


def check_schema(schema_str: str, func: Any, *args: Any, **kwargs: Any) -> None:
    """Check arguments against a schema such as `self: jt_all, other: any, dim: any?`; `...` stands
    for any further ones."""
    parts = [part.strip() for part in schema_str.split(",")]
    open_ended = parts[-1] == "..."
    named = [part.split(": ") for part in (parts[:-1] if open_ended else parts)]
    title = f"NestedTensor {getattr(func, '__name__', func)}({schema_str})"
    least = sum(not (kind.endswith("?") or "?" in name) for name, kind in named)
    given = len(args) + len(kwargs)
    if given < least or (len(args) > len(named) and not open_ended):
        raise ValueError(f"{title}: expected at least {least} arguments and at most {len(named)} "
                         f"arguments, but got: {len(args)} arguments")
    for place, (name, kind) in enumerate(named):
        base, optional = kind.rstrip("?"), kind.endswith("?")
        value = args[place] if place < len(args) else kwargs.get(name)
        missing = place >= len(args) and name not in kwargs
        if missing or (optional and value is None):
            continue
        holds, wording = _KINDS[base]
        if not holds(value):
            raise ValueError(f"{title}: expected {name} to be a {wording}")


def check_ragged_dim_same(func: Any, a: NestedTensor, a_name: str, b: NestedTensor,
                          b_name: str) -> None:
    """Both have the same tensor of offsets."""
    if a.size(a._ragged_idx) != b.size(b._ragged_idx):
        raise RuntimeError(f"NestedTensor {func.__name__}: expected {a_name} and {b_name} to have "
                           "the same exact offsets tensor.")


def _get_padding_value(dtype: flambeau.dtype, padding_type: str) -> Any:
    """The value that does not change a minimum or a maximum."""
    if padding_type not in ("min", "max"):
        raise RuntimeError(f"Unsupported padding type {padding_type}. Expected 'min' or 'max'.")
    if dtype.is_floating_point:
        info: Any = flambeau.finfo(dtype)
    else:
        info = flambeau.iinfo(dtype)
    return info.min if padding_type == "min" else info.max


# ---- functions by overload ----------------------------------------------------------------------

def _by_rule(func: Any, *args: Any, **kwargs: Any) -> Any:
    """What flambeau does: on the values where it can, or part by part."""
    return dispatch(func, args, kwargs)


def jagged_unary_pointwise(func: Any, *args: Any, **kwargs: Any) -> Any:
    """An op of each element of a tensor."""
    place = next(i for i, arg in enumerate(args) if isinstance(arg, NestedTensor))
    values = func(*(arg.values() if i == place else arg for i, arg in enumerate(args)), **kwargs)
    return NestedTensor(values, **extract_kwargs(args[place]))


def jagged_binary_pointwise(func: Any, *args: Any, **kwargs: Any) -> Any:
    """An op of the elements of two tensors, of which one may be dense."""
    first, second = args[0], args[1]
    if isinstance(first, NestedTensor) and isinstance(second, NestedTensor):
        if not raggedness_matches(first, second.shape):
            raise RuntimeError(f"cannot call binary pointwise function {func.__name__} with inputs "
                               f"of shapes {first.shape} and {second.shape}")
    return _by_rule(func, *args, **kwargs)


def lookup_jagged(func: Any, *args: Any, **kwargs: Any) -> Callable[..., Any] | None:
    """What a call of an overload with tensors of layout `jagged` does; None if nothing."""
    found = JAGGED_OPS_TABLE.get(func)
    if found is not None:
        return found
    if flambeau.Tag.pointwise in getattr(func, "tags", ()):
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        if len(tensors) == 1:
            check_schema("self: jt_all, ...", func, *args, **kwargs)
            return functools.partial(jagged_unary_pointwise, func)
        if len(tensors) == 2:
            check_schema("lhs: any, rhs: any, ...", func, *args, **kwargs)
            return functools.partial(jagged_binary_pointwise, func)
    return None


def register_func(tables: Any, aten_ops: Any, schema_str: str) -> Callable[..., Any]:
    """Put a function into tables for overloads, whose calls are checked against a schema."""
    tables = tables if isinstance(tables, list) else [tables]
    overloads = aten_ops if isinstance(aten_ops, list) else [aten_ops]

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for overload in overloads:
            def checked(func: Any, *args: Any, **kwargs: Any) -> Any:
                check_schema(schema_str, func, *args, **kwargs)
                return function(func, *args, **kwargs)
            for table in tables:
                table[overload] = checked
            if any(table is JAGGED_OPS_TABLE for table in tables):
                packet = getattr(overload, "overloadpacket", None)
                name = getattr(packet, "__name__", str(overload)).strip("_")
                rules.registered[name] = functools.partial(_call_registered, checked, overload)
        return function
    return register


def _call_registered(function: Callable[..., Any], overload: Any, func: Any, args: Any,
                     kwargs: Any) -> Any:
    return function(overload, *args, **kwargs)


register_jagged_func = functools.partial(register_func, JAGGED_OPS_TABLE)


def _fill_table() -> None:
    """The overloads of what `jagged` knows by name."""
    for name in sorted({**jagged.rules, **rules.common}):
        packet = getattr(aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            if "out" not in overload:
                JAGGED_OPS_TABLE[getattr(packet, overload)] = _by_rule


_fill_table()

__all__ = ["JAGGED_OPS_TABLE", "check_ragged_dim_same", "check_schema", "extract_kwargs",
           "jagged_binary_pointwise", "jagged_unary_pointwise", "lookup_jagged",
           "raggedness_matches", "register_func", "register_jagged_func", "squeeze_leading_ones"]
