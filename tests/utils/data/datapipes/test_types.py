"""Types of what pipes give and take."""

import pytest

import flambeau
from flambeau.utils.data.datapipes.iter import IterableWrapper


def test_types_are_checked():
    data = flambeau.utils.data

    class Numbers(data.IterDataPipe[int | None]):
        def __init__(self, values):
            self.values = values

        @data.runtime_validation
        def __iter__(self):
            yield from self.values

    assert list(Numbers([1, None])) == [1, None]
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of"):
        list(Numbers([1, "a"]))
    with data.runtime_validation_disabled():
        assert list(Numbers([1, "a"])) == [1, "a"]

    @data.argument_validation
    def total(numbers: data.IterDataPipe[int | float | None]):
        return sum(numbers)

    assert total(Numbers([1, 2])) == 3
    with pytest.raises(TypeError, match="as a IterDataPipe, but found"):
        total([1, 2])
    with pytest.raises(TypeError, match="as a subtype of hint"):
        total(IterableWrapper("ab"))
