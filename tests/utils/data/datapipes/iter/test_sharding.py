"""The elements of a pipe are shared out among processes, in several ways at once."""
import pytest

from flambeau.utils.data.datapipes.iter import IterableWrapper
from flambeau.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES as PRIORITIES
from flambeau.utils.data.graph_settings import apply_sharding


def test_every_element_goes_to_one_process():
    shares = []
    for node in range(2):
        for worker in range(3):
            pipe = IterableWrapper(range(20)).sharding_filter()
            pipe.apply_sharding(2, node, PRIORITIES.DISTRIBUTED)
            pipe.apply_sharding(3, worker, PRIORITIES.MULTIPROCESSING)
            assert (pipe.num_of_instances, len(pipe)) == (6, len(list(pipe)))
            shares += list(pipe)
            if (node, worker) == (1, 2):
                assert list(pipe) == [5, 11, 17]
    assert sorted(shares) == list(range(20))


def test_one_of_several_ways_is_chosen():
    pipe = IterableWrapper(range(6)).sharding_filter(PRIORITIES.DISTRIBUTED)
    pipe.apply_sharding(2, 1, PRIORITIES.DISTRIBUTED)
    pipe.apply_sharding(3, 1, PRIORITIES.MULTIPROCESSING)
    assert list(pipe) == [1, 3, 5]


def test_ways_do_not_mix_with_the_usual_one():
    pipe = IterableWrapper(range(6)).sharding_filter()
    pipe.apply_sharding(2, 1)
    with pytest.raises(RuntimeError, match="cannot mix DEFAULT"):
        pipe.apply_sharding(2, 1, PRIORITIES.DISTRIBUTED)
    with pytest.raises(ValueError, match=r"instance_id\(2\) should be smaller"):
        pipe.apply_sharding(2, 2)


def test_no_pipe_is_shared_out_twice():
    pipe = IterableWrapper(range(6)).sharding_filter().map(abs).sharding_filter()
    with pytest.raises(RuntimeError, match="Sharding twice on a single pipeline"):
        apply_sharding(pipe, 2, 0)


def test_branches_share_a_filter():
    a, b = IterableWrapper(range(6)).sharding_filter().fork(2)
    both = apply_sharding(a.zip(b), 2, 1)
    assert list(both) == [(1, 1), (3, 3), (5, 5)]
