"""What `gradcheck` looks at, a function a check: each mode of differentiation, batches, and weights
that are zero or missing."""
from __future__ import annotations

import warnings
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._vmap_internals import _vmap
from flambeau.autograd import _jacobians as jacobians
from flambeau.autograd._jacobians import (
    differentiable_outputs,
    elements,
    inexact_outputs,
    is_differentiable,
    is_sparse,
)
from flambeau.autograd.differentiate import grad
from flambeau.autograd.function import Function

FAST_SEED = 2147483647
REVERSE, FORWARD = "Jacobian mismatch", "Jacobian computed with forward mode mismatch"


class GradcheckError(RuntimeError):
    """Derivatives are wrong."""


def _filled(x: Tensor) -> Tensor:
    """A sparse tensor that stores all of its elements."""
    dense = x.detach().to_dense()
    everywhere = flambeau.ones_like(dense)
    kwargs: dict[str, Any] = {}
    if x.layout in (flambeau.sparse_bsr, flambeau.sparse_bsc):
        kwargs["blocksize"] = tuple(x.values().shape[1:3])
    full = everywhere.to_sparse(layout=x.layout, **kwargs)
    elements(full).copy_(jacobians.stored(dense, full).reshape(elements(full).shape))
    return full.requires_grad_()


def _imaginary(o: Tensor) -> Tensor:
    return o.imag if o.is_complex() else o * 0


def _real(o: Tensor) -> Tensor:
    return o.real if o.is_complex() else o


def _forward_parts(func: Any, inputs: tuple[Any, ...]) -> Any:
    """Functions of real inputs: `func` itself, or it by the parts of its complex inputs."""
    places = [i for i, x in enumerate(inputs) if is_differentiable(x)]
    if not any(inputs[i].is_complex() for i in places):
        return [(func, inputs, places, FORWARD)]
    kinds = [("imaginary", lambda x: x.imag, lambda x, part: flambeau.complex(x.real, part)),
             ("real", lambda x: x.real, lambda x, part: flambeau.complex(part, x.imag))]
    answer = []
    for name, take, join in kinds:
        def of_parts(*args: Any, join: Any = join) -> Any:
            return func(*[join(x.detach(), a) if i in places and x.is_complex() else a
                          for i, (x, a) in enumerate(zip(inputs, args))])
        parts = tuple(take(x.detach()).clone().requires_grad_() if i in places and x.is_complex()
                      else x for i, x in enumerate(inputs))
        answer.append((of_parts, parts, places,
                       f"While considering the {name} part of complex inputs only, " + FORWARD))
    return answer


def _mismatch(title: str, output: int, place: int, numerical: Any, analytical: Any) -> str:
    return (f"{title} for output {output} with respect to input {place},\n"
            f"numerical:{_shown(numerical)}\nanalytical:{_shown(analytical)}\n")


def _shown(value: Any) -> str:
    return str(value.item() if isinstance(value, Tensor) and value.ndim == 0 else value)


def _close(analytical: Tensor, numerical: Tensor, rtol: float, atol: float) -> bool:
    if analytical.dtype is not numerical.dtype:
        kind = flambeau.complex128 if numerical.is_complex() or analytical.is_complex() \
            else flambeau.float64
        analytical, numerical = analytical.to(kind), numerical.to(kind)
    return flambeau.allclose(analytical, numerical, rtol, atol)


# ---- reverse mode ------------------------------------


def _check_reverse(func: Any, inputs: tuple[Any, ...], settings: Any, title: str,
                   skip: set[int]) -> None:
    outputs = func(*inputs)
    places = [i for i, x in enumerate(inputs) if is_differentiable(x)]
    sources = [inputs[i] for i in places]
    rng = flambeau.Generator().manual_seed(FAST_SEED)
    us = [_unit(x, rng) for x in sources] if settings.fast else None

    def values() -> tuple[Tensor, ...]:
        return func(*inputs)
    if settings.fast:
        slopes = [jacobians.numerical_along(values, x, outputs, settings.eps, u)
                  for x, u in zip(sources, us)]
    else:
        slopes = [jacobians.numerical_columns(values, x, outputs, settings.eps) for x in sources]
    for k, output in enumerate(outputs):
        if k in skip:
            continue
        run = jacobians.pullback(output, sources)
        if settings.fast:
            v = _unit_like(output, rng)
            found = _run_twice(lambda v=v, run=run: jacobians.analytical_along(run, sources, v, us),
                               settings)
            flat = v.reshape(-1)
            numerical = [flat.to(s[k].dtype).dot(s[k]) for s in slopes]
            atols = [settings.atol * _weight(u) * float(flat.sum()) for u in us]
        else:
            found = _run_twice(
                lambda o=output, run=run: jacobians.analytical_columns(run, sources, o), settings)
            numerical = [s[k] for s in slopes]
            atols = [settings.atol] * len(sources)
        for i, a, n, atol in zip(range(len(sources)), found, numerical, atols):
            if not _close(a, n, settings.rtol, atol):
                text = _mismatch(title, k, places[i], n, a)
                if settings.fast:
                    text += _in_slow_mode(
                        lambda i=i, k=k: jacobians.numerical_columns(
                            values, sources[i], outputs, settings.eps)[k],
                        lambda i=i, run=run, o=output: jacobians.analytical_columns(
                            run, sources, o)[0][i])
                raise GradcheckError(text)


