"""The syntax trees of TorchScript are not made."""

import pytest

from flambeau._C import _jit_tree_views as views


def test_nobody_makes_ranges_of_source():
    with pytest.raises(TypeError, match="SourceRange: No constructor defined!"):
        views.SourceRange()


def test_their_factory_says_that_there_is_no_compiler():
    with pytest.raises(NotImplementedError, match="flambeau has no compiler of TorchScript"):
        views.SourceRangeFactory("x = 1", None, 0, 0)
