"""Sharded models train like whole ones; sums of parameters are those of PyTorch 2.13."""
from __future__ import annotations

import functools
import sys

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from flambeau.distributed.algorithms._comm_hooks import default_hooks
from flambeau.distributed.fsdp import (
    FullStateDictConfig,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
from flambeau.distributed.fsdp._common_utils import clean_tensor_name
from flambeau.distributed.fsdp.wrap import ModuleWrapPolicy

TRAINED = {"0.weight": -0.7387, "0.bias": 0.8507, "2.0.weight": -0.9813, "2.0.bias": -0.0219,
           "2.1.weight": 3.0852, "2.1.bias": 0.2156, "3.weight": -1.3453, "3.bias": 0.2923}


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Sequential(nn.Linear(5, 3),
                                                                   nn.LayerNorm(3)),
                         nn.Linear(3, 1))


def inputs(rank):
    return torch.arange(8.0).view(2, 4) / 8 + rank


def train(model, rank):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(3):
        optimizer.zero_grad()
        model(inputs(rank)).pow(2).sum().backward()
        if step == 1:
            assert round(model.clip_grad_norm_(1.0).item(), 3) == 1.348
        optimizer.step()
    return optimizer


def sums(model, kind=StateDictType.FULL_STATE_DICT):
    with FSDP.state_dict_type(model, kind):
        return {name: value.sum().item() for name, value in model.state_dict().items()}


def is_trained(found):
    assert list(found) == list(TRAINED)
    for name, value in TRAINED.items():
        assert abs(found[name] - value) < 2e-4, name


BY_LAYER = ModuleWrapPolicy({nn.Sequential})
WAYS = [{}, {"use_orig_params": True}, {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP},
        {"sharding_strategy": ShardingStrategy.NO_SHARD}, {"auto_wrap_policy": BY_LAYER},
        {"auto_wrap_policy": BY_LAYER, "use_orig_params": True}]


def training(rank):
    for options in WAYS:
        model = FSDP(network(), **options)
        optimizer = train(model, rank)
        is_trained(sums(model))
        states(model, optimizer, rank, options)
    flat = FSDP(network())
    assert [tuple(p.shape) for p in flat.parameters()] == [(27,)]
    assert next(iter(dict(flat.named_parameters()))) == "_fsdp_wrapped_module._flat_param"
    low = FSDP(network(), mixed_precision=MixedPrecision(param_dtype=torch.bfloat16,
                                                         reduce_dtype=torch.float32))
    assert low(inputs(rank)).dtype is torch.bfloat16
    low(inputs(rank)).sum().backward()
    assert low._flat_param.grad.dtype is torch.float32


def states(model, optimizer, rank, options):
    with FSDP.summon_full_params(model):
        assert next(model.parameters()).shape == (5, 4)
    whole = FSDP.optim_state_dict(model, optimizer)
    assert list(whole["state"]) == whole["param_groups"][0]["params"] or options
    assert whole["state"]["2.0.weight"]["exp_avg"].shape == (3, 5)
    other = torch.optim.Adam(model.parameters(), lr=0.5)
    other.load_state_dict(FSDP.optim_state_dict_to_load(model, other, whole))
    again = FSDP.optim_state_dict(model, other)
    assert other.param_groups[0]["lr"] == 0.05
    for name, values in whole["state"].items():
        for key, value in values.items():
            torch.testing.assert_close(again["state"][name][key], value)
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        pieces = model.state_dict()
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        full = model.state_dict()
        model.load_state_dict({name: value + 1 for name, value in full.items()})
    assert abs(sums(model)["3.bias"] - TRAINED["3.bias"] - 1) < 2e-4
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        model.load_state_dict(pieces)
        sharded = FSDP.optim_state_dict(model, optimizer)
        other.load_state_dict(FSDP.optim_state_dict_to_load(model, other, sharded))
    is_trained(sums(model))
    with FSDP.state_dict_type(model, StateDictType.LOCAL_STATE_DICT):
        model.load_state_dict(model.state_dict())
    is_trained(sums(model))
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT,
                              FullStateDictConfig(rank0_only=True)):
        assert bool(model.state_dict()) == (rank == 0)


def passes(rank):
    model, plain = FSDP(network(), auto_wrap_policy=BY_LAYER, use_orig_params=True), network()
    with torch.no_grad():
        torch.testing.assert_close(model(inputs(rank)), plain(inputs(rank)))
    with model.no_sync():
        model(inputs(rank)).sum().backward()
    assert all(p.grad is None for p in model.parameters())
    model(inputs(rank) * 2).sum().backward()
    for scale in (1, 2):
        for r in range(2):
            (plain(inputs(r) * scale).sum() / 2).backward()
    with FSDP.summon_full_params(model, with_grads=True):
        for p, q in zip(model.parameters(), plain.parameters()):
            torch.testing.assert_close(p.grad, q.grad)
    saved = network()
    saved[2] = checkpoint_wrapper(saved[2])
    again = FSDP(saved, use_orig_params=True)
    again(inputs(rank)).sum().backward()
    outside = FSDP(nn.Sequential(checkpoint_wrapper(FSDP(network()))))
    outside(inputs(rank)).sum().backward()
    single = network()
    for r in range(2):
        (single(inputs(r)).sum() / 2).backward()
    for wrapped in (again, outside):
        flat = torch.cat([p.grad.flatten() for p in single.parameters()])
        parts = [torch.zeros(27) for _ in range(2)]
        handle = FSDP.fsdp_modules(wrapped)[-1]._handle
        dist.all_gather(parts, handle.flat_param.grad)
        torch.testing.assert_close(torch.cat(parts)[:53], flat)
    hooked = FSDP(network())
    hooked.register_comm_hook(default_hooks.LowPrecisionState(dist.group.WORLD),
                              default_hooks.bf16_compress_hook)
    hooked(inputs(rank)).sum().backward()
    torch.testing.assert_close(hooked._flat_param.grad,
                               FSDP.fsdp_modules(again)[0]._handle.flat_param.grad,
                               atol=2e-2, rtol=2e-2)


