import pytest

import flambeau
from flambeau.testing import FileCheck, assert_allclose, assert_close, make_tensor


@pytest.mark.parametrize("dtype, gap", [
    (flambeau.float16, 2e-3), (flambeau.bfloat16, 3e-2), (flambeau.float32, 3e-5),
    (flambeau.float64, 1e-6), (flambeau.complex64, 3e-5), (flambeau.int64, 1)])
def test_tolerances_go_with_the_type(dtype, gap):
    x = flambeau.ones(3, dtype=dtype)
    assert_close(x, x.clone())
    with pytest.raises(AssertionError, match="Tensor-likes are not"):
        assert_close(x, x + gap)
    assert_close(x, x + gap, rtol=0, atol=2 * gap)


def test_old_form_ignores_types():
    with pytest.warns(FutureWarning, match="deprecated"):
        assert_allclose(flambeau.ones(2), flambeau.ones(2, dtype=flambeau.float64))


@pytest.mark.parametrize("dtype", [flambeau.bool, flambeau.uint8, flambeau.int8, flambeau.int64,
                                   flambeau.float16, flambeau.float32, flambeau.bfloat16,
                                   flambeau.complex64])
def test_made_tensors_are_in_range(dtype):
    x = make_tensor((50, 3), dtype=dtype, device="cpu")
    assert x.shape == (50, 3) and x.dtype is dtype
    parts = flambeau.view_as_real(x) if dtype.is_complex else x
    values = parts.to(flambeau.float64)
    low = 0 if dtype in (flambeau.bool, flambeau.uint8) else -9
    assert float(values.min()) >= low and float(values.max()) <= 9
    assert len(set(values.flatten().tolist())) > 1


def test_options_of_made_tensors():
    x = make_tensor(2, 3, dtype=flambeau.float32, device="cpu", noncontiguous=True)
    assert x.stride() == (6, 2)
    x = make_tensor(100, dtype=flambeau.int64, device="cpu", low=0, high=2, exclude_zero=True)
    assert x.tolist() == [1] * 100
    assert make_tensor(1, dtype=flambeau.float32, device="cpu", requires_grad=True).is_leaf
    for bad in ({"low": 1, "high": 0}, {"low": float("nan")},
                {"noncontiguous": True, "memory_format": flambeau.contiguous_format}):
        with pytest.raises(ValueError):
            make_tensor(1, dtype=flambeau.float32, device="cpu", **bad)
    with pytest.raises(ValueError, match="`requires_grad=True` is not supported"):
        make_tensor(1, dtype=flambeau.int64, device="cpu", requires_grad=True)


def test_filecheck():
    text = "alpha beta\ngamma\nbeta beta"
    FileCheck().check("alpha").check_same("beta").check_next("gamma").check_count("beta", 2).run(
        text)
    FileCheck().check_not("delta").check("gamma").check_not("alpha").run(text)
    FileCheck().check_dag("gamma").check_dag("alpha").check_regex(r"be\w+ be").run(text)
    for bad in (FileCheck().check("delta"), FileCheck().check_not("beta").check("gamma"),
                FileCheck().check("alpha").check_next("beta"),
                FileCheck().check("gamma").check("alpha"),
                FileCheck().check_count("beta", 2, exactly=True)):
        with pytest.raises(RuntimeError):
            bad.run(text)
