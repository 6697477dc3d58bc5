"""Samplers that go on; orders from PyTorch."""
import pytest

from flambeau.distributed.elastic.utils.data import ElasticDistributedSampler


@pytest.mark.parametrize(("size", "replicas", "rank", "start", "orders"), [
    (10, 2, 0, 4, ([6, 7, 5], [5, 6, 7])), (10, 3, 1, 0, ([1, 3, 8, 4], [6, 0, 3, 5])),
    (10, 3, 2, 5, ([6, 9], [7, 5]))])
def test_a_sampler_goes_on(size, replicas, rank, start, orders):
    sampler = ElasticDistributedSampler(range(size), replicas, rank, start)
    assert len(sampler) == len(orders[0])
    for epoch, order in enumerate(orders):
        sampler.set_epoch(epoch)
        assert list(sampler) == order


@pytest.mark.parametrize("start", [0, 1, 7, 10])
def test_all_that_is_left_is_seen(start):
    found = [list(ElasticDistributedSampler(range(13), 3, rank, start)) for rank in range(3)]
    assert {len(part) for part in found} == {-(-(13 - start) // 3)}
    assert set().union(*found) == set(range(start, 13))


def test_starts_that_are_none():
    with pytest.raises(ValueError, match="Start index 3 should be less than dataset size 3"):
        ElasticDistributedSampler(range(3), 1, 0, 3)
