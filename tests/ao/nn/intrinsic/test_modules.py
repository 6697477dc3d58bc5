"""Rows of float modules that quantisation treats as one."""
import inspect

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic

PARTS = {"Conv": lambda n: getattr(nn, f"Conv{n}d")(2, 3, 2),
         "Bn": lambda n: getattr(nn, f"BatchNorm{n}d")(3), "ReLU": lambda n: nn.ReLU()}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("names", [("Conv", "ReLU"), ("Conv", "Bn"), ("Conv", "Bn", "ReLU")])
def test_a_row_is_a_sequence_of_its_parts(n, names):
    parts = [PARTS[name](n) for name in names]
    row = getattr(intrinsic, "".join(names) + f"{n}d")(*parts).eval()
    x = torch.randn(2, 2, *(4,) * n)
    wanted = x
    for part in parts:
        wanted = part(wanted)
    assert torch.equal(row(x), wanted) and list(row) == parts
    assert isinstance(row, nn.Sequential)
    assert list(inspect.signature(type(row)).parameters) == [name.lower() for name in names]


@pytest.mark.parametrize("name, parts", [
    ("LinearReLU", (nn.Linear(2, 3), nn.ReLU())), ("LinearTanh", (nn.Linear(2, 3), nn.Tanh())),
    ("LinearLeakyReLU", (nn.Linear(2, 3), nn.LeakyReLU(0.3))),
    ("LinearBn1d", (nn.Linear(2, 3), nn.BatchNorm1d(3)))])
def test_rows_that_begin_with_a_linear_map(name, parts):
    kind = getattr(intrinsic, name)
    row, x = kind(*parts).eval(), torch.randn(4, 2)
    assert torch.equal(row(x), parts[1](parts[0](x)))
    assert repr(row) == f"{name}(\n  (0): {parts[0]}\n  (1): {parts[1]}\n)"
    assert list(row.state_dict())[:2] == ["0.weight", "0.bias"]
    by_name = dict(zip(inspect.signature(kind).parameters, parts))
    assert list(kind(**by_name)) == list(parts)


@pytest.mark.parametrize("n", [2, 3])
def test_a_normalisation_may_begin_a_row(n):
    row = getattr(intrinsic, f"BNReLU{n}d")(getattr(nn, f"BatchNorm{n}d")(3), nn.ReLU()).eval()
    x = torch.randn(1, 3, *(2,) * n)
    torch.testing.assert_close(row(x), (x / (1 + 1e-5) ** 0.5).relu())


@pytest.mark.parametrize("kind, parts", [
    ("ConvReLU2d", (nn.Conv1d(1, 1, 1), nn.ReLU())), ("LinearReLU", (nn.ReLU(), nn.Linear(1, 1))),
    ("ConvBnReLU1d", (nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1), nn.Tanh())),
    ("LinearTanh", (nn.Linear(1, 1), nn.ReLU()))])
def test_parts_of_other_classes_are_refused(kind, parts):
    with pytest.raises(AssertionError, match="Incorrect types for input modules"):
        getattr(intrinsic, kind)(*parts)


def test_a_convolution_and_what_is_added():
    conv = nn.Conv2d(1, 2, 3)
    x, y = torch.randn(1, 1, 5, 5), torch.randn(1, 2, 3, 3)
    assert torch.equal(intrinsic.ConvAdd2d(conv, torch.add)(x, y), conv(x) + y)
    relu = nn.ReLU()
    both = intrinsic.ConvAddReLU2d(conv, torch.sub, relu)
    assert torch.equal(both(x, y), (conv(x) - y).relu())
    assert both.relu is relu and both.add is torch.sub
