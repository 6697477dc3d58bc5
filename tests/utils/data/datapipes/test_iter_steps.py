"""Steps of pipes that give their elements one after another."""
import pytest
from datapipe_cases import check_like_pytorch

import flambeau
from flambeau.utils.data.datapipes.iter import IterableWrapper
from flambeau.utils.data.datapipes.iter.combinatorics import ShufflerIterDataPipe


@pytest.mark.parametrize("name", ["chains", "errors"])
def test_like_pytorch(name):
    check_like_pytorch(name, flambeau)


def test_shards_are_disjoint_and_complete():
    shards = []
    for place in range(3):
        pipe = IterableWrapper(range(10)).sharding_filter()
        pipe.apply_sharding(3, place)
        assert len(pipe) == len(list(pipe))
        shards += list(pipe)
    assert sorted(shards) == list(range(10))
    with pytest.raises(ValueError, match=r"instance_id\(3\) should be smaller than num_of_instanc"):
        IterableWrapper(range(3)).sharding_filter().apply_sharding(3, 3)


def test_the_source_is_copied():
    source = [[1], [2]]
    pipe = IterableWrapper(source)
    first = next(iter(pipe))
    first.append(5)
    assert source == [[1], [2]]
    shared = next(iter(IterableWrapper(source, deepcopy=False)))
    assert shared is source[0]


def test_collation():
    batch, = IterableWrapper([1, 2]).batch(2).collate(lambda values: {"sum": sum(values)})
    assert batch == {"sum": 3}
    assert isinstance(IterableWrapper([1]).shuffle(), ShufflerIterDataPipe)
