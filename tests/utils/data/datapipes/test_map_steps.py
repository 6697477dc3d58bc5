"""Steps of pipes whose elements have keys."""
import pytest
from datapipe_cases import check_like_pytorch

import flambeau
from flambeau.utils.data.datapipes.map import SequenceWrapper


def test_like_pytorch():
    check_like_pytorch("maps", flambeau)


def test_mappings():
    pipe = SequenceWrapper({"a": 1, "b": 2}).map(lambda n: n * 10)
    assert pipe["b"] == 20 and len(pipe) == 2
    with pytest.raises(KeyError):
        pipe["c"]


def test_keys_in_random_order():
    pipe = SequenceWrapper({"a": 1, "b": 2, "c": 3}).shuffle(indices=["a", "b", "c"])
    assert sorted(pipe) == [1, 2, 3] and list(pipe.set_shuffle(False)) == [1, 2, 3]


def test_the_source_is_copied():
    source = [[1]]
    SequenceWrapper(source)[0].append(2)
    assert source == [[1]]
