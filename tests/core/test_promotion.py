"""Promotion is a join on a lattice, in three tiers: its laws, and PyTorch's exceptions."""
import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flambeau
from flambeau.core import dtypes, promotion

JOINABLE = [getattr(dtypes, n) for n in (
    "bool_", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128")]
types = st.sampled_from(JOINABLE)


@given(types, types)
def test_joins_commute_and_keep_what_is_joined_with_itself(a, b):
    assert promotion.join(a, b) is promotion.join(b, a)
    assert promotion.join(a, a) is a


@given(types, types, types)
def test_joins_are_associative_but_for_halves(a, b, c):
    # float16 and bfloat16 meet in float32, which a complex type of theirs does not know of
    if {dtypes.float16, dtypes.bfloat16} <= {a, b, c}:
        return
    left = promotion.join(promotion.join(a, b), c)
    assert left is promotion.join(a, promotion.join(b, c))


@given(types, types)
def test_the_join_is_of_the_higher_category(a, b):
    found = promotion.join(a, b)
    assert promotion.category(found) == max(promotion.category(a), promotion.category(b))
    assert found.itemsize >= max(t.itemsize for t in (a, b)
                                 if promotion.category(t) == promotion.category(found))


def test_unsigned_and_signed_meet_in_what_holds_both():
    assert promotion.join(dtypes.uint8, dtypes.int8) is dtypes.int16
    assert promotion.join(dtypes.uint8, dtypes.int32) is dtypes.int32


@pytest.mark.parametrize("a,b", [("uint16", "int32"), ("uint32", "bool_"), ("uint64", "uint8")])
def test_wide_unsigned_types_join_none(a, b):
    with pytest.raises(RuntimeError, match="uint16, uint32, uint64 types is not supported"):
        promotion.join(getattr(dtypes, a), getattr(dtypes, b))
    assert promotion.join(getattr(dtypes, a), dtypes.float32) is dtypes.float32


def test_a_lower_tier_counts_by_category_alone():
    array = np.ones(2, np.float32)
    assert promotion.result_type([array, np.ones((), np.float64)]) is dtypes.float32
    assert promotion.result_type([array], [1j]) is dtypes.complex64
    assert promotion.result_type([np.ones(2, np.int8)], [1000]) is dtypes.int8
    assert promotion.result_type([np.ones(2, np.int8)], [1.0]) is dtypes.float32
    assert promotion.result_type([np.ones(2, bool)], [True, 3]) is dtypes.int64


def test_the_order_of_operands_does_not_matter():
    arrays = [np.ones(2, np.int16), np.ones((), np.float64), np.ones(1, np.uint8)]
    found = {promotion.result_type([*order], [2]) for order in itertools.permutations(arrays)}
    assert len(found) == 1


def test_whole_numbers_wrap_as_in_c():
    x, y = promotion.scalar_operand(np.ones(1, np.uint8), -1)
    assert y == 255 and x.dtype == y.dtype
    with pytest.raises(OverflowError, match="int too big"):
        promotion.scalar_operand(np.ones(1, np.uint8), 2 ** 70)


def test_a_number_that_a_half_rounds_stays_wide_where_asked():
    x = np.ones(1, np.float16)
    assert promotion.scalar_operand(x, 0.1)[1].dtype == np.float16
    assert promotion.scalar_operand(x, 0.1, wide=True)[1].dtype == np.float32
    assert promotion.scalar_operand(x, 0.5, wide=True)[1].dtype == np.float16


def test_labels_of_types_in_errors():
    assert promotion.type_label(dtypes.float32) == "torch.FloatTensor"
    assert promotion.type_label(dtypes.float32, meta=True) == "MetaFloatType"
    assert promotion.type_label(dtypes.complex64) == "CPUComplexFloatType"


@pytest.mark.parametrize("name, said", [
    ("int16", "short int"), ("uint16", "short unsigned int"), ("uint64", "long unsigned int"),
    ("complex32", "c10::complex<c10::Half>"), ("float8_e5m2", "c10::Float8_e5m2"),
    ("bool", "bool")])
def test_types_as_cpp_calls_them(name, said):
    """Recorded from torch.mm of two types, and torch.baddbmm."""
    with pytest.raises(RuntimeError, match=re.escape(f"dtype, but got: {said} != float")):
        flambeau.ones(2, 2).to(getattr(flambeau, name)) @ flambeau.ones(2, 2)


@pytest.mark.parametrize("number, result", [
    (np.bool_(True), dtypes.float32), (np.int8(1), dtypes.int64), (np.float32(1), dtypes.float32),
    (np.float64(1), dtypes.float32), (np.complex64(1), dtypes.float32),
    (np.complex128(1), dtypes.complex64)])
def test_numpy_numbers_count_as_pythons_kinds_of_them(number, result):
    """Recorded from PyTorch: `np.bool_` and `np.complex64` are no kinds of bool and complex."""
    x = flambeau.tensor([1, 2])
    for found in (x * number, number * x, flambeau.mul(x, number), flambeau.add(x, number)):
        assert found.dtype is result
    assert flambeau.result_type(x, number) is result


@given(st.sampled_from("float64 float32 int64 uint8 bool complex64".split()))
def test_arrays_are_compared_as_tensors(name):
    array = np.array([0, 1, 2]).astype(name)
    x = flambeau.tensor([0.0, 1.0, 1.0])
    for found in (x == array, array == x):
        assert found.equal(x == flambeau.from_numpy(array))
    assert (x == array.astype(str)) is False
    assert (array[1:] / x[1:]).equal(flambeau.from_numpy(np.asarray(array[1:] / x[1:].numpy())))
