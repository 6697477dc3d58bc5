"""Sets of element types."""
import pytest

import flambeau as torch
from flambeau.testing._internal import common_dtype as kinds


def test_sets():
    assert kinds.floating_types() == (torch.float32, torch.float64)
    assert kinds.integral_types_and(torch.bool)[-2:] == (torch.int64, torch.bool)
    assert all(d.is_complex for d in kinds.complex_types_and(torch.complex32))
    assert all(d.is_floating_point or d.is_complex for d in kinds.floating_and_complex_types())
    assert set(kinds.all_types_and_complex()) == {
        *kinds.floating_types(), *kinds.integral_types(), *kinds.complex_types()}
    assert kinds.empty_types() == kinds.custom_types() == ()
    assert {d.itemsize for d in kinds.float8_types()} == {1}
    sum_of_two = kinds.floating_types() + (torch.half,)
    assert sum_of_two == kinds.floating_types_and_half() and type(sum_of_two) is type(
        kinds.floating_types())


def test_lists():
    assert kinds.get_all_fp_dtypes(False, False) == [torch.float32, torch.float64]
    assert set(kinds.get_all_dtypes(include_complex32=True, include_qint=True)) == {
        *kinds.all_types_and_complex_and(torch.half, torch.bfloat16, torch.bool, torch.complex32),
        *kinds.get_all_qint_dtypes()}
    assert kinds.get_all_math_dtypes("cpu") == [*kinds.integral_types(),
                                                *kinds.floating_and_complex_types()]
    assert kinds.highest_precision_float("cpu") is torch.float64
    assert kinds.highest_precision_complex("cpu") is torch.complex128
    half = kinds.float_to_corresponding_complex_type_map[torch.float16]
    assert half is torch.complex32


def test_only_types_are_taken():
    with pytest.raises(AssertionError, match=r"to be torch\.dtype, got <class 'int'>"):
        kinds.floating_types_and(3)
    with pytest.raises(AssertionError, match="Expected other to be a tuple"):
        kinds.floating_types() + [torch.half]
