"""Does an op do what it has been registered as?"""
import pytest

import flambeau as torch
from flambeau.library import opcheck

X = torch.tensor([1.0, 2.0])


def made(name, kernel, fake=None, mutates=(), backward=None):
    def op(x: torch.Tensor) -> torch.Tensor:
        return kernel(x)
    found = torch.library.custom_op(f"mirror_opcheck::{name}", op, mutates_args=mutates)
    if fake is not None:
        found.register_fake(fake)
    if backward is not None:
        found.register_autograd(lambda ctx, grad: backward(grad))
    return found


def test_a_correct_op():
    op = made("good", lambda x: 2 * x, torch.empty_like, backward=lambda grad: 2 * grad)
    for x in (X, X.clone().requires_grad_()):
        found = opcheck(op, (x,))
        assert found == dict.fromkeys(("test_schema", "test_autograd_registration",
                                       "test_faketensor", "test_aot_dispatch_dynamic"), "SUCCESS")
    assert opcheck(torch.ops.aten.sin.default, (X,), test_utils="test_schema") == {
        "test_schema": "SUCCESS"}


@pytest.mark.parametrize(("name", "kernel", "fake", "test"), [
    ("writes", lambda x: x.add_(1).clone(), torch.empty_like, "test_schema"),
    ("shares", lambda x: x.view(-1), torch.empty_like, "test_schema"),
    ("shape", lambda x: 2 * x, lambda x: x.new_empty(3), "test_faketensor"),
    ("dtype", lambda x: 2 * x, lambda x: x.new_empty(2, dtype=torch.int32), "test_faketensor"),
    ("nothing", lambda x: 2 * x, None, "test_faketensor"),
])
def test_wrong_ops(name, kernel, fake, test):
    op = made(name, kernel, fake)
    with pytest.raises(Exception, match=r"opcheck\(op, \.\.\.\): " + test + " failed with"):
        opcheck(op, (X.clone(),), test_utils=test)
    found = opcheck(op, (X.clone(),), test_utils=test, raise_exception=False)
    assert isinstance(found[test], Exception)


@pytest.mark.parametrize(("op", "tests", "message"), [
    (3, "test_schema", r"op must be instance of torch._ops.OpOverload"),
    (torch.ops.aten.sin.default, ("test_nothing",), "expected test_utils to be subset of"),
])
def test_arguments(op, tests, message):
    with pytest.raises(ValueError, match=message):
        opcheck(op, (X,), test_utils=tests)
