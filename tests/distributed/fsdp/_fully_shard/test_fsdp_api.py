"""Options of `fully_shard`, and what moves parameters and gradients."""
import dataclasses

import pytest

import flambeau as torch
from flambeau.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from flambeau.distributed.fsdp._fully_shard import _fsdp_api as api


def test_policies():
    policy = MixedPrecisionPolicy()
    assert (policy.param_dtype, policy.reduce_dtype, policy.output_dtype,
            policy.cast_forward_inputs) == (None, None, None, True)
    assert hash(MixedPrecisionPolicy(torch.float16)) == hash(MixedPrecisionPolicy(torch.float16))
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.param_dtype = torch.float16
    assert CPUOffloadPolicy().pin_memory and CPUOffloadPolicy(False) != CPUOffloadPolicy()
    assert isinstance(CPUOffloadPolicy(), OffloadPolicy) and OffloadPolicy() == OffloadPolicy()


@pytest.mark.parametrize(("shard", "replicate", "names"), [
    ("s", None, (("s",), ())), (None, "r", ((), ("r",))),
    (("a", "b"), "r", (("a", "b"), ("r",)))])
def test_names_of_dimensions(shard, replicate, names):
    made = api.DataParallelMeshDims(shard, replicate)
    assert (made.shard_names, made.replicate_names) == names
    assert made == api.DataParallelMeshDims(shard, replicate)


def test_one_of_both_has_to_be_there():
    with pytest.raises(ValueError, match="At least one of shard or replicate must be set"):
        api.DataParallelMeshDims()


@pytest.mark.parametrize("cls", [api.Comm, api.AllGather, api.ReduceScatter])
def test_what_moves_is_abstract(cls):
    with pytest.raises(TypeError, match="allocate"):
        cls()
