"""Ops that PyTorch has for tests of its own: of checks, warnings, defaults and derivatives."""
from __future__ import annotations

import warnings
from typing import Any

import flambeau
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op


@op("_test_check_tensor(Tensor self) -> Tensor", method=False, out=False)
def _test_check_tensor(self: Tensor) -> Tensor:
    """The tensor itself, of bools, all of which must be True."""
    if not self.all():
        raise RuntimeError("Test message for TORCH_CHECK_TENSOR_ALL")
    return self


def _warn(grad: Tensor) -> Tensor:
    warnings.warn("Warn from backward", UserWarning, stacklevel=1)
    return grad


_test_warn_in_autograd = op(
    "_test_warn_in_autograd(Tensor self) -> Tensor", method=False, namespace="_nn",
    kernel=lambda x: x.copy(), core="()->()", d_self=_warn,
    doc="A copy, whose backward pass warns.")

_test_autograd_multiple_dispatch = op(
    "_test_autograd_multiple_dispatch.fullcoverage(Tensor self) -> Tensor", method=False, out=False,
    kernel=lambda x: x.copy(), core="()->()", d_self=lambda grad: grad + 1,
    doc="A copy, with a derivative that is not its own.")


@op("_test_autograd_multiple_dispatch.ntonly(Tensor self, bool b) -> Tensor", method=False,
    overload_of=_test_autograd_multiple_dispatch, out=False)
def _copied(self: Tensor, b: bool) -> Tensor:
    """A copy."""
    return self.clone()


@op("_test_serialization_subcmul(Tensor self, Tensor other, Scalar alpha=1) -> Tensor",
    method=False, out=False)
def _test_serialization_subcmul(self: Tensor, other: Tensor, alpha: Any) -> Tensor:
    """self - alpha · other."""
    return self - other * alpha


@op("_test_functorch_fallback(Tensor self, Tensor other) -> Tensor", method=False)
def _test_functorch_fallback(self: Tensor, other: Tensor) -> Tensor:
    """A copy of the first."""
    return self.clone()


def _test_optional_list(values: Tensor, addends: Any) -> Tensor:
    return values if addends is None else values + flambeau.tensor(addends, dtype=values.dtype)


_test_optional_intlist, _test_optional_filled_intlist, _test_optional_floatlist = (
    op(f"_test_optional_{kind}list(Tensor values, {element}? addends) -> Tensor", method=False,
       namespace="_nn", body=_test_optional_list,
       doc="The values plus those of a list, which may be missing.")
    for kind, element in (("int", "int[]"), ("filled_int", "int[2]"), ("float", "float[]")))
