"""What optimisers written elsewhere take besides the base class."""
import pytest

import flambeau as torch
from flambeau.optim import optimizer as parts


def test_step_under_the_option_differentiable():
    class Own:
        @parts._use_grad_for_differentiable
        def step(self):
            return torch.is_grad_enabled()

    own = Own()
    for own.defaults in ({"differentiable": True}, {"differentiable": False}):
        assert own.step() is own.defaults["differentiable"]


def test_values():
    assert parts._get_value(torch.tensor(3.0)) == 3.0 and parts._get_value(2) == 2
    assert parts._to_scalar(torch.ones(1)).shape == () and parts._to_scalar(2.0) == 2.0
    assert parts._to_scalar(torch.tensor(1.0)).shape == ()


def test_type_of_counts():
    assert parts._get_scalar_dtype() is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert parts._get_scalar_dtype() is torch.float64
        assert parts._get_scalar_dtype(is_fused=True) is torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_complex_tensors_become_pairs_in_place():
    whole = torch.tensor([1 + 2j])
    params, grads = [whole, torch.ones(2)], [whole * 2, torch.ones(2)]
    parts._view_as_real(params, grads)
    assert [p.shape for p in params] == [p.shape for p in grads] == [(1, 2), (2,)]
    params[0].zero_()
    assert whole.item() == 0


def test_no_lists_where_a_step_is_differentiable():
    assert parts._default_to_fused_or_foreach([torch.ones(1)], True) == (False, False)
    assert parts._default_to_fused_or_foreach([torch.ones(1)], True, True) == (False, False)


def test_fused_steps_want_real_floats():
    with pytest.raises(RuntimeError, match="requires all the params to be floating point Tensors"):
        parts._device_dtype_check_for_fused(torch.ones(1, dtype=torch.int32))
    parts._device_dtype_check_for_fused(torch.ones(1))
