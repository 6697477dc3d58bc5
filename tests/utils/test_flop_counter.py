"""Counts against those that PyTorch gives."""
import pytest

import flambeau as torch
from flambeau.nn import functional as F
from flambeau.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula


def counted(function):
    with FlopCounterMode(display=False) as counter:
        function()
    return {str(op): n for op, n in counter.get_flop_counts().get("Global", {}).items()}


def ones(*shape):
    return torch.ones(*shape, requires_grad=True)


@pytest.mark.parametrize("call, expected", [
    (lambda: ones(2, 3) @ ones(3, 4), {"aten.mm": 48}),
    (lambda: torch.addmm(ones(4), ones(2, 3), ones(3, 4)), {"aten.addmm": 48}),
    (lambda: torch.bmm(ones(5, 2, 3), ones(5, 3, 4)), {"aten.bmm": 240}),
    (lambda: torch.baddbmm(ones(5, 2, 4), ones(5, 2, 3), ones(5, 3, 4)), {"aten.baddbmm": 240}),
    (lambda: F.linear(ones(2, 5, 3), ones(4, 3)), {"aten.mm": 240}),
    (lambda: F.conv2d(ones(2, 3, 8, 8), ones(4, 3, 3, 3)), {"aten.convolution": 15552}),
    (lambda: F.conv_transpose1d(ones(1, 2, 5), ones(2, 3, 2)), {"aten.convolution": 120}),
    (lambda: F.conv2d(ones(2, 3, 8, 8), ones(4, 3, 3, 3)).sum().backward(), {
        "aten.convolution": 15552, "aten.convolution_backward": 31104}),
    (lambda: ones(3).sin(), {})])
def test_counts(call, expected):
    assert counted(call) == expected


def test_modules_and_table(capsys):
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    with FlopCounterMode(depth=1) as counter:
        model(torch.ones(3, 4)).sum().backward()
    counts = {name: sum(ops.values()) for name, ops in counter.get_flop_counts().items()}
    assert counts == {"Global": 420, "Sequential": 420, "Sequential.0": 240, "Sequential.2": 180}
    assert counter.get_total_flops() == 420
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Module", "FLOP", "%", "Total"] and "Sequential.0" not in lines
    assert lines[2].split() == ["Global", "420.000", "100.00%"]
    assert "Sequential.2" in counter.get_table(5)


def test_formulas_of_ones_own():
    sin, cos = torch.ops.aten.sin, torch.ops.aten.cos
    with FlopCounterMode(display=False, custom_mapping={
            sin: lambda shape, out_shape=None: 7 * shape.numel()}) as counter:
        torch.ones(3).sin().cos()
    assert counter.get_flop_counts() == {"Global": {sin: 21}}
    register_flop_formula([cos], get_raw=True)(lambda x, out_val: int(x.sum()))
    try:
        assert counted(lambda: torch.ones(3).cos()) == {"aten.cos": 3}
        with pytest.raises(RuntimeError, match="duplicate"):
            register_flop_formula(cos)(lambda *args: 0)
    finally:
        del flop_registry[cos]
    with pytest.raises(ValueError, match="OpOverloadPacket"):
        register_flop_formula("sin")(max)
