"""Fake tensors: shapes, types and devices without values."""
from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._guards import TracingContext, active_fake_mode, detect_fake_mode, tracing
from flambeau._subclasses import FakeTensor, FakeTensorMode
from flambeau._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
    UnsupportedOperatorException,
    is_fake,
    maybe_get_fake_mode,
    unset_fake_temporarily,
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


@pytest.mark.parametrize(("make", "error"), [
    (lambda: torch.ones(2).sum().item(), DataDependentOutputException),
    (lambda: bool(torch.ones(1) > 0), DataDependentOutputException),
    (lambda: torch.ones(2).nonzero(), DynamicOutputShapeException),
    (lambda: torch.ones(2) + torch.ones(2, device="cuda"), FakeTensorDeviceMismatchError),
    (lambda: torch.ones(2).numpy(), RuntimeError),
])
def test_values_are_not_there(mode, make, error):
    with mode, pytest.raises(error):
        make()


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


def test_of_real_tensors(mode):
    weight = nn.Parameter(torch.ones(4, 4))
    fake = mode.from_tensor(weight)
    assert type(fake) is FakeTensor and isinstance(fake, nn.Parameter) and fake.is_leaf
    assert mode.from_tensor(weight) is fake and is_fake(fake) and not is_fake(weight)
    base = torch.ones(4, 4)
    view = mode.from_tensor(base[1:, 2:])
    assert view._base is mode.from_tensor(base) and view.storage_offset() == 6
    assert view.stride() == (4, 1) and not view.is_meta and view.device.type == "cpu"
    assert view.view_as(view)._base is view._base
    assert isinstance(copy.deepcopy(fake), FakeTensor)


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


def test_which_mode(mode):
    x = mode.from_tensor(torch.ones(1))
    assert detect_fake_mode([x]) is mode is maybe_get_fake_mode(x)
    assert detect_fake_mode() is active_fake_mode() is None
    with mode:
        assert active_fake_mode() is mode
        with unset_fake_temporarily() as found:
            assert found is mode and type(torch.ones(1)) is torch.Tensor
    with tracing(TracingContext(mode)):
        assert detect_fake_mode() is mode
        with pytest.raises(AssertionError, match="doesn't match mode"):
            detect_fake_mode([FakeTensorMode().from_tensor(torch.ones(1))])


LAYOUTS = {"sparse_coo": lambda x: x.to_sparse(), "sparse_csr": lambda x: x.to_sparse_csr(),
           "sparse_csc": lambda x: x.to_sparse_csc(),
           "sparse_bsr": lambda x: x.to_sparse_bsr((2, 2)),
           "sparse_bsc": lambda x: x.to_sparse_bsc((2, 2))}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_tensors_keep_layout_and_shapes_without_entries(layout):
    mode, real = FakeTensorMode(), LAYOUTS[layout](torch.eye(4))
    fake = mode.from_tensor(real)
    assert type(fake).__name__ == "FakeTensor" and isinstance(fake, FakeTensor)
    assert mode.from_tensor(real) is fake
    assert fake.layout is getattr(torch, layout) and fake.device.type == "cpu"
    assert (fake.sparse_dim(), fake.dense_dim(), fake._nnz()) == (2, 0, 0)
    for again in (fake.detach(), fake.clone(), fake + fake, 2 * fake):
        assert isinstance(again, FakeTensor) and again.layout is fake.layout
    assert fake.to_dense().layout is torch.strided and fake.to_dense().shape == (4, 4)
    assert (fake @ mode.from_tensor(torch.ones(4, 3))).shape == (4, 3)
    assert isinstance(fake.values(), FakeTensor) and fake.values().shape[0] == 0
    assert repr(fake).startswith("FakeTensor(") and "meta" not in repr(fake)
    needs = mode.from_tensor(real.clone().requires_grad_())
    assert needs.requires_grad and needs.is_leaf


def test_what_sparse_tensors_of_a_layout_refuse():
    fake = FakeTensorMode().from_tensor(torch.eye(2).to_sparse_csc())
    with pytest.raises(RuntimeError, match="Sparse CSC tensors do not have strides"):
        fake.stride()
    with pytest.raises(RuntimeError, match="Sparse CSC tensors do not have is_contiguous"):
        fake.is_contiguous()
