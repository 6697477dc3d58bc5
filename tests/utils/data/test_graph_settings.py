"""Settings of all steps of a pipe."""

import pytest

import flambeau
from flambeau.utils.data import graph_settings
from flambeau.utils.data.datapipes.iter import IterableWrapper


def test_loader_shuffles_what_has_no_shuffler():
    with pytest.warns(UserWarning, match="Adding one at the end"):
        loader = flambeau.utils.data.DataLoader(IterableWrapper(range(9)), shuffle=True)
    assert sorted(int(b) for b in loader) == list(range(9))


def test_a_seed_for_each_random_step():
    def order(seed):
        pipe = IterableWrapper(range(20)).shuffle().batch(2).shuffle()
        graph_settings.apply_random_seed(pipe, flambeau.Generator().manual_seed(seed))
        return list(pipe)
    assert order(3) == order(3) != order(4)


def test_shares():
    def share(place):
        pipe = IterableWrapper(range(6)).sharding_filter().map(abs)
        return list(graph_settings.apply_sharding(pipe, 2, place))
    assert share(0) == [0, 2, 4] and share(1) == [1, 3, 5]


def test_shuffling_is_switched():
    pipe = IterableWrapper(range(20)).shuffle().map(abs)
    assert graph_settings.apply_shuffle_settings(pipe, False) is pipe
    assert list(pipe) == list(range(20))
    assert graph_settings.apply_shuffle_settings(pipe, None) is pipe
    graph_settings.apply_shuffle_settings(pipe, True)
    assert list(pipe.datapipe.set_seed(1)) != list(range(20))
