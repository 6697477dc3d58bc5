"""What other libraries use of nested tensors' insides."""
from __future__ import annotations

import gc

import pytest

import flambeau
from flambeau.nested import rules
from flambeau.nested._internal import ops
from flambeau.nested._internal.nested_tensor import (
    NestedTensor,
    _tensor_symint_registry,
    get_tensor_symint,
    jagged_from_list,
    jagged_from_tensor_and_lengths,
)

aten = flambeau.ops.aten


@pytest.fixture
def nested():
    return flambeau.nested.nested_tensor([flambeau.ones(2, 3), flambeau.ones(4, 3)],
                                         layout=flambeau.jagged)


def test_other_values_of_the_same_parts(nested):
    kwargs = ops.extract_kwargs(nested)
    assert list(kwargs) == ["offsets", "lengths", "_metadata_cache", "_ragged_idx"]
    copied = nested.offsets().clone()
    _tensor_symint_registry[copied] = _tensor_symint_registry[nested.offsets()]
    made = NestedTensor(nested._values * 2, **{**kwargs, "offsets": copied})
    assert made.shape == nested.shape and made.offsets() is copied
    assert (made + nested).values().sum() == 54
    assert (made._min_seqlen, made._max_seqlen) == (2, 4)


def test_tensors_that_share_offsets_agree_in_their_length(nested):
    other = flambeau.nested.nested_tensor_from_jagged(flambeau.zeros(6, 5), nested.offsets())
    assert other.shape[1] == nested.shape[1] == get_tensor_symint(nested.offsets())
    assert get_tensor_symint(nested.offsets(), coeff=2) != nested.shape[1]
    again = flambeau.nested.nested_tensor_from_jagged(flambeau.zeros(6, 5),
                                                      nested.offsets().clone())
    assert again.shape[1] != nested.shape[1]


def test_the_registry_does_not_keep_offsets():
    offsets = flambeau.tensor([0, 1])
    before = len(_tensor_symint_registry)
    get_tensor_symint(offsets)
    assert len(_tensor_symint_registry) == before + 1
    del offsets
    gc.collect()
    assert len(_tensor_symint_registry) <= before


def test_makers(nested):
    made, offsets = jagged_from_list(list(nested.unbind()), nested.offsets())
    assert offsets is nested.offsets() and made.shape == nested.shape
    rows, _, lengths = jagged_from_tensor_and_lengths(
        flambeau.arange(6).reshape(2, 3), flambeau.tensor([0, 1]), flambeau.tensor([2, 1]))
    assert [part.tolist() for part in rows.unbind()] == [[0, 1], [4]]
    assert lengths.tolist() == [2, 1]


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
        ops.JAGGED_OPS_TABLE[aten.cumsum.default] = ops._by_rule
