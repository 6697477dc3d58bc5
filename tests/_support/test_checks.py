"""Conditions that programs state, each with its type of error."""

import pytest

import flambeau as torch

CHECKS = [(torch._check, RuntimeError), (torch._check_value, ValueError),
          (torch._check_type, TypeError), (torch._check_index, IndexError),
          (torch._check_not_implemented, NotImplementedError)]


@pytest.mark.parametrize("check, error", CHECKS)
def test_each_has_its_error(check, error):
    assert check(True) is None and check(True, lambda: 1 / 0) is None
    with pytest.raises(error, match=r"^Expected cond to be True"):
        check(False)
    with pytest.raises(error, match=r"^3 is odd$"):
        check(False, lambda: f"{3} is odd")


@pytest.mark.parametrize("cond, message, said", [
    (1, None, "cond must be a bool, but got <class 'int'>"),
    (torch.tensor(True), None, "cond must be a bool, but got a Tensor. For tensor conditions, use "
     "torch._check_tensor_all.. to assert that all elements are true."),
    (False, "text", "message must be a callable"),
])
def test_wrong_arguments(cond, message, said):
    with pytest.raises(TypeError, match=said):
        torch._check(cond, message)


def test_messages_become_text():
    with pytest.raises(RuntimeError, match=r"^12$"):
        torch._check(False, lambda: 12)


@pytest.mark.parametrize("size, options, fits", [
    (0, {}, True), (7, {}, True), (-1, {}, False), (7, {"max": 7}, True), (8, {"max": 7}, False)])
def test_sizes(size, options, fits):
    if fits:
        assert torch._check_is_size(size, **options) is None
    else:
        with pytest.raises(RuntimeError):
            torch._check_is_size(size, **options)


def test_all_elements_of_a_tensor():
    assert torch._check_tensor_all(torch.tensor([True, True])) is None
    assert torch._check_tensor_all(torch.ones(0, dtype=torch.bool)) is None
    with pytest.raises(RuntimeError, match=r"^not all$"):
        torch._check_tensor_all(torch.tensor([[True], [False]]), lambda: "not all")
    with pytest.raises(ValueError):
        torch._check_tensor_all_with(ValueError, torch.tensor(False))
    with pytest.raises(TypeError, match="cond must be a tensor, but got <class 'bool'>"):
        torch._check_tensor_all(True)
    with pytest.raises(TypeError, match=r"cond tensor must have dtype torch\.bool, but got torch"):
        torch._check_tensor_all(torch.ones(2))
