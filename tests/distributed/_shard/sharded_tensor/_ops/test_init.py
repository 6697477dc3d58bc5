"""First values of sharded tensors."""
import math

import pytest
from shard_cases import deprecated, whole

import flambeau as torch
from flambeau import nn
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharded_tensor._ops.init import (
    register_tensor_creation_op,
    validate_param,
)

pytestmark = deprecated


@pytest.mark.parametrize(("init", "args", "value"), [
    (nn.init.constant_, (3.0,), 3.0), (nn.init.uniform_, (2.0, 2.0), 2.0),
    (nn.init.normal_, (4.0, 0.0), 4.0)])
def test_values(alone, init, args, value):
    a = st.zeros(whole(), 3, 2)
    assert init(a, *args) is a
    assert (a.local_tensor() == value).all()


@pytest.mark.parametrize(("init", "options"), [
    (nn.init.uniform_, {"a": -1.0, "b": 3.0}), (nn.init.normal_, {"mean": 1.0, "std": 2.0}),
    (nn.init.kaiming_uniform_, {"a": 1.0, "mode": "fan_out", "nonlinearity": "leaky_relu"})])
def test_random_numbers_are_those_of_tensors(alone, init, options):
    expected, a = torch.zeros(3, 2), st.zeros(whole(), 3, 2)
    torch.manual_seed(0)
    init(expected, **options)
    torch.manual_seed(0)
    init(tensor=a, **options)
    assert torch.equal(a.local_tensor(), expected)
    if init is nn.init.kaiming_uniform_:        # gain 1, three outputs
        assert expected.abs().max() <= math.sqrt(3 / 3)


def test_arguments(alone):
    with pytest.raises(ValueError, match="param: x shouldn't be None!"):
        validate_param(None, "x")
    with pytest.raises(ValueError, match="Mode bad not supported"):
        nn.init.kaiming_uniform_(st.zeros(whole(), 3, 2), mode="bad")


@pytest.mark.parametrize(("make", "value"), [(torch.zeros_like, 0), (torch.ones_like, 1),
                                             (lambda *a, **k: torch.full_like(*a, 5, **k), 5)])
def test_tensors_like_others(alone, make, value):
    a = st.full(whole(), (2, 2), 7.0, requires_grad=True)
    made = make(a, dtype=torch.float64)
    assert made.local_tensor().tolist() == [[value] * 2] * 2
    assert made.dtype is torch.float64 and make(a).dtype is torch.float32
    assert made.sharding_spec() == a.sharding_spec() and not made.requires_grad


def test_other_ops_make_none(alone):
    op, table = torch.randint_like, st.api._SHARDED_OPS
    a = st.ones(whole(), 2)
    assert torch.rand_like(a).size() == torch.randn_like(a).size() == torch.empty_like(a).size()
    register_tensor_creation_op(op)
    try:
        with pytest.raises(RuntimeError, match=r"Tensor creation .*randint_like.* not supported!"):
            op(a, 5)
    finally:
        del table[op]
