"""Approximate factorisations are exact where the rank is as low as was said."""
import pytest

import flambeau as torch


def of_rank(k, *shape):
    torch.manual_seed(0)
    *lead, n, m = shape
    return (torch.randn(*lead, n, k, dtype=torch.float64)
            @ torch.randn(*lead, k, m, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(8, 5), (5, 8), (2, 6, 6)])
def test_svd_lowrank(shape):
    x = of_rank(2, *shape)
    u, s, v = torch.svd_lowrank(x, q=3)
    assert torch.allclose(u * s.unsqueeze(-2) @ v.mT, x)
    assert torch.allclose(s[..., :2], torch.linalg.svdvals(x)[..., :2])


def test_pca_lowrank_centres():
    x = of_rank(2, 9, 4) + 5
    u, s, v = torch.pca_lowrank(x, q=3)
    assert torch.allclose(u * s @ v.mT, x - x.mean(0))


def test_lobpcg_finds_extreme_eigenvalues():
    torch.manual_seed(0)
    a = torch.randn(12, 12, dtype=torch.float64)
    a = a @ a.mT
    values, vectors = torch.lobpcg(a, k=2, largest=True, niter=200, tol=1e-10)
    assert torch.allclose(values, torch.linalg.eigvalsh(a).flip(0)[:2])
    assert torch.allclose(a @ vectors, vectors * values, atol=1e-6)


def test_refusals():
    with pytest.raises(ValueError, match="q"):
        torch.pca_lowrank(torch.ones(3, 2), q=5)
    with pytest.raises(ValueError, match="not applicable when the number of A rows"):
        torch.lobpcg(torch.eye(3), k=2)