def _run_twice(compute: Any, settings: Any) -> list[Tensor]:
    """Derivatives that must be the same in two runs, and of the right sizes and types."""
    first, sizes, kinds = compute()
    second = compute()[0]
    if not sizes:
        raise GradcheckError("Analytical gradient has incorrect size")
    if settings.dtypes and not kinds:
        raise GradcheckError("Gradient has dtype mismatch")
    if any(bool(((a - b).abs() > settings.nondet_tol).any()) for a, b in zip(first, second)):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output "
            "multiple times gives different values, although analytical gradient matches numerical "
            f"gradient.The tolerance for nondeterminism was {settings.nondet_tol}.\n\nIf this is "
            "expected, call gradcheck/gradgradcheck with `nondet_tol=<tol>`.")
    return first


def _in_slow_mode(numerical: Any, analytical: Any) -> str:
    """The whole Jacobians, for the message of a failure in fast mode."""
    n, a = numerical(), analytical()
    gap = float((n - a).abs().max()) if n.numel() else 0.0
    return ("\nThe above quantities relating the numerical and analytical jacobians are computed \n"
            "in fast mode, as random projections. Below, we recompute numerical and analytical \n"
            f"jacobians in slow mode:\n\nNumerical:\n {n}\nAnalytical:\n{a}\n\n"
            f"The max per-element difference (slow mode) is: {gap}.\n")


def _unit(x: Tensor, rng: Any) -> Any:
    """A random direction of positive elements and length 1; a pair of them for complex `x`."""
    def one() -> Tensor:
        u = flambeau.rand(elements(x).numel(), generator=rng, dtype=flambeau.float64)
        return (u / u.norm()).to(real) if u.numel() else u.to(real)
    real = x.real.dtype if x.is_complex() else x.dtype
    return (one(), one()) if x.is_complex() else one()


def _unit_like(output: Tensor, rng: Any) -> Tensor:
    u = flambeau.rand(output.numel(), generator=rng, dtype=flambeau.float64)
    u = u / u.norm() if u.numel() else u
    return u.reshape(output.shape).to(output.dtype)


def _weight(u: Any) -> float:
    return float(u[0].sum() + u[1].sum()) / 2 if isinstance(u, tuple) else float(u.sum())


# ---- forward mode ------------------------------------


def _check_forward(func: Any, inputs: tuple[Any, ...], places: list[int], settings: Any,
                   title: str) -> None:
    """Of those outputs that have a derivative: others are constants for both modes."""
    detached = tuple(x.detach() if is_differentiable(x) else x for x in inputs)
    outputs = inexact_outputs(func(*detached))
    asked = [o.requires_grad for o in inexact_outputs(func(*inputs))]
    rng = flambeau.Generator().manual_seed(FAST_SEED)

    def values() -> tuple[Tensor, ...]:
        return inexact_outputs(func(*detached))
    for i in places:
        x = detached[i]
        if settings.fast:
            u = _unit(x, rng)
            found = jacobians.forward_along(func, inputs, i, outputs, u)
            numerical = jacobians.numerical_along(values, x, outputs, settings.eps, u)
            atol = settings.atol * _weight(u)
        else:
            found = jacobians.forward_columns(func, inputs, i, outputs)
            numerical = jacobians.numerical_columns(values, x, outputs, settings.eps)
            atol = settings.atol
        for k, (a, n) in enumerate(zip(found, numerical)):
            if asked[k] and not _close(a, n, settings.rtol, atol):
                text = _mismatch(title, k, i, n, a)
                if settings.fast:
                    text += _in_slow_mode(
                        lambda x=x, k=k: jacobians.numerical_columns(
                            values, x, outputs, settings.eps)[k],
                        lambda i=i, k=k: jacobians.forward_columns(func, inputs, i, outputs)[k])
                raise GradcheckError(text)


def _check_undefined_forward(func: Any, inputs: tuple[Any, ...]) -> None:
    """An input without a tangent is one whose tangent is zero."""
    places = [i for i, x in enumerate(inputs) if is_differentiable(x)]
    for i in places:
        tangents = {j: flambeau.ones_like(inputs[j].detach()) for j in places if j != i}
        zero = flambeau.zeros_like(inputs[i].detach())
        with_zero = jacobians.run_forward(func, inputs, {**tangents, i: zero})
        without = jacobians.run_forward(func, inputs, tangents)
        for k, (a, b) in enumerate(zip(with_zero, without)):
            a, b = (None if t is None or not bool((t != 0).any()) else t for t in (a, b))
            if (a is None) != (b is None) or (a is not None and not _close(a, b, 1e-9, 1e-12)):
                raise GradcheckError(f"The tangent of output {k} differs between an undefined "
                                     f"tangent of input {i} and one of zeros: {b} and {a}")


# ---- batches ------------------------------------


