"""Sizes that may vary, by their values."""
import pytest

import flambeau
from flambeau.fx.experimental import symbolic_shapes
from flambeau.utils._sympy.numbers import int_oo
from flambeau.utils._sympy.value_ranges import ValueRanges


def test_questions_about_sizes_are_answered_by_their_values():
    assert symbolic_shapes.guard_or_false(2 < 3) and not symbolic_shapes.guard_or_true(2 == 3)
    assert symbolic_shapes.free_symbols(flambeau.ones(2)) == set()
    bound = symbolic_shapes.StrictMinMaxConstraint(warn_only=False, vr=ValueRanges(2, int_oo))
    assert 7 in bound.vr and 1 not in bound.vr
    with pytest.raises(NotImplementedError, match="no symbols for sizes"):
        symbolic_shapes.ShapeEnv()
