"""`redispatch_function`: past `__torch_function__` once, not further."""
import flambeau as torch
from flambeau.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    redispatch_function,
)


def scaled(a, b):
    if has_torch_function((a, b)):
        return handle_torch_function(scaled, (a, b), a, b)
    return a * b + 1


def test_of_subclasses():
    seen = []

    class Log(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args, kwargs=None):
            seen.append(func.__name__)
            return redispatch_function(func, types, args, kwargs)

    result = scaled(Log([3.0]), Log([4.0]))
    assert type(result) is torch.Tensor and result.tolist() == [13.0]
    assert seen == ["scaled", "mul"]
    Log([1.0]).sin()
    assert seen == ["scaled", "mul", "sin"]


def test_of_modes():
    seen = []

    class Log(TorchFunctionMode):
        def __torch_function__(self, func, types, args, kwargs=None):
            seen.append(func.__name__)
            with self:
                return redispatch_function(func, types, args, kwargs)

    with Log():
        result = scaled(torch.tensor([3.0]), torch.tensor([4.0]))
    assert result.tolist() == [13.0]
    assert seen[-3:] == ["scaled", "mul", "add"]


def test_past_nothing():
    x = torch.ones(1)
    assert torch.equal(redispatch_function(torch.sin, (), (x,), None), x.sin())
