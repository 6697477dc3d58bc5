"""Ops by the functions that came before `torch.library.custom_op`."""

import pytest

import flambeau as torch
from flambeau import _custom_ops as ops


@pytest.fixture(scope="module")
def scale():
    @ops.custom_op("before::scale")
    def scale(x: torch.Tensor, by: float) -> torch.Tensor: ...

    ops.impl("before::scale")(lambda x, by: x * by)
    return torch.ops.before.scale


def test_kernel_shapes_and_derivative(scale):
    x = torch.ones(3, requires_grad=True)
    assert scale(x.detach(), 2.0).tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        scale(x, 2.0).sum().backward()
    ops.impl_save_for_backward("before::scale")(lambda inputs, output: inputs.by)
    with pytest.raises(RuntimeError, match="unable to find a 'backward' registration"):
        scale(x, 2.0)
    ops.impl_backward("before::scale")(lambda ctx, saved, grad: {"x": grad * saved})
    scale(x, 2.0).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    ops.impl_abstract("before::scale", func=lambda x, by: x.new_empty(x.shape))
    assert scale(x.to("meta"), 2.0).shape == (3,)


def test_results_without_a_derivative():
    ops.custom_op("before::two", "(Tensor x) -> (Tensor, Tensor)")
    ops.impl("before::two", device_types="cpu", func=lambda x: (x * 2, x * 3))
    ops.impl_save_for_backward("before::two", func=lambda inputs, output: None)
    ops.impl_backward("before::two", [True, False], func=lambda ctx, saved, a, b: {"x": 5 * a})
    x = torch.ones(2, requires_grad=True)
    first, second = torch.ops.before.two(x)
    assert first.requires_grad and not second.requires_grad
    first.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    ops.impl_backward("before::two", func=lambda ctx, saved, a, b: {"y": a})
    with pytest.raises(RuntimeError, match=r"to have keys {'x'} but got dict_keys\(\['y'\]\)"):
        torch.ops.before.two(x)[0].sum().backward()


def test_what_is_refused(scale):
    with pytest.raises(ValueError, match="Expected there to be a namespace in nope"):
        ops.custom_op("nope", "(Tensor x) -> Tensor")
    for name in ("before::nope", "never::nope"):
        with pytest.raises(ValueError, match=f"Could not find the operator {name}"):
            ops.impl(name)
    with pytest.raises(RuntimeError, match="already has a cpu impl"):
        ops.impl("before::scale", func=lambda x, by: x)
    assert ops.get_ctx() is None
