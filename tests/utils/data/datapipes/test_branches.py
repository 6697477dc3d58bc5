"""Pipes that branch: fork and demux."""
import pytest
from datapipe_cases import check_like_pytorch

import flambeau
from flambeau.utils.data.datapipes.iter import IterableWrapper


def test_like_pytorch():
    check_like_pytorch("branches", flambeau)


def test_copies_of_elements():
    a, b = IterableWrapper([[1]], deepcopy=False).fork(2, copy="shallow")
    assert next(iter(a)) is not next(iter(b))
    with pytest.raises(ValueError, match="copy"):
        IterableWrapper([1]).fork(2, copy="sideways")


def test_a_new_round_starts_all_branches_again():
    a, b = IterableWrapper(range(3)).fork(2)
    assert list(a) == list(b) == [0, 1, 2]
    assert len(a) == 3 and list(a) == [0, 1, 2]


def test_classes_outside_of_the_branches():
    a, _ = IterableWrapper([0, 5]).demux(2, lambda n: n)
    with pytest.raises(ValueError, match=r"should be between 0 and 1. 5 is returned"):
        list(a)
