"""`gradcheck`: are the derivatives of a function those of finite differences?

In slow mode all elements of the Jacobians are compared. In fast mode only v^T J u is, for random
vectors u and v: one evaluation an input instead of one an element.
"""
from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import adopt
from flambeau.autograd import _jacobians as jacobians
from flambeau.autograd._jacobians import (
    as_tuple,
    differentiable_outputs,
    elements,
    inexact_outputs,
    is_differentiable,
    is_inexact,
    is_sparse,
)
from flambeau.autograd.differentiate import grad
from flambeau.autograd.gradcheck_modes import (
    REVERSE,
    GradcheckError,
    _check_batched,
    _check_batched_forward,
    _check_forward,
    _check_reverse,
    _check_undefined,
    _check_undefined_forward,
    _check_zero_weights,
    _filled,
    _forward_parts,
    _imaginary,
    _real,
)


class Settings:
    """What `gradcheck` was asked to do."""

    def __init__(self, **options: Any):
        self.__dict__.update(options)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5,
              rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
              check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
              check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
              check_forward_ad: bool = False, check_backward_ad: bool = True,
              fast_mode: bool = False, masked: bool | None = None) -> bool:
    """Compare the derivatives of `func` at `inputs` with finite differences of step `eps`.

    Checked are all tensors in `inputs` that require gradients; they should be float64 or
    complex128. Further checks: that running backward twice gives the same (within `nondet_tol`);
    that gradients vanish where the incoming ones do, also if these are undefined; on demand their
    dtypes, batched gradients, and forward mode. `fast_mode` compares random projections of the
    Jacobians only. `masked` treats the absent elements of sparse inputs as no variables.

    Returns True; a failure raises `GradcheckError`, or returns False without `raise_exception`.

    >>> import flambeau
    >>> x = flambeau.rand(3, dtype=flambeau.float64, requires_grad=True)
    >>> gradcheck(flambeau.exp, (x,), check_forward_ad=True)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be "
                             "True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be "
                             "True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to "
                             "be True")
    settings = Settings(
        eps=eps, atol=atol, rtol=rtol, nondet_tol=nondet_tol, undefined=check_undefined_grad,
        dtypes=check_grad_dtypes, batched=check_batched_grad, forward=check_forward_ad,
        batched_forward=check_batched_forward_grad, backward=check_backward_ad, fast=fast_mode,
        masked=bool(masked))
    try:
        return _check(func, as_tuple(inputs), settings)
    except GradcheckError:
        if raise_exception:
            raise
        return False


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *,
                  eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True,
                  nondet_tol: float = 0.0, check_undefined_grad: bool = True,
                  check_grad_dtypes: bool = False, check_batched_grad: bool = False,
                  check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
                  fast_mode: bool = False, masked: bool = False) -> bool:
    """Compare the second derivatives of `func` with finite differences of the first ones.

    The function that is checked maps `inputs` and `grad_outputs` (random by default) to the
    gradients; see `gradcheck` for the rest.

    >>> import flambeau
    >>> x = flambeau.rand(3, dtype=flambeau.float64, requires_grad=True)
    >>> gradgradcheck(lambda x: x ** 3, (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to "
                             "be True")
    given = as_tuple(inputs)
    if grad_outputs is None:
        weights = _random_weights(func(*given), gen_non_contig_grad_outputs)
    else:
        weights = as_tuple(grad_outputs)
    count = len(weights)
    wanted = [is_differentiable(x) for x in given]
    weighted = [w.requires_grad for w in weights]

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        args = tuple(x.requires_grad_() if w and not x.requires_grad else x
                     for x, w in zip(args, wanted + weighted))
        points = args[:-count] if count else args
        with flambeau.enable_grad():
            outputs = differentiable_outputs(func(*points))
            sources = tuple(x for x, w in zip(points, wanted) if w)
            found = grad(outputs, sources, args[-count:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(gradients, given + weights, eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad,
                     check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
                     fast_mode=fast_mode, check_forward_ad=check_fwd_over_rev,
                     check_backward_ad=check_rev_over_rev, masked=masked)


def _random_weights(outputs: Any, noncontiguous: bool) -> tuple[Tensor, ...]:
    from flambeau.testing import make_tensor
    found = []
    for o in differentiable_outputs(outputs):
        kind = o.dtype if is_inexact(o) else flambeau.float64
        found.append(make_tensor(tuple(o.shape), dtype=kind, device=o.device, low=-1, high=1,
                                 requires_grad=True, noncontiguous=noncontiguous))
    return tuple(found)


# ---- the checks, in order ------------------------------------


def _check(func: Any, inputs: tuple[Any, ...], settings: Any) -> bool:
    _check_inputs(inputs, settings)
    if not settings.masked:
        inputs = tuple(_filled(x) if is_differentiable(x) and is_sparse(x) else x for x in inputs)
    result = func(*inputs)
    outputs = differentiable_outputs(result)
    for o in outputs:
        if o.is_mkldnn or is_sparse(o):
            name = "MKLDNN" if o.is_mkldnn else "Sparse"
            raise ValueError(f"{name} output is not supported at gradcheck yet. Please call "
                             "to_dense(masked_grad=...) on the output of fn for gradcheck.")
    _check_jacobians(func, inputs, result, settings)
    if settings.batched_forward:
        _check_batched_forward(func, inputs)
    if not settings.backward:
        return True
    sources = [x for x in inputs if is_differentiable(x)]
    if settings.batched:
        for o in outputs:
            _check_batched(o, sources)
    if outputs:
        _check_zero_weights(outputs, sources, settings)
        if settings.undefined:
            _check_undefined(func, inputs, sources)
    return True


def _check_inputs(inputs: tuple[Any, ...], settings: Any) -> None:
    if not any(is_differentiable(x) for x in inputs):
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but "
                         "none of them have requires_grad=True.")
    for i, x in enumerate(inputs):
        if not is_differentiable(x):
            continue
        if x.dtype not in (flambeau.float64, flambeau.complex128):
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating "
                          "point or complex. This check will likely fail if all the inputs are not "
                          "of double precision floating point or complex. ", stacklevel=4)
        if x.is_mkldnn and settings.forward:
            raise ValueError("MKLDNN inputs are not support for forward AD gradcheck.")
        part = elements(x)
        if any(stride == 0 and n > 1 for stride, n in zip(part.stride(), part.shape)):
            raise RuntimeError(f"The {i}th input has a dimension with stride 0. gradcheck only "
                               "supports inputs that are non-overlapping to be able to compute the "
                               "numerical gradients correctly. You should call .contiguous on the "
                               "input before passing it to gradcheck.")


def _check_jacobians(func: Any, inputs: tuple[Any, ...], result: Any, settings: Any) -> None:
    """Reverse mode by the real and the imaginary parts of outputs, forward mode by those of
    inputs: so that each Jacobian is one of finite differences."""
    if settings.backward:
        outputs = differentiable_outputs(result)
        if not outputs:
            _check_constant(func, inputs, result, settings)
        parts = [(lambda o: o, REVERSE)]
        if any(o.is_complex() for o in outputs):
            parts = [(_imaginary, "While considering the imaginary part of complex outputs only, "
                                  + REVERSE),
                     (_real, "While considering the real part of complex outputs only, " + REVERSE)]
        for part, title in parts:
            def one_part(*args: Any, part: Any = part) -> tuple[Tensor, ...]:
                return tuple(part(o) for o in differentiable_outputs(func(*args)))
            skip = {i for i, o in enumerate(outputs) if part is _imaginary and not o.is_complex()}
            _check_reverse(one_part, inputs, settings, title, skip)
    if settings.forward:
        for function, given, places, title in _forward_parts(func, inputs):
            _check_forward(function, given, places, settings, title)
        if settings.undefined:
            _check_undefined_forward(func, inputs)


def _check_constant(func: Any, inputs: tuple[Any, ...], result: Any, settings: Any) -> None:
    """No output requires a gradient: then finite differences must vanish."""
    outputs = inexact_outputs(result)
    for i, x in enumerate(inputs):
        if is_differentiable(x):
            found = jacobians.numerical_columns(lambda: inexact_outputs(func(*inputs)), inputs[i],
                                                outputs, settings.eps)
            for jacobian in found:
                if not bool((jacobian.abs() <= settings.atol).all()):
                    raise GradcheckError("Numerical gradient for function expected to be zero")


# ---- deprecated names ------------------------------------


def _warn_private(name: str) -> None:
    warnings.warn(f"`{name}` was part of PyTorch's private API and not meant to be exposed. It is "
                  "deprecated.", FutureWarning, stacklevel=3)


def get_numerical_jacobian(fn: Any, inputs: Any, target: Any = None, eps: float = 1e-3,
                           grad_out: float = 1.0) -> list[Tensor]:
    """Deprecated: the Jacobians of the first output of `fn(inputs)` by finite differences."""
    _warn_private("get_numerical_jacobian")
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_numerical_jacobian no longer supports "
                         "values of grad_out != 1.0.")
    targets = as_tuple(inputs if target is None else target)
    wanted = [x for x in targets if is_differentiable(x)]
    outputs = inexact_outputs(fn(inputs))
    return [jacobians.numerical_columns(lambda: inexact_outputs(fn(inputs)), x, outputs, eps)[0]
            for x in wanted]


def get_analytical_jacobian(inputs: Sequence[Tensor], output: Tensor, nondet_tol: float = 0.0,
                            grad_out: float = 1.0) -> tuple[Any, bool, bool, bool]:
    """Deprecated: the Jacobians of `output` by reverse mode; are two runs equal, and the sizes and
    the types right?"""
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_analytical_jacobian no longer supports "
                         "values of grad_out != 1.0.")
    _warn_private("get_analytical_jacobian")
    sources = [x for x in inputs if is_differentiable(x)]
    run = jacobians.pullback(output, sources)
    found, sizes, kinds = jacobians.analytical_columns(run, sources, output)
    again = jacobians.analytical_columns(run, sources, output)[0]
    same = all(bool(((a - b).abs() <= nondet_tol).all()) for a, b in zip(found, again))
    return tuple(found), same, sizes, kinds


class _CallableModule(types.ModuleType):
    """`autograd.gradcheck` is the function, and this module: importing the module must not hide the
    function."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule

__all__ = ["GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "gradcheck",
           "gradgradcheck"]

adopt(globals(), "autograd.gradcheck_modes")
