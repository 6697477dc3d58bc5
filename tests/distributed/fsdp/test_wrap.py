"""Which modules are wrapped."""
from __future__ import annotations

import functools

import pytest

from flambeau import nn
from flambeau.distributed.fsdp import wrap


class Wrapped(nn.Module):
    def __init__(self, module, **options):
        super().__init__()
        self.module, self.options = module, options


def network():
    return nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 2), nn.ReLU()))


def test_policies_that_choose():
    model = network()
    chosen = wrap.ModuleWrapPolicy({nn.Linear})._run_policy(model, set(), {"a": 1})
    assert chosen == {model[0]: {"a": 1}, model[1][0]: {"a": 1}}
    chosen = wrap.CustomPolicy(lambda m: {"a": 2} if isinstance(m, nn.ReLU) else False)
    assert chosen._run_policy(model, {model[0]}, {"a": 1, "b": 3}) == {model[1][1]: {"a": 2,
                                                                                    "b": 3}}
    with pytest.raises(ValueError, match="should return False/True or a kwarg dict"):
        wrap.CustomPolicy(lambda m: 3)._run_policy(model, set(), {})


def test_policies_that_are_asked():
    linear, attention = nn.Linear(1, 1), nn.MultiheadAttention(2, 1)
    by_size = functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=50)
    assert by_size(linear, False, 50) and not by_size(linear, False, 49)
    assert not by_size(attention, True, 100) and by_size(attention, False, 100)
    assert not by_size(nn.ModuleList(), False, 100) and by_size(nn.ModuleList(), True, 100)
    by_class = functools.partial(wrap.transformer_auto_wrap_policy,
                                 transformer_layer_cls={nn.Linear})
    assert wrap._or_policy(linear, False, 0, policies=[by_size, by_class])
    assert not wrap._or_policy(nn.ReLU(), False, 0, policies=[by_size, by_class])
    assert wrap.ModuleWrapPolicy({nn.Linear})(linear, False)


def test_wrapping_by_a_policy():
    def big(module, recurse, nonwrapped_numel):
        return recurse or nonwrapped_numel > 8
    model, size = wrap._recursive_wrap(network(), big, Wrapped, set(), set(), option=1)
    assert size == 9 and isinstance(model[0], Wrapped) and model[0].options == {"option": 1}
    assert isinstance(model[1], nn.Sequential)
    with pytest.raises(AssertionError, match="is already wrapped by"):
        wrap._recursive_wrap(model, wrap.always_wrap_policy, Wrapped, set(), set())
    every, _ = wrap._recursive_wrap(network(), wrap.always_wrap_policy, Wrapped, set(), set())
    assert isinstance(every.module[1].module[0], Wrapped)


def test_wrapping_by_hand():
    assert isinstance(wrap.wrap(nn.ReLU()), nn.ReLU)
    with wrap.enable_wrap(wrapper_cls=Wrapped, a=1, b=2):
        assert wrap.wrap(nn.ReLU(), b=3).options == {"a": 1, "b": 3}
        with pytest.raises(NotImplementedError, match="already within an autowrap context"), \
                wrap.enable_wrap(wrapper_cls=Wrapped):
            pass
