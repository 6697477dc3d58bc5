"""Means of parameters."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.algorithms.model_averaging import utils
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def two():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    dist.destroy_process_group()


def parameters():
    """Two with a gradient and one without."""
    found = [nn.Parameter(torch.full(shape, 2.0)) for shape in ((2, 3), (), (4,))]
    for parameter in found[:2]:
        parameter.grad = torch.ones_like(parameter)
    return found


def test_those_with_gradients_count():
    params = parameters()
    for given in (params, iter(params), [{"params": params[:1]}, {"params": params[1:]}]):
        found = utils.get_params_to_average(given)
        assert len(found) == 2 and found[0] is params[0] and found[1] is params[1]
    with pytest.raises(NotImplementedError, match="Parameter input of type <class 'int'> is not"):
        utils.get_params_to_average([3])


def test_means(two):
    """The other adds nothing, so that a mean is half."""
    params = parameters()
    utils.average_parameters_or_parameter_groups([{"params": params}], None)
    assert [p.mean().item() for p in params] == [1.0, 1.0, 2.0]
    assert all(p.requires_grad and p._version == 0 for p in params)     # graphs stay valid
    utils.average_parameters(iter(params), dist.group.WORLD)
    assert [p.mean().item() for p in params] == [0.5, 0.5, 1.0]


def test_nothing_to_do(two):
    params = parameters()
    assert utils.average_parameters(iter(params), dist.GroupMember.NON_GROUP_MEMBER) is None
    assert params[0].mean().item() == 2
