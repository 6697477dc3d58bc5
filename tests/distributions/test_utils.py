"""Broadcasting of parameters, probabilities and logits, lazy properties."""

import pytest

import flambeau as torch
from flambeau.distributions import utils


def test_broadcast_all():
    a, b = utils.broadcast_all(torch.zeros(2, 1), torch.ones(3))
    assert a.shape == b.shape == (2, 3)
    a, b = utils.broadcast_all(1, torch.ones(3, dtype=torch.float64))
    assert a.dtype == torch.float64 and a.tolist() == [1.0] * 3
    a, b = utils.broadcast_all(1, 2.5)
    assert a.shape == b.shape == () and a.dtype == torch.get_default_dtype()
    message = "Input arguments must all be instances of Number, torch.Tensor or objects implement"
    with pytest.raises(ValueError, match=message):
        utils.broadcast_all([1.0], 2.0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_clamp_probs(dtype):
    eps = torch.finfo(dtype).eps
    clamped = utils.clamp_probs(torch.tensor([0.0, 0.5, 1.0], dtype=dtype))
    assert clamped.tolist() == [eps, 0.5, 1 - eps] and clamped.dtype == dtype


def test_probabilities_and_logits():
    p = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    torch.testing.assert_close(utils.probs_to_logits(p), p.log())
    torch.testing.assert_close(utils.logits_to_probs(p.log() + 7), p)
    torch.testing.assert_close(utils.probs_to_logits(p, is_binary=True), torch.logit(p))
    torch.testing.assert_close(utils.logits_to_probs(torch.logit(p), is_binary=True), p)


@pytest.mark.parametrize("diag", [-2, -1, 0, 1])
def test_triangles_as_vectors(diag):
    matrix = torch.arange(1.0, 33).reshape(2, 4, 4)
    vector = utils.tril_matrix_to_vec(matrix, diag)
    rows, columns = torch.tril_indices(4, 4, diag)
    assert torch.equal(vector, matrix[:, rows, columns])
    if diag <= 0:
        assert torch.equal(utils.vec_to_tril_matrix(vector, diag), matrix.tril(diag))


def test_triangles_that_are_none():
    with pytest.raises(ValueError, match=r"diag \(4\) provided is outside \[-4, 3\]"):
        utils.tril_matrix_to_vec(torch.zeros(4, 4), 4)
    with pytest.raises(ValueError, match="The size of last dimension is 5 which cannot be expr"):
        utils.vec_to_tril_matrix(torch.zeros(5))


def test_lazy_property():
    class Counted:
        calls = 0

        @utils.lazy_property
        def value(self):
            """What it is."""
            self.calls += 1
            return torch.is_grad_enabled()

    counted = Counted()
    with torch.no_grad():
        assert counted.value and counted.value     # computed with gradients
    assert counted.calls == 1 and counted.__dict__["value"] is True
    assert isinstance(Counted.value, property)
    assert Counted.__dict__["value"].__doc__ == "What it is."
