"""The dispatcher's private ops, against the public functions that they are parts of."""
import pytest

import flambeau as torch
from flambeau.autograd import forward_ad
from flambeau.nn import functional as F

aten = torch.ops.aten
x = torch.linspace(-1.3, 1.9, 12, dtype=torch.float64).reshape(3, 4).sin()
close = torch.testing.assert_close


def test_duals():
    with forward_ad.dual_level():
        dual = aten._make_dual(x, x.cos(), 0)
        primal, tangent = aten._unpack_dual(dual, 0)
        close(tangent, x.cos())
        close(primal, x)
        close(aten._fw_primal(dual, 0), x)
        close(aten._unpack_dual(aten._make_dual_copy(x, x.cos(), 0), 0)[1], x.cos())


def test_rows_of_different_lengths():
    rows = x.view(4, 3, 1)
    data, sizes = aten._pack_padded_sequence(rows, torch.tensor([4, 2, 1]), False)
    assert sizes.tolist() == [3, 2, 1, 1] and data.shape == (7, 1)
    padded, lengths = aten._pad_packed_sequence(data, sizes, False, 0.5, 5)
    assert lengths.tolist() == [4, 2, 1] and padded.shape == (5, 3, 1)
    assert bool((padded[4] == 0.5).all())


def test_histograms_and_scans():
    whole = torch.histogramdd(x[:, :2], [2, 3])
    for one, other in zip(aten._histogramdd_bin_edges(x[:, :2], [2, 3]), whole.bin_edges):
        close(one, other)
    close(aten._histogramdd_from_bin_cts(x[:, :2], [2, 3]), whole.hist)
    close(aten._histogramdd_from_bin_tensors(x[:, :2], list(whole.bin_edges)), whole.hist)
    values, indices = torch.empty_like(x), torch.empty(3, 4, dtype=torch.int64)
    aten._cummin_helper(x, values, indices, 1)
    close(values, x.cummin(1).values)
    found, inverse, counts = aten.unique_dim_consecutive(torch.tensor([[1], [1], [2]]), 0)
    assert (found.tolist(), inverse.tolist(), counts.tolist()) == ([[1], [2]], [0, 0, 1], [2, 1])
    assert aten._dim_arange(x, 1).tolist() == [0, 1, 2, 3]
    close(aten._compute_linear_combination(x, x[:, :3]), x[:, :3] @ x)


def test_linear_algebra():
    a, b = x[:, :3] + torch.eye(3, dtype=torch.float64), x
    solution, lu, pivots, info = aten._linalg_solve_ex(a, b)
    close(a @ solution, b)
    assert not info and lu.shape == (3, 3) and pivots.dtype is torch.int32
    sign, logarithm, *_ = aten._linalg_slogdet(a)
    close(sign * logarithm.exp(), torch.linalg.det(a))
    close(aten.linalg__powsum(x, 3, [1]), torch.linalg.vector_norm(x, 3, 1) ** 3)
    aten._linalg_check_errors(torch.tensor(0), "linalg.inv", is_matrix=True)
    for name, says in (("linalg.inv", "The diagonal element 2 is zero"),
                       ("linalg.cholesky", "leading minor of order 2"),
                       ("linalg.solve", "input matrix is singular"),
                       ("linalg.eigh", "too many repeated eigenvalues"),
                       ("linalg.svd", "too many repeated singular values")):
        with pytest.raises(torch.linalg.LinAlgError, match=rf"\(Batch element 1\): .*{says}"):
            aten._linalg_check_errors(torch.tensor([0, 2]), name, is_matrix=False)


def test_layers():
    w = x[0]
    result, scale = aten._fused_rms_norm(x, [4], w, 0.1)
    close(result, F.rms_norm(x, [4], w, 0.1))
    close(scale, (x.pow(2).mean(1, keepdim=True) + 0.1) ** -0.5)
    result, norms = aten._weight_norm_interface(x, x[:, :1], 0)
    close(result, x / norms * x[:, :1])
    q = x.view(1, 3, 4)
    for causal in (False, True):
        found, weights = aten._scaled_dot_product_attention_math(q, q, q, None, 0.0, causal)
        close(found, F.scaled_dot_product_attention(q, q, q, is_causal=causal))
        close(weights.sum(-1), torch.ones(1, 3, dtype=torch.float64))
    kept = torch.tensor([[True, False, True]] * 3)
    found, weights = aten._scaled_dot_product_attention_math(q, q, q, None, 0.5, False, kept)
    close(found, weights @ q * 2)
    assert not weights[..., 1].any()
    close(aten._scaled_dot_product_attention_math(q, q, q, kept)[1],
          aten._scaled_dot_product_attention_math(q, q, q, kept.double())[1])
    mean, var = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    result, *_, new_mean, new_var = aten._batch_norm_with_update_functional(
        x, w, w, mean, var, 0.1, 1e-5)
    expected_mean, expected_var = mean.clone(), var.clone()
    close(result, F.batch_norm(x, expected_mean, expected_var, w, w, True, 0.1))
    close((new_mean, new_var), (expected_mean, expected_var))
    assert not mean.any() and aten._batch_norm_impl_index(x, w, w, mean, var, False, 0.1, 1e-5,
                                                          False)[4] == 0
    close(aten._add_relu(x, 1.0), F.relu(x + 1))


def test_rounding():
    y = x.float()
    result, mask = aten.fake_quantize_per_tensor_affine_cachemask(y, 0.1, 3, 0, 7)
    close(result, torch.fake_quantize_per_tensor_affine(y, 0.1, 3, 0, 7))
    assert torch.equal(mask, ((y / 0.1).round() + 3 >= 0) & ((y / 0.1).round() + 3 <= 7))
    scale, zero = torch.tensor([0.1], requires_grad=True), torch.tensor([1.0], requires_grad=True)
    result = aten._fake_quantize_learnable_per_tensor_affine(y, scale, zero, -5, 5)
    close(result.detach(), torch.fake_quantize_per_tensor_affine(y, 0.1, 1, -5, 5))
    result.sum().backward()
    steps = (y / 0.1).round() + 1
    inside = (steps >= -5) & (steps <= 5)
    slope = torch.where(inside, steps - 1 - y / 0.1, steps.clamp(-5, 5) - 1)
    close(scale.grad, slope.sum().view(1), rtol=1e-4, atol=1e-4)
    close(zero.grad, torch.where(inside, 0.0, -0.1).sum().view(1))
    found, point = aten._choose_qparams_per_tensor(y)
    close(found, float(y.max() - y.min()) / 255, rtol=1e-5, atol=0.0)
    assert point == round(-float(y.min()) / found)


def test_copies_and_checks():
    close(aten._foreach_copy([x], [x.cos()])[0], x.cos())
    assert not aten._foreach_zero([x])[0].any() and x.any()
    shorter = aten.embedding_renorm(x, torch.tensor([0]), 0.5, 2.0)
    close(shorter[0].norm(), torch.tensor(0.5).double())
    close(aten._index_put_impl(x, [torch.tensor([0])], x[1], True)[0], x[0] + x[1])
    sparse = torch.eye(2).to_sparse()
    close(aten._values_copy(sparse), torch.ones(2))
    token = aten._make_dep_token()
    assert aten._functional_assert_async(torch.tensor(True), "no", token).shape == ()
    with pytest.raises(RuntimeError, match="not so"):
        aten._functional_assert_scalar(False, "not so", token)
