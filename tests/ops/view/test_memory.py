"""Tensors on given memory or in given order, and what their bits sum up to."""
import numpy as np
import pytest

import flambeau as torch

X = torch.arange(6.0).reshape(2, 3)


def test_empty_permuted():
    x = torch.empty_permuted((2, 3, 4), (2, 0, 1), dtype=torch.int8)
    assert (x.stride(), x.dtype) == ((3, 1, 6), torch.int8)
    for order, text in (((0, 0), "Duplicate"), ((0,), "length"), ((0, 2), "at index 1")):
        with pytest.raises(RuntimeError, match=text):
            torch.empty_permuted((2, 3), order)


def test_dlpack_shares_memory():
    x = torch.arange(4)
    for y in (torch.from_dlpack(x), torch.from_dlpack(torch.to_dlpack(x))):
        y[0] += 5
    assert x.tolist() == [10, 1, 2, 3]
    copied = torch.from_dlpack(x, copy=True)
    copied[0] = 0
    assert x[0] == 10
    array = np.zeros(2)
    torch.from_dlpack(array)[0] = 1
    assert array.tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="invalid capsule"):
        torch.from_dlpack(3)


def test_slice_inverse():
    whole = torch.slice_inverse(X[:1], X, 0, 0, 1)
    assert torch.equal(whole, X)


@pytest.mark.parametrize("x, dim, expected", [
    (X, (), 4610560118520545280), (X.int(), (), 1), (X > 1, (), 0),
    (X.half(), 0, [4613937818241073152, 9214364837600034816, 5629499534213120]),
    (X.to(torch.int8) - 4, 0, [3, 18446744073709551613, 18446744073709551615])])
def test_hash_tensor(x, dim, expected):
    result = torch.hash_tensor(x, dim)
    assert result.dtype is torch.uint64 and result.tolist() == expected


def test_hash_tensor_of_a_number_is_its_bits():
    one = torch.tensor(1.0)
    bits = int(np.float64(1).view(np.uint64))
    assert one.hash_tensor() == torch.hash_tensor(one, 0, keepdim=True) == bits


def test_hash_tensor_refuses():
    for call, error in ((lambda: torch.hash_tensor(X, mode=1), RuntimeError),
                        (lambda: torch.hash_tensor(torch.empty(0)), RuntimeError),
                        (lambda: torch.hash_tensor(torch.empty(0, 3), 0), IndexError),
                        (lambda: torch.hash_tensor(X + 1j), NotImplementedError)):
        with pytest.raises(error):
            call()


def test_parts_of_sparse_tensors_as_copies():
    csr, coo = torch.eye(2).to_sparse_csr(), torch.eye(2).to_sparse()
    assert torch.crow_indices_copy(csr).tolist() == [0, 1, 2]
    assert torch.col_indices_copy(csr).tolist() == [0, 1]
    copied = torch.values_copy(coo)
    copied.fill_(5)
    assert torch.equal(coo.to_dense(), torch.eye(2))
    assert torch.indices_copy(coo).tolist() == [[0, 1], [0, 1]]
    grown = torch.resize_as_sparse_(coo, torch.zeros(3, 3).to_sparse())
    assert grown is coo and grown.shape == (3, 3)


def test_bce_by_number():
    parts = torch.nn.functional.binary_cross_entropy_with_logits(X, X / 6, reduction="none")
    for number, expected in ((0, parts), (1, parts.mean()), (2, parts.sum())):
        found = torch.binary_cross_entropy_with_logits(X, X / 6, None, None, number)
        torch.testing.assert_close(found, expected)


def test_denormal_numbers_can_be_flushed():
    tiny = torch.tensor([1e-310], dtype=torch.float64)
    if not torch.set_flush_denormal(True):
        pytest.skip("not on this processor, or not without native kernels")
    try:
        assert (tiny * 1).item() == 0
    finally:
        torch.set_flush_denormal(False)
    assert (tiny * 1).item() == 1e-310


@pytest.mark.parametrize("shape,formats,order", [
    ((2, 3, 5, 7), True, (0, 1, 2, 3)),
    ((1, 2, 3, 4), False, (0, 1, 2, 3)),
    ((1, 2, 3, 4), [torch.contiguous_format, torch.channels_last], (0, 1, 2, 3)),
    ((1, 2, 3, 4), True, None),
    ((1, 1, 2, 2), [torch.contiguous_format, torch.channels_last], None),
])
def test_order_of_dimensions(shape, formats, order):
    x = torch.empty(shape)
    if order is None:
        with pytest.raises(RuntimeError, match="does not have unique dim order"):
            x.dim_order(ambiguity_check=formats)
    else:
        assert x.dim_order(ambiguity_check=formats) == order
    with pytest.raises(TypeError, match="must be a bool or a list"):
        x.dim_order(ambiguity_check=[1])


def test_asarray_and_history():
    x = torch.ones(2, requires_grad=True) * 2
    assert torch.asarray(x) is x and torch.asarray(x, requires_grad=True) is x
    assert not torch.asarray(x, requires_grad=False).requires_grad
    assert torch.asarray([1.0], requires_grad=True).is_leaf


def test_negative_bit():
    """Of the imaginary part of a conjugate, as a view."""
    z = torch.tensor([1 + 2j, 3j]).conj().imag
    assert z.is_neg() and z.tolist() == [-2, -3] and not z.resolve_neg().is_neg()
    assert not torch.tensor([1j]).imag.is_neg() and not (z + 1).is_neg()


def test_edges_of_a_histogram_are_its_own():
    edges = torch.tensor([0.0, 1, 2])
    found = torch.histogram(torch.rand(3), bins=edges).bin_edges
    edges.zero_()
    assert found.tolist() == [0, 1, 2]


def test_memory_that_is_too_small_grows():
    for x in (torch.arange(4.0), torch.arange(8.0).view(2, 4).unbind(0)[0].clone()):
        x.resize_(3, 3)
        assert x.flatten()[:4].tolist() == [0, 1, 2, 3] and x.shape == (3, 3)
