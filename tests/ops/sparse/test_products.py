"""Products with sparse factors are those of the dense ones, and so are their gradients."""
import pytest

import flambeau as torch

LAYOUTS = ("to_sparse", "to_sparse_csr")


def drawn(*shape):
    torch.manual_seed(0)
    x = torch.randn(*shape, dtype=torch.float64)
    return x * (torch.rand(*shape) < 0.5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matrix_products(layout):
    a, b, v = drawn(4, 5), drawn(5, 3), drawn(5)
    s = getattr(a, layout)()
    assert torch.allclose(s @ b, a @ b) and torch.allclose(s @ v, a @ v)
    assert torch.allclose(torch.sparse.mm(s, b), a @ b)
    assert torch.allclose(torch.addmm(drawn(4, 3), s, b, beta=0.5, alpha=2),
                          torch.addmm(drawn(4, 3), a, b, beta=0.5, alpha=2))
    assert torch.allclose((s @ getattr(b, layout)()).to_dense(), a @ b)


def test_gradients_at_the_places_of_the_factor():
    a, b = drawn(4, 5), drawn(5, 3).requires_grad_()
    s = a.to_sparse().requires_grad_()
    torch.sparse.mm(s, b).sum().backward()
    dense, other = a.clone().requires_grad_(), b.detach().clone().requires_grad_()
    (dense @ other).sum().backward()
    assert torch.allclose(b.grad, other.grad)
    assert torch.allclose(s.grad.to_dense(), dense.grad * (a != 0))


def test_sampled_products():
    mask, x, y = drawn(3, 4).to_sparse_csr(), drawn(3, 2), drawn(2, 4)
    found = torch.sparse.sampled_addmm(mask, x, y, beta=0.0)
    assert torch.allclose(found.to_dense(), (x @ y) * (mask.to_dense() != 0))


def test_shapes_that_do_not_fit():
    with pytest.raises(RuntimeError, match=r"size|shape|inconsistent"):
        _ = drawn(3, 4).to_sparse() @ drawn(3, 4)


def test_a_vector_times_a_sparse_matrix():
    matrix, vector = torch.arange(6.0).reshape(2, 3), torch.tensor([1.0, 2.0])
    assert (vector @ matrix.to_sparse()).equal(vector @ matrix)
    assert torch.sparse.addmm(matrix, matrix, torch.eye(3)).equal(2 * matrix)


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("dim", [0, -1])
def test_products_with_slices_of_dense_matrices_are_batched(form, dim):
    matrix = torch.tensor([[0.0, 2.0], [1.0, 3.0]])
    dense = torch.arange(12.0).view(3, 2, 2)

    def product(d):
        return getattr(matrix, form)() @ d
    assert torch.equal(torch.vmap(product, dim)(dense.movedim(0, dim)), matrix @ dense)
    assert torch.equal(torch.vmap(product, dim)(dense[:, 0].movedim(0, dim)),
                          dense[:, 0] @ matrix.mT)