def memory(rank):
    """Between the passes, and after them, the whole parameters take no memory."""
    model, plain = FSDP(network()), network()
    flat = model._handle._memories
    loss = model(inputs(rank)).pow(2).sum()
    assert not flat[torch.float32].tensor.any()
    loss.backward()
    assert not flat[torch.float32].tensor.any()
    for r in range(2):
        (plain(inputs(r)).pow(2).sum() / 2).backward()
    wanted = torch.cat([p.grad.flatten() for p in plain.parameters()])
    own = model._flat_param.grad[:53 - 27 * rank]
    torch.testing.assert_close(own, wanted[27 * rank:27 * rank + 27])
    kept = FSDP(network(), sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)
    kept(inputs(rank)).sum()
    assert kept._handle._memories[torch.float32].tensor.any()


def first_values(rank):
    model = network()
    if rank:
        model[0].weight.data.zero_()
    model = FSDP(model, sync_module_states=True)
    assert abs(sums(model)["0.weight"]) > 1e-3
    shared = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    shared[1].weight = shared[0].weight
    wrapped = FSDP(shared)
    wrapped(torch.ones(1, 3)).sum().backward()
    assert sorted(wrapped.state_dict()) == ["0.bias", "0.weight", "1.bias", "1.weight"]
    assert wrapped._flat_param._fqns == ("0.weight", "0.bias", "1.bias")
    frozen = network()
    frozen[0].weight.requires_grad_(False)
    with pytest.raises(ValueError, match="Must flatten tensors with uniform `requires_grad`"):
        FSDP(frozen)
    FSDP(frozen, use_orig_params=True)(inputs(rank)).sum().backward()
    assert frozen[0].weight.grad is None
    ignoring = network()
    FSDP(ignoring, ignored_states=[ignoring[0].weight])
    assert ignoring[0].weight.shape == (5, 4)
    with pytest.raises(ValueError, match="Must flatten tensors with uniform dtype"):
        mixed = network()
        mixed[0].double()
        FSDP(mixed)


def cleared(rank):
    """Gradients may be cleared between the forward and the backward pass."""
    model = FSDP(network(), use_orig_params=True)
    seen = []
    for _ in range(3):
        loss = model(inputs(rank)).sum()
        model.zero_grad()
        loss.backward()
        seen.append(sum(p.grad.abs().sum().item() for p in model.parameters()
                        if p.grad is not None))
    assert seen[0] > 0 and seen == [seen[0]] * 3


def everything(rank):
    training(rank)
    cleared(rank)
    passes(rank)
    if sys.platform == "linux":
        memory(rank)
    first_values(rank)


def replicas(rank):
    rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    columns = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    model = FSDP(network(), process_group=(rows[rank // 2], columns[rank % 2]),
                 sharding_strategy=ShardingStrategy.HYBRID_SHARD)
    train(model, rank % 2)
    is_trained(sums(model))


def test_two_processes(processes):
    processes(everything)


def test_four_processes(processes):
    processes(replicas, size=4)


def test_one_process(alone):
    with pytest.warns(UserWarning, match="switching to use `NO_SHARD`"):
        model = FSDP(network())
    assert model.sharding_strategy is ShardingStrategy.NO_SHARD
    assert FSDP.get_state_dict_type(model).state_dict_type is StateDictType.FULL_STATE_DICT
    with pytest.raises(ValueError, match="requires explicit specification of process group"):
        FSDP(network(), sharding_strategy=ShardingStrategy.HYBRID_SHARD)
    with pytest.raises(NotImplementedError, match="keep_low_precision_grads"):
        FSDP(network(), mixed_precision=MixedPrecision(keep_low_precision_grads=True))
    with pytest.raises(RuntimeError, match="Expected state_dict_config of type"):
        FSDP.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT, FullStateDictConfig())
    assert clean_tensor_name("a._fsdp_wrapped_module._checkpoint_wrapped_module.b") == "a.b"
    init = functools.partial(nn.init.constant_, val=0.5)
    model.apply(lambda m: init(m.weight) if isinstance(m, nn.Linear) else None)
    assert model.state_dict()["3.weight"].tolist() == [[0.5, 0.5, 0.5]]
