"""Options of `FullyShardedDataParallel`."""
import dataclasses

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.fsdp import api


@pytest.mark.parametrize(("config", "values"), [
    (api.StateDictConfig, {"offload_to_cpu": False}),
    (api.FullStateDictConfig, {"offload_to_cpu": False, "rank0_only": False}),
    (api.LocalStateDictConfig, {"offload_to_cpu": False}),
    (api.ShardedStateDictConfig, {"offload_to_cpu": False, "_use_dtensor": False}),
    (api.OptimStateDictConfig, {"offload_to_cpu": True}),
    (api.FullOptimStateDictConfig, {"offload_to_cpu": True, "rank0_only": False}),
    (api.LocalOptimStateDictConfig, {"offload_to_cpu": False}),
    (api.ShardedOptimStateDictConfig, {"offload_to_cpu": True, "_use_dtensor": False}),
    (api.CPUOffload, {"offload_params": False})])
def test_defaults(config, values):
    assert dataclasses.asdict(config()) == values
    assert config(*values.values()) == config()
    assert config(not next(iter(values.values()))) != config()


def test_mixed_precision():
    made = api.MixedPrecision(torch.float16)
    assert (made.param_dtype, made.reduce_dtype, made.buffer_dtype) == (torch.float16, None, None)
    assert made.cast_root_forward_inputs and not made.cast_forward_inputs
    assert not made.keep_low_precision_grads
    assert all(issubclass(c, made._module_classes_to_ignore) for c in (nn.BatchNorm1d,
                                                                       nn.SyncBatchNorm))


def test_members():
    assert [s.name for s in api.ShardingStrategy] == [
        "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"]
    assert [s.value for s in api.BackwardPrefetch] == [1, 2]
    assert [s.name for s in api.StateDictType] == [
        "FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT"]
    settings = api.StateDictSettings(api.StateDictType.FULL_STATE_DICT, api.FullStateDictConfig(),
                                     api.FullOptimStateDictConfig())
    assert dataclasses.astuple(settings)[0] is api.StateDictType.FULL_STATE_DICT
