"""How styles look."""
from __future__ import annotations

from flambeau.distributed.tensor import Replicate, Shard
from flambeau.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleOutput,
    SequenceParallel,
)

R = Replicate()


def test_how_styles_look():
    assert repr(ColwiseParallel()) == (
        "ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Shard(dim=-1),), "
        "use_local_output=True)")
    assert repr(SequenceParallel()) == "SequenceParallel(sequence_dim=1, use_local_output=False)"
    assert repr(PrepareModuleOutput(output_layouts=R, desired_output_layouts=Shard(0))) == (
        "PrepareModuleOutput(output_layouts=(Replicate(),), desired_output_layouts="
        "(Shard(dim=0),), use_local_output=True)")
