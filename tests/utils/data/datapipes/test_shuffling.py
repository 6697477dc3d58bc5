"""Pipes with a random order."""
from datapipe_cases import check_like_pytorch

import flambeau
from flambeau.utils.data.datapipes.iter import IterableWrapper


def test_like_pytorch():
    check_like_pytorch("shuffles", flambeau)


def test_a_seed_is_of_one_iteration():
    pipe = IterableWrapper(range(20)).shuffle()
    first, again, other = list(pipe.set_seed(3)), list(pipe.set_seed(3)), list(pipe)
    assert first == again != other and sorted(other) == list(range(20))


def test_a_small_buffer_moves_elements_little():
    order = list(IterableWrapper(range(100)).shuffle(buffer_size=5).set_seed(0))
    assert sorted(order) == list(range(100)) and order != sorted(order)
    assert all(place >= value - 5 for place, value in enumerate(order))
