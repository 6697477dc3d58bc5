"""Ops of the dispatcher that are functions of ours under other names and arguments."""
import pytest

import flambeau as torch
from flambeau.dispatch.aten.functions import find_function

aten, F = torch.ops.aten, torch.nn.functional
X = torch.arange(6.0).view(2, 3)


def test_names_of_other_namespaces():
    assert find_function("linalg_inv") is torch.linalg.inv
    assert find_function("special_expit") is torch.special.expit
    assert find_function("avg_pool2d") is F.avg_pool2d
    assert find_function("no_such_op") is None
    assert find_function("fill")(X, 2).eq(2).all() and X[0, 1] == 1        # the in-place form's
    assert find_function("hardswish_")(X.clone()).equal(F.hardswish(X))


def test_questions():
    assert aten.sym_size.int(X, 1) == aten.sym_stride.int(X, 0) == 3 and aten.sym_numel(X) == 6
    assert aten.is_non_overlapping_and_dense(X.T)
    assert not aten.is_non_overlapping_and_dense(X[:, 1:])


def test_assertions():
    aten._assert_async(torch.tensor(True))
    with pytest.raises(RuntimeError, match="said"):
        aten._assert_async.msg(torch.tensor(0), "said")
    aten._assert_tensor_metadata(X, [2, 3], None, torch.float32)
    with pytest.raises(RuntimeError, match=r"Tensor dtype mismatch! Expected: torch.int64"):
        aten._assert_tensor_metadata(X, None, None, torch.int64)
    aten.sym_constrain_range(3, min=1, max=3)
    with pytest.raises(RuntimeError, match=r"Invalid value range for 4 between \[1, 3\]"):
        aten.sym_constrain_range(4, min=1, max=3)


def test_casts_and_copies():
    assert aten._cast_Long(X).dtype is torch.int64 and aten._cast_Half(X).dtype is torch.float16
    assert aten._reshape_alias(X, [3, 2], [2, 1]).equal(X.view(3, 2))
    assert aten._unsafe_index(X, [None, torch.tensor([2])]).equal(X[:, 2:])
    flat = aten.flatten_dense_tensors([X, torch.ones(2)])
    assert flat.tolist() == [0, 1, 2, 3, 4, 5, 1, 1]
    parts = aten.unflatten_dense_tensors(flat, [X, torch.ones(2)])
    assert [part.shape for part in parts] == [(2, 3), (2,)]


def test_products():
    a, b, c = torch.rand(2, 3), torch.rand(3, 4), torch.rand(4)
    found = aten._trilinear(a, b, c, [2], [0], [0, 1], [1])
    torch.testing.assert_close(found, torch.einsum("ij,jk,k->ik", a, b, c))
    grads = aten.linear_backward(a, torch.ones(2, 4), b.T, [True, True, True])
    w = [t.clone().requires_grad_() for t in (a, b.T, c)]
    F.linear(*w).sum().backward()
    for found, leaf in zip(grads, w):
        torch.testing.assert_close(found, leaf.grad)
    torch.testing.assert_close(aten._addmm_activation(c, a, b), torch.addmm(c, a, b).relu())


def test_convolutions():
    x, w, b = torch.rand(1, 2, 5, 5), torch.rand(3, 2, 3, 3), torch.rand(3)
    torch.testing.assert_close(
        aten._convolution(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True,
                          True), F.conv2d(x, w, b, padding=1))
    torch.testing.assert_close(aten._convolution_mode(x, w, b, [1, 1], "same", [1, 1], 1),
                               F.conv2d(x, w, b, padding="same"))
    torch.testing.assert_close(aten.slow_conv_dilated2d(x, w, [3, 3], b, [1, 1], [0, 0], [2, 2]),
                               F.conv2d(x, w, b, dilation=2))


def test_padding():
    padded = torch._C._nn.pad_sequence([torch.ones(2), torch.ones(3)], True, 9.0, "left")
    assert padded.tolist() == [[9, 1, 1], [1, 1, 1]]
    assert aten._pad_enum(X[None], [1, 1], 1)[0, 0].tolist() == [1, 0, 1, 2, 1]
    assert aten._pad_circular(X[None], [1, 0])[0, 0].tolist() == [2, 0, 1, 2]
    with pytest.raises(RuntimeError, match="received an empty list of sequences"):
        torch._C._nn.pad_sequence([])
