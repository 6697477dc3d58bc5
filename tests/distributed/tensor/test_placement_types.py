"""How placements look, compare and are copied."""
from flambeau.distributed.tensor import Partial, Replicate, Shard
from flambeau.distributed.tensor.placement_types import _StridedShard

R, P = Replicate(), Partial()


def test_placements():
    assert Shard(1).is_shard(1) and not Shard(1).is_shard(0) and str(Shard(1)) == "S(1)"
    assert P.is_partial() and repr(Partial("avg")) == "Partial(avg)" and str(P) == "P(sum)"
    assert R == Replicate() != Shard(0) and str(R) == "R" and Partial("max") != P
    assert repr(_StridedShard(0, split_factor=2)) == "_StridedShard(dim=0, sf=2)"
    assert not _StridedShard(0, split_factor=2).is_shard()