_BATCHED_HELP = """

gradcheck or gradgradcheck failed while testing batched {mode} computation.
Batched derivatives run the {mode} under vmap. What vmap cannot do with an op (reading values
with .item(), writing a batched tensor into one that is not) fails there. If that is expected,
pass `{flag}=False`."""


def _check_batched(output: Tensor, sources: list[Tensor]) -> None:
    """Gradients of several weights at once are those of each."""
    weights = [flambeau.randn_like(output) for _ in range(2)]
    apart = [jacobians.pullback(output, sources)(w) for w in weights]
    expected = [None if pair[0] is None else flambeau.stack(pair) for pair in zip(*apart)]
    try:
        found = grad(output, sources, flambeau.stack(weights), retain_graph=True,
                     allow_unused=True, is_grads_batched=True)
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}" + _BATCHED_HELP
                             .format(mode="gradient", flag="check_batched_grad")) from error
    for i, (a, b) in enumerate(zip(found, expected)):
        if a is None or b is None or _close(a, b, 1e-5, 1e-8):
            continue
        raise GradcheckError(f"For output 0 and input {i}, batched gradients differ from those "
                             f"computed one by one.\n\nGot:\n{a}\n\nExpected:\n{b}" + _BATCHED_HELP
                             .format(mode="gradient", flag="check_batched_grad"))


def _check_batched_forward(func: Any, inputs: tuple[Any, ...]) -> None:
    """Tangents of several directions at once are those of each."""
    for i, x in enumerate(inputs):
        if not is_differentiable(x):
            continue

        def along(direction: Tensor, i: int = i) -> tuple[Tensor, ...]:
            found = jacobians.run_forward(func, inputs, {i: direction})
            return tuple(t for t in found if t is not None)
        directions = [flambeau.randn_like(x.detach()) for _ in range(2)]
        expected = [flambeau.stack(pair) for pair in zip(*[along(d) for d in directions])]
        if not expected:
            continue
        try:
            found = _vmap(along)(flambeau.stack(directions))
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}" + _BATCHED_HELP
                                 .format(mode="forward mode",
                                         flag="check_batched_forward_grad")) from error
        for k, (a, b) in enumerate(zip(found, expected)):
            if not _close(a, b, 1e-5, 1e-8):
                raise GradcheckError(f"For input {i} and output {k}, batched tangents differ from "
                                     f"those computed one by one.\n\nGot:\n{a}\n\nExpected:\n{b}")


# ---- weights of zero, and none ------------------------------------


def _check_zero_weights(outputs: tuple[Tensor, ...], sources: list[Tensor], settings: Any) -> None:
    """Where the incoming gradient is zero, so is the outgoing one, which is of the input's kind."""
    weights = [flambeau.zeros_like(o, memory_format=flambeau.contiguous_format) for o in outputs]
    found = grad(outputs, sources, weights, retain_graph=True, allow_unused=True)
    for g, x in zip(found, sources):
        if g is None:
            continue
        if is_sparse(x) and not is_sparse(g):
            continue
        if g.layout is not x.layout:
            raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout})")
        if x.layout is flambeau.sparse_coo:
            if g.sparse_dim() != x.sparse_dim():
                raise GradcheckError("grad is sparse tensor, but has incorrect sparse_dim "
                                     f"{g.sparse_dim()}, expected {x.sparse_dim()}")
            if g.dense_dim() != x.dense_dim():
                raise GradcheckError("grad is sparse tensor, but has incorrect dense_dim "
                                     f"{g.dense_dim()}, expected {x.dense_dim()}")
        if bool((elements(g) != 0).any()):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype is not x.dtype:
            raise GradcheckError(f"grad is incorrect type ({g.dtype} is not {x.dtype})")
        if g.shape != x.shape:
            raise GradcheckError(f"grad is incorrect size ({g.shape} is not {x.shape})")


class _Undefined(Function):
    """The identity, whose gradient is undefined."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> None:
        return None


def _check_undefined(func: Any, inputs: tuple[Any, ...], sources: list[Tensor]) -> None:
    """Undefined gradients of all outputs, and of each alone, are taken for zeros."""
    outputs = differentiable_outputs(func(*inputs))
    cases = [set(range(len(outputs)))]
    if len(outputs) > 1:
        cases += [{i} for i in range(len(outputs))]
    for undefined in cases:
        replaced = [_Undefined.apply(o) if i in undefined else o for i, o in enumerate(outputs)]
        weights = [flambeau.zeros_like(o, memory_format=flambeau.contiguous_format)
                   for o in replaced]
        try:
            found = grad(replaced, sources, weights, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            _warn_undefined()
            raise GradcheckError("Expected backward function to handle undefined output grads. "
                                 f"It raised: {error}") from error
        for g in found:
            if g is not None and bool((elements(g) != 0).any()):
                _warn_undefined()
                raise GradcheckError("Expected all input grads to be undefined or zero when all "
                                     "output grads are undefined or zero.")


def _warn_undefined() -> None:
    warnings.warn("Backwards compatibility: New undefined gradient support checking feature is "
                  "enabled by default, but it may break existing callers of this function. If this "
                  "is true for you, you can call this function with \"check_undefined_grad=False\" "
                  "to disable the feature", stacklevel=5)
