"""Division of sizes, which are plain integers here."""
import pytest

from flambeau.utils._sympy.functions import FloorDiv


@pytest.mark.parametrize("a, b", [(7, 2), (-7, 2), (7, -2), (0, 3), (6, 3)])
def test_division_rounds_down(a, b):
    assert int(FloorDiv(a, b)) == a // b


def test_division_by_zero():
    with pytest.raises(ZeroDivisionError):
        FloorDiv(1, 0)
