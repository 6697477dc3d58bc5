"""The length that varies."""
import pytest

import flambeau as torch
from flambeau import nested

A, B = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(4, 3) - 5


def test_lengths_that_vary_are_compared_with_care():
    length = nested.nested_tensor([A, B], layout=torch.jagged).size(1)
    assert length >= 2 and length > 1 and length * 2 >= length and 2 * length == length * 2
    assert length != 5 and not length < 2 and isinstance(length, torch.SymInt)
    for call in (lambda: length > 3, lambda: length <= 3):
        with pytest.raises(ValueError, match="relation is indeterminate"):
            call()
    for call, name in ((lambda: length + 1, "add"), (lambda: int(length), "int_")):
        with pytest.raises(AttributeError, match=f"'NestedIntNode' .* no attribute '{name}'"):
            call()
