"""Blocks that share a scale."""
import pytest

from flambeau.ao import quantization as Q


@pytest.mark.parametrize("granularity, size", [
    (Q.PerTensor(), (8, 16)), (Q.PerAxis(0), (1, 16)), (Q.PerGroup(4), (1, 4)),
    (Q.PerRow(), (1, 16)), (Q.PerToken(), (1, 16))])
def test_blocks_that_share_a_scale(granularity, size):
    assert Q.get_block_size((8, 16), granularity) == size
