"""How calls with sparse arguments find the rule for their op, and how results are written."""
from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from flambeau.core import devices
from flambeau.core.calling import overrides
from flambeau.core.modes import grad_enabled
from flambeau.core.op import Op, public
from flambeau.core.promotion import convert
from flambeau.core.shapes import size_of, written_shape_error
from flambeau.core.tensor import Tensor, as_leaf, tensor_types
from flambeau.dispatch.backend_errors import check_fit, without_rule
from flambeau.ops.coercion import store
from flambeau.ops.inplace import check_stored, write_result
from flambeau.ops.sparse.compressed import COO, TITLES
from flambeau.ops.sparse.parts import _become
from flambeau.ops.sparse.tensors import (
    SparseTensor,
    backend_of,
    empty,
    is_sparse,
    on_meta,
    without_history,
)
from flambeau.ops.sparse.values import to_dense

rules: dict[str, Callable[..., Any]] = {}


def rule(*names: str) -> Callable[..., Any]:
    """Enter a function as the rule of the ops of these names."""
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            rules[name] = function
        return function
    return enter


def dispatch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A public call with a sparse argument: the rule of its name. On meta its result has no
    values."""
    result = _by_rule(function, args, kwargs)
    given = _flatten_args((*args, *kwargs.values()))
    if any(type(t) in tensor_types and t._device is devices.meta for t in given):
        stays = result is args[0] or kwargs.get("device") is not None
        return result if stays else on_meta(result)
    return result


def _by_rule(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not rules:
        for family in ("math", "products", "reduce", "places"):     # these fill the table
            importlib.import_module(f"flambeau.ops.sparse.{family}")
    op = getattr(function, "op", None) or (function if isinstance(function, Op) else None)
    given = kwargs
    fit = check_fit(function, args, given)
    name = (op.name if op is not None else function.__name__).lstrip("_")
    if op is not None and op.namespace not in (None, "torch") and "torch" not in op.namespace:
        name = f"{op.namespace}.{name}"
    if op is not None and op.inplace and is_sparse(args[0]) and (
            op.name in rules or op.functional.name in rules):
        return write(op, args, kwargs)
    if op is not None and op.inplace and op.functional.name in rules:
        return write_result(op, args[0], args[1:], kwargs, True)    # into a dense tensor
    rule = rules.get(name)
    out = kwargs.get("out")
    kwargs = {key: value for key, value in kwargs.items() if key != "out"}
    if rule is not None:
        result = _apply_rule(rule, args, kwargs)
        if result is not NotImplemented:
            return result if out is None else replace(out, result)
    if name in ("zeros", "empty") and is_sparse(out):
        wanted = kwargs.get("layout")
        if wanted is not None and wanted is not out._layout:
            raise RuntimeError(f"layout {TITLES[wanted]} does not match layout of out parameter "
                               f"({TITLES[out._layout]})")
        result = replace_all(out, empty(tuple(size_of(args or (kwargs["size"],))),
                                        out._array.dtype, out._layout))
        return as_leaf(result) if kwargs.get("requires_grad") else result
    sparse = next(a for a in _flatten_args((*args, *kwargs.values(), out)) if is_sparse(a))
    return without_rule(function, args, given, backend_of(sparse), TITLES[sparse._layout], fit)


def _apply_rule(rule: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a rule says; NotImplemented of an overload whose arguments it does not take."""
    try:
        return rule(*args, **kwargs)
    except TypeError:
        try:
            inspect.signature(rule).bind(*args, **kwargs)
        except TypeError:
            return NotImplemented
        raise


def _flatten_args(args: Any) -> Any:
    for arg in args:
        if type(arg) in (tuple, list):
            yield from _flatten_args(arg)
        else:
            yield arg


_OF_COALESCED = set("abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac log1p "
                    "nan_to_num rad2deg relu round sgn sign sin sinh sqrt tan tanh trunc".split())


def write(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """An in-place op on a sparse tensor: the op, whose result takes the tensor's place."""
    from flambeau.core.views import check_inplace
    target = args[0]
    name = op.functional.name
    needs = any(type(a) in tensor_types and a.requires_grad for a in args)
    check_inplace(target, needs)
    if name in _OF_COALESCED and target._layout is COO and not target._coalesced:
        raise RuntimeError(f"{name}_ requires coalesced input")
    source = without_history(target)
    source._edge = target._edge
    result = rules[f"{name}_" if f"{name}_" in rules else name](source, *args[1:], **kwargs)
    return replace(target, result)


def replace(target: Tensor, result: Tensor) -> Tensor:
    """Give `target` the entries and the history of `result`."""
    from flambeau.core.views import count_write, rebase
    if not is_sparse(target) or not is_sparse(result):
        if is_sparse(target):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) "
                               "instead.")
        result = to_dense(result)
        return store(target, public["torch"]["add"].op, result)
    if result._array.shape != target._array.shape:
        raise written_shape_error(target._array.shape, result._array.shape)
    data = result._data
    if data.dtype != target._array.dtype:
        check_stored("", target, result._array)
        data = convert(data, target._array.dtype)
    target._layout, target._where, target._data = result._layout, result._where, data
    target._coalesced = result._coalesced
    count_write(target)
    if grad_enabled() and result._edge is not None:
        rebase(target, result._edge)
    return target


def replace_all(target: SparseTensor, result: SparseTensor) -> SparseTensor:
    """Give `target` the entries of `result`, and its size."""
    if target.requires_grad:
        raise RuntimeError("functions with out=... arguments don't support automatic "
                           "differentiation, but one of the arguments requires grad.")
    return _become(target, result)


overrides.own_rules[SparseTensor] = dispatch
