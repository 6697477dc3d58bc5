"""What every op that works element by element has, from one statement."""
import numpy as np
import pytest

import flambeau as torch
from flambeau.core.op import table
from flambeau.ops import load

load()
OPS = {op.name: op for op in table.values() if op.kind == "pointwise" and op.declaration is not None
       and len(op.tensors) == 2 and not op.params and hasattr(torch, op.name)}
FLOATS = [n for n in OPS if n in ("add", "sub", "mul", "maximum", "minimum", "atan2", "hypot",
                                  "logaddexp", "fmod", "remainder", "xlogy", "copysign")]


@pytest.mark.parametrize("name", FLOATS)
def test_broadcasting_is_expansion(name):
    f = getattr(torch, name)
    a, b = torch.rand(2, 1, 3) + 0.5, torch.rand(4, 1) + 0.5
    wide = torch.broadcast_tensors(a, b)
    assert torch.equal(f(a, b), f(*[t.contiguous() for t in wide]))


@pytest.mark.parametrize("name", FLOATS)
def test_layout_does_not_change_values(name):
    f = getattr(torch, name)
    a, b = torch.rand(4, 6) + 0.5, torch.rand(6, 4) + 0.5
    assert torch.equal(f(a, b.T), f(a.clone(), b.T.contiguous()))
    assert torch.equal(f(a[::2], b.T[::2]), f(a, b.T)[::2])


@pytest.mark.parametrize("name", FLOATS)
def test_in_place_and_out_give_the_same(name):
    f, a, b = getattr(torch, name), torch.rand(3) + 0.5, torch.rand(3) + 0.5
    wanted = f(a, b)
    assert torch.equal(f(a, b, out=torch.empty(0)), wanted)
    inplace = getattr(torch.Tensor, f"{name}_", None)
    if inplace is not None:
        assert torch.equal(inplace(a.clone(), b), wanted)


@pytest.mark.parametrize("name", FLOATS)
def test_a_gradient_has_the_shape_of_its_input(name):
    a = (torch.rand(2, 1, dtype=torch.float64) + 1.5).requires_grad_()
    b = (torch.rand(3, dtype=torch.float64) + 0.5).requires_grad_()
    getattr(torch, name)(a, b).sum().backward()
    assert a.grad.shape == a.shape and b.grad.shape == b.shape


def test_shapes_that_do_not_broadcast():
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        torch.add(torch.ones(2), torch.ones(3))


def test_an_in_place_result_must_fit_the_tensor():
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        torch.ones(2, dtype=torch.int64).add_(1.5)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(2).add_(torch.ones(3, 2))


def test_numbers_stand_for_tensors():
    x = torch.tensor([1.0, 2.0])
    assert torch.equal(torch.add(x, 1), x + torch.tensor(1.0))
    assert np.allclose(torch.hypot(x, torch.tensor(2.0)).numpy(), np.hypot([1, 2], 2))
