"""Of which type and on which device `out=` must be. What is said is PyTorch's."""
import pytest

import flambeau as torch
from flambeau.core.dtypes import dtype
from flambeau.ops.out_types import can_cast

X = torch.ones(2, 2)
LONG, COMPLEX = torch.empty(2, 2, dtype=torch.long), torch.empty(2, 2, dtype=torch.complex64)


@pytest.mark.parametrize("call, said", [
    (lambda: torch.add(X, X, out=LONG),
     "result type Float can't be cast to the desired output type Long"),
    (lambda: torch.exp(X, out=LONG),
     "result type Float can't be cast to the desired output type Long"),
    (lambda: torch.mm(X, X, out=LONG),
     "Expected out tensor to have dtype float, but got long int instead"),
    (lambda: torch.cumsum(X, 0, out=LONG.double()), None),
    (lambda: torch.linalg.inv(X + torch.eye(2), out=LONG),
     "Expected out tensor to have dtype float, but got long int instead"),
    (lambda: torch.fft.fft(X, out=torch.empty(2, 2)),
     "fft expects a complex output tensor, but got Float"),
    (lambda: torch.real(COMPLEX).abs(), None),
    (lambda: torch.add(X, X, out=COMPLEX), None),
    (lambda: torch.any(X, 0, out=torch.empty(2)),
     "any only supports bool tensor for result, got: Float"),
    (lambda: torch.heaviside(X, X, out=COMPLEX), "heaviside is not yet implemented for complex"),
    (lambda: torch.heaviside(X, X, out=LONG), "heaviside is not yet implemented for tensors with"),
    (lambda: torch.ldexp(X, X, out=LONG), "ldexp can't be cast to the desired output type Long"),
    (lambda: torch.lerp(X, X, X, out=LONG), "Found dtype Long but expected Float"),
    (lambda: torch.lerp(X, X, 0.5, out=COMPLEX), None),
    (lambda: torch.cumprod(X, 0, dtype=torch.float, out=LONG),
     "Expected out tensor to have dtype float, but got long int instead"),
])
def test_types(call, said):
    if said is None:
        call()
    else:
        with pytest.raises((RuntimeError, TypeError)) as error:
            call()
        assert str(error.value).splitlines()[0].startswith(said)


@pytest.mark.parametrize("source, target, allowed", [
    ("int64", "float32", True), ("float32", "int64", False), ("float64", "float16", True),
    ("complex64", "float32", False), ("float32", "complex64", True), ("int32", "int8", True),
    ("int32", "bool", False), ("bool", "bool", True), ("bool", "int8", True)])
def test_kinds_may_rise_and_not_fall(source, target, allowed):
    """As `torch.can_cast` says."""
    of = [getattr(torch, name) for name in (source, target)]
    assert all(isinstance(one, dtype) for one in of)
    assert can_cast(*of) is allowed and torch.can_cast(*of) is allowed


def test_another_device():
    with pytest.raises(RuntimeError, match=r"[Dd]evice"):
        torch.mm(X, X, out=torch.empty(2, 2, device="meta"))


def test_gradients_are_refused():
    w = torch.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^add\(\): functions with out=... arguments don't "
                                           "support automatic differentiation"):
        torch.add(w, w, out=torch.empty(2, 2))
    with torch.no_grad():
        torch.add(w, w, out=torch.empty(2, 2))


@pytest.mark.parametrize("speaker, call", [
    ("pow", lambda w: torch.float_power(w, 2.0, out=X.double())),
    ("gather", lambda w: torch.take_along_dim(w, X.long(), 1, out=X.clone())),
    ("mm", lambda w: torch.linalg.multi_dot([w, w], out=X.clone())),
    ("nansum", lambda w: torch.nanmean(w, out=torch.empty(()))),
    ("_fft_c2r", lambda w: torch.fft.hfft(w, out=torch.empty(2, 2))),
    ("aten::slice_scatter", lambda w: torch.slice_scatter(w, X, out=X.clone()))])
def test_what_an_op_is_made_of_refuses_gradients(speaker, call):
    with pytest.raises(RuntimeError) as error:
        call(torch.ones(2, 2, requires_grad=True))
    assert str(error.value).startswith(f"{speaker}(): functions with out=...")
