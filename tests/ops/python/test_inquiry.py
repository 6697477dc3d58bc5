"""Questions about tensors and types, and Python functions for each element."""
import pytest

import flambeau

x = flambeau.tensor([0.5, 2.5])
whole = flambeau.tensor([1, 2])


def test_kinds():
    assert flambeau.is_tensor(x) and not flambeau.is_tensor(1)
    assert flambeau.is_floating_point(x) and not flambeau.is_floating_point(whole)
    assert not flambeau.is_complex(x) and flambeau.is_complex(x + 1j)
    assert flambeau.is_signed(whole) and not flambeau.is_signed(whole.to(flambeau.uint8))
    assert flambeau.numel(x) == 2 and not flambeau.is_inference(x)
    assert flambeau.is_same_size(x, whole) and not x.is_same_size(x[:1])


@pytest.mark.parametrize("a,b,wanted", [
    ("uint8", "int8", "int16"), ("int64", "float16", "float16"), ("float16", "bfloat16", "float32"),
    ("complex64", "float64", "complex128"), ("bool", "uint8", "uint8"),
    ("complex64", "complex128", "complex128"), ("uint16", "float16", "float16")])
def test_promotion(a, b, wanted):
    a, b, wanted = (getattr(flambeau, n) for n in (a, b, wanted))
    assert flambeau.promote_types(a, b) is flambeau.promote_types(b, a) is wanted
    assert flambeau.result_type(flambeau.ones(1, dtype=a), flambeau.ones(1, dtype=b)) is wanted


@pytest.mark.parametrize("a,b,said", [
    ("float8_e5m2", "float32", "Float8 Types is not supported, attempted to promote Float8_e5m2 "
     "and Float"), ("bool", "float8_e4m3fn", "Bool and Float8_e4m3fn"),
    ("complex64", "float8_e5m2", "ComplexFloat and Float8_e5m2"),
    ("float8_e5m2", "float8_e4m3fn", "Float8_e5m2 and Float8_e4m3fn"),
    ("uint16", "float8_e5m2", "Float8 Types is not supported, attempted to promote UInt16"),
    ("uint16", "int64", "uint16, uint32, uint64 types is not supported, attempted to promote "
     "UInt16 and Long"), ("uint32", "uint16", "UInt32 and UInt16"),
    ("bool", "uint64", "Bool and UInt64"), ("complex64", "uint16", "ComplexFloat and UInt16")])
def test_types_that_do_not_promote(a, b, said):
    a, b = getattr(flambeau, a), getattr(flambeau, b)
    with pytest.raises(RuntimeError, match=f"Promotion for .*{said}"):
        flambeau.promote_types(a, b)
    with pytest.raises(RuntimeError, match=f"Promotion for .*{said}"):
        flambeau.result_type(flambeau.ones(1, dtype=a), flambeau.ones(1, dtype=b))


def test_no_complex_type_has_parts_of_float8():
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Float8_e5m2"):
        flambeau.result_type(x.to(flambeau.float8_e5m2), 1j)


@pytest.mark.parametrize("source,targets", [
    ("bool", "bool uint8 int64 float16 float64 complex64 complex128"),
    ("uint8", "uint8 int64 float16 float64 complex64 complex128"),
    ("int64", "uint8 int64 float16 float64 complex64 complex128"),
    ("float64", "float16 float64 complex64 complex128"),
    ("complex128", "complex64 complex128")])
def test_casts_keep_to_the_category_or_a_higher_one(source, targets):
    names = "bool uint8 int64 float16 float64 complex64 complex128".split()
    found = [n for n in names
             if flambeau.can_cast(getattr(flambeau, source), getattr(flambeau, n))]
    assert found == targets.split()


def test_numbers_and_scalars_promote_by_category():
    assert flambeau.result_type(x.half(), 2.5) is flambeau.float16
    assert flambeau.result_type(whole, flambeau.tensor(2.5, dtype=flambeau.float64)) \
        is flambeau.float64
    assert not flambeau.can_cast(flambeau.float32, flambeau.int64)
    assert flambeau.broadcast_shapes((2, 1), (3,), 1) == (2, 3)


def test_functions_for_each_element():
    assert x.clone().apply_(lambda v: v + 1).tolist() == [1.5, 3.5]
    assert x.clone().map_(whole, lambda v, w: v * w).tolist() == [0.5, 5.0]
    assert whole.clone().map2_(whole, whole, lambda u, v, w: u + v + w).tolist() == [3, 6]


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_numbers_wrap_around_in_integers_up_to_64_bits(name):
    t = flambeau.tensor([1, 2], dtype=getattr(flambeau, name))
    bits = 8 * t.itemsize
    for number in (-1, 300, 2 ** 40, 1 - 2 ** 63, 2 ** 63):
        for found, exact in ((t + number, [1 + number, 2 + number]),
                             (t.clone().mul_(number), [number, 2 * number])):
            assert found.dtype is t.dtype
            assert [(v - e) % 2 ** bits for v, e in zip(found.tolist(), exact)] == [0, 0]
    for number, said in ((2 ** 64, "int too big to convert"),
                         (-2 ** 63 - 1, "can't convert negative int to unsigned")):
        with pytest.raises(OverflowError, match=said):
            t + number

def test_assertions_of_tensors():
    assert flambeau._assert_async(flambeau.tensor(True)) is None
    assert flambeau._assert_async(flambeau.zeros(1, device="meta")) is None
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got"):
        flambeau._assert_async(flambeau.tensor(0.0))
    with pytest.raises(RuntimeError, match="so"):
        flambeau._assert_async(flambeau.tensor(False), "so")
    with pytest.raises(RuntimeError, match="ambiguous"):
        flambeau._assert_async(flambeau.ones(2))


def test_meshgrid_shows_its_keyword():
    assert flambeau.meshgrid.__kwdefaults__ == {"indexing": None}


def test_calls_for_each_element_are_outside_of_autograd():
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad"):
        flambeau.ones(2, requires_grad=True).apply_(abs)
