"""The mode in which tensors have no values."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._subclasses import FakeTensor, FakeTensorMode
from flambeau._subclasses.fake_tensor import (
    DataDependentOutputException,
    UnsupportedOperatorException,
)
from flambeau.nn import functional as F


@pytest.fixture
def mode():
    return FakeTensorMode()


@pytest.mark.parametrize(("make", "shown"), [
    (lambda: torch.ones(2, device="cuda"), "FakeTensor(..., device='cuda:0', size=(2,))"),
    (lambda: torch.tensor([1, 2]), "FakeTensor(..., size=(2,), dtype=torch.int64)"),
    (lambda: nn.Linear(2, 3)(torch.ones(1, 2)),
     "FakeTensor(..., size=(1, 3), grad_fn=<AddmmBackward0>)"),
    (lambda: nn.Linear(2, 3).weight, "Parameter(FakeTensor(..., size=(3, 2), requires_grad=True))"),
    (lambda: nn.Conv2d(2, 3, 3)(torch.ones(1, 2, 8, 8)).detach(),
     "FakeTensor(..., size=(1, 3, 6, 6))"),
    (lambda: F.cross_entropy(torch.randn(3, 4), torch.zeros(3, dtype=torch.long)),
     "FakeTensor(..., size=())"),
    (lambda: torch.ones(3, 4).split(2),
     "(FakeTensor(..., size=(2, 4)), FakeTensor(..., size=(1, 4)))"),
    (lambda: torch.empty(2, 3).normal_().unsqueeze_(0), "FakeTensor(..., size=(1, 2, 3))"),
    (lambda: torch.ones(2).to("meta"), "FakeTensor(..., device='meta', size=(2,))"),
    (lambda: torch.linalg.svd(torch.ones(3, 4))[0], "FakeTensor(..., size=(3, 3))"),
    (lambda: torch.ones(2, 3) > 0, "FakeTensor(..., size=(2, 3), dtype=torch.bool)"),
])
def test_made_inside(mode, make, shown):
    with mode:
        found = make()
    assert repr(found) == shown


def test_numbers_of_the_program_are_known(mode):
    with mode:
        assert torch.tensor(3).item() == 3 and (torch.tensor(3) + 1).item() == 4
        x = torch.tensor(3)
        x.add_(1)
        with pytest.raises(DataDependentOutputException):
            x.item()


def test_training_step(mode):
    with mode:
        layer = nn.Linear(2, 3)
        layer(torch.ones(1, 2)).sum().backward()
        torch.optim.SGD(layer.parameters(), lr=0.1).step()
    assert isinstance(layer.weight.grad, FakeTensor) and layer.weight.grad.shape == (3, 2)


def test_real_and_fake_do_not_mix(mode):
    x = mode.from_tensor(torch.ones(2, 3))
    with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors first"):
        x + torch.ones(2, 3)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        x + FakeTensorMode().from_tensor(torch.ones(2, 3))
    other = FakeTensorMode(allow_non_fake_inputs=True)
    assert (other.from_tensor(torch.ones(3)) + torch.ones(3)).shape == (3,)


def test_ops_of_programs(mode):
    @torch.library.custom_op("fake_test::f", mutates_args=())
    def f(x: torch.Tensor) -> torch.Tensor:
        return x[:1].clone()
    x = mode.from_tensor(torch.ones(2))
    with pytest.raises(RuntimeError, match="There was no fake impl registered for <CustomOpDef"):
        f(x)
    f.register_fake(lambda x: x.new_empty(1))
    assert repr(f(x)) == "FakeTensor(..., size=(1,))"
    torch.library.define("fake_test::g", "(Tensor x) -> Tensor")
    torch.library.impl("fake_test::g", "cpu", lambda x: x + 1)
    with pytest.raises(UnsupportedOperatorException, match=r"fake_test\.g\.default"):
        torch.ops.fake_test.g(x)
