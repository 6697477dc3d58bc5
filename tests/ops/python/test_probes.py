"""Ops that PyTorch has for tests of its own."""
import pytest

import flambeau as torch


def test_checks_and_warnings():
    ok = torch.tensor([True, True])
    assert torch._test_check_tensor(ok) is not None
    with pytest.raises(RuntimeError, match="Test message for TORCH_CHECK_TENSOR_ALL"):
        torch._test_check_tensor(~ok)
    x = torch.zeros((), requires_grad=True)
    y = torch._C._nn._test_warn_in_autograd(x)
    with pytest.warns(UserWarning, match="Warn from backward"):
        y.backward()


def test_a_derivative_that_is_not_its_own():
    x = torch.ones(2, requires_grad=True)
    y = torch._test_autograd_multiple_dispatch(x)
    assert y.grad_fn.name() == "TestAutogradMultipleDispatchBackward0"
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [2, 2]
    y = torch._test_autograd_multiple_dispatch(x, False)
    assert y.grad_fn.name() == "CloneBackward0"
    with pytest.raises(TypeError, match=r"argument 'b' \(position 2\) must be bool, not int"):
        torch._test_autograd_multiple_dispatch(x, 2)


def test_lists_that_may_be_missing():
    assert torch._C._nn._test_optional_floatlist(torch.ones(2), [1., 2.]).tolist() == [2, 3]
    assert torch._C._nn._test_optional_filled_intlist(torch.ones(2), 3).tolist() == [4, 4]
    assert torch._C._nn._test_optional_intlist(torch.ones(2), None).tolist() == [1, 1]


def test_slices_are_copied_together():
    x = torch.ones(3, 2)
    assert torch.vmap(torch._C._nn._test_warn_in_autograd)(x).equal(x)
    assert torch.vmap(torch._test_autograd_multiple_dispatch)(x).equal(x)
