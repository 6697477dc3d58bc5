"""The path of a call once its arguments are canonical: (1) does a level take it over? (2) the
arrays of the tensors; (3) the kernel; (4) if an input requires grad, a node.

Each op has two such callables made from one source: `op.call` respects levels, `op.direct` asks
nothing. `csrc/calling/general.cpp` does what the first does for plain tensors that nobody watches,
and hands every other call to it.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import asarray, ndarray

from flambeau.core import dtypes, late_bound
from flambeau.core.autograd.recording import edges_of, make_view, node_watchers, record, replay_of
from flambeau.core.calling import fast
from flambeau.core.calling.overrides import intercept_canonical, internal_types
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_enabled
from flambeau.core.op import Op, passive
from flambeau.core.promotion import convert, type_name
from flambeau.core.tensor import LAZY, gradient_edge, new_tensor, tensor_types, wrap
from flambeau.kernels.refused import kernel_of, no_kernel


class AnyTensor:
    """What `direct` calls take: tensors of whatever subclass."""

    def __contains__(self, cls: type) -> bool:
        return cls in tensor_types


ANY = AnyTensor()


def make_call(op: Op, interceptors: Any, plain_types: Any) -> Callable[..., Any]:
    """The callable of an op with a kernel: with `interceptors` and `plain` types `op.call`, without
    them `op.direct`."""
    kernel, n, variadic, returns = kernel_of(op), len(op.tensors), op.variadic, op.returns
    if op.floating:
        kernel = with_float_inputs(kernel)
    differentiable = op.is_differentiable
    one = n == 1 and not variadic and returns is None
    view = op.view

    def call(*canonical: Any) -> Any:
        if interceptors:
            return intercept_canonical(op, canonical)
        if one:
            first = canonical[0]
            if type(first) not in plain_types:
                return late_bound.coerce_general(op, canonical)
            r = kernel(first._array, *canonical[1:])
            if type(r) is not ndarray:
                r = asarray(r)
            if view and (r.base is not None or r is first._array):
                replay = replay_of(op, first, canonical) if first._edge is LAZY \
                    or view == "replay" else None
                result = make_view(first, r, replay, "" if grad_enabled() else "no_grad")
            else:
                result = new_tensor()
                result._array = r
                result._base = result._counter = result._edge = None
            edge = first._edge
            if edge is None or not differentiable or not grad_enabled():
                return result
            edge = gradient_edge(first)
            if edge is not None and r.dtype in FLOATING:
                record(op, canonical, (edge,), result)
            return result
        inputs = canonical[0] if variadic else canonical[:n]
        arrays = []
        for tensor in inputs:
            if type(tensor) in plain_types:
                arrays.append(tensor._array)
            elif tensor is None:
                arrays.append(None)
            else:
                return late_bound.coerce_general(op, canonical)
        if variadic:
            r = kernel(arrays, *canonical[1:])
        else:
            r = kernel(*arrays, *canonical[n:])
        if returns is None:
            result = new_tensor()
            result._array = r if type(r) is ndarray else asarray(r)
            result._base = result._counter = result._edge = None
        else:
            made = "multi_output" if grad_enabled() else "no_grad"
            parts = [make_view(inputs[0], a, None, made) if view else wrap(a) for a in r]
            result = returns(parts) if returns in (tuple, list) else tuple.__new__(returns, parts)
        if differentiable and grad_enabled():
            edges = edges_of(inputs)
            if edges is not None:
                record(op, canonical, edges, result)
        return result
    return call


def with_float_inputs(kernel: Any) -> Any:
    """`kernel`, with integers as numbers of the default floating type."""
    def run(first: ndarray, *rest: Any) -> Any:
        return kernel(first if first.dtype in FLOATING else convert(
            first, dtypes.default_float()), *rest)
    return run


# ---- the rare cases of a call -------------------------------------------------------------------

def no_kernel_error(op: Op, x: ndarray, *rest: Any) -> RuntimeError:
    """That an op has no kernel for the elements of `x`, in the words of its declaration."""
    kind = "c" if x.dtype.kind == "W" else x.dtype.kind
    if kind in op.refused_as:
        said = op.refused_as[kind]
        if isinstance(said, RuntimeError):
            return RuntimeError(*said.args)
        error = NotImplementedError if kind in "cW" and len(op.tensors) == 1 else RuntimeError
        return error(said)
    name = type_name(dtypes.from_numpy_dtype(x.dtype))
    if op.refuses:
        said = op.refuses[0]
        return no_kernel(said if type(said) is str else said(x, *rest), x.dtype)
    plain_name = op.name.removeprefix(f"{op.namespace}_")
    return NotImplementedError(f'"{plain_name}_cpu" not implemented for \'{name}\'')


def store_out(out: Any, op: Op, result: Any, read: Any = ()) -> Any:
    """Store a result into `out=`: torch's rules of resizing, casting and refusing."""
    return late_bound.store(out, op, result, read)


fast.bind(passive=passive, internal=internal_types, node_watchers=node_watchers,
          replay_of=replay_of)
