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


def _compressed(layout, outer, inner, values):
    return flambeau.sparse_compressed_tensor(
        flambeau.tensor(outer), flambeau.tensor(inner), flambeau.tensor(values), (2, 2),
        layout=getattr(flambeau, f"sparse_{layout}"))


@pytest.mark.parametrize("layout, outer, inner, data", [
    ("csr", "crow", "col", [1.0, 2.0]), ("csc", "ccol", "row", [1.0, 2.0]),
    ("bsr", "crow", "col", [[[1.0]], [[2.0]]]), ("bsc", "ccol", "row", [[[1.0]], [[2.0]]])])
def test_parts_of_compressed_tensors_are_named(layout, outer, inner, data):
    x = _compressed(layout, [0, 1, 2], [0, 1], data)
    for other, what in (((outer + "_indices"), ([0, 0, 2], [0, 1], data)),
                        ((inner + "_indices"), ([0, 1, 2], [0, 0], data)),
                        ("values", ([0, 1, 2], [0, 1], [data[0], data[0]]))):
        with pytest.raises(AssertionError, match=f"^Sparse {layout.upper()} {other} are not"):
            assert_close(x, _compressed(layout, *what))
    with pytest.raises(AssertionError, match=f"specified values in sparse {layout.upper()} tensor"):
        assert_close(x, _compressed(layout, [0, 1, 1], [0], data[:1]))


def test_types_of_indices_do_not_matter():
    x = _compressed("csr", [0, 1, 2], [0, 1], [1.0, 2.0])
    parts = [x.crow_indices().int(), x.col_indices().int(), x.values()]
    assert_close(flambeau.sparse_csr_tensor(*parts, (2, 2)), x)


def test_coordinates_are_compared_as_they_are():
    def made(places, values):
        return flambeau.sparse_coo_tensor(flambeau.tensor(places), flambeau.tensor(values), (2, 2))
    x = made([[0, 1], [0, 1]], [1.0, 2.0])
    for other, said in ((made([[0, 1], [1, 1]], [1.0, 2.0]), "Sparse COO indices are not equal!"),
                        (made([[0, 1], [0, 1]], [1.0, 3.0]), "Sparse COO values are not close!"),
                        (made([[0, 1, 1], [0, 1, 1]], [1.0, 1.0, 1.0]),
                         "The number of specified values in sparse COO tensors does not match: "
                         "2 != 3"),
                        (made([[0, 1]], [[1.0, 0.0], [0.0, 2.0]]),
                         "The number of sparse dimensions in sparse COO tensors does not match: "
                         "2 != 1")):
        with pytest.raises(AssertionError) as error:
            assert_close(x, other)
        assert str(error.value).startswith(said)


def test_quantized_tensors_are_compared_by_what_they_stand_for():
    x = flambeau.tensor([1.0, 2.0])
    q = flambeau.quantize_per_tensor(x, 1.0, 2, flambeau.qint32)
    by_row = flambeau.quantize_per_channel(x, flambeau.ones(2), flambeau.zeros(2).long(), 0,
                                           flambeau.qint32)
    assert_close(q, q)
    for other, said in ((x, "'is_quantized' do not match: True != False"),
                        (by_row, r"'qscheme\(\)' do not match"),
                        (flambeau.quantize_per_tensor(x + 1, 1.0, 2, flambeau.qint32),
                         "Quantized tensor-likes are not close!")):
        with pytest.raises(AssertionError, match=said):
            assert_close(q, other)


def test_made_tensors_keep_every_memory_format():
    x = make_tensor(2, 3, 4, dtype=flambeau.float32, device="cpu",
                    memory_format=flambeau.preserve_format)
    assert x.is_contiguous(memory_format=flambeau.preserve_format)
    assert not x.mT.is_contiguous(memory_format=flambeau.preserve_format)
