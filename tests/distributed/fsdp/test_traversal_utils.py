"""The wrapped modules in a model."""
from fsdp_cases import BY_LAYER, network, wrapped

from flambeau import nn
from flambeau.distributed.fsdp import _traversal_utils as traversal


def test_from_the_outside_in(alone):
    model = wrapped(network(), auto_wrap_policy=BY_LAYER)
    outer = nn.Sequential(nn.ReLU(), model)
    states, modules = traversal._get_fsdp_states_with_modules(outer)
    assert states == modules == [model, model.module[1]]
    assert traversal._get_fsdp_states(model.module) == [model.module[1]]
    assert traversal._get_fsdp_handles(outer) == [s._handle for s in states]
    assert [h.flat_param.numel() for h in traversal._get_fsdp_handles(outer)] == [25, 24]


def test_a_wrapper_without_parameters_has_no_handle(alone):
    model = wrapped(nn.Sequential(nn.ReLU()))
    assert traversal._get_fsdp_states(model) == [model]
    assert traversal._get_fsdp_handles(model) == []
    assert traversal._get_fsdp_handles(nn.Linear(1, 1)) == []
