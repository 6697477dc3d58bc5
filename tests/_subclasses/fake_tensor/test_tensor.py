"""Fake tensors: what they say of themselves."""
import copy

import pytest

import flambeau as torch
from flambeau._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    is_fake,
    maybe_get_fake_mode,
)


@pytest.fixture
def mode():
    return FakeTensorMode()


def test_what_they_are(mode):
    x = mode.from_tensor(torch.arange(6.0).reshape(2, 3).t())
    assert isinstance(x, FakeTensor) and isinstance(x, torch.Tensor)
    assert (x.shape, x.stride(), x.dtype, x.device.type) == ((3, 2), (1, 3), torch.float32, "cpu")
    assert x.fake_mode is mode and x.fake_device == torch.device("cpu")
    assert x.constant is None and mode.is_our_fake(x) and not mode.is_our_fake(torch.ones(1))


@pytest.mark.parametrize("device, wanted", [("cuda", "cuda:0"), ("cuda:1", "cuda:1"),
                                            ("cpu", "cpu")])
def test_devices(mode, device, wanted):
    x = FakeTensor(mode, torch.empty(2, device="meta"), torch.device(device))
    assert str(x.device) == wanted and repr(x).endswith("size=(2,))")


@pytest.mark.parametrize("use", [lambda x: x.numpy(), lambda x: x.tolist()])
def test_there_are_no_values(mode, use):
    with pytest.raises(RuntimeError):
        use(mode.from_tensor(torch.ones(2)))


def test_values_are_not_compared(mode):
    x = mode.from_tensor(torch.ones(2))
    assert repr(x == x) == "FakeTensor(..., size=(2,), dtype=torch.bool)"
    assert (x + 1).fake_mode is mode


def test_which_tensors_are_fake(mode):
    x = mode.from_tensor(torch.ones(2))
    assert is_fake(x) and not is_fake(torch.ones(2)) and not is_fake(3)
    assert maybe_get_fake_mode(x) is mode and maybe_get_fake_mode(torch.ones(2)) is None


def test_copies(mode):
    x = mode.from_tensor(torch.ones(2, requires_grad=True))
    with mode:
        y = copy.deepcopy(x)
    assert isinstance(y, FakeTensor) and y is not x and y.requires_grad
