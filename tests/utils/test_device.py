"""Default devices for a while."""

import pytest

import flambeau as torch
from flambeau.utils import _device


def test_default_devices():
    @_device.set_device("meta")
    def make():
        return torch.ones(1)
    assert make().device.type == "meta" and torch.ones(1).device.type == "cpu"
    with _device.DeviceContext("meta"):
        assert torch.ones(1).device.type == "meta"
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        _device.device_decorator("meta", set)


def test_generators_make_tensors_on_the_device():
    @_device.set_device("meta")
    def pair():
        first = yield torch.ones(1)
        yield torch.ones(2), first
    steps = pair()
    assert next(steps).is_meta
    made, sent = steps.send(5)
    assert made.is_meta and sent == 5


def test_devices_nest_and_end_with_errors():
    with torch.device("meta"):
        with torch.device("cpu"):
            assert torch.ones(1).device.type == "cpu"
        assert torch.ones(1).is_meta and torch.ones(1, device="cpu").device.type == "cpu"
    with pytest.raises(ZeroDivisionError), torch.device("meta"):
        raise ZeroDivisionError
    assert torch.ones(1).device.type == "cpu"


@pytest.mark.parametrize("make", [
    lambda: torch.arange(3), lambda: torch.rand(2), lambda: torch.tensor([1.0]),
    lambda: torch.linspace(0, 1, 3), lambda: torch.full((2,), 1.0), lambda: torch.eye(2),
    lambda: torch.randperm(3), lambda: torch.nn.Linear(2, 2).weight])
def test_constructors_follow_the_device(make):
    with torch.device("meta"):
        assert make().is_meta
