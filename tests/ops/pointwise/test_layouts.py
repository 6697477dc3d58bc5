"""How results of pointwise ops lie in memory, stated as rules.

A copy keeps strides that leave no gaps; otherwise it has the dimensions in the order of its
strides, where one that is repeated (stride 0) stays beside its neighbours, and of equal strides the
shorter one lies inside. A result is ordered in the same way, by the first operand that decides;
operands of another type than the result's count as the copies that they are converted to.
"""
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau

in_numpy = pytest.mark.skipif(     # which orders results by rules of its own
    not getattr(getattr(flambeau, "kernels", None), "native_available", True),
    reason="no native kernels")


def order(shape, operands):
    """The dimensions, innermost first."""
    found = list(range(len(shape)))[::-1]

    def inside(a, b):
        for strides in operands:
            if strides[a] and strides[b]:
                if strides[a] != strides[b]:
                    return strides[a] - strides[b]
                if shape[a] > shape[b]:
                    return 1
        return 0

    for i in range(1, len(found)):
        at = i
        for j in range(i - 1, -1, -1):
            compared = inside(found[j], found[at])
            if compared > 0:
                found[j], found[at], at = found[at], found[j], j
            elif compared < 0:
                break
    return found


def without_gaps(shape, dims):
    strides, step = [0] * len(shape), 1
    for d in dims:
        strides[d], step = step, step * shape[d]
    return tuple(strides)


def copied(x):
    dims, step = order(x.shape, [x.stride()]), 1
    for d in sorted(range(x.dim()), key=lambda d: x.stride()[d]):
        if x.shape[d] > 1:
            if x.stride()[d] != step:
                return without_gaps(x.shape, dims)
            step *= x.shape[d]
    return x.stride()


def of_result(operands, dtype):
    strides = [copied(x) if x.dtype is not dtype else x.stride() for x in operands]
    shape = operands[0].shape
    same = all(s == strides[0] for s in strides)
    if same:
        whole = flambeau.empty_strided(shape, strides[0])
        if copied(whole) == whole.stride() and not any(
                s == 0 and n > 1 for s, n in zip(strides[0], shape)):
            return strides[0]
    return without_gaps(shape, order(shape, strides))


def seen(x, strides):
    """The strides of dimensions that have several elements."""
    return [s for s, n in zip(strides, x.shape) if n > 1]


@st.composite
def tensors(draw, count):
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=4))
    made = []
    for _ in range(count):
        strides = draw(st.lists(st.sampled_from([0, 1, 2, 3, 7, 20]), min_size=len(shape),
                                max_size=len(shape)))
        if draw(st.booleans()):
            strides = without_gaps(shape, draw(st.permutations(range(len(shape)))))
        dtype = draw(st.sampled_from([flambeau.int64, flambeau.float32, flambeau.float64,
                                      flambeau.bool, flambeau.float16]))
        elements = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
        values = flambeau.arange(elements).remainder(5).to(dtype)
        made.append(values.as_strided(shape, strides))
    return made


@settings(deadline=None)
@given(tensors(1), st.sampled_from([flambeau.int64, flambeau.float32, flambeau.complex64]))
def test_conversions(given, dtype):
    x, = given
    found = x.to(dtype, copy=True)
    assert seen(x, found.stride()) == seen(x, copied(x))
    assert seen(x, x.clone().stride()) == seen(x, copied(x))
    assert math.prod(x.shape) == found.numel() and found.eq(x.contiguous()).all()


@in_numpy
@settings(deadline=None)
@given(tensors(1))
def test_functions_of_one_tensor(given):
    x, = given
    found = x.cos()
    assert seen(x, found.stride()) == seen(x, of_result([x], found.dtype))
    flambeau.testing.assert_close(found, x.contiguous().cos().as_strided(
        x.shape, flambeau.empty(x.shape).stride()), check_stride=False)


@in_numpy
@pytest.mark.parametrize("op", [flambeau.add, flambeau.maximum, flambeau.div, flambeau.atan2])
@settings(deadline=None)
@given(tensors(2))
def test_functions_of_two_tensors(op, given):
    x, y = given
    if x.dtype is flambeau.bool:
        x = x.to(flambeau.int8)
    found = op(x, y)
    assert seen(x, found.stride()) == seen(x, of_result([x, y], found.dtype))
    flambeau.testing.assert_close(found, op(x.contiguous(), y.contiguous()), check_stride=False,
                                  equal_nan=True)


@in_numpy
@settings(deadline=None)
@given(tensors(1), st.sampled_from([2, 0.5, True]))
def test_functions_of_a_tensor_and_a_number(given, number):
    x, = given
    found = x * number
    assert seen(x, found.stride()) == seen(x, of_result([x], found.dtype))
