"""Padding in ONNX's order."""
import pytest

from flambeau.onnx.symbolic_opset9 import _prepare_onnx_paddings


@pytest.mark.parametrize(("dim", "pad", "expected"), [
    (3, [1, 2, 3, 4], [0, 3, 1, 0, 4, 2]), (2, [], [0, 0, 0, 0]), (1, [1, 2], [1, 2]),
    (2, [1, 2, 3, 4], [3, 1, 4, 2])])
def test_all_starts_come_before_all_ends(dim, pad, expected):
    assert _prepare_onnx_paddings(dim, pad) == expected
