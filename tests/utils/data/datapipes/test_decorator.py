"""Decorators of pipes."""
import pytest
from datapipe_cases import check_like_pytorch

import flambeau
from flambeau.utils import data
from flambeau.utils.data.datapipes.iter import IterableWrapper


def test_like_pytorch():
    check_like_pytorch("determinism", flambeau)


def test_a_name_is_a_method():
    @data.functional_datapipe("doubled_for_a_test")
    class Doubled(data.IterDataPipe):
        def __init__(self, source, factor=2):
            self.source, self.factor = source, factor

        def __iter__(self):
            return (self.factor * value for value in self.source)

    try:
        assert list(IterableWrapper([1, 2]).doubled_for_a_test()) == [2, 4]
        assert list(IterableWrapper([1, 2]).doubled_for_a_test(factor=3)) == [3, 6]
        assert isinstance(IterableWrapper([1]).doubled_for_a_test(), Doubled)
    finally:
        data.IterDataPipe.functions.pop("doubled_for_a_test")


def test_settings_end_with_their_block():
    @data.non_deterministic(lambda loose: loose)
    class Loose(data.IterDataPipe):
        def __init__(self, loose):
            self.loose = loose

    with data.guaranteed_datapipes_determinism():
        Loose(False)
        with pytest.raises(TypeError, match="non-deterministic"):
            Loose(True)
    Loose(True)
