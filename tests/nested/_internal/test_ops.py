"""Ops of nested tensors of layout jagged, as other libraries reach into them."""
from __future__ import annotations

import pytest

import flambeau
from flambeau.nested import rules
from flambeau.nested._internal import ops

aten = flambeau.ops.aten


@pytest.fixture
def nested():
    return flambeau.nested.nested_tensor([flambeau.ones(2, 3), flambeau.ones(4, 3)],
                                         layout=flambeau.jagged)


def test_dimensions():
    assert ops._wrap_jagged_dim(3, 2, 1, "op") == 1
    assert ops._wrap_jagged_dim(3, -1, 1, "op", convert_to_inner_dim=False) == 2
    assert ops._wrap_jagged_dims(3, (0, 2), "op") == ((0, 1), True, False, True)
    with pytest.raises(RuntimeError, match=r"op\(\): not supported for NestedTensor on dim=0"):
        ops._wrap_jagged_dim(3, 0, 1, "op")
    with pytest.raises(RuntimeError, match="not supported for NestedTensor on ragged dim"):
        ops._wrap_jagged_dim(3, 1, 1, "op")


def test_checks(nested):
    assert ops.raggedness_matches(nested, nested.shape)
    assert not ops.raggedness_matches(nested, (2, 3, 3))
    assert ops.squeeze_leading_ones(flambeau.ones(1, 1, 2, 1)).shape == (2, 1)
    with pytest.raises(ValueError, match="expected self to be a jagged layout NestedTensor"):
        ops.check_schema("self: jt_all", aten.sin.default, flambeau.ones(2))
    with pytest.raises(ValueError, match="but got: 0 arguments"):
        ops.check_schema("self: jt", aten.sin.default)
    other = flambeau.nested.nested_tensor(list(nested.unbind()), layout=flambeau.jagged)
    with pytest.raises(RuntimeError, match="same exact offsets tensor"):
        ops.check_ragged_dim_same(aten.add.Tensor, nested, "a", other, "b")


def test_functions_of_overloads(nested):
    sine = ops.lookup_jagged(aten.sin.default, nested)
    flambeau.testing.assert_close(sine(nested).values(), nested.values().sin())
    both = ops.lookup_jagged(aten.add.Tensor, nested, nested)
    assert both(nested, nested).values().sum() == 36
    assert ops.lookup_jagged(aten.sort.default, nested) is None
    assert aten.sum.default in ops.JAGGED_OPS_TABLE
    assert aten.sin.default(nested).shape == nested.shape


def test_a_program_registers_a_function(nested):
    try:
        @ops.register_jagged_func(aten.cumsum.default, "self: jt_all, dim: any, dtype: any?")
        def cumsum(func, *args, **kwargs):
            return args[0].values() * 7
        assert aten.cumsum.default(nested, 1).sum() == 126
        assert flambeau.cumsum(nested, 1).sum() == 126
        with pytest.raises(ValueError, match=r"NestedTensor cumsum\.default"):
            ops.JAGGED_OPS_TABLE[aten.cumsum.default](aten.cumsum.default, 1, 2)
    finally:
        rules.registered.clear()
        del ops.JAGGED_OPS_TABLE[aten.cumsum.default]
