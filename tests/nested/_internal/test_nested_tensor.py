"""The class of nested tensors, and how they are made of values and offsets."""
from __future__ import annotations

import gc

import pytest

import flambeau
from flambeau.nested._internal import ops
from flambeau.nested._internal.nested_tensor import (
    NestedTensor,
    _tensor_symint_registry,
    buffer_from_jagged,
    get_tensor_symint,
    jagged_from_list,
    jagged_from_tensor_and_lengths,
    nested_view_from_values_offsets,
    nested_view_from_values_offsets_lengths,
)


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


def test_views_of_values():
    values = flambeau.arange(10.0).reshape(5, 2)
    whole = nested_view_from_values_offsets(values, flambeau.tensor([0, 2, 5]))
    assert [part.shape[0] for part in whole.unbind()] == [2, 3]
    assert buffer_from_jagged(whole).data_ptr() == values.data_ptr()
    gaps = nested_view_from_values_offsets_lengths(values, flambeau.tensor([0, 2, 5]),
                                                   flambeau.tensor([1, 2]))
    assert [part.tolist() for part in gaps.unbind()] == [[[0, 1]], [[4, 5], [6, 7]]]
    assert gaps.lengths().tolist() == [1, 2] and whole.lengths() is None
