"""The parameters of a module as one flat one, of which each process has a part."""
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.fsdp._flat_param import (
    FlatParameter,
    FlatParamHandle,
    HandleShardingStrategy,
)
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def second():
    """Process 1 of 3, the others imagined."""
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=3)
    yield dist.group.WORLD
    dist.destroy_process_group()


def handle_of(model, group, use_orig_params=False,
              strategy=HandleShardingStrategy.FULL_SHARD):
    return FlatParamHandle(list(model.parameters()), model, torch.device("cpu"), strategy, False,
                           None, None, False, group, use_orig_params)


def numbered():
    model = nn.Linear(3, 2)                     # 6 and 2 numbers: parts of 3, 3 and 2
    with torch.no_grad():
        model.weight.copy_(torch.arange(6.0).view(2, 3))
        model.bias.copy_(torch.tensor([6.0, 7.0]))
    return model


def test_parts(second):
    handle = handle_of(numbered(), second)
    flat = handle.flat_param
    assert isinstance(flat, FlatParameter) and flat.tolist() == [3, 4, 5]
    assert flat._fqns == ("weight", "bias") and flat._numels == (6, 2)
    assert flat._shapes == (torch.Size([2, 3]), torch.Size([2]))
    assert flat._unpadded_unsharded_size == (8,) and flat._sharded_size == (3,)
    about = handle.shard_metadata()
    assert about.param_names == ("weight",) and about.param_offsets == ((3, 5),)
    assert about.param_strides == ((3, 1),) and about.param_contiguities == (True,)


def test_nothing_is_cut(second):
    handle = handle_of(numbered(), second, strategy=HandleShardingStrategy.NO_SHARD)
    assert handle.flat_param.tolist() == list(range(8)) and not handle.needs_unshard()
    assert handle.shard_metadata().param_offsets == ((0, 5), (0, 1))


def test_original_parameters_are_views_of_the_part(second):
    model = numbered()
    weight, bias = model.weight, model.bias
    handle = handle_of(model, second, use_orig_params=True)
    assert model.weight is weight and weight.tolist() == [3, 4, 5] and bias.numel() == 0
    with torch.no_grad():
        handle.flat_param.fill_(9)
    assert weight.tolist() == [9, 9, 9]


def test_parameters_are_told_by_names(second):
    assert repr(handle_of(numbered(), second)) == (
        "FlatParamHandle(flat_param.fqns=('weight', 'bias'))")
    model = nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": nn.Linear(2, 2, bias=False)})
    model["b"].weight = model["a"].weight
    handle = handle_of(model, second)
    assert handle.flat_param._fqns == ("a.weight",)
    (shared,) = handle.flat_param._shared_param_infos
    assert (shared.module_name, shared.prim_module_name) == ("b", "a")


@pytest.mark.parametrize(("change", "message"), [
    (lambda m: m.bias.requires_grad_(False), "Must flatten tensors with uniform `requires_grad`"),
    (lambda m: setattr(m, "bias", nn.Parameter(torch.ones(2, dtype=torch.float64))),
     "Must flatten tensors with uniform dtype")])
def test_what_is_refused(second, change, message):
    model = numbered()
    change(model)
    with pytest.raises(ValueError, match=message):
        handle_of(model, second)
    with pytest.raises(ValueError, match="Cannot construct a FlatParamHandle with an empty "
                                         "parameter list"):
        handle_of(nn.ReLU(), second)


def test_values_and_gradients(alone):
    model, plain = numbered(), numbered()
    handle = handle_of(model, dist.group.WORLD, strategy=HandleShardingStrategy.NO_SHARD)
    assert [t.tolist() for t in handle.full_tensors()] == [p.tolist() for p in plain.parameters()]
    handle.write_back([torch.ones(2, 3), torch.zeros(2)])
    assert handle.flat_param.tolist() == [1] * 6 + [0] * 2
