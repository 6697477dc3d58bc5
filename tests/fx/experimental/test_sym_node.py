"""No number is symbolic."""
import pytest

from flambeau.fx.experimental.sym_node import SymNode


def test_none_can_be_made():
    with pytest.raises(NotImplementedError, match="no symbolic numbers"):
        SymNode(None, None, int, None)
