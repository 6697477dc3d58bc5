"""How pipes are shared out among processes, and in each of these among worker processes."""
import pytest

from flambeau.utils.data import graph_settings
from flambeau.utils.data.datapipes.iter import IterableWrapper
from flambeau.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES


def test_groups_are_shares_of_shares():
    seen = []
    for rank in range(2):
        for worker in range(3):
            pipe = IterableWrapper(range(20)).sharding_filter()
            graph_settings.apply_sharding(pipe, 3, worker, SHARDING_PRIORITIES.MULTIPROCESSING)
            graph_settings.apply_sharding(pipe, 2, rank, SHARDING_PRIORITIES.DISTRIBUTED)
            assert pipe.num_of_instances == 6 and len(pipe) == len(list(pipe))
            seen += list(pipe)
    assert sorted(seen) == list(range(20))


def test_the_order_of_groups_does_not_matter():
    pipe = IterableWrapper(range(12)).sharding_filter()
    pipe.apply_sharding(2, 0, SHARDING_PRIORITIES.DISTRIBUTED)
    pipe.apply_sharding(2, 1, SHARDING_PRIORITIES.MULTIPROCESSING)
    assert (pipe.num_of_instances, pipe.instance_id, list(pipe)) == (4, 1, [1, 5, 9])
    pipe.apply_sharding(2, 1, SHARDING_PRIORITIES.DISTRIBUTED)    # in place of the one before
    assert (pipe.num_of_instances, pipe.instance_id) == (4, 3)


def test_a_filter_of_one_group():
    pipe = IterableWrapper(range(6)).sharding_filter(SHARDING_PRIORITIES.DISTRIBUTED)
    pipe.apply_sharding(2, 1, SHARDING_PRIORITIES.MULTIPROCESSING)
    assert list(pipe) == list(range(6))
    pipe.apply_sharding(2, 1, SHARDING_PRIORITIES.DISTRIBUTED)
    assert list(pipe) == [1, 3, 5]


def test_all_or_groups():
    for first, second in ([(), (SHARDING_PRIORITIES.DISTRIBUTED,)],
                          [(SHARDING_PRIORITIES.DISTRIBUTED,), ()]):
        pipe = IterableWrapper(range(6)).sharding_filter()
        pipe.apply_sharding(2, 0, *first)
        with pytest.raises(RuntimeError, match="cannot mix DEFAULT and non DEFAULT groups"):
            pipe.apply_sharding(2, 0, *second)


def test_branches_may_share_a_filter():
    a, b = IterableWrapper(range(6)).sharding_filter().fork(2)
    both = graph_settings.apply_sharding(a.zip(b), 2, 1)
    assert list(both) == [(1, 1), (3, 3), (5, 5)]
