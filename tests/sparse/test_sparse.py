"""`torch.sparse`: its functions against dense algebra, and the switch of checks."""
import pytest

import flambeau as torch
from flambeau import sparse
from flambeau.sparse import check_sparse_tensor_invariants as checks

A = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
B = torch.arange(6.0).reshape(3, 2) - 2


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_products(layout):
    a = A.to_sparse(layout=layout)
    torch.testing.assert_close(sparse.mm(a, B), A @ B)
    torch.testing.assert_close(sparse.addmm(torch.ones(2, 2), a, B, beta=3, alpha=2),
                               3 + 2 * A @ B)
    both = sparse.mm(a, B.to_sparse(layout=layout))
    assert both.layout is layout
    torch.testing.assert_close(both.to_dense(), A @ B)


@pytest.mark.parametrize("reduce, wanted", [
    ("sum", [[0, 2], [2, 9]]), ("mean", [[0, 2], [1, 4.5]]), ("amax", [[0, 2], [8, 12]]),
    ("amin", [[0, 2], [-6, -3]])])
def test_other_sums_of_products(reduce, wanted):
    assert sparse.mm(A.to_sparse_csr(), B, reduce).tolist() == wanted


def test_products_at_places():
    places = torch.eye(2).to_sparse_csr()
    found = sparse.sampled_addmm(places, A, B, beta=5, alpha=2)
    torch.testing.assert_close(found.to_dense(), (5 + 2 * (A @ B)) * torch.eye(2))
    out = torch.eye(2).to_sparse_csr()
    assert sparse.sampled_addmm(places, A, B, out=out) is out
    torch.testing.assert_close(out.values(), (A @ B).diagonal() + 1)


def test_sums():
    a = A.to_sparse()
    assert sparse.sum(a).item() == 9
    assert sparse.sum(a, 0).to_dense().tolist() == [3, 2, 4] and sparse.sum(a, 0).is_sparse
    assert not sparse.sum(a, (0, 1)).is_sparse
    assert sparse.sum(a.int(), dtype=torch.float64).dtype is torch.float64
    x = A.to_sparse().requires_grad_()
    (sparse.sum(x, 1).to_dense() * torch.tensor([1.0, 2.0])).sum().backward()
    assert x.grad.to_dense().tolist() == [[0, 1, 0], [2, 0, 2]]


def test_softmax_is_over_the_entries_alone():
    a = A.to_sparse()
    found = sparse.softmax(a, 1)
    torch.testing.assert_close(found.coalesce().values()[1:], torch.tensor([3.0, 4.0]).softmax(0))
    assert found.coalesce().values()[0] == 1
    torch.testing.assert_close(sparse.log_softmax(a, 1).coalesce().values(),
                               found.coalesce().values().log())


def test_diagonals():
    found = sparse.spdiags(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
                           torch.tensor([0, -1]), (3, 3))
    assert found.to_dense().tolist() == [[1, 0, 0], [4, 2, 0], [0, 5, 3]]


def test_the_switch_nests_and_decorates():
    assert not checks.is_enabled()
    with checks():
        assert checks.is_enabled()
        with checks(enable=False):
            assert not checks.is_enabled()
        assert checks.is_enabled()

    @checks()
    def inside():
        return checks.is_enabled()

    assert inside() and not checks.is_enabled()
    once = checks()
    with once, pytest.raises(RuntimeError, match="already activated"), once:
        pass
    checks.enable()
    assert checks.is_enabled()
    checks.disable()
    assert not checks.is_enabled()
