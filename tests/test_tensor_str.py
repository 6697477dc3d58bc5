"""How numbers are written together, under the names of PyTorch's module."""
import pytest

import flambeau as torch
from flambeau._tensor_str import _Formatter


@pytest.mark.parametrize("values, texts", [
    ([1.5], ["1.5000"]), ([1.0, 20.0], [" 1.", "20."]),
    ([1e-5, 2.0], ["1.0000e-05", "2.0000e+00"]), ([1, 200], ["  1", "200"]), ([True], ["True"]),
    ([float("nan"), 1.5e10], ["       nan", "1.5000e+10"])])
def test_formatter(values, texts):
    formatter = _Formatter(torch.tensor(values))
    assert [formatter.format(v) for v in values] == texts
    assert formatter.width() == len(texts[0])


def test_a_precision():
    with torch._tensor_str.printoptions(precision=2):
        assert _Formatter(torch.tensor(0.123)).format(0.5) == "0.50"
        assert torch._tensor_str.get_printoptions()["precision"] == 2
